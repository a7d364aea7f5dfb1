package builtins

import (
	"fmt"
	"io"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

var readMFTsMethod = Builtin{
	Name:   "read_mfts",
	Params: []Param{{Name: "path", Kind: KindPath, Doc: "the file: opensm.mcfdbs, or what ibroute -M or dump_fts -M print"}},
	Doc: `Reads multicast forwarding tables: a dict of switch to a dict of multicast LID to ports.
A switch that the fabric does not have is an error.`,
	Example: `
> f = load_fabric("net.topo")
> f.read_mfts("opensm.mcfdbs")[f.switches[0]]
{49152: (1, 2)}
`,
	fn: func(c *call) (starlark.Value, error) {
		f := c.recv.(*fabricValue)
		out := new(starlark.Dict)
		err := c.readFile(func(r io.Reader, name string) error {
			for t, err := range format.MFTs(r, name) {
				if err != nil {
					return err
				}
				n, err := t.Find(f.f)
				if err != nil {
					return err
				}
				table := starlark.NewDict(len(t.Entries))
				for _, e := range t.Entries {
					ports := make(starlark.Tuple, len(e.Ports))
					for i, p := range e.Ports {
						ports[i] = starlark.MakeInt(int(p))
					}
					table.SetKey(starlark.MakeInt(int(e.MLID)), ports)
				}
				out.SetKey(node{n}, table)
			}
			return nil
		})
		return out, err
	},
}

var readHopsMethod = Builtin{
	Name:   "read_hops",
	Params: []Param{{Name: "path", Kind: KindPath, Doc: "the file: opensm-lid-matrix.dump"}},
	Doc: `Reads how far LIDs are from switches: a dict of switch to a dict of LID to hops.
The hops are a tuple by port number, None where a port does not lead there; element 0 is the fewest of all.`,
	Example: `
> f = load_fabric("net.topo")
> f.read_hops("opensm-lid-matrix.dump")[f.switches[0]][2]
(1, None, 1)
`,
	fn: func(c *call) (starlark.Value, error) {
		f := c.recv.(*fabricValue)
		out := new(starlark.Dict)
		var of mad.GUID
		var rows *starlark.Dict
		err := c.readFile(func(r io.Reader, name string) error {
			for row, err := range format.HopRows(r, name) {
				if err != nil {
					return err
				}
				if rows == nil || row.GUID != of {
					var n *fabric.Node
					if n, err = row.Find(f.f); err != nil {
						return err
					}
					of, rows = row.GUID, new(starlark.Dict)
					out.SetKey(node{n}, rows)
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
	},
}

// readFile opens the file that the parameter path names, for read.
func (c *call) readFile(read func(r io.Reader, name string) error) error {
	file, err := c.session().files.open(c.Text("path"))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	defer file.Close()
	if err := read(file, c.Text("path")); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}
