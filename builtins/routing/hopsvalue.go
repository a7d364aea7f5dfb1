package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
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
	_ lang.Documented   = (*hopsValue)(nil)
)

var HopsType *lang.Type[*hopsValue]

func init() {
	HopsType = lang.NewType("hops", "The distances of all switches from all others: hops[s, d], None where there is no way.",
		lang.Member[*hopsValue]{Name: "graph", Doc: "of which they are", Get: func(v *hopsValue) starlark.Value { return v.graph }},
		lang.Member[*hopsValue]{Name: "max", Doc: "the longest", Get: func(v *hopsValue) starlark.Value { return starlark.MakeInt(v.h.Max()) }},
		lang.Member[*hopsValue]{Method: &nextMethod},
	)
}

func (v *hopsValue) String() string        { return fmt.Sprintf("hops(of %s)", v.graph) }
func (v *hopsValue) Type() string          { return "hops" }
func (v *hopsValue) Freeze()               {}
func (v *hopsValue) Truth() starlark.Bool  { return true }
func (v *hopsValue) Hash() (uint32, error) { return 0, lang.Unhashable(v) }
func (v *hopsValue) AttrNames() []string   { return HopsType.Names }
func (v *hopsValue) TypeDoc() lang.TypeDoc { return HopsType.TypeDoc() }

func (v *hopsValue) Attr(name string) (starlark.Value, error) { return HopsType.Attr(v, name) }

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

var nextMethod = lang.Builtin{
	Name: "next",
	Params: []lang.Param{
		{Name: "s", Kind: lang.KindAny, Doc: "a switch"},
		{Name: "d", Kind: lang.KindAny, Doc: "another"},
	},
	Doc: "Returns the ports of switch s that lead one step nearer to switch d, in order of preference.",
	Example: `
> g = discover().graph()
> len(g.hops().next(g.switches[0], g.switches[1]))
4
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*hopsValue)
		var at [2]int
		for i, param := range []string{"s", "d"} {
			s, err := v.graph.switchOf(c.Value(param))
			if err != nil {
				return nil, lang.ParamError(param, "%w", err)
			}
			at[i] = s
		}
		n := v.graph.g.Switches()[at[0]]
		var list []starlark.Value
		for _, p := range v.h.Next(at[0], at[1]) {
			list = append(list, topology.PortOf(n.Port(int(p))))
		}
		return starlark.NewList(list), nil
	}),
}
