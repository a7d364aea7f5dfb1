package builtins

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/fabric/routing"
)

// routesValue is the value `routes`: forwarding tables, service levels and
// virtual lanes. It can be changed until it is frozen.
type routesValue struct {
	r      *routing.Routes
	graph  *graphValue
	rows   []*rowValue // by switch, made when asked for
	frozen bool
}

var (
	_ starlark.Mapping  = (*routesValue)(nil)
	_ starlark.Sequence = (*routesValue)(nil)
	_ starlark.HasAttrs = (*routesValue)(nil)
	_ factual           = (*routesValue)(nil)
	_ documented        = (*routesValue)(nil)
)

var routesType *valueType[*routesValue]

func init() {
	routesType = newType("routes", "Forwarding tables of all switches, and the service levels and virtual lanes of paths: routes[switch] is a row, and it iterates over the switches.",
		member[*routesValue]{name: "graph", doc: "of which they are", get: func(v *routesValue) starlark.Value { return v.graph }},
		member[*routesValue]{name: "fabric", doc: "of which they are", get: func(v *routesValue) starlark.Value { return v.graph.fabric }},
		member[*routesValue]{name: "engine", doc: `what made them: "ftree"; None if nothing has`, get: func(v *routesValue) starlark.Value { return textOrNone(v.r.Engine) }},
		member[*routesValue]{name: "top", doc: "the last LID of every row", get: func(v *routesValue) starlark.Value { return starlark.MakeInt(int(v.r.Top())) }},
		member[*routesValue]{name: "entries", doc: "how many LIDs have a port, over all switches", get: func(v *routesValue) starlark.Value { return starlark.MakeInt(v.r.Entries()) }},
		member[*routesValue]{name: "notes", doc: "what was decided in making them, or is amiss with what was read", get: func(v *routesValue) starlark.Value { return texts(allNotes(v.r)) }},
		member[*routesValue]{method: &assignMethod},
		member[*routesValue]{method: &ssspMethod},
		member[*routesValue]{method: &cloneMethod},
		member[*routesValue]{method: &verifyMethod},
		member[*routesValue]{method: &failuresMethod},
		member[*routesValue]{method: &traceMethod},
		member[*routesValue]{method: &congestionMethod},
		member[*routesValue]{method: &balanceMethod},
		member[*routesValue]{method: &diffMethod},
		member[*routesValue]{method: &dumpRoutesMethod},
	)
}

func newRoutes(r *routing.Routes, g *graphValue) *routesValue {
	return &routesValue{r: r, graph: g, rows: make([]*rowValue, len(g.g.Switches()))}
}

func (v *routesValue) String() string {
	name := v.r.Engine
	if name != "" {
		name += ", "
	}
	return fmt.Sprintf("routes(%s%s, LIDs 1..%d)", name, count(len(v.rows), "switch"), v.r.Top())
}
func (v *routesValue) Type() string          { return "routes" }
func (v *routesValue) Freeze()               { v.frozen = true }
func (v *routesValue) Truth() starlark.Bool  { return true }
func (v *routesValue) Hash() (uint32, error) { return 0, unhashable(v) }
func (v *routesValue) Len() int              { return len(v.rows) }
func (v *routesValue) AttrNames() []string   { return routesType.names }
func (v *routesValue) typeDoc() typeDoc      { return routesType.typeDoc() }
func (v *routesValue) schema() string        { return "routes/1" }

func (v *routesValue) Attr(name string) (starlark.Value, error) { return routesType.attr(v, name) }

func (v *routesValue) Iterate() starlark.Iterator {
	return starlark.NewList(v.graph.nodes(nil)).Iterate()
}

// Get is routes[switch].
func (v *routesValue) Get(key starlark.Value) (starlark.Value, bool, error) {
	s, err := v.graph.switchOf(key)
	if err != nil {
		return nil, false, err
	}
	if v.rows[s] == nil {
		v.rows[s] = &rowValue{of: v, s: s, entries: v.r.Row(s)}
	}
	return v.rows[s], true, nil
}

func (v *routesValue) facts() []fact {
	var out []fact
	for _, name := range []string{"engine", "top", "entries", "notes"} {
		x, _ := v.Attr(name)
		out = append(out, fact{name: name, value: x})
	}
	return append([]fact{{name: "switches", value: starlark.MakeInt(len(v.rows))}}, out...)
}

func (v *routesValue) display() string {
	text := v.String() + "\n"
	for _, note := range allNotes(v.r) {
		text += "note: " + oneLine(note) + "\n"
	}
	return text
}

// allNotes are the remarks on what was read, then those of what made the tables.
func allNotes(r *routing.Routes) []string { return slices.Concat(r.ReadNotes, r.Notes) }

func (v *routesValue) checkMutable() error {
	if v.frozen {
		return errors.New("these routes are frozen, as all that a loaded module defines: change a clone()")
	}
	return nil
}

func textOrNone(s string) starlark.Value {
	if s == "" {
		return starlark.None
	}
	return starlark.String(s)
}

// routesOf reads a parameter of routes; nil where it is not given.
func (c *call) routesOf(param string) (*routing.Routes, error) {
	if !c.Has(param) {
		return nil, nil
	}
	v, ok := c.Value(param).(*routesValue)
	if !ok {
		return nil, c.paramError(param, "got %s, want routes", c.Value(param).Type())
	}
	return v.r, nil
}

var cloneMethod = Builtin{
	Name: "clone",
	Doc:  "Returns a copy that can be changed on its own.",
	Example: `
> t = discover().graph().route("minhop")
> u = t.clone()
> u[u.graph.switches[0]][20] = None
> u.diff(t).entries
1
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*routesValue)
		return newRoutes(v.r.Clone(), v.graph), nil
	},
}

var routesMethod = Builtin{
	Name: "routes",
	Doc:  "Returns tables that drop everything, to be filled in.",
	Example: `
> discover().graph().routes()
routes(12 switches, LIDs 1..44)
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*graphValue)
		return newRoutes(routing.NewRoutes(v.g, 0), v), nil
	},
}
