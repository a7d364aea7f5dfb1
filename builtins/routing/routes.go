package routing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Routes is the value `routes`. Scripts can change it until it is frozen.
type Routes struct {
	// Tables are the forwarding tables, service levels and virtual lanes.
	Tables *routes.Routes

	graph  *graphValue
	rows   []*rowValue // by switch, made at the first use
	frozen bool
}

var (
	_ starlark.Mapping  = (*Routes)(nil)
	_ starlark.Sequence = (*Routes)(nil)
	_ starlark.HasAttrs = (*Routes)(nil)
	_ lang.Factual      = (*Routes)(nil)
	_ lang.Documented   = (*Routes)(nil)
)

// RoutesType is the type of routes. It is made by init, for its methods make values
// of it.
var RoutesType *lang.Type[*Routes]

func init() {
	RoutesType = lang.NewType("routes", "Forwarding tables of all switches, and the service levels and virtual lanes of paths: routes[switch] is a row, and it iterates over the switches.",
		lang.Member[*Routes]{Name: "graph", Type: "graph", Doc: "their graph", Get: func(v *Routes) starlark.Value { return v.graph }},
		lang.Member[*Routes]{Name: "fabric", Type: "fabric", Doc: "their fabric", Get: func(v *Routes) starlark.Value { return v.graph.fabric }},
		lang.Member[*Routes]{Name: "num_switches", Type: "int", Column: true, Doc: "number of switches", Get: func(v *Routes) starlark.Value { return starlark.MakeInt(len(v.rows)) }},
		lang.Member[*Routes]{Name: "engine", Type: "string", Column: true, Doc: `what made them: "ftree"; None: unknown`, Get: func(v *Routes) starlark.Value { return lang.TextOrNone(v.Tables.Engine) }},
		lang.Member[*Routes]{Name: "top", Column: true, Doc: "the last LID of every row", Get: func(v *Routes) starlark.Value { return starlark.MakeInt(int(v.Tables.Top())) }},
		lang.Member[*Routes]{Name: "entries", Column: true, Doc: "number of entries with a port, over all switches", Get: func(v *Routes) starlark.Value { return starlark.MakeInt(v.Tables.Entries()) }},
		lang.Member[*Routes]{Name: "notes", Column: true, Doc: "decisions of the engine, and problems with what was read", Get: func(v *Routes) starlark.Value { return lang.Texts(allNotes(v.Tables)) }},
		lang.Member[*Routes]{Name: "lanes", Column: true, Doc: "number of virtual lanes, from VL 0 to the highest that the service levels of paths can have; verify().lanes counts those that paths use", Get: func(v *Routes) starlark.Value { return starlark.MakeInt(v.Tables.Lanes()) }},
		lang.Member[*Routes]{Name: "adaptive_lids", Type: "tuple of int", Doc: "the LIDs of end ports to which some switch routes packets adaptively, in order", Get: adaptiveLIDs},
		lang.Member[*Routes]{Method: &assignMethod},
		lang.Member[*Routes]{Method: &completeMethod},
		lang.Member[*Routes]{Method: &ssspMethod},
		lang.Member[*Routes]{Method: &nueMethod},
		lang.Member[*Routes]{Method: &layerMethod},
		lang.Member[*Routes]{Method: &setSLMethod},
		lang.Member[*Routes]{Method: &setSL2VLMethod},
		lang.Member[*Routes]{Method: &choicesMethod},
		lang.Member[*Routes]{Method: &setChoicesMethod},
		lang.Member[*Routes]{Method: &groupFaultsMethod},
		lang.Member[*Routes]{Method: &cloneMethod},
		lang.Member[*Routes]{Method: &repairMethod},
		lang.Member[*Routes]{Method: &madeByMethod},
		lang.Member[*Routes]{Method: &verifyMethod},
		lang.Member[*Routes]{Method: &failuresMethod},
		lang.Member[*Routes]{Method: &traceMethod},
		lang.Member[*Routes]{Method: &explainMethod},
		lang.Member[*Routes]{Method: &congestionMethod},
		lang.Member[*Routes]{Method: &balanceMethod},
		lang.Member[*Routes]{Method: &diffMethod},
		lang.Member[*Routes]{Method: &planMethod},
		lang.Member[*Routes]{Method: &dumpRoutesMethod},
	).AtVersion(3)
}

// newRoutes returns the value of r, tables for the graph g.
func newRoutes(r *routes.Routes, g *graphValue) *Routes {
	return &Routes{Tables: r, graph: g, rows: make([]*rowValue, len(g.g.Switches()))}
}

func (v *Routes) String() string {
	name := v.Tables.Engine
	if name != "" {
		name += ", "
	}
	return fmt.Sprintf("routes(%s%s, LIDs 1..%d)", name, plural.Count(len(v.rows), "switch", "switches"), v.Tables.Top())
}

func (v *Routes) Type() string                             { return "routes" }
func (v *Routes) Freeze()                                  { v.frozen = true }
func (v *Routes) Truth() starlark.Bool                     { return true }
func (v *Routes) Hash() (uint32, error)                    { return 0, lang.Unhashable(v) }
func (v *Routes) Len() int                                 { return len(v.rows) }
func (v *Routes) AttrNames() []string                      { return RoutesType.Names }
func (v *Routes) TypeDoc() lang.TypeDoc                    { return RoutesType.TypeDoc() }
func (v *Routes) Schema() string                           { return RoutesType.Schema() }
func (v *Routes) Attr(name string) (starlark.Value, error) { return RoutesType.Attr(v, name) }

func (v *Routes) Iterate() starlark.Iterator {
	return starlark.NewList(v.graph.switches()).Iterate()
}

// Get is routes[switch].
func (v *Routes) Get(key starlark.Value) (starlark.Value, bool, error) {
	s, err := v.graph.switchOf(key)
	if err != nil {
		return nil, false, err
	}
	if v.rows[s] == nil {
		v.rows[s] = &rowValue{of: v, s: s}
	}
	return v.rows[s], true, nil
}

func (v *Routes) Facts() []lang.Fact { return RoutesType.Facts(v) }

func (v *Routes) Display() string {
	text := v.String() + "\n"
	for _, note := range allNotes(v.Tables) {
		text += "note: " + lang.OneLine(note) + "\n"
	}
	return text
}

// allNotes returns the notes on the read, then the notes of the engine.
func allNotes(r *routes.Routes) []string { return slices.Concat(r.ReadNotes, r.Notes) }

// editing returns the body of a method that changes its receiver, as lang.Do does for others.
func editing[V interface{ checkMutable() error }, A any](fn func(c *lang.Call, v V, a *A) (starlark.Value, error)) *lang.Body {
	return lang.Do(func(c *lang.Call, a *A) (starlark.Value, error) {
		v := c.Recv.(V)
		if err := v.checkMutable(); err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return fn(c, v, a)
	})
}

// checkMutable returns an error if the routes are frozen, as Starlark freezes the globals
// of a loaded module.
func (v *Routes) checkMutable() error {
	if v.frozen {
		return errors.New("these routes are frozen, like everything that a loaded module defines; change a clone()")
	}
	return nil
}

// cloneMethod is routes.clone().
var cloneMethod = lang.Builtin{
	Name:    "clone",
	Returns: "routes",
	Params:  []lang.Param{{Name: "choices", Kind: lang.KindBool, Default: "True", Keyword: true, Doc: "with the choices of adaptive routing; False: only the static ports, which can be written"}},
	Doc:     "Returns an independent copy.",
	Example: `
> t = discover().graph().route("minhop")
> u = t.clone()
> u[u.graph.switches[0]][20] = None
> u.diff(t).entries
1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Choices bool }) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		if !a.Choices {
			return newRoutes(v.Tables.StaticPart(), v.graph), nil
		}
		return newRoutes(v.Tables.Clone(), v.graph), nil
	}),
}

// routesMethod is graph.routes(): tables without an entry.
var routesMethod = lang.Builtin{
	Name:    "routes",
	Returns: "routes",
	Doc:     "Returns empty tables to fill in, which drop all packets.",
	Example: `
> discover().graph().routes()
routes(12 switches, LIDs 1..44)
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		return newRoutes(routes.New(v.g, 0), v), nil
	}),
}

// LoadRoutes is load_routes(): tables of a file.
var LoadRoutes = lang.Builtin{
	Name:    "load_routes",
	Returns: "routes",
	Group:   topology.GroupFabric,
	Params: []lang.Param{
		{Name: "path", Kind: lang.KindPath, Doc: "a file of forwarding tables: opensm-lfts.dump, opensm.fdbs, output of ibroute or dump_fts, ibdiagnet2.far, or a snapshot"},
		{Name: "fabric", Kind: kindFabric, Default: "None", Doc: "their fabric (default: the session's)"},
		{Name: "sl", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "a file of the service levels of paths"},
		{Name: "sl2vl", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "a file of the virtual lanes of service levels: opensm-sl2vl.dump, ibdmchk's short form, output of smpquery sl2vl, or a snapshot made with --all"},
		{Name: "far", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "a file of adaptive routing: ibdiagnet2.far"},
	},
	Doc: `Reads forwarding tables from a file: routes.
The format is recognized by the content. As in OpenSM, entries go to the LIDs that their ports have in the fabric, if the file has the owners of LIDs. The notes list differences between file and fabric.`,
	Example: `
> f = load_fabric("net.topo")
> t = load_routes("net.lfts", f)
> t[f.switches[0]][2]
1
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Path      string
		Fabric    *topology.Fabric
		SL, SL2VL string
		FAR       string
	}) (starlark.Value, error) {
		f, err := fabricOr(c, a.Fabric)
		if err != nil {
			return nil, err
		}
		files := routes.Files{LFTs: a.Path, SL: a.SL, SL2VL: a.SL2VL, FAR: a.FAR}
		var r *routes.Routes
		err = c.Block(func(ctx context.Context) (err error) {
			r, err = routes.Load(f.Fabric, files, func(name string) (io.ReadCloser, error) { return c.Runtime().Files.Open(ctx, name) })
			return err
		})
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, newGraph(r.Graph(), f)), nil
	}),
}

// fabricOr returns f, or the session's fabric if f was not given.
func fabricOr(c *lang.Call, f *topology.Fabric) (*topology.Fabric, error) {
	if f != nil {
		return f, nil
	}
	return topology.CurrentFabric(c.Thread)
}

// GetRoutes is get_routes(): the tables of the switches themselves.
var GetRoutes = lang.Builtin{
	Name:    "get_routes",
	Returns: "routes",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "fabric", Kind: kindFabric, Default: "None", Doc: "the fabric whose switches are read (default: the session's)"},
		{Name: "adaptive", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "whether the tables of adaptive routing are read, where it is on"},
		{Name: "lanes", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "whether the virtual lanes and service levels of paths are read too"},
	},
	Doc: `Reads the forwarding tables of all switches of a fabric: routes.
The tables of a fabric from a snapshot that has them come from that file. Otherwise all switches are read at once, each up to the block of LinearFDBTop. For a switch that did not answer there is a note and a warning on stderr, and the exit status is 3.
Where a switch routes adaptively, packets do not follow its forwarding table, which may be out of date. adaptive=True reads what they follow: one request for 16 LIDs and one for two sub-groups of each such switch, whose number is shown first. An entry is then the static port, and routes.choices() has all ports. get_ar explains how the tables are read and checked.
Without lanes=True, all paths are on VL 0, where those of OpenSM's dfsssp, lash, nue with several lanes and torus-2QoS close credit loops. lanes=True reads the SL2VL of all switches, and the path records between all channel adapters and routers, of at most 512 LIDs; it is an error if these are unknown. A snapshot has no path records: load_routes(path, sl=, sl2vl=) reads files of them.`,
	Example: `
> t = get_routes(discover())
> t.verify().unreachable
0
> t.diff(get_routes()).blocks
0
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Fabric          *topology.Fabric
		Adaptive, Lanes bool
	}) (starlark.Value, error) {
		f, err := fabricOr(c, a.Fabric)
		if err != nil {
			return nil, err
		}
		r, err := readRoutes(c, f.Fabric, a.Adaptive)
		if err == nil && a.Lanes {
			err = readLanes(c, r)
		}
		if err != nil {
			return nil, err
		}
		return newRoutes(r, newGraph(r.Graph(), f)), nil
	}),
}

// ReadRoutes reads the tables of all switches of f, for commands; with adaptive, also the
// tables of adaptive routing where it is on.
func ReadRoutes(t *starlark.Thread, f *fabric.Fabric, adaptive bool) (r *routes.Routes, err error) {
	err = lang.Operate(t, "get_routes", func(c *lang.Call) (err error) {
		r, err = readRoutes(c, f, adaptive)
		return err
	})
	return r, err
}

// readRoutes reads the tables of all switches of f. It warns about switches that did not answer,
// counts and notes them; it is an error if no switch answered.
func readRoutes(c *lang.Call, f *fabric.Fabric, adaptive bool) (*routes.Routes, error) {
	if r, err := routes.OfFabric(f); r != nil || err != nil {
		return r, err
	}
	e, err := topology.EngineOf(c)
	if env := topology.EnvOf(c.Runtime()); err != nil && env.History != nil {
		return nil, lang.Errorf("%w", notInFile(env.NoTables()+"; load_routes(path) and verify --lfts FILE read them from a file"))
	} else if err != nil && env.Loaded != nil {
		return nil, lang.Errorf("%w", noTables)
	}
	if err != nil {
		return nil, err
	}
	env, kind := topology.EnvOf(c.Runtime()), kindTables
	if adaptive {
		kind = kindAdaptiveTables
	}
	if kept, ok := env.RecentTable(f, kind).(*routes.Routes); ok {
		return kept.Clone(), nil
	}
	var r *routes.Routes
	var failed []device.SwitchError
	err = c.Block(func(ctx context.Context) (err error) {
		if adaptive {
			defer c.Runtime().Progress("")
			r, failed, err = device.ReadAdaptiveRoutes(ctx, e, f, topology.AnnounceRequests(c))
		} else {
			r, failed, err = device.ReadRoutes(ctx, e, f)
		}
		return err
	})
	if err != nil {
		return nil, computeError(c, err)
	}
	var first error
	for range len(r.Graph().Switches()) - len(failed) {
		topology.ObserveOne(c, mad.AttrLinearForwardingTable, nil, nil)
	}
	for _, x := range failed {
		t := topology.NodeTarget(x.Switch)
		if errors.Is(x.Err, device.ErrNoAddress) {
			x.Err = t.Reachable()
		}
		failure := topology.FailedRequest(c, &t, x.Err)
		topology.CountUnanswered(c, x.Err)
		topology.ObserveOne(c, mad.AttrLinearForwardingTable, &t, x.Err)
		c.Fiber().Warn("%v", failure)
		r.ReadNotes = append(r.ReadNotes, fmt.Sprintf("the table of %s is unknown: %v", x.Switch.Label(), failure))
		if first == nil {
			first = failure
		}
	}
	if len(failed) > 0 && len(failed) == len(r.Graph().Switches()) {
		return nil, first
	}
	if len(failed) == 0 {
		env.KeepTable(f, kind, r.Clone())
	}
	return r, nil
}

// Kinds of tables that a server keeps from one call to the next: a routes.Routes each.
const (
	kindTables         = "tables"
	kindAdaptiveTables = "adaptive tables"
	kindLanes          = "SL2VL"
	kindLevels         = "service levels"
)

// readLanes gives tables that were just read the virtual lanes of switches and the service levels of
// path records.
func readLanes(c *lang.Call, r *routes.Routes) error {
	if err := ReadSL2VL(c, r); err != nil {
		return err
	}
	env, f := topology.EnvOf(c.Runtime()), r.Graph().Fabric()
	if kept, ok := env.RecentTable(f, kindLevels).(*routes.Routes); ok {
		r.SL = kept.Clone().SL
		return nil
	}
	return c.Block(func(ctx context.Context) error {
		levels, _, err := device.ReadLevels(ctx, env.SA, r)
		if err != nil {
			return lang.Errorf("the service levels of paths are unknown: %w; load_routes(path, sl=FILE, sl2vl=FILE) reads them from files", err)
		}
		r.SL = levels
		env.KeepTable(f, kindLevels, r.Clone())
		return nil
	})
}

// ReadSL2VL gives tables that were just read the virtual lanes of the switches, or of the snapshot that
// the session reads.
func ReadSL2VL(c *lang.Call, r *routes.Routes) error {
	e, err := topology.ReaderOf(c)
	if err != nil && topology.EnvOf(c.Runtime()).Loaded != nil {
		return lang.Errorf("%w", noLanes)
	}
	if err != nil {
		return err
	}
	env, f := topology.EnvOf(c.Runtime()), r.Graph().Fabric()
	if kept, ok := env.RecentTable(f, kindLanes).(*routes.Routes); ok {
		r.SL2VL = kept.Clone().SL2VL
		return nil
	}
	return c.Block(func(ctx context.Context) error {
		if err := device.ReadLanes(ctx, e, r); err != nil {
			return lang.Errorf("%w", err)
		}
		env.KeepTable(f, kindLanes, r.Clone())
		return nil
	})
}

// InLanes returns the verdict on tables that were read from switches, or from the snapshot that the session
// reads, with their virtual lanes if v, the verdict on the tables alone, has a credit loop.
func InLanes(c *lang.Call, r *routes.Routes, o verify.Options, v *verify.Verdict) (*verify.Verdict, error) {
	if v.Acyclic || r.SL != nil || r.SL2VL != nil || v.Adaptive == verify.AdaptiveUnknown {
		return v, nil
	}
	e, err := topology.EngineOf(c)
	if err != nil && topology.EnvOf(c.Runtime()).Loaded != nil {
		return v.WithoutLoop(string(noLevels)), nil
	}
	if err != nil {
		return nil, err
	}
	defer progress(c, "reading virtual lanes")()
	err = c.Block(func(ctx context.Context) (err error) {
		v, err = device.VerifyInLanes(ctx, e, topology.EnvOf(c.Runtime()).SA, r, o, v)
		return err
	})
	return v, err
}

// dumpRoutesMethod is routes.dump(): tables as the text of a file.
var dumpRoutesMethod = lang.Builtin{
	Name:    "dump",
	Returns: "string",
	Params:  []lang.Param{{Name: "kind", Kind: lang.KindChoice, Default: `"opensm-lfts"`, Doc: format.TablesHelp()}},
	Doc: `Returns the tables as the text of a file.
Service levels and virtual lanes are in files of their own, path-sl and opensm-sl2vl, which load_routes(path, sl=, sl2vl=) reads; the other kinds, a snapshot too, have none.
fabsh route POLICY --out FILE writes one without holding it in memory.`,
	Example: `
> discover().graph().route("ftree").dump().splitlines()[0]
"Unicast lids [0-44] of switch Lid 1 guid 0x0002c90300100000 ('leaf-1'):"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Kind string }) (starlark.Value, error) {
		var b bytes.Buffer
		if err := c.Recv.(*Routes).Tables.Write(c.Fiber().Context, &b, format.FormatName(a.Kind)); err != nil {
			return nil, computeError(c, err)
		}
		return starlark.String(b.String()), nil
	}),
}

// planMethod is routes.plan(): the change from other tables to these.
var planMethod = lang.Builtin{
	Name:    "plan",
	Returns: "plan",
	Params: []lang.Param{
		{Name: "live", Kind: kindRoutes, Doc: "the current tables, from get_routes()"},
		{Name: "static", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "plan static routing where adaptive routing is on, as plan(static=True)"},
	},
	Doc: `Plans the change from the current tables to these: the writes, in an order that is proved to be safe.
It only reads. Entries that differ are planned; LIDs above these tables are left unchanged. Where adaptive routing is on at a switch of the fabric, it is refused without static=True; with it, adaptive routing is disabled at all switches.`,
	Example: `
> f = discover()
> new = get_routes(f).clone()
> new[f.switches[0]][20] = new[f.switches[0]][21]
> new.plan(get_routes(f)).sets[0].change
"LIDs 0..63: 1 entry"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Live   *routes.Routes
		Static bool
	}) (starlark.Value, error) {
		r := c.Recv.(*Routes).Tables
		from := r.Engine
		if from == "" {
			from = "routes"
		}
		return changes.Made(c, from, a.Static, func() error { return changes.WriteRoutes(c, r, a.Live) })
	}),
}

// notInFile reports that the file of the session lacks something, which is not an error of the script.
type notInFile string

func (e notInFile) Error() string { return string(e) }

func (notInFile) Unwrap() error { return topology.ErrNotInFile }

const (
	noTables notInFile = "the file has no forwarding tables; load_routes(path) and verify --lfts FILE read them from another, and fabsh snapshot writes both"
	noLevels notInFile = "on one virtual lane the tables close one, and the file has no service levels of paths; verify --sl FILE and load_routes(path, sl=, sl2vl=) read them from another"
	noLanes  notInFile = "the file has no virtual lanes of switches; load_routes(path, sl2vl=) and verify --lfts FILE --sl2vl FILE read them from another, and fabsh snapshot --all writes them"
)

// DiffType is the type of the result of routes.diff().
var DiffType = &lang.ResultType{
	Name: "routes_diff",
	Doc:  "The changes of tables from one routes to another.",
	Members: []lang.ResultMember{
		{Name: "switches", Doc: "number of switches whose tables change"},
		{Name: "entries", Doc: "number of entries, with another static port or other choices of adaptive routing"},
		{Name: "blocks", Doc: "number of blocks of 64 entries to write"},
		{Name: "lids", Doc: "LIDs whose entries change on some switch", Long: true},
		{Name: "by_switch", Doc: "for each of these switches its name, GUID, entries and the numbers of its blocks", Long: true},
		{Name: "choices", Doc: "number of entries with other choices of adaptive routing", Long: true},
	},
}

// diffMethod is routes.diff(): the entries and blocks that differ from other tables.
var diffMethod = lang.Builtin{
	Name:    "diff",
	Returns: "routes_diff",
	Params:  []lang.Param{{Name: "other", Kind: kindRoutes, Doc: "the earlier routes, for example from get_routes()"}},
	Doc: `Compares the tables with earlier ones: the changes from other to these.
Switches are matched by GUID, so the fabrics may be different snapshots.`,
	Example: `
> f = discover(); t = f.graph().route("ftree"); u = t.clone()
> u[f.switches[0]][20] = None
> u.diff(t)
switches  1
entries   1
blocks    1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Other *routes.Routes }) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		return wrapDiff(v.graph.g, v.Tables.Diff(a.Other)), nil
	}),
}

// wrapDiff returns d as a value for scripts; g is the graph of the newer tables.
func wrapDiff(g *graph.Graph, d *routes.Diff) *lang.Result {
	var bySwitch []starlark.Value
	for _, sd := range d.Switches {
		n := g.Switches()[sd.Switch]
		row := starlark.NewDict(4)
		row.SetKey(starlark.String("switch"), starlark.String(n.Name()))
		row.SetKey(starlark.String("guid"), topology.GUIDValue(n.GUID()))
		row.SetKey(starlark.String("entries"), starlark.MakeInt(sd.Entries))
		row.SetKey(starlark.String("blocks"), lang.Integers(sd.Blocks))
		bySwitch = append(bySwitch, row)
	}
	return lang.NewResult(DiffType, starlark.MakeInt(len(d.Switches)), starlark.MakeInt(d.Entries), starlark.MakeInt(d.Blocks), lang.Integers(d.LIDs), starlark.NewList(bySwitch), starlark.MakeInt(d.Choices))
}

// rowValue is the value `row`: the table of one switch of routes. Writing to it changes the
// routes.
type rowValue struct {
	of *Routes
	s  int // the switch's number in the graph
}

// entries returns the entries by LID from 0, for reading.
func (r *rowValue) entries() routes.Row { return r.of.Tables.Row(r.s) }

// writable returns the entries by LID from 0, for writing.
func (r *rowValue) writable() routes.Row {
	r.of.Tables.SetEdited()
	return r.of.Tables.EditRow(r.s)
}

// Linear returns the entries, for set_lft.
func (r *rowValue) Linear() []uint8 { return r.entries() }

var (
	_ starlark.HasSetIndex = (*rowValue)(nil)
	_ starlark.Sliceable   = (*rowValue)(nil)
	_ starlark.Sequence    = (*rowValue)(nil)
	_ starlark.HasAttrs    = (*rowValue)(nil)
	_ lang.Factual         = (*rowValue)(nil)
	_ lang.Documented      = (*rowValue)(nil)
)

// RowType is the type of rows.
var RowType *lang.Type[*rowValue]

func init() {
	RowType = lang.NewType("row", "The table of one switch, within routes: row[lid] is a port, None if the LID is dropped; row[lid] = port changes it, row[a:b] is a list, and it iterates over the entries from LID 0 on.",
		lang.Member[*rowValue]{Name: "switch", Type: "node", Column: true, Doc: "the switch", Get: func(r *rowValue) starlark.Value { return topology.NodeOf(r.node()) }},
		lang.Member[*rowValue]{Name: "guid", Type: "string", Column: true, Doc: "the switch's GUID", Get: func(r *rowValue) starlark.Value { return topology.GUIDValue(r.node().GUID()) }},
		lang.Member[*rowValue]{Name: "top", Column: true, Doc: "the last LID", Get: func(r *rowValue) starlark.Value { return starlark.MakeInt(len(r.entries()) - 1) }},
		lang.Member[*rowValue]{Name: "ports", Type: "dict", Column: true, Doc: "a dict of LID to port, of the LIDs that have one", Get: func(r *rowValue) starlark.Value { return topology.LFTPorts(r.entries()) }},
		lang.Member[*rowValue]{Name: "lids", Type: "dict", Doc: "the inverse: a dict of port to the list of its LIDs, ports in the order of their first LID", Get: func(r *rowValue) starlark.Value { return topology.LFTLIDs(r.entries()) }},
		lang.Member[*rowValue]{Name: "used_ports", Type: "list", Doc: "the ports in use, in order", Get: func(r *rowValue) starlark.Value { return topology.LFTUsed(r.entries()) }},
		lang.Member[*rowValue]{Method: &fillMethod},
		lang.Member[*rowValue]{Method: &fillModMethod},
		lang.Member[*rowValue]{Method: &copyMethod},
		lang.Member[*rowValue]{Method: &mapMethod},
	)
}

// node returns the switch.
func (r *rowValue) node() *fabric.Node { return r.of.Tables.Graph().Switches()[r.s] }

func (r *rowValue) String() string {
	return fmt.Sprintf("row(%q, %s)", r.node().Name(), plural.Count(len(r.entries())-1, "LID", "LIDs"))
}

func (r *rowValue) Type() string                             { return "row" }
func (r *rowValue) Freeze()                                  { r.of.Freeze() }
func (r *rowValue) Truth() starlark.Bool                     { return true }
func (r *rowValue) Hash() (uint32, error)                    { return 0, lang.Unhashable(r) }
func (r *rowValue) Len() int                                 { return len(r.entries()) }
func (r *rowValue) AttrNames() []string                      { return RowType.Names }
func (r *rowValue) TypeDoc() lang.TypeDoc                    { return RowType.TypeDoc() }
func (r *rowValue) Schema() string                           { return RowType.Schema() }
func (r *rowValue) Attr(name string) (starlark.Value, error) { return RowType.Attr(r, name) }
func (r *rowValue) Index(i int) starlark.Value               { return topology.LFTEntry(r.entries()[i]) }
func (r *rowValue) Iterate() starlark.Iterator               { return &rowIterator{entries: r.entries()} }

func (r *rowValue) Slice(start, end, step int) starlark.Value {
	var list []starlark.Value
	for i := start; step > 0 && i < end || step < 0 && i > end; i += step {
		list = append(list, r.Index(i))
	}
	return starlark.NewList(list)
}

func (r *rowValue) SetIndex(i int, v starlark.Value) error {
	if err := r.checkMutable(); err != nil {
		return err
	}
	p, err := r.port(v)
	if err != nil {
		return fmt.Errorf("LID %d: %w", i, err)
	}
	r.writable()[i] = p
	return nil
}

func (r *rowValue) checkMutable() error { return r.of.checkMutable() }

// rowIterator goes through the entries, LID by LID.
type rowIterator struct{ entries []byte }

func (it *rowIterator) Next(v *starlark.Value) bool {
	if len(it.entries) == 0 {
		return false
	}
	*v = topology.LFTEntry(it.entries[0])
	it.entries = it.entries[1:]
	return true
}

func (it *rowIterator) Done() {}

func (r *rowValue) Facts() []lang.Fact { return RowType.Facts(r) }

func (r *rowValue) Display() string { return topology.LFTText(r.entries()) }

// port returns the entry for v: a port, the number of a port of the switch (0: itself), or
// None to drop.
func (r *rowValue) port(v starlark.Value) (uint8, error) {
	if v == starlark.None {
		return routes.NoPort, nil
	}
	if p, ok := v.(topology.Port); ok {
		v = starlark.MakeInt(p.Num())
	}
	n, err := lang.ToInt(v)
	if err != nil {
		return 0, fmt.Errorf("a port: %w", err)
	}
	if sw := r.of.Tables.Graph().Switches()[r.s]; n < 0 || n > sw.NumPorts() {
		return 0, topology.NoSuchPort(sw, v.String())
	}
	return uint8(n), nil
}

// fillMethod is row.fill(): one port for many LIDs.
var fillMethod = lang.Builtin{
	Name: "fill",
	Params: []lang.Param{
		{Name: "lids", Kind: kindLIDs, Doc: "LIDs, or ports or nodes, which stand for their LIDs"},
		{Name: "port", Kind: lang.KindAny, Doc: "a port number, a port, or None to drop"},
	},
	Doc: "Assigns one port to many LIDs.\nLIDs after the end of the table are ignored.",
	Example: `
> g = discover().graph(); r = g.routes()[g.switches[0]]
> r.fill([20, 21], 3)
> r[19:22]
[None, 3, 3]
`,
	Run: editing(func(c *lang.Call, r *rowValue, a *struct {
		LIDs []mad.LID
		Port starlark.Value
	}) (starlark.Value, error) {
		p, err := r.port(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		r.writable().Fill(a.LIDs, p)
		return starlark.None, nil
	}),
}

// fillModMethod is row.fill_mod(): ports in turn, as in d-mod-k.
var fillModMethod = lang.Builtin{
	Name: "fill_mod",
	Params: []lang.Param{
		{Name: "lids", Kind: kindLIDs, Doc: "LIDs, or ports or nodes, which stand for their LIDs; their order counts"},
		{Name: "ports", Kind: lang.KindItems, Doc: "port numbers, or ports"},
		{Name: "div", Kind: lang.KindInt, Default: "1", Doc: "how many LIDs in a row get the same port"},
	},
	Doc: "Assigns ports to LIDs in turn: the i-th gets ports[i // div % len(ports)].\nThat is d-mod-k: div is the weight of the switch's digit.",
	Example: `
> g = discover().graph(); r = g.routes()[g.switches[0]]
> r.fill_mod([20, 21, 22, 23], [5, 6], div=2)
> r[20:24]
[5, 5, 6, 6]
`,
	Run: editing(func(c *lang.Call, r *rowValue, a *struct {
		LIDs  []mad.LID
		Ports []starlark.Value
		Div   int
	}) (starlark.Value, error) {
		ports := make([]uint8, len(a.Ports))
		for i, v := range a.Ports {
			var err error
			if ports[i], err = r.port(v); err != nil {
				return nil, lang.ParamError("ports", "%w", err)
			}
		}
		if len(ports) == 0 {
			return nil, lang.ParamError("ports", "must not be empty")
		}
		if a.Div < 1 {
			return nil, lang.ParamError("div", "got %d, want at least 1", a.Div)
		}
		r.writable().FillMod(a.LIDs, ports, a.Div)
		return starlark.None, nil
	}),
}

// copyMethod is row.copy(): the entries of another row.
var copyMethod = lang.Builtin{
	Name: "copy",
	Params: []lang.Param{
		{Name: "other", Kind: kindRow, Doc: "a row"},
		{Name: "lids", Kind: kindLIDs, Default: "None", Doc: "only these (default: all)"},
	},
	Doc: "Copies the entries of another row.",
	Example: `
> g = discover().graph(); t = g.routes(); s = g.switches[0]
> t[s].copy(g.route("minhop")[s], [20])
> t.entries
1
`,
	Run: editing(func(c *lang.Call, r *rowValue, a *struct {
		Other *rowValue
		LIDs  []mad.LID
	}) (starlark.Value, error) {
		r.writable().Copy(a.Other.entries(), a.LIDs)
		return starlark.None, nil
	}),
}

// mapMethod is row.map(): ports replaced by others.
var mapMethod = lang.Builtin{
	Name: "map",
	Params: []lang.Param{
		{Name: "ports", Kind: kindDict("dict"), Doc: "a dict of port to its replacement"},
		{Name: "lids", Kind: kindLIDs, Default: "None", Doc: "only these (default: all)"},
	},
	Doc: "Replaces ports by others, in many entries.",
	Example: `
> g = discover().graph(); r = g.route("minhop")[g.switches[0]]
> before = r[20]
> r.map({before: 8})
> r[20]
8
`,
	Run: editing(func(c *lang.Call, r *rowValue, a *struct {
		Ports *starlark.Dict
		LIDs  []mad.LID
	}) (starlark.Value, error) {
		ports := map[uint8]uint8{}
		for _, kv := range a.Ports.Items() {
			from, err := r.port(kv[0])
			if err != nil {
				return nil, lang.ParamError("ports", "%w", err)
			}
			if ports[from], err = r.port(kv[1]); err != nil {
				return nil, lang.ParamError("ports", "%w", err)
			}
		}
		r.writable().Map(ports, a.LIDs)
		return starlark.None, nil
	}),
}
