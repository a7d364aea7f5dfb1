package device

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// SL2VLKind is SLtoVLMappingTable, the mapping of service levels to virtual lanes. A switch has
// a row for each input and output port, or for each input port and one output port; other nodes
// have a single row. The row of a packet is chosen by the port where it came in and the port
// where it leaves.
var SL2VLKind = &TableKind{
	Attr:    mad.AttrSLtoVLMappingTable,
	byReply: true,
	layout:  laneLayout,
	row: func(t *Table, i int) (string, int, int) {
		name := fmt.Sprintf("service level %d", 2*(i%8))
		if t.IsSwitch() {
			p := LanePorts(t, i/8)
			name = fmt.Sprintf("from port %d to port %d, %s", p.In, p.Out, name)
		}
		return name + " and the next", i, 1
	},
	text:   func(b []byte) string { return fmt.Sprintf("lanes %d and %d", b[0]>>4, b[0]&15) },
	writes: laneWrites,
}

// PortPair is the ports of a row, where packets come in and leave; both are 0 for a channel
// adapter.
type PortPair struct{ In, Out uint8 }

// LanePorts returns the ports of a row.
func LanePorts(t *Table, row int) PortPair {
	return PortPair{uint8(t.Modifiers[row] >> 8), uint8(t.Modifiers[row])}
}

// Lanes returns the virtual lanes of a row, by service level.
func Lanes(t *Table, row int) (lanes [mad.ServiceLevels]uint8) {
	var m mad.SLtoVLMappingTable
	m.Decode(t.block(t.Data, row))
	return m.SLtoVL
}

// EditLanes makes t a change of an SL2VLKind: edit changes the lanes of rows.
func EditLanes(t *Table, edit func(t *Table, lanes [][mad.ServiceLevels]uint8) error) {
	t.Kind = SL2VLKind
	t.Edit = func(t *Table) error {
		lanes := make([][mad.ServiceLevels]uint8, len(t.Modifiers))
		for row := range lanes {
			lanes[row] = Lanes(t, row)
		}
		if err := edit(t, lanes); err != nil {
			return err
		}
		for row := range lanes {
			m := mad.SLtoVLMappingTable{SLtoVL: lanes[row]}
			m.Encode(t.block(t.Data, row))
		}
		return nil
	}
}

// VLArbKind is VLArbitrationTable, the two arbitration tables of a port: first the blocks of
// the low-priority table, then the blocks of the high-priority table.
var VLArbKind = &TableKind{
	Attr:   mad.AttrVLArbitrationTable,
	ofPort: true,
	byPort: true,
	layout: func(t *Table) (modifiers []uint32, err error) {
		port := uint32(max(t.Port, 0))
		switch {
		case t.IsSwitch() && port == 0 && !t.Switch.EnhancedPort0: // as in rdma-core infiniband-diags/smpquery.c vlarb
			return nil, unsupported("port 0 of this switch is not an enhanced port 0 and has no arbitration tables")
		case !t.IsSwitch() && port == 0: // the port where the request comes in
			port = uint32(t.PortInfo.LocalPortNum)
		}
		low, high := arbitrationBlocks(t)
		for block := range low {
			modifiers = append(modifiers, uint32(block+1)<<16|port)
		}
		for block := range high {
			modifiers = append(modifiers, uint32(block+3)<<16|port)
		}
		return modifiers, nil
	},
	row: func(t *Table, i int) (string, int, int) {
		low, _ := arbitrationBlocks(t)
		name, entry := "low", i/2
		if entry >= low*mad.VLArbBlock {
			name, entry = "high", entry-low*mad.VLArbBlock
		}
		return fmt.Sprintf("entry %d of the %s-priority table", entry, name), i &^ 1, 2
	},
	text: func(b []byte) string { return fmt.Sprintf("lane %d, weight %d", b[0]&15, b[1]) },
}

// VLWeight is an entry of an arbitration table: a virtual lane, and its weight,
// how much it may send at its turn in units of 64 bytes; 0 skips the entry.
type VLWeight struct{ VL, Weight uint8 }

// VLArbEntries returns the entries of both tables.
func VLArbEntries(t *Table) (low, high []VLWeight) {
	blocks, _ := arbitrationBlocks(t)
	read := func(data []byte, n uint8) []VLWeight {
		list := make([]VLWeight, min(n, 2*mad.VLArbBlock))
		for i := range list {
			list[i] = VLWeight{data[2*i] & 15, data[2*i+1]}
		}
		return list
	}
	return read(t.Data, t.PortInfo.VLArbitrationLowCap), read(t.Data[2*mad.VLArbBlock*blocks:], t.PortInfo.VLArbitrationHighCap)
}

// EditVLArb makes t a change of a port's arbitration tables: edit
// changes the entries of both.
func EditVLArb(t *Table, edit func(low, high []VLWeight) error) {
	t.Kind = VLArbKind
	t.Edit = func(t *Table) error {
		low, high := VLArbEntries(t)
		if err := edit(low, high); err != nil {
			return err
		}
		blocks, _ := arbitrationBlocks(t)
		write := func(data []byte, list []VLWeight) {
			for i, a := range list {
				data[2*i], data[2*i+1] = data[2*i]&0xf0|a.VL&15, a.Weight
			}
		}
		write(t.Data, low)
		write(t.Data[2*mad.VLArbBlock*blocks:], high)
		return nil
	}
}

// PKeyKind is the P_KeyTable of a port. A switch has one for each of its ports; SwitchInfo has
// the size of the tables of external ports.
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

// PartitionCap returns the number of entries of a P_Key table. If NodeInfo has 0, which is invalid
// (IBA 14.2.5.3) or unknown, as in a file without it, it is that of a block.
func PartitionCap(t *Table) int {
	if t.IsSwitch() && t.Port > 0 {
		return int(t.Switch.PartitionEnforcementCap)
	}
	return cmp.Or(int(t.Node.PartitionCap), mad.PKeyBlock)
}

// PKeys returns the entries of a P_Key table; 0 where empty.
func PKeys(t *Table) []uint16 {
	keys := make([]uint16, PartitionCap(t))
	for i := range keys {
		keys[i] = binary.BigEndian.Uint16(t.Data[2*i:])
	}
	return keys
}

// ReadPKeys reads the P_Key tables of ports. Ports whose table cannot be read are missing. The error is
// the end of ctx, or that of the transport.
func ReadPKeys(ctx context.Context, e *engine.Engine, ports []*fabric.Port) (map[*fabric.Port][]uint16, error) {
	tables := make([]*Table, len(ports))
	for i, p := range ports {
		tables[i] = &Table{Kind: PKeyKind, Dest: fabric.Dest{Route: p.Route(), LID: p.LID(), Guard: p.Guard()}, GUID: p.Node().GUID(), Port: p.Num()}
	}
	if err := ReadTables(ctx, e, tables...); err != nil {
		return nil, err
	}
	keys := map[*fabric.Port][]uint16{}
	for i, t := range tables {
		if t.Err == nil {
			keys[ports[i]] = PKeys(t)
		}
	}
	return keys, nil
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
		for i, key := range sortedEntries(entries) {
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

// GUIDKind is GUIDInfo, the GUID table of an end port. Its entry 0 is the port's
// own GUID, which cannot be changed.
var GUIDKind = &TableKind{
	Attr:    mad.AttrGUIDInfo,
	byPort:  true,
	byReply: true,
	layout: func(t *Table) (modifiers []uint32, err error) {
		for block := range (int(t.PortInfo.GUIDCap) + mad.GUIDBlock - 1) / mad.GUIDBlock {
			modifiers = append(modifiers, uint32(block))
		}
		return modifiers, nil
	},
	row:  func(t *Table, i int) (string, int, int) { return fmt.Sprintf("entry %d", i/8), i &^ 7, 8 },
	text: func(b []byte) string { return mad.GUID(binary.BigEndian.Uint64(b)).String() },
}

// GUIDs returns the entries of a GUID table; 0 where none is assigned.
func GUIDs(t *Table) []mad.GUID {
	guids := make([]mad.GUID, t.PortInfo.GUIDCap)
	for i := range guids {
		guids[i] = mad.GUID(binary.BigEndian.Uint64(t.Data[8*i:]))
	}
	return guids
}

// EditGUIDs makes t a change of a GUID table: entries are merged into it, or
// replace all of it but entry 0, where 0 leaves it unchanged.
func EditGUIDs(t *Table, entries map[int]mad.GUID, replace bool) {
	t.Kind = GUIDKind
	t.Edit = func(t *Table) error {
		room := int(t.PortInfo.GUIDCap)
		if replace && room > 0 {
			clear(t.Data[8 : 8*room])
		}
		for i, g := range sortedEntries(entries) {
			switch {
			case i >= room && g != 0:
				return unsupported("entry %d is out of range; the table has %s", i, plural.Count(room, "entry", "entries"))
			case i >= room:
			case i > 0:
				binary.BigEndian.PutUint64(t.Data[8*i:], uint64(g))
			case g != 0 && g != GUIDs(t)[0]:
				return unsupported("entry 0 is the port's own GUID, %v, and cannot be changed", GUIDs(t)[0])
			}
		}
		return nil
	}
}

// laneLayout returns the modifiers of the rows, by output port.
func laneLayout(t *Table) (modifiers []uint32, err error) {
	if !t.IsSwitch() {
		return []uint32{0}, nil
	}
	// What port 0 sends has lanes of its own only where it is like a CA's
	// (opensm opensm/osm_qos.c qos_extports_setup).
	first, last := 1, int(t.Node.NumPorts)
	if t.Switch.EnhancedPort0 {
		first = 0
	}
	if t.Port != NoPortNumber {
		first, last = t.Port, t.Port
	}
	for out := first; out <= last; out++ {
		for in := range int(t.Node.NumPorts) + 1 {
			modifiers = append(modifiers, uint32(in)<<8|uint32(out))
		}
	}
	return modifiers, nil
}

// Bits of the modifier that mean all ports, and the bit of
// OptimizedSLtoVLMappingProgramming that says that a switch knows them
// (opensm opensm/osm_qos.c qos_extports_setup, include/iba/ib_types.h
// ib_switch_info_get_opt_sl2vlmapping; IBA 14.2.5.8).
const (
	allOutPorts = 1 << 16
	allInPorts  = 1 << 17
	optimized   = 1
)

// laneWrites uses one Set for all input ports, or for all ports, where their rows
// are equal and the switch has that.
func laneWrites(t *Table, changed []int) (writes []tableWrite) {
	if !t.IsSwitch() || t.Switch.OptimizedSLtoVLMappingProgramming&optimized == 0 {
		return t.eachBlock(changed)
	}
	ins := int(t.Node.NumPorts) + 1
	equal := func(rows []byte) bool {
		return bytes.Equal(rows[8:], rows[:len(rows)-8])
	}
	if t.Port == NoPortNumber && len(changed) > 1 && equal(t.Data) {
		return []tableWrite{{modifier: allInPorts | allOutPorts, data: t.block(t.Data, 0)}}
	}
	for len(changed) > 0 {
		first := changed[0] / ins * ins
		n, _ := slices.BinarySearch(changed, first+ins)
		group := changed[:n]
		changed = changed[n:]
		if len(group) > 1 && equal(t.Data[8*first:][:8*ins]) {
			writes = append(writes, tableWrite{modifier: allInPorts | t.Modifiers[first]&0xff, data: t.block(t.Data, first)})
		} else {
			writes = append(writes, t.eachBlock(group)...)
		}
	}
	return writes
}

// arbitrationBlocks returns how many blocks each of the tables has.
func arbitrationBlocks(t *Table) (low, high int) {
	blocks := func(entries uint8) int {
		return (int(min(entries, 2*mad.VLArbBlock)) + mad.VLArbBlock - 1) / mad.VLArbBlock
	}
	return blocks(t.PortInfo.VLArbitrationLowCap), blocks(t.PortInfo.VLArbitrationHighCap)
}

// sortedEntries iterates over entries by their numbers.
func sortedEntries[K cmp.Ordered, V any](entries map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(entries)) {
			if !yield(k, entries[k]) {
				return
			}
		}
	}
}
