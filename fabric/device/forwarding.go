package device

import (
	"context"
	"encoding/binary"
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// LinearKind is the linear forwarding table of a switch, a byte for each LID.
var LinearKind = &TableKind{
	Attr:     mad.AttrLinearForwardingTable,
	onSwitch: true,
	blank:    mad.NoPort,
	layout: func(t *Table) ([]uint32, error) {
		if t.Rows > int(t.Switch.LinearFDBCap) {
			return nil, unsupported("LID %d: the switch's table holds LIDs up to %d", t.Rows-1, int(t.Switch.LinearFDBCap)-1)
		}
		modifiers := make([]uint32, (max(linearTop(t)+1, t.Rows)+mad.LFTBlock-1)/mad.LFTBlock)
		for i := range modifiers {
			modifiers[i] = uint32(i)
		}
		return modifiers, nil
	},
	used: func(t *Table) int { return linearTop(t) + 1 },
	row:  func(t *Table, i int) (string, int, int) { return fmt.Sprintf("LID %d", i), i, 1 },
	text: func(b []byte) string {
		if b[0] == mad.NoPort {
			return "dropped"
		}
		return fmt.Sprintf("port %d", b[0])
	},
	// The top is raised when the entries below it are written, and never
	// lowered: that would hide entries that the change does not name.
	after: func(t *Table) *Set {
		if t.Rows <= linearTop(t)+1 {
			return nil
		}
		return t.raise("linear_fdb_top", t.Rows-1)
	},
}

// linearTop returns the highest LID that the switch forwards: LinearFDBTop, or the last
// unicast LID if that is lower.
func linearTop(t *Table) int { return int(min(t.Switch.LinearFDBTop, uint16(mad.MaxUnicastLID))) }

// LinearEntries returns the entries of a linear forwarding table by LID, up to LinearFDBTop.
func LinearEntries(t *Table) []byte { return t.Data[:linearTop(t)+1] }

// EditLinear makes t a change of a linear forwarding table, into which entries are
// merged.
func EditLinear(t *Table, entries map[mad.LID]uint8) {
	t.Kind = LinearKind
	for lid, port := range entries {
		if port != mad.NoPort {
			t.Rows = max(t.Rows, int(lid)+1)
		}
	}
	t.Edit = func(t *Table) error {
		wrong := mad.LID(0) // the lowest
		for lid, port := range entries {
			if port != mad.NoPort && port > t.Node.NumPorts && (wrong == 0 || lid < wrong) {
				wrong = lid
			}
			if int(lid) < len(t.Data) {
				t.Data[lid] = port
			}
		}
		if wrong > 0 {
			return t.noPort(wrong, entries[wrong])
		}
		return nil
	}
}

// ReplaceLinear makes t a change of a whole linear forwarding table: LID i gets entries[i], and
// packets to higher LIDs are dropped.
func ReplaceLinear(t *Table, entries []uint8) {
	t.Kind, t.Whole = LinearKind, true
	for t.Rows = len(entries); t.Rows > 0 && entries[t.Rows-1] == mad.NoPort; t.Rows-- {
	}
	t.Edit = func(t *Table) error {
		for i := range t.Data {
			t.Data[i] = mad.NoPort
		}
		copy(t.Data, entries)
		for lid, port := range entries {
			if port != mad.NoPort && port > t.Node.NumPorts {
				return t.noPort(mad.LID(lid), port)
			}
		}
		return nil
	}
}

// noPort returns an error if an entry names a port that the switch does not have.
func (t *Table) noPort(lid mad.LID, port uint8) error {
	return unsupported("LID %d: no port %d; the switch has ports 0..%d", lid, port, t.Node.NumPorts)
}

// LFT is the linear forwarding table of a switch, or the reason why it could not be read.
type LFT struct {
	Entries []byte // ports by LID, up to LinearFDBTop
	Err     error
}

// ReadLFTs reads the whole linear forwarding tables of many switches at once.
// The error is the end of ctx.
func ReadLFTs(ctx context.Context, e *engine.Engine, dests []fabric.Dest) ([]LFT, error) {
	tables := make([]*Table, len(dests))
	for i, d := range dests {
		tables[i] = &Table{Kind: LinearKind, Dest: d}
	}
	if err := ReadTables(ctx, e, tables...); err != nil {
		return nil, err
	}
	lfts := make([]LFT, len(tables))
	for i, t := range tables {
		if lfts[i].Err = t.Err; t.Err == nil {
			lfts[i].Entries = LinearEntries(t)
		}
	}
	return lfts, nil
}

// mftPorts is the number of ports in a block's masks (IBA 14.2.5.12).
const mftPorts = 16

// MulticastKind is the multicast forwarding table of a switch: for each LID
// from 0xC000 on a mask of ports, in blocks of 32 LIDs and 16 ports. Blocks with equal LIDs
// follow each other.
var MulticastKind = &TableKind{
	Attr:     mad.AttrMulticastForwardingTable,
	onSwitch: true,
	layout: func(t *Table) (modifiers []uint32, err error) {
		if room := int(t.Switch.MulticastFDBCap); t.Rows > room {
			return nil, unsupported("multicast LID %#x: the switch's table holds %d, from %#x on", multicastLID(t.Rows-1), room, multicastLID(0))
		}
		for block := range (max(MulticastRows(t), t.Rows) + mad.MFTBlock - 1) / mad.MFTBlock {
			for position := range mftPositions(t) {
				modifiers = append(modifiers, uint32(position)<<28|uint32(block))
			}
		}
		return modifiers, nil
	},
	row: func(t *Table, i int) (string, int, int) {
		block, row := i/(2*mad.MFTBlock), i/2%mad.MFTBlock
		lid := multicastLID(block/mftPositions(t)*mad.MFTBlock + row)
		first := block % mftPositions(t) * mftPorts
		return fmt.Sprintf("multicast LID %#x at ports %d to %d", lid, first, first+mftPorts-1), i &^ 1, 2
	},
	text: func(b []byte) string { return fmt.Sprintf("mask 0x%04x", binary.BigEndian.Uint16(b)) },
	after: func(t *Table) *Set { // as with the linear table
		if t.Rows <= MulticastRows(t) {
			return nil
		}
		return t.raise("multicast_fdb_top", int(multicastLID(t.Rows-1)))
	},
}

func multicastLID(row int) mad.LID { return mad.MinMulticastLID + mad.LID(row) }

// mftPositions returns how many masks cover a switch's ports, port 0 included.
func mftPositions(t *Table) int { return int(t.Node.NumPorts)/mftPorts + 1 }

// multicastTop reports whether the switch has MulticastFDBTop. Switches without it leave it 0,
// while 0xBFFF means that no multicast LID is forwarded (opensm opensm/osm_mcast_mgr.c
// mcast_mgr_set_mfttop; rdma-core infiniband-diags/ibroute.c dump_multicast_tables).
func multicastTop(t *Table) bool { return t.Switch.MulticastFDBTop >= uint16(mad.MinMulticastLID)-1 }

// MulticastRows returns how many LIDs, from 0xC000 on, the switch forwards.
func MulticastRows(t *Table) int {
	rows := int(t.Switch.MulticastFDBCap)
	if multicastTop(t) {
		rows = min(rows, int(t.Switch.MulticastFDBTop)+1-int(mad.MinMulticastLID))
	}
	return rows
}

// MulticastPorts returns the ports, ascending, through which packets to the LID of a row leave.
func MulticastPorts(t *Table, row int) (ports []uint8) {
	for position := range mftPositions(t) {
		mask := binary.BigEndian.Uint16(t.Data[mftOffset(t, row, position):])
		for bit := 0; mask>>bit != 0; bit++ {
			if mask>>bit&1 != 0 {
				ports = append(ports, uint8(position*mftPorts+bit))
			}
		}
	}
	return ports
}

// mftOffset returns where the mask of a row is.
func mftOffset(t *Table, row, position int) int {
	return (row/mad.MFTBlock*mftPositions(t)+position)*2*mad.MFTBlock + row%mad.MFTBlock*2
}

// EditMulticast makes t a change of a multicast forwarding table: the ports of
// LIDs are merged into it, or replace all of it.
func EditMulticast(t *Table, entries map[mad.LID][]uint8, replace bool) {
	t.Kind = MulticastKind
	for lid, ports := range sortedEntries(entries) {
		if len(ports) > 0 {
			t.Rows = int(lid-mad.MinMulticastLID) + 1
		}
	}
	t.Edit = func(t *Table) error {
		if replace {
			clear(t.Data)
		}
		for lid, ports := range sortedEntries(entries) {
			row := int(lid - mad.MinMulticastLID)
			if mftOffset(t, row, 0) >= len(t.Data) {
				continue // above MulticastFDBTop, and without ports
			}
			masks := make([]uint16, mftPositions(t))
			for _, port := range ports {
				if port > t.Node.NumPorts {
					return unsupported("multicast LID %#x: no port %d; the switch has ports 0..%d", lid, port, t.Node.NumPorts)
				}
				masks[port/mftPorts] |= 1 << (port % mftPorts)
			}
			for position, mask := range masks {
				binary.BigEndian.PutUint16(t.Data[mftOffset(t, row, position):], mask)
			}
		}
		return nil
	}
}
