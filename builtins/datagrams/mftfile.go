package datagrams

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// ReadMFTsMethod is the method read_mfts of a fabric, which reads multicast forwarding
// tables from a file.
var ReadMFTsMethod = lang.Builtin{
	Name:   "read_mfts",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file: opensm.mcfdbs, or output of ibroute -M or dump_fts -M"}},
	Doc: `Reads multicast forwarding tables from a file: a dict of switch to a dict of multicast LID to ports.
It fails if the fabric does not have a switch.`,
	Example: `
> f = load_fabric("net.topo")
> f.read_mfts("opensm.mcfdbs")[f.switches[0]]
{49152: (1, 2)}
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path string }) (starlark.Value, error) {
		f := c.Recv.(*topology.Fabric)
		defer c.Reads()()
		file, err := c.Runtime().Files.Open(c.Fiber().Context, a.Path)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		defer file.Close()
		out := new(starlark.Dict)
		for t, err := range format.MFTs(&format.Capture{Reader: file, Note: func(text string) { c.Fiber().Warn("%s", text) }}, a.Path) {
			if err != nil {
				return nil, lang.Errorf("%w", err)
			}
			n, err := t.Find(f.Fabric)
			if err != nil {
				return nil, lang.Errorf("%w", err)
			}
			table := starlark.NewDict(len(t.Entries))
			for _, e := range t.Entries {
				table.SetKey(starlark.MakeInt(int(e.MLID)), portNumbers(e.Ports))
			}
			out.SetKey(topology.NodeOf(n), table)
		}
		return out, nil
	}),
}

// DumpMFTsMethod is the method dump_mfts of a fabric, which returns multicast forwarding
// tables as text.
var DumpMFTsMethod = lang.Builtin{
	Name:    "dump_mfts",
	Returns: "string",
	Params:  []lang.Param{{Name: "tables", Kind: lang.KindAny, Doc: "a dict of switch to its table: an mft, or a dict of multicast LID to ports"}},
	Doc: `Returns multicast forwarding tables in the format of opensm.mcfdbs, which ibdmchk reads.
Entries without ports are left out, and so are switches without entries.`,
	Example: `
> f = load_fabric("net.topo")
> f.dump_mfts(f.read_mfts("opensm.mcfdbs")).splitlines()[1]
"Switch 0x0002c90300000100"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Tables starlark.Value }) (starlark.Value, error) {
		d, ok := a.Tables.(*starlark.Dict)
		if !ok {
			return nil, lang.ParamError("tables", "got %s, want a dict of switch to table", a.Tables.Type())
		}
		f := c.Recv.(*topology.Fabric).Fabric
		entries := map[*fabric.Node][]format.MFTEntry{}
		for _, kv := range d.Items() {
			n, ok := kv[0].(topology.Node)
			if !ok || n.Fabric() != f || !n.IsSwitch() {
				return nil, lang.ParamError("tables", "got the key %s, want a switch of this fabric", lang.Brief(kv[0]))
			}
			list, err := mftEntries(kv[1])
			if err != nil {
				return nil, lang.ParamError("tables", "%s: %w", n.Label(), err)
			}
			entries[n.Node] = list
		}
		var b bytes.Buffer
		if err := format.WriteMFTs(&b, f, func(n *fabric.Node) []format.MFTEntry { return entries[n] }); err != nil {
			return nil, err
		}
		return starlark.String(b.String()), nil
	}),
}

// mftEntries returns the entries of a table of a script, by multicast LID.
func mftEntries(v starlark.Value) (list []format.MFTEntry, err error) {
	switch v := v.(type) {
	case *wholeTable:
		if v.kind != MFTKind {
			break
		}
		for i := range v.Len() {
			if ports := device.MulticastPorts(v.t, i); len(ports) > 0 {
				list = append(list, format.MFTEntry{MLID: mad.LID(firstMLID + i), Ports: ports})
			}
		}
		return list, nil
	case *starlark.Dict:
		for _, kv := range v.Items() {
			mlid, err := lang.ToInt(kv[0])
			if err != nil || mlid < firstMLID || mlid > lastMLID {
				return nil, fmt.Errorf("%s is not a multicast LID, 0x%04x to 0x%04x", lang.Brief(kv[0]), firstMLID, lastMLID)
			}
			ports, ok := kv[1].(starlark.Iterable)
			if !ok {
				return nil, fmt.Errorf("0x%04x: got %s, want a list of ports", mlid, kv[1].Type())
			}
			e := format.MFTEntry{MLID: mad.LID(mlid)}
			for _, x := range lang.Collect(ports) {
				p, err := lang.ToInt(x)
				if err != nil || p < 0 || p > 255 {
					return nil, fmt.Errorf("0x%04x: invalid port number %s", mlid, lang.Brief(x))
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
