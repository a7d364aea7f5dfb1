package routing

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
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
		lang.Member[*Routes]{Name: "lanes", Column: true, Doc: "number of virtual lanes that paths can use, from VL 0, by their service levels", Get: func(v *Routes) starlark.Value { return starlark.MakeInt(v.Tables.Lanes()) }},
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
		lang.Member[*Routes]{Method: &verifyMethod},
		lang.Member[*Routes]{Method: &failuresMethod},
		lang.Member[*Routes]{Method: &traceMethod},
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

func (v *Routes) Facts() []lang.Fact {
	return RoutesType.Facts(v)
}

func (v *Routes) Display() string {
	text := v.String() + "\n"
	for _, note := range allNotes(v.Tables) {
		text += "note: " + lang.OneLine(note) + "\n"
	}
	return text
}

// allNotes returns the notes on the read, then those of the engine.
func allNotes(r *routes.Routes) []string { return slices.Concat(r.ReadNotes, r.Notes) }

// editing is lang.Do for a method that changes its receiver.
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
