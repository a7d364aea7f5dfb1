package device

import (
	"bytes"
	"fmt"
	"slices"

	"fabsh/mad"
)

// SL2VLKind is SLtoVLMappingTable, the mapping of service levels to virtual
// lanes: of a switch a row for each input and output port, or for each input
// port and one output port; of others a single row. A packet's row is that of
// the port where it came in, at the port where it leaves.
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

// PortPair is the ports of a row, where packets come in and leave; both are 0
// of a channel adapter's.
type PortPair struct{ In, Out uint8 }

// LanePorts are the ports of a row.
func LanePorts(t *Table, row int) PortPair {
	return PortPair{uint8(t.Modifiers[row] >> 8), uint8(t.Modifiers[row])}
}

// laneLayout lists the rows by output port.
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

// Lanes are the virtual lanes of a row, by service level.
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
