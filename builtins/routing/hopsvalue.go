package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/graph"
)

// hopsValue is the value `hops`: distances between switches, in links or weights.
type hopsValue struct {
	h     *graph.Hops
	graph *graphValue
}

var (
	_ starlark.Mapping  = (*hopsValue)(nil)
	_ starlark.HasAttrs = (*hopsValue)(nil)
	_ lang.Documented   = (*hopsValue)(nil)
)

// HopsType is the type of distances.
var HopsType *lang.Type[*hopsValue]

func init() {
	HopsType = lang.NewType("hops", "The distances of all switches from all others: hops[s, d], None without a path.",
		lang.Member[*hopsValue]{Name: "graph", Type: "graph", Doc: "the graph", Get: func(v *hopsValue) starlark.Value { return v.graph }},
		lang.Member[*hopsValue]{Name: "max", Doc: "the largest distance", Get: func(v *hopsValue) starlark.Value { return starlark.MakeInt(v.h.Max()) }},
		lang.Member[*hopsValue]{Method: &nextMethod},
	)
}

func (v *hopsValue) String() string                           { return fmt.Sprintf("hops(of %s)", v.graph) }
func (v *hopsValue) Type() string                             { return "hops" }
func (v *hopsValue) Freeze()                                  {}
func (v *hopsValue) Truth() starlark.Bool                     { return true }
func (v *hopsValue) Hash() (uint32, error)                    { return 0, lang.Unhashable(v) }
func (v *hopsValue) AttrNames() []string                      { return HopsType.Names }
func (v *hopsValue) TypeDoc() lang.TypeDoc                    { return HopsType.TypeDoc() }
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

// hopsMethod is graph.hops(): the distances between all switches.
var hopsMethod = lang.Builtin{
	Name:    "hops",
	Returns: "hops",
	Doc: `Returns the distances of all switches from all others: hops.
They count links, or, where these have weights, the weights.`,
	Example: `
> g = discover().graph()
> h = g.hops()
> h[g.switches[0], g.switches[1]], h.max
(2, 2)
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		h, err := graph.AllHops(c.Fiber().Context, v.g)
		if err != nil {
			return nil, computeError(c, err)
		}
		return &hopsValue{h: h, graph: v}, nil
	}),
}

// nextMethod is hops.next(): the next hops of a switch to another.
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
	Run: lang.Do(func(c *lang.Call, a *struct{ S, D starlark.Value }) (starlark.Value, error) {
		v := c.Recv.(*hopsValue)
		s, d, err := v.graph.switchesOf(a.S, a.D)
		if err != nil {
			return nil, err
		}
		n := v.graph.g.Switches()[s]
		var list []starlark.Value
		for _, p := range v.h.Next(s, d) {
			list = append(list, topology.PortOf(n.Port(int(p))))
		}
		return starlark.NewList(list), nil
	}),
}
