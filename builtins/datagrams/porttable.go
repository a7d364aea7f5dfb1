package datagrams

import (
	"encoding/binary"
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// fullMember is the bit of a P_Key for full membership (IBA 10.9.1.1). An entry whose
// other bits are 0 is not a partition.
const fullMember = 0x8000

// PKeysKind is the value pkeys, the P_Key table of a port (IBA 14.2.5.7): rows without
// keys, None for an empty entry.
var PKeysKind = &tableKind{
	table: device.PKeyKind,
	port:  requiredTablePort,
	index: func(v *wholeTable, key starlark.Value) (int, error) { return v.position(key, "number") },
	size:  device.PartitionCap,
	entry: func(t *device.Table, i int) starlark.Value {
		if key := binary.BigEndian.Uint16(t.Data[2*i:]); key&^fullMember != 0 {
			return starlark.MakeInt(int(key))
		}
		return starlark.None
	},
	within: true,
	bytes:  func(t *device.Table) []byte { return t.Data[:2*device.PartitionCap(t)] },
	repr: func(v *wholeTable) string {
		return fmt.Sprintf("cap=%d, %s", v.Len(), plural.Count(v.entriesByKey(starlark.MakeInt).Len(), "partition", "partitions"))
	},
	display: func(v *wholeTable) string {
		var rows [][]lang.Fact
		for i, key := range device.PKeys(v.t) {
			member := "full"
			if key&fullMember == 0 {
				member = "limited"
			}
			if key&^fullMember != 0 {
				rows = append(rows, []lang.Fact{{Name: "entry", Value: starlark.MakeInt(i)}, {Name: "pkey", Value: starlark.MakeInt(int(key)), Hex: 4}, {Name: "member", Value: starlark.String(member)}})
			}
		}
		return lang.TableText("", []string{"entry", "pkey", "member"}, rows)
	},
}

func init() {
	PKeysKind.Type = lang.NewType("pkeys", "A P_Key table: pkeys[0] is the first entry, None if it is empty; `0xffff in pkeys` reports whether the table has a P_Key. Bit 15 of an entry is full membership. It iterates over the entries.",
		lang.Member[*wholeTable]{Name: "cap", Column: true, Doc: "the number of entries of the table", Get: func(v *wholeTable) starlark.Value { return starlark.MakeInt(v.Len()) }},
		lang.Member[*wholeTable]{Name: "pkeys", Type: "dict", Column: true, Doc: "a dict of number to P_Key, of the entries that are not empty", Get: func(v *wholeTable) starlark.Value { return v.entriesByKey(starlark.MakeInt) }},
	)
}

// GetPKeys is get_pkeys, which reads the table pkeys of each port.
var GetPKeys = lang.Builtin{
	Name:    "get_pkeys",
	Returns: "pkeys",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: "a port, or an iterable of them; for a node that is not a switch, the port that receives the request"},
		portOfTable,
	},
	Doc: `Reads the P_Key table of a port.
It returns the whole table, pkeys, or a list of them for a list of targets. An entry is a P_Key, or None if it is empty.`,
	Example: `
> t = get_pkeys(discover().cas[0])
> hex(t[0]), t[1], 0xffff in t
("0xffff", None, True)
`,
	Run: lang.Do(func(c *lang.Call, a *portArgs) (starlark.Value, error) { return PKeysKind.get(c, a) }),
}

// ReadPKeys reads the P_Key tables of ports, for commands. Ports without an answer are missing.
func ReadPKeys(c *lang.Call, ports []*fabric.Port) (map[*fabric.Port][]uint16, error) {
	tables := map[*fabric.Port][]uint16{}
	if len(ports) == 0 {
		return tables, nil
	}
	list := lang.List(ports, func(p *fabric.Port) starlark.Value { return topology.PortOf(p) })
	v, err := PKeysKind.get(c, &portArgs{Target: list})
	if err != nil {
		return nil, err
	}
	for i, x := range lang.Elements(v) {
		if t, ok := x.(*wholeTable); ok {
			tables[ports[i]] = device.PKeys(t.t)
		}
	}
	return tables, nil
}

// SetPKeys is set_pkeys, which changes entries of a P_Key table.
var SetPKeys = lang.Builtin{
	Name:    "set_pkeys",
	Returns: "pkeys",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: "a port, or an iterable of them; for a node that is not a switch, the port that receives the request"},
		{Name: "table", Kind: lang.KindAny, Doc: "a dict of number to P_Key, which is merged into the table; or a whole table, pkeys or a list, which replaces it; None empties an entry"},
		portOfTable,
	},
	Doc: `Changes the P_Key table of a port.
It returns the table, read back. Only blocks that change are written. The same requests are refused as with smp_set.`,
	Example: `
> p = discover().switches[0].ports[1]
> set_pkeys(p, {1: 0x8001})[1] == 0x8001
True
> [hex(k) for k in set_pkeys(p, [0xffff]) if k]
["0xffff"]
`,
	Run: lang.Do(func(c *lang.Call, a *portTableArgs) (starlark.Value, error) {
		entries := map[int]uint16{}
		replace, err := tableEntries(a.Table, "number", "a dict of number to P_Key, or a whole table", 0, func(i int, value starlark.Value, _ bool) error {
			key := 0
			if i < 0 {
				return fmt.Errorf("entry %d is out of range; entries count from 0", i)
			}
			if value != starlark.None {
				var err error
				if key, err = lang.ToInt(value); err != nil {
					return fmt.Errorf("entry %d: %w", i, err)
				}
				if key < 0 || key > 0xffff || key&^fullMember == 0 {
					return fmt.Errorf("entry %d: %#x is not a P_Key; want 0x0001..0x7fff, plus 0x8000 for full members, or None", i, key)
				}
			}
			entries[i] = uint16(key)
			return nil
		})
		if err != nil {
			return nil, err
		}
		return PKeysKind.set(c, &a.portArgs, func(t *device.Table) { device.EditPKeys(t, entries, replace) })
	}),
}

// GUIDsKind is the value guids, the GUIDInfo of an end port (IBA 14.2.5.5): rows
// without keys, None if no GUID is assigned.
var GUIDsKind = &tableKind{
	table: device.GUIDKind,
	port:  endPortTablePort,
	index: func(v *wholeTable, key starlark.Value) (int, error) { return v.position(key, "number") },
	size:  func(t *device.Table) int { return int(t.PortInfo.GUIDCap) },
	entry: func(t *device.Table, i int) starlark.Value {
		if g := device.GUIDs(t)[i]; g != 0 {
			return topology.GUIDValue(g)
		}
		return starlark.None
	},
	within: true,
	bytes:  func(t *device.Table) []byte { return t.Data[:8*int(t.PortInfo.GUIDCap)] },
	repr: func(v *wholeTable) string {
		return fmt.Sprintf("cap=%d, %s", v.Len(), plural.Count(v.entriesByKey(starlark.MakeInt).Len(), "GUID", "GUIDs"))
	},
	display: func(v *wholeTable) string {
		var rows [][]lang.Fact
		for i, g := range device.GUIDs(v.t) {
			if g != 0 {
				rows = append(rows, []lang.Fact{{Name: "entry", Value: starlark.MakeInt(i)}, {Name: "guid", Value: topology.GUIDValue(g)}})
			}
		}
		return lang.TableText("", []string{"entry", "guid"}, rows)
	},
}

func init() {
	GUIDsKind.Type = lang.NewType("guids", "The GUID table of an end port. guids[0] is the port's own GUID; the others are aliases, for example of virtual ports, or None if not assigned. `guid in guids` reports whether the table has a GUID. It iterates over the entries.",
		lang.Member[*wholeTable]{Name: "cap", Column: true, Doc: "GUIDCap: the number of entries of the table", Get: func(v *wholeTable) starlark.Value { return starlark.MakeInt(v.Len()) }},
		lang.Member[*wholeTable]{Name: "guids", Type: "dict", Column: true, Doc: "a dict of number to GUID, of the assigned entries", Get: func(v *wholeTable) starlark.Value { return v.entriesByKey(starlark.MakeInt) }},
	)
}

// GetGUIDs is get_guids, which reads the table guids of each end port.
var GetGUIDs = lang.Builtin{
	Name:    "get_guids",
	Returns: "guids",
	Group:   topology.GroupTable,
	Params:  []lang.Param{{Name: "target", Kind: topology.KindTarget, Doc: "an end port, or an iterable of them: a CA's or router's port, or a switch"}},
	Doc: `Reads the GUID table of an end port.
It returns the whole table, guids, or a list of them for a list of targets. An entry is a GUID, or None if not assigned.`,
	Example: `
> ca = discover().cas[0]
> t = get_guids(ca)
> t[0] == ca.ports[1].guid, t[1], t.cap
(True, None, 8)
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Target starlark.Value }) (starlark.Value, error) {
		return GUIDsKind.get(c, &portArgs{Target: a.Target})
	}),
}

// SetGUIDs is set_guids, which changes entries of a GUID table.
var SetGUIDs = lang.Builtin{
	Name:    "set_guids",
	Returns: "guids",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: "an end port, or an iterable of them: a CA's or router's port, or a switch"},
		{Name: "table", Kind: lang.KindAny, Doc: "a dict of number to GUID, which is merged into the table; or a whole table, guids or a list, which replaces it; None removes a GUID"},
	},
	Doc: `Changes the GUID table of an end port.
It returns the table, read back. Entry 0 is the port's own GUID and cannot be changed; a whole table has this GUID or None in it. Only blocks that change are written. The same requests are refused as with smp_set.`,
	Example: `
> ca = discover().cas[1]
> set_guids(ca, {1: "0x00beef0000000001"})[1]
"0x00beef0000000001"
`,
	Run: lang.Do(func(c *lang.Call, a *nodeTableArgs) (starlark.Value, error) {
		entries := map[int]mad.GUID{}
		replace, err := tableEntries(a.Table, "number", "a dict of number to GUID, or a whole table", 0, func(i int, value starlark.Value, _ bool) (err error) {
			if i < 0 {
				return fmt.Errorf("entry %d is out of range; entries count from 0", i)
			}
			entries[i] = 0
			if value != starlark.None {
				if entries[i], err = records.ParseGUID(value); err != nil {
					return fmt.Errorf("entry %d: %w", i, err)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return GUIDsKind.set(c, &portArgs{Target: a.Target}, func(t *device.Table) { device.EditGUIDs(t, entries, replace) })
	}),
}
