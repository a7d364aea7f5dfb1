package datagrams

import (
	"bytes"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// LFTKind is the value lft, a linear forwarding table (IBA 14.2.5.10). Row i is that of
// LID i.
var LFTKind = &tableKind{
	table: device.LinearKind,
	port:  nodesTable,
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
			return v.placedKeys(starlark.MakeInt)
		}},
		lang.Member[*wholeTable]{Name: "ports", Type: "dict", Column: true, Doc: "a dict of LID to port, of the LIDs that have a port", Get: func(v *wholeTable) starlark.Value { return v.placed(starlark.MakeInt) }},
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
		if v, ok := a.Table.(linear); ok {
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

// linear is a whole table in its wire format: ports by LID, from LID 0 to at most
// mad.MaxUnicastLID.
type linear interface{ Linear() []uint8 }
