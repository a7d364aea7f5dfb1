package routing

import (
	"context"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/change"
	"fabsh/mad"
)

// madeByMethod is routes.made_by().
var madeByMethod = lang.Builtin{
	Name: "made_by",
	Params: []lang.Param{
		{Name: "engines", Kind: lang.KindText, Doc: `an engine of OpenSM, or several in the order in which it tries them: "updn", "ftree,updn"`},
		{Name: "manager", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "LID of the subnet manager, which routes what it reaches (default: all)"},
		{Name: "roots", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "the switches of root_guid_file (default: with and without the switches of the highest rank)"},
	},
	Doc: `Reports whether OpenSM 3.3 makes these tables with an engine, at its start or from tables that it keeps.
None: the engine is not modelled (nue, torus-2QoS, file). Where an engine does not apply to the fabric, OpenSM tries the next one, and minhop at last. Other options of OpenSM, such as scatter_ports, have their defaults.`,
	Returns: "bool",
	Example: `
> get_routes(discover()).made_by("minhop")
True
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Engines string
		Manager int
		Roots   []starlark.Value
	}) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		m := change.ManagerRouting{LID: mad.LID(a.Manager)}
		var err error
		if m.Engines, err = change.ParseEngines(a.Engines); err != nil {
			return nil, lang.ParamError("engines", "%w", err)
		}
		if a.Roots != nil {
			m.Options = &change.ManagerOptions{}
			for _, root := range a.Roots {
				s, err := v.graph.switchOf(root)
				if err != nil {
					return nil, lang.ParamError("roots", "%w", err)
				}
				m.Options.Roots = append(m.Options.Roots, v.graph.g.Switches()[s].GUID())
			}
		}
		var made, modelled bool
		err = c.Block(func(ctx context.Context) (err error) {
			made, modelled, err = change.MadeBy(ctx, v.Tables, m)
			return err
		})
		if err != nil {
			return nil, computeError(c, err)
		}
		return lang.OrNone(modelled, starlark.Bool(made)), nil
	}),
}
