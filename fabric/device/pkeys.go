package device

import (
	"encoding/binary"
	"fmt"

	"fabsh/fabric/plural"
	"fabsh/mad"
)

// PKeyKind is the P_KeyTable of a port. A switch has one for each of its ports;
// how long those of external ports are stands in SwitchInfo.
var PKeyKind = &TableKind{
	Attr:    mad.AttrPKeyTable,
	ofPort:  true,
	byReply: true,
	layout: func(t *Table) (modifiers []uint32, err error) {
		var port uint32
		if t.IsSwitch() {
			port = uint32(max(t.Port, 0))
			if port > 0 && t.Switch.PartitionEnforcementCap == 0 {
				return nil, unsupported("the switch enforces no partitions: its external ports have no P_Key tables")
			}
		}
		for block := range (PartitionCap(t) + mad.PKeyBlock - 1) / mad.PKeyBlock {
			modifiers = append(modifiers, port<<16|uint32(block))
		}
		return modifiers, nil
	},
	row:  func(t *Table, i int) (string, int, int) { return fmt.Sprintf("entry %d", i/2), i &^ 1, 2 },
	text: func(b []byte) string { return fmt.Sprintf("0x%04x", binary.BigEndian.Uint16(b)) },
}

// PartitionCap is the number of entries of a P_Key table.
func PartitionCap(t *Table) int {
	if t.IsSwitch() && t.Port > 0 {
		return int(t.Switch.PartitionEnforcementCap)
	}
	return int(t.Node.PartitionCap)
}

// PKeys are the entries of a P_Key table; 0 where empty.
func PKeys(t *Table) []uint16 {
	keys := make([]uint16, PartitionCap(t))
	for i := range keys {
		keys[i] = binary.BigEndian.Uint16(t.Data[2*i:])
	}
	return keys
}

// EditPKeys makes t a change of a P_Key table: entries are merged into it, or
// replace all of it.
func EditPKeys(t *Table, entries map[int]uint16, replace bool) {
	t.Kind = PKeyKind
	t.Edit = func(t *Table) error {
		room := PartitionCap(t)
		if replace {
			clear(t.Data[:2*room])
		}
		for i, key := range sorted(entries) {
			switch {
			case i < room:
				binary.BigEndian.PutUint16(t.Data[2*i:], key)
			case key != 0:
				return unsupported("entry %d is out of range; the table has %s", i, plural.Count(room, "entry", "entries"))
			}
		}
		return nil
	}
}
