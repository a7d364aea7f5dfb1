package datagrams

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// The multicast LIDs are 0xc000 to 0xfffe; 0xffff is the permissive LID (IBA 4.1.3).
const (
	firstMLID = int(mad.MinMulticastLID)
	lastMLID  = int(mad.PermissiveLID) - 1
)

// MFTKind is the value mft, a multicast forwarding table (IBA 14.2.5.12). Row i is that
// of multicast LID firstMLID+i.
var MFTKind = &tableKind{
	table: device.MulticastKind,
	port:  nodesTable,
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
		return plural.Count(v.placed(mlid).Len(), "LID", "LIDs")
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
			return v.placedKeys(mlid)
		}},
		lang.Member[*wholeTable]{Name: "ports", Type: "dict", Column: true, Doc: "a dict of multicast LID to its ports, of those that have ports", Get: func(v *wholeTable) starlark.Value { return v.placed(mlid) }},
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
