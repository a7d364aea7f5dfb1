package builtins

import (
	"bytes"
	"cmp"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fmt"
	"io"
	"slices"

	"go.starlark.net/starlark"
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

var dumpMFTsMethod = Builtin{
	Name:   "dump_mfts",
	Params: []Param{{Name: "tables", Kind: KindAny, Doc: "a dict of switch to its table: an mft, or a dict of multicast LID to ports"}},
	Doc: `Returns multicast forwarding tables as the text of opensm.mcfdbs, which ibdmchk reads.
Entries without ports are left out, and so are switches that have none.`,
	Example: `
> f = load_fabric("net.topo")
> f.dump_mfts(f.read_mfts("opensm.mcfdbs")).splitlines()[1]
"Switch 0x0002c90300000100"
`,
	fn: func(c *call) (starlark.Value, error) {
		d, ok := c.Value("tables").(*starlark.Dict)
		if !ok {
			return nil, c.paramError("tables", "got %s, want a dict of switch to table", c.Value("tables").Type())
		}
		f := c.recv.(*fabricValue).f
		entries := map[*fabric.Node][]format.MFTEntry{}
		for _, kv := range d.Items() {
			n, ok := kv[0].(node)
			if !ok || n.Fabric() != f || !n.IsSwitch() {
				return nil, c.paramError("tables", "got the key %s, want a switch of this fabric", brief(kv[0]))
			}
			list, err := mftEntries(kv[1])
			if err != nil {
				return nil, c.paramError("tables", "%s: %w", n.Label(), err)
			}
			entries[n.Node] = list
		}
		var b bytes.Buffer
		if err := format.WriteMFTs(&b, f, func(n *fabric.Node) []format.MFTEntry { return entries[n] }); err != nil {
			return nil, err
		}
		return starlark.String(b.String()), nil
	},
}

// mftEntries are those of a table, in order.
func mftEntries(v starlark.Value) (list []format.MFTEntry, err error) {
	switch v := v.(type) {
	case *wholeTable:
		if v.kind != mftKind {
			break
		}
		for i := range v.Len() {
			if ports := change.MulticastPorts(v.t, i); len(ports) > 0 {
				list = append(list, format.MFTEntry{MLID: mad.LID(firstMLID + i), Ports: ports})
			}
		}
		return list, nil
	case *starlark.Dict:
		for _, kv := range v.Items() {
			mlid, err := toInt(kv[0])
			if err != nil || mlid < firstMLID || mlid > lastMLID {
				return nil, fmt.Errorf("%s is no multicast LID, 0x%04x to 0x%04x", brief(kv[0]), firstMLID, lastMLID)
			}
			ports, ok := kv[1].(starlark.Iterable)
			if !ok {
				return nil, fmt.Errorf("0x%04x: got %s, want a list of ports", mlid, kv[1].Type())
			}
			e := format.MFTEntry{MLID: mad.LID(mlid)}
			for _, x := range collect(ports) {
				p, err := toInt(x)
				if err != nil || p < 0 || p > 255 {
					return nil, fmt.Errorf("0x%04x: %s is no port number", mlid, brief(x))
				}
				e.Ports = append(e.Ports, uint8(p))
			}
			slices.Sort(e.Ports)
			list = append(list, e)
		}
		slices.SortFunc(list, func(a, b format.MFTEntry) int { return cmp.Compare(a.MLID, b.MLID) })
		return list, nil
	}
	return nil, fmt.Errorf("got %s, want an mft or a dict", v.Type())
}
