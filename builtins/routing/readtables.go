package routing

import (
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

var ReadHopsMethod = lang.Builtin{
	Name:   "read_hops",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file: opensm-lid-matrix.dump"}},
	Doc: `Reads how far LIDs are from switches: a dict of switch to a dict of LID to hops.
The hops are a tuple by port number, None where a port does not lead there; element 0 is the fewest of all.`,
	Example: `
> f = load_fabric("net.topo")
> f.read_hops("opensm-lid-matrix.dump")[f.switches[0]][2]
(1, None, 1)
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		f := c.Recv.(*topology.Fabric)
		out := new(starlark.Dict)
		var of mad.GUID
		var rows *starlark.Dict
		err := c.ReadFile(func(r io.Reader, name string) error {
			for row, err := range format.HopRows(r, name) {
				if err != nil {
					return err
				}
				if rows == nil || row.GUID != of {
					var n *fabric.Node
					if n, err = row.Find(f.F); err != nil {
						return err
					}
					of, rows = row.GUID, new(starlark.Dict)
					out.SetKey(topology.NodeOf(n), rows)
				}
				hops := make(starlark.Tuple, len(row.Hops))
				for i, h := range row.Hops {
					if hops[i] = starlark.MakeInt(int(h)); h == format.NoPath {
						hops[i] = starlark.None
					}
				}
				rows.SetKey(starlark.MakeInt(int(row.LID)), hops)
			}
			return nil
		})
		return out, err
	}),
}
