package datagrams

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// LFTKind is the value lft, a linear forwarding table (IBA 14.2.5.10). Row i is the entry
// of LID i.
var LFTKind = &tableKind{
	table: device.LinearKind,
	port:  nodeTablePort,
	index: func(_ *wholeTable, key starlark.Value) (int, error) {
		return lidKey(key)
	},
	size:  func(t *device.Table) int { return len(device.LinearEntries(t)) },
	entry: func(t *device.Table, i int) starlark.Value { return topology.LFTEntry(t.Data[i]) },
	bytes: device.LinearEntries,
	repr: func(v *wholeTable) string {
		entries := device.LinearEntries(v.t)
		return fmt.Sprintf("top=%d, %s", len(entries)-1, plural.Count(len(entries)-bytes.Count(entries, []byte{mad.NoPort}), "route", "routes"))
	},
	display: func(v *wholeTable) string { return topology.LFTText(device.LinearEntries(v.t)) },
}

func init() {
	LFTKind.Type = lang.NewType("lft", "A linear forwarding table: lft[lid] is the output port of packets to lid, None if they are dropped; `lid in lft` reports whether there is one. It iterates over the entries from LID 0.",
		lang.Member[*wholeTable]{Name: "top", Column: true, Doc: "LinearFDBTop: the highest LID that the switch forwards", Get: func(v *wholeTable) starlark.Value { return starlark.MakeInt(v.Len() - 1) }},
		lang.Member[*wholeTable]{Name: "lids", Doc: "the LIDs that have a port, in order", Get: func(v *wholeTable) starlark.Value {
			return v.usedKeys(starlark.MakeInt)
		}},
		lang.Member[*wholeTable]{Name: "ports", Type: "dict", Column: true, Doc: "a dict of LID to port, of the LIDs that have a port", Get: func(v *wholeTable) starlark.Value { return v.entriesByKey(starlark.MakeInt) }},
	)
}

// GetLFT is get_lft, which reads the lft of each switch.
var GetLFT = lang.Builtin{
	Name:    "get_lft",
	Returns: "lft",
	Group:   topology.GroupTable,
	Params:  []lang.Param{{Name: "target", Kind: topology.KindTarget, Doc: "a switch or an iterable of them"}},
	Doc: `Reads the forwarding table of a switch.
It returns the whole linear forwarding table, an lft, or a list of them for a list of switches. An entry is a port, or None for a LID that the switch drops.`,
	Example: `
> t = get_lft(discover().switches[0])
> t[1], t[40000]
(0, None)
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Target starlark.Value }) (starlark.Value, error) {
		return LFTKind.get(c, &portArgs{Target: a.Target})
	}),
}

// SetLFT is set_lft, which changes entries of a linear forwarding table.
var SetLFT = lang.Builtin{
	Name:    "set_lft",
	Returns: "lft",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: "a switch or an iterable of them"},
		{Name: "table", Kind: lang.KindAny, Doc: "a dict of LID to port, which is merged into the table; or a whole table, an lft or a list by LID, which replaces it; None drops a LID"},
		{Name: "static", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "write the table although adaptive routing is on at the switch"},
	},
	Doc: `Changes the forwarding table of a switch.
Where adaptive routing is on, packets do not follow this table, and a write may disable adaptive routing: it is refused without static=True. Writing the former table does not restore adaptive routing.
It returns the table, read back; for blocks beyond LinearFDBTop in a whole table, the answers of the switch to the writes. Only blocks that change are written. LinearFDBTop is then raised if needed, and never lowered. The same requests are refused as with smp_set.`,
	Example: `
> sw = discover().switches[0]
> before = get_lft(sw)
> set_lft(sw, {17: 5})[17]
5
> set_lft(sw, before) == before
True
`,
	Run: lang.Do(func(c *lang.Call, a *setLFTArgs) (starlark.Value, error) {
		if !a.Static {
			if err := refuseAdaptive(c, a.Target); err != nil {
				return nil, err
			}
		}
		if v, ok := a.Table.(linearTable); ok {
			row := slices.Clone(v.Linear()) // other fibers may change it meanwhile
			return LFTKind.set(c, &portArgs{Target: a.Target}, func(t *device.Table) { device.ReplaceLinear(t, row) })
		}
		entries, row := map[mad.LID]uint8{}, []uint8(nil)
		replace, err := tableEntries(a.Table, "LID", "a dict of LID to port, or a whole table", 0, func(lid int, value starlark.Value, replace bool) error {
			if lid < 0 || lid > int(mad.MaxUnicastLID) || lid == 0 && !replace {
				return fmt.Errorf("LID %d is out of range, 1..%d", lid, mad.MaxUnicastLID)
			}
			port := mad.NoPort
			if value != starlark.None {
				var err error
				if port, err = lang.ToInt(value); err != nil {
					return fmt.Errorf("LID %d: %w", lid, err)
				}
				if port < 0 || port > mad.NoPort {
					return fmt.Errorf("LID %d: port %d is out of range, 0..254, or None to drop", lid, port)
				}
			}
			if replace {
				row = append(row, uint8(port)) // in order, from LID 0
			} else {
				entries[mad.LID(lid)] = uint8(port)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return LFTKind.set(c, &portArgs{Target: a.Target}, func(t *device.Table) {
			if replace {
				device.ReplaceLinear(t, row)
			} else {
				device.EditLinear(t, entries)
			}
		})
	}),
}

// setLFTArgs are the arguments of set_lft.
type setLFTArgs struct {
	nodeTableArgs
	Static bool
}

// linearTable is a whole table in its wire format: ports by LID, from LID 0 to at most
// mad.MaxUnicastLID.
type linearTable interface{ Linear() []uint8 }

// refuseAdaptive returns an error if adaptive routing, by load or by hashes, is on at a
// target: its packets then do not follow the LinearForwardingTable. A switch without the
// capability gets one GeneralInfo. Where it cannot be determined, there is a warning: a
// device may not know GeneralInfo.
func refuseAdaptive(c *lang.Call, target starlark.Value) error {
	e, err := topology.MayChange(c, mad.AttrLinearForwardingTable)
	if err != nil {
		return err
	}
	if e.Interceptor() != nil { // a plan is refused as a whole, or requests static routing
		return nil
	}
	targets, _, err := (&topology.Resolver{Call: c}).Targets(target)
	if err != nil {
		return err
	}
	calls := make([]engine.Call, len(targets))
	var open []*engine.Call
	for i := range targets {
		calls[i].PutSMP(mad.MethodGet, mad.AttrAdaptiveRoutingInfo.ID, 0, nil)
		if targets[i].AddressSMP(&calls[i]) == nil {
			open = append(open, &calls[i])
		}
	}
	if err := topology.SendProbes(c, open); err != nil {
		return err
	}
	for i := range targets {
		switch {
		case calls[i].Err != nil && !errors.Is(calls[i].Err, engine.ErrUnsupported):
			c.Fiber().Warn("set_lft: %s: adaptive routing could not be determined, assumed to be off: %v", targets[i].Label, calls[i].Err)
			continue
		case calls[i].Err != nil || !calls[i].Header().Method.IsResponse():
			continue
		}
		var info mad.AdaptiveRoutingInfo
		if info.Decode(calls[i].Data()); info.E || info.HBFEn {
			return lang.Errorf("%s: adaptive routing is on, so packets do not follow this table, and a write may disable adaptive routing; static=True writes it", targets[i].Label)
		}
	}
	return nil
}

// The multicast LIDs are 0xc000 to 0xfffe; 0xffff is the permissive LID (IBA 4.1.3).
const (
	firstMLID = int(mad.MinMulticastLID)
	lastMLID  = int(mad.PermissiveLID) - 1
)

// MFTKind is the value mft, a multicast forwarding table (IBA 14.2.5.12). Row i is the
// entry of multicast LID firstMLID+i.
var MFTKind = &tableKind{
	table: device.MulticastKind,
	port:  nodeTablePort,
	index: func(v *wholeTable, key starlark.Value) (int, error) {
		lid, err := lang.ToInt(key)
		switch {
		case err != nil:
			return 0, fmt.Errorf("a table is indexed by multicast LID: %w", err)
		case lid < firstMLID || lid > lastMLID:
			return 0, noMLID(lid)
		}
		return lid - firstMLID, nil
	},
	size: device.MulticastRows,
	entry: func(t *device.Table, i int) starlark.Value {
		ports := device.MulticastPorts(t, i)
		if len(ports) == 0 {
			return starlark.None
		}
		return portNumbers(ports)
	},
	bytes: func(t *device.Table) []byte {
		var b []byte
		for i := range device.MulticastRows(t) {
			for _, p := range device.MulticastPorts(t, i) {
				b = append(b, byte(i>>8), byte(i), p)
			}
		}
		return b
	},
	repr: func(v *wholeTable) string {
		return plural.Count(v.entriesByKey(mlid).Len(), "LID", "LIDs")
	},
	display: func(v *wholeTable) string {
		var b strings.Builder
		b.WriteString("mlid    ports\n")
		for i := range v.Len() {
			if ports := device.MulticastPorts(v.t, i); len(ports) > 0 {
				fmt.Fprintf(&b, "0x%04x  %s\n", firstMLID+i, strings.Trim(fmt.Sprint(ports), "[]"))
			}
		}
		return b.String()
	},
}

func init() {
	MFTKind.Type = lang.NewType("mft", "A multicast forwarding table: mft[0xc000] is a tuple of the output ports of packets to that multicast LID, None if they are dropped; `mlid in mft` reports whether there are any. It iterates over the entries from 0xc000.",
		lang.Member[*wholeTable]{Name: "cap", Column: true, Doc: "MulticastFDBCap: the number of multicast LIDs of the table", Get: func(v *wholeTable) starlark.Value {
			return starlark.MakeInt(int(v.t.Switch.MulticastFDBCap))
		}},
		lang.Member[*wholeTable]{Name: "lids", Doc: "the multicast LIDs that have ports, in order", Get: func(v *wholeTable) starlark.Value {
			return v.usedKeys(mlid)
		}},
		lang.Member[*wholeTable]{Name: "ports", Type: "dict", Column: true, Doc: "a dict of multicast LID to its ports, of those that have ports", Get: func(v *wholeTable) starlark.Value { return v.entriesByKey(mlid) }},
	)
}

// mlid returns the multicast LID of row i.
func mlid(i int) starlark.Int { return starlark.MakeInt(firstMLID + i) }

// portNumbers returns a tuple of ports.
func portNumbers(ports []uint8) starlark.Tuple {
	t := make(starlark.Tuple, len(ports))
	for i, p := range ports {
		t[i] = starlark.MakeInt(int(p))
	}
	return t
}

// noMLID returns the error of a LID that is not a multicast LID.
func noMLID(lid int) error {
	return fmt.Errorf("multicast LID %#x is out of range, %#x..%#x", lid, firstMLID, lastMLID)
}

// GetMFT is get_mft, which reads the mft of each switch.
var GetMFT = lang.Builtin{
	Name:    "get_mft",
	Returns: "mft",
	Group:   topology.GroupTable,
	Params:  []lang.Param{{Name: "target", Kind: topology.KindTarget, Doc: "a switch or an iterable of them"}},
	Doc: `Reads the multicast forwarding table of a switch.
It returns the whole table, an mft, or a list of them for a list of switches. An entry is a tuple of ports, or None for a multicast LID that the switch drops. Entries up to MulticastFDBTop are read; all entries if the switch does not have MulticastFDBTop.`,
	Example: `
> t = get_mft(discover().switches[0])
> t[0xc000], t.cap
(None, 4096)
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Target starlark.Value }) (starlark.Value, error) {
		return MFTKind.get(c, &portArgs{Target: a.Target})
	}),
}

// SetMFT is set_mft, which changes entries of a multicast forwarding table.
var SetMFT = lang.Builtin{
	Name:    "set_mft",
	Returns: "mft",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: "a switch or an iterable of them"},
		{Name: "table", Kind: lang.KindAny, Doc: "a dict of multicast LID to ports, which is merged into the table; or a whole table, an mft or a list from 0xc000, which replaces it; None drops a LID"},
	},
	Doc: `Changes the multicast forwarding table of a switch.
It returns the table, read back. Only blocks that change are written. MulticastFDBTop, if the switch has it, is then raised if needed, and never lowered. The same requests are refused as with smp_set.`,
	Example: `
> sw = discover().switches[0]
> set_mft(sw, {0xc001: [1, 3]})[0xc001]
(1, 3)
> set_mft(sw, {0xc001: None})[0xc001]
`,
	Run: lang.Do(func(c *lang.Call, a *nodeTableArgs) (starlark.Value, error) {
		entries := map[mad.LID][]uint8{}
		replace, err := tableEntries(a.Table, "multicast LID", "a dict of multicast LID to ports, or a whole table", firstMLID, func(lid int, value starlark.Value, _ bool) error {
			if lid < firstMLID || lid > lastMLID {
				return noMLID(lid)
			}
			ports, err := portList(value)
			if err != nil {
				return fmt.Errorf("multicast LID %#x: %w", lid, err)
			}
			entries[mad.LID(lid)] = ports
			return nil
		})
		if err != nil {
			return nil, err
		}
		return MFTKind.set(c, &portArgs{Target: a.Target}, func(t *device.Table) { device.EditMulticast(t, entries, replace) })
	}),
}

// portList converts the ports of a multicast LID and sorts them. None: no port.
func portList(v starlark.Value) (ports []uint8, err error) {
	if v == starlark.None {
		return nil, nil
	}
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, lang.WantType(v, "a list of ports, or None to drop")
	}
	for _, x := range lang.Collect(it) {
		n, err := lang.ToInt(x)
		if err != nil {
			return nil, fmt.Errorf("a port: %w", err)
		}
		if n < 0 || n >= mad.NoPort {
			return nil, fmt.Errorf("port %d is out of range, 0..254", n)
		}
		ports = append(ports, uint8(n))
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

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
