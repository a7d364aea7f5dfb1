package device

import (
	"fmt"

	"fabsh/mad"
)

// VLArbKind is VLArbitrationTable, the two arbitration tables of a port: first
// the blocks of the low-priority table, then those of the high-priority one.
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

// arbitrationBlocks is how many blocks each of the tables has.
func arbitrationBlocks(t *Table) (low, high int) {
	blocks := func(entries uint8) int {
		return (int(min(entries, 2*mad.VLArbBlock)) + mad.VLArbBlock - 1) / mad.VLArbBlock
	}
	return blocks(t.PortInfo.VLArbitrationLowCap), blocks(t.PortInfo.VLArbitrationHighCap)
}

// VLWeight is an entry of an arbitration table: a virtual lane, and its weight,
// how much it may send at its turn in units of 64 bytes; 0 skips the entry.
type VLWeight struct{ VL, Weight uint8 }

// VLArbEntries are the entries of both tables.
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
