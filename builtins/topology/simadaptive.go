package topology

import (
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/sim/spec"
	"fabsh/fabric/sim/state"
)

// arMethod is sim.ar().
var arMethod = lang.Builtin{
	Name: "ar",
	Params: []lang.Param{
		{Name: "engine", Kind: lang.KindText, Default: `"updn"`, Doc: "routing engine, which determines the ports that may be chosen: " + strings.Join(state.LFTEngines, ", ")},
		{Name: "options", Kind: lang.KindText, Default: `""`, Keyword: true, Doc: "several with +: " + spec.AdaptiveOptionsDoc()},
	},
	Doc: `Lets all switches of Mellanox and NVIDIA route adaptively, as with -F sim:ar=ENGINE. The subnet manager computes the tables again. Faults of adaptive routing end.`,
	Example: `
> f = discover()
> sim.ar("updn", options="hbf+pfrn")
> smp_get("AdaptiveRoutingInfo", "leaf-1").e
1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Engine, Options string }) (starlark.Value, error) {
		set, err := spec.ParseAdaptive(a.Engine, a.Options)
		if err != nil {
			return nil, lang.ParamError("engine", "%w", err)
		}
		return alter(c, func() error {
			c.Recv.(*Sim).Edit.Adaptive(set)
			return nil
		})
	}),
}

// arFaultMethod is sim.ar_fault().
var arFaultMethod = lang.Builtin{
	Name: "ar_fault",
	Params: []lang.Param{
		{Name: "switch", Kind: KindTarget, Doc: "a switch, or its name"},
		{Name: "fault", Kind: lang.KindText, Doc: state.AdaptiveFaultDoc()},
	},
	Doc: `Gives a switch a fault of adaptive routing. It must have it: see sim.ar.
Faults of groups concern one group, and return when the subnet manager computes the tables again.`,
	Example: `
> f = discover()
> sim.ar()
> sim.ar_fault("leaf-1", "off")
> smp_get("AdaptiveRoutingInfo", "leaf-1").e
0
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Switch starlark.Value
		Fault  string
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		guid, err := s.nodeAt(a.Switch)
		if err != nil {
			return nil, lang.ParamError("switch", "%w", err)
		}
		fault, err := state.AdaptiveFaultNamed(a.Fault)
		if err != nil {
			return nil, lang.ParamError("fault", "%w", err)
		}
		return alter(c, func() error { return s.Edit.BreakAdaptive(guid, fault) })
	}),
}
