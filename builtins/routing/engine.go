package routing

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/repair"
	"fabsh/fabric/routing/routes"
)

// routeMethod is graph.route(): all tables, by an engine of fabric/routing/engines.
var routeMethod = lang.Builtin{
	Name:    "route",
	Returns: "routes",
	Params:  routeParams(),
	Doc: "Computes all tables by an engine: routes.\n" + engineDocs() +
		`It fails if the engine does not apply to the fabric; the error names the condition that does not hold, and where. An option that the engine does not support is an error.`,
	Example: `
> g = discover().graph()
> g.route("ftree")
routes(ftree, 12 switches, LIDs 1..44)
> g.route("updn", roots=g.switches[:4]).verify().ok
True
`,
	Accepts: func(args starlark.Tuple) []string {
		if len(args) == 0 {
			return nil
		}
		name, _ := starlark.AsString(args[0])
		e, _ := engines.Named(name)
		return paramsOf(&e)
	},
	Run: lang.Do(func(c *lang.Call, a *struct {
		Engine  string
		Options lang.Others
	}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		e, ok := engines.Named(a.Engine)
		if !ok {
			names := engines.Names()
			return nil, lang.ParamError("engine", "unknown engine %q%s; supported: %s", a.Engine, fabric.DidYouMean(a.Engine, names), strings.Join(names, ", "))
		}
		var o engines.Options
		for _, option := range engines.AllOptions() {
			if value, given := a.Options[option.Name]; given {
				if names := paramsOf(&e); !slices.Contains(names, option.Name) {
					return nil, lang.ParamError(option.Name, "unsupported by engine %s; supported: %s", e.Name, cmp.Or(strings.Join(names, ", "), "none"))
				}
				if err := setOption(c, &option, &o, value); err != nil {
					return nil, err
				}
			}
		}
		r, err := compute(c, v.g, e.Name, o)
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, v), nil
	}),
}

// routeParams returns the parameters: the engine, and the options of all engines.
func routeParams() []lang.Param {
	names := engines.Names()
	last := len(names) - 1
	words := `"` + strings.Join(names[:last], `", "`) + `" or "` + names[last] + `"`
	params := []lang.Param{{Name: "engine", Kind: lang.KindChoice, Doc: words}}
	for _, o := range engines.AllOptions() {
		params = append(params, lang.Param{Name: o.Name, Kind: kindOfOption(&o).param, Default: "None", Keyword: true, Doc: paramDoc(&o)})
	}
	return params
}

// engineDocs returns one line for each engine.
func engineDocs() string {
	var b strings.Builder
	for _, e := range engines.All() {
		fmt.Fprintf(&b, "%s: %s\n", e.Name, e.Doc)
	}
	return b.String()
}

// computeError returns the error of a computation of fabric/routing/..., or of the end of
// the fiber. The errors of "assign" and "dijkstra" begin with the name of the builtin
// already, so it is not repeated.
func computeError(c *lang.Call, err error) error {
	if stopped := c.Fiber().Stopped(); stopped != nil {
		return stopped
	}
	if strings.HasPrefix(err.Error(), c.Name+": ") {
		return err
	}
	return lang.Errorf("%w", err)
}

// optionKind describes an option in scripts and policies.
type optionKind struct {
	param *lang.Kind // of the parameter of route()
	none  string     // the default of the flag
	value string     // the argument made from the flag; %s is its name
}

// kindOfOption returns the kind of an option, by the type of its field.
func kindOfOption(o *engines.Option) optionKind {
	switch o.Field(new(engines.Options)).(type) {
	case *[]int:
		return optionKind{lang.KindItems, `""`, "switches(fabric, %s)"}
	case **routes.Routes:
		return optionKind{kindRoutes, `""`, "tables(fabric, %s)"}
	case engines.OptionReader:
		return optionKind{lang.KindPath, `""`, "%s or None"}
	case *string:
		return optionKind{lang.KindChoice, `""`, "%s or None"}
	case *bool:
		return optionKind{lang.KindBool, "False", "%s"}
	case *int, *uint64:
		return optionKind{lang.KindInt, "0", "%s"}
	}
	panic("routing: the option " + o.Name + " is of a type that scripts do not have")
}

// setOption sets an option to the value of its parameter.
func setOption(c *lang.Call, option *engines.Option, o *engines.Options, value any) (err error) {
	switch field := option.Field(o).(type) {
	case *[]int:
		*field, err = c.Recv.(*graphValue).rootsOf(value.([]starlark.Value))
		return err
	case **routes.Routes:
		*field = value.(*routes.Routes)
	case engines.OptionReader:
		path := pathArg{value.(string)}
		return path.read(c, func(in io.Reader) error { return field(in, path.Path) })
	case *string:
		*field = value.(string)
	case *int:
		*field = value.(int)
		if option.Max > 0 && (*field < option.Min || *field > option.Max) {
			return lang.ParamError(option.Name, "got %d, want %d..%d", *field, option.Min, option.Max)
		}
	case *bool:
		*field = value.(bool)
	case *uint64:
		*field = uint64(value.(int))
	}
	return nil
}

// paramsOf returns the options of an engine that are parameters of route().
func paramsOf(e *engines.Engine) []string {
	var names []string
	for _, o := range e.Options {
		if o.Field != nil {
			names = append(names, o.Name)
		}
	}
	return names
}

// paramDoc returns the help of the parameter of an option, with the bounds of a number,
// and its default.
func paramDoc(o *engines.Option) string {
	doc := o.Doc
	if o.Max > 0 {
		doc += fmt.Sprintf(", %d..%d", o.Min, o.Max)
	}
	if _, ok := o.Default.(int); !ok {
		return doc
	}
	doc += fmt.Sprintf("; default %d", o.Default)
	for _, e := range engines.All() {
		for _, own := range e.Options {
			if own.Name == o.Name && own.Default != o.Default {
				doc += fmt.Sprintf(", by %s %d", e.Name, own.Default)
			}
		}
	}
	return doc
}

// flagDoc returns the help of an option as a flag.
func flagDoc(o *engines.Option) string {
	doc := cmp.Or(o.FlagDoc, o.Doc)
	if o.Max > 0 {
		doc += fmt.Sprintf(", %d to %d", o.Min, o.Max)
	}
	return doc + o.FlagNote
}

// EnginePolicy returns the policy that runs an engine, as a script: its flags are the options
// of the engine. fabsh route runs it by the engine's name, and other scripts load it from
// @std//routing/.
func EnginePolicy(e *engines.Engine) string {
	var params, docs, setup, ofGraph, ofRoute string
	for _, o := range e.Options {
		flag := cmp.Or(o.Flag, o.Name)
		word, none := strings.ReplaceAll(flag, "_", "-"), `""`
		if o.Field == nil {
			ofGraph += fmt.Sprintf(", %s = %[1]s", flag)
		} else {
			kind := kindOfOption(&o)
			none = kind.none
			switch d := o.Default.(type) {
			case int:
				none = strconv.Itoa(d)
			case string:
				none, kind.value = strconv.Quote(d), "%s"
			}
			ofRoute += fmt.Sprintf(", %s = "+kind.value, o.Name, flag)
		}
		params += ", " + flag + " = " + none
		docs += "    " + word + ": " + flagDoc(&o) + "\n"
		if o.Required != "" {
			setup += fmt.Sprintf("    if not %s:\n        fail(\"%s use --%s FILE\")\n", flag, o.Required, word)
		}
	}
	graph := "fabric.graph()"
	if ofGraph != "" {
		setup += "    g = graph(fabric" + ofGraph + ")\n"
		graph = "g"
	}
	body := fmt.Sprintf("%s    return %s.route(%q%s)\n", setup, graph, e.Name, ofRoute)
	uses := ""
	for _, function := range []string{"graph", "switches", "tables"} {
		if strings.Contains(body, function+"(fabric") {
			uses += fmt.Sprintf(", %q", function)
		}
	}
	if uses != "" {
		uses = "load(\"@std//lib/opensm.star\"" + uses + ")\n\n"
	}
	if params != "" {
		params, docs = ", *"+params, "\n\n"+docs+"    "
	}
	return `"""` + e.Doc + `"""` + "\n\n" + uses + "def route(fabric" + params + "):\n    " + `"""` + e.Doc + docs + `"""` + "\n" + body
}

// chainMethod is graph.chain(): parts of the fabric, each by an engine of its own.
var chainMethod = lang.Builtin{
	Name:    "chain",
	Returns: "routes",
	Params: []lang.Param{
		{Name: "chains", Kind: lang.KindPath, Doc: "the file of the steps, in the format of rch_policy_file of NVIDIA's OpenSM: unicast-step paragraphs"},
		{Name: "topologies", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "the file of the parts, in the format of topo_policy_file; they may also be in the file of the steps"},
		{Name: "groups", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "the file of the groups of ports, in the format of pgrp_policy_file; they may also be in the file of the steps"},
	},
	Doc: `Computes tables by a routing chain: each step routes a part of the fabric by an engine; where parts overlap, the last step applies.
The first step routes the whole fabric. Engines that need virtual lanes are not supported. In the config file of a step, only root_guid_file is used. Check with verify() that the parts together close no credit loop.`,
	Example: `
> t = discover().graph().chain("chains.conf", topologies="topologies.conf", groups="groups.conf")
> t.engine, t.verify().ok
("chain", True)
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Chains             string
		Topologies, Groups *string
	}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		var p engines.ChainPolicy
		for _, path := range []*string{a.Groups, a.Topologies, &a.Chains} {
			if path == nil {
				continue
			}
			arg := pathArg{*path}
			if err := arg.read(c, func(r io.Reader) error { return p.Read(r, arg.Path) }); err != nil {
				return nil, err
			}
		}
		open := func(name string) (io.ReadCloser, error) {
			return c.Runtime().Files.Open(c.Fiber().Context, name)
		}
		r, err := engines.ComputeChain(c.Fiber().Context, v.g, &p, open)
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, v), nil
	}),
}

// repairMethod is routes.repair(): tables for the current fabric.
var repairMethod = lang.Builtin{
	Name:    "repair",
	Returns: "routes",
	Params:  []lang.Param{{Name: "fabric", Kind: kindFabric, Default: "None", Doc: "the same subnet after links, switches or hosts were lost or came back (default: discovered again)"}},
	Doc: `Returns tables for the current fabric with as few changes as possible.
Entries change only for destinations whose paths used a lost part, or get shorter with a part that came back. The guarantees of the engine that made the tables still hold: the same pairs are reached, and there is no credit loop if it allows none. The options of the graph apply to ports of the same node GUID and number.

Engines without virtual lanes: no link has more than 2% more routes than after a new run (checked except on large fat trees). Where that requires it, entries of other destinations change too.

dfsssp, lash, torus-2qos and nue: entries of other destinations stay, except as stated below for nue. If no such tables are found, the engine is run again, and everything may change. The load is compared with that of a new run only after links came back.

dfsssp and lash: only paths that change get another service level, with lash together with the path back. Where they fit on no virtual lane in use, other paths move to another service level too: at most twice as many as change, or more if no further lane is allowed. A note counts them. Where that is not enough, virtual lanes are added, one after the other, as far as max_vls allows and all links have them (operational_vls), and a note states whether a new run would need fewer and how many blocks it would change. If links lack the lanes that the repair needs, but not those of a new run, the engine is run again, with a note; where both need more, a note names the lanes that links have. The search takes some seconds at most; effort raises that. Of 273 losses of one link of a dragonfly a=6,p=3,h=2, 10 add a lane with lash. In a mesh with one lane, a second is unavoidable for most links, because the shortest paths that are left close a credit loop. After the loss of a link, at most 3 times as many blocks of tables change as must.

torus-2qos: only paths that change get another service level. A virtual lane is added only where turns around missing switches need it. On a ring that a lost link has opened, all switches change whose packets now go the other way round. After the loss of a link, at most 3 times as many blocks change as must.

nue: LIDs whose paths change may move to another virtual lane with all their paths. Where a virtual lane has no room for the paths that change, some other destinations change too; a note counts them. In 561 losses of one link that were measured, at most 2.6 times as many blocks changed as must. For this, some management packets to switches may get shortest paths that may close a credit loop; a note counts them.

dragonfly: the engine is always run again, and everything may change.

Tables from a file, or edited ones: paths that arrive are kept, and the others are replaced by paths that close no credit loop. Two kinds of paths that arrive may change: to a destination that lacks others, and over a part that came back, if they close a credit loop. Notes list the destinations without such a path. Virtual lanes are kept where service level n is on lane n and all paths are shortest ones, as with dfsssp and lash (OpenSM's too), or all paths to a LID have one service level, as with nue. For other lanes, as those of torus-2QoS, which depend on ports of switches, or if the lanes in use are not enough, new paths are the shortest ones, on service levels in use that close no credit loop; a note reports if they close one. load_routes(path, sl=, sl2vl=) and get_routes(lanes=True) read service levels and virtual lanes.`,
	Example: `
> f = discover()
> t = f.graph().route("ftree")
> t.repair(f).diff(t).entries
0
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Fabric *topology.Fabric }) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		f := a.Fabric
		if f == nil {
			var err error
			if f, err = topology.PresentFabric(c.Thread); err != nil {
				return nil, err
			}
		}
		g, err := v.Tables.Graph().For(f.Fabric)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		defer progress(c, "repairing the tables")()
		r, err := repair.Tables(c.Fiber().Context, v.Tables, g)
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, newGraph(g, f)), nil
	}),
}

// startKey is the key for the tables that route() on a thread begins with.
const startKey = "routing.start"

// StartWith makes route() on this thread repair r instead of a new run, if the engine and
// the options are the ones that made r. r may be nil.
func StartWith(t *starlark.Thread, r *routes.Routes) { t.SetLocal(startKey, r) }

// keepKey is the key for the tables whose entries route() on a thread keeps.
const keepKey = "routing.keep"

// keeping is the value of keepKey.
type keeping struct {
	live *routes.Routes
	kept bool // entries of live were kept that the engine would choose otherwise
}

// KeepEntries makes route() on this thread keep entries of r, the current tables, if the
// engine's rules allow it and the script names no tables to keep. r may be nil. kept
// reports afterwards whether any entries were kept that the engine would choose otherwise.
func KeepEntries(t *starlark.Thread, r *routes.Routes) (kept func() bool) {
	k := &keeping{live: r}
	t.SetLocal(keepKey, k)
	return func() bool { return k.kept }
}

// progress shows a long operation on a terminal, until the returned function is called.
func progress(c *lang.Call, doing string) (done func()) {
	c.Runtime().Progress(doing)
	return func() { c.Runtime().Progress("") }
}

// compute runs an engine, repairs the tables of StartWith, or keeps entries of the tables of
// KeepEntries.
func compute(c *lang.Call, g *graph.Graph, name string, o engines.Options) (*routes.Routes, error) {
	ctx := c.Fiber().Context
	defer progress(c, "computing tables by "+name)()
	if start, _ := c.Thread.Local(startKey).(*routes.Routes); start != nil && o.Keep == nil && engines.MadeBy(start, g, name, o) {
		return repair.Tables(ctx, start, g)
	}
	if k, _ := c.Thread.Local(keepKey).(*keeping); k != nil && k.live != nil && o.Keep == nil {
		r, kept, err := repair.ComputeKeeping(ctx, g, name, o, k.live)
		k.kept = k.kept || kept
		return r, err
	}
	return engines.Compute(ctx, g, name, o)
}
