package builtins

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/fabric/routing"
)

// hopsValue is the value `hops`.
type hopsValue struct {
	h     *routing.Hops
	graph *graphValue
}

var (
	_ starlark.Mapping  = (*hopsValue)(nil)
	_ starlark.HasAttrs = (*hopsValue)(nil)
	_ documented        = (*hopsValue)(nil)
)

var hopsType *valueType[*hopsValue]

func init() {
	hopsType = newType("hops", "The distances of all switches from all others: hops[s, d], None where there is no way.",
		member[*hopsValue]{name: "graph", doc: "of which they are", get: func(v *hopsValue) starlark.Value { return v.graph }},
		member[*hopsValue]{name: "max", doc: "the longest", get: func(v *hopsValue) starlark.Value { return starlark.MakeInt(v.h.Max()) }},
		member[*hopsValue]{method: &nextMethod},
	)
}

func (v *hopsValue) String() string        { return fmt.Sprintf("hops(of %s)", v.graph) }
func (v *hopsValue) Type() string          { return "hops" }
func (v *hopsValue) Freeze()               {}
func (v *hopsValue) Truth() starlark.Bool  { return true }
func (v *hopsValue) Hash() (uint32, error) { return 0, unhashable(v) }
func (v *hopsValue) AttrNames() []string   { return hopsType.names }
func (v *hopsValue) typeDoc() typeDoc      { return hopsType.typeDoc() }

func (v *hopsValue) Attr(name string) (starlark.Value, error) { return hopsType.attr(v, name) }

// Get is hops[s, d].
func (v *hopsValue) Get(key starlark.Value) (starlark.Value, bool, error) {
	pair, ok := key.(starlark.Tuple)
	if !ok || len(pair) != 2 {
		return nil, false, fmt.Errorf("distances are indexed by two switches: hops[s, d]")
	}
	s, err := v.graph.switchOf(pair[0])
	if err != nil {
		return nil, false, err
	}
	d, err := v.graph.switchOf(pair[1])
	if err != nil {
		return nil, false, err
	}
	if n := v.h.Distance(s, d); n >= 0 {
		return starlark.MakeInt(n), true, nil
	}
	return starlark.None, true, nil
}

var nextMethod = Builtin{
	Name: "next",
	Params: []Param{
		{Name: "s", Kind: KindAny, Doc: "a switch"},
		{Name: "d", Kind: KindAny, Doc: "another"},
	},
	Doc: "Returns the ports of switch s that lead one step nearer to switch d, in order of preference.",
	Example: `
> g = discover().graph()
> len(g.hops().next(g.switches[0], g.switches[1]))
4
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*hopsValue)
		var at [2]int
		for i, param := range []string{"s", "d"} {
			s, err := v.graph.switchOf(c.Value(param))
			if err != nil {
				return nil, c.paramError(param, "%w", err)
			}
			at[i] = s
		}
		n := v.graph.g.Switches()[at[0]]
		var list []starlark.Value
		for _, p := range v.h.Next(at[0], at[1]) {
			list = append(list, port{n.Port(int(p))})
		}
		return starlark.NewList(list), nil
	},
}
