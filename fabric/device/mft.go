package device

import (
	"encoding/binary"
	"fmt"

	"fabsh/mad"
)

// mftPorts is the number of ports in a block's masks (IBA 14.2.5.12).
const mftPorts = 16

// MulticastKind is the multicast forwarding table of a switch: for each LID
// from 0xC000 on a mask of ports, in blocks of 32 LIDs and 16 ports. Blocks of
// the same LIDs follow each other.
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

// mftPositions is how many masks cover a switch's ports, port 0 included.
func mftPositions(t *Table) int { return int(t.Node.NumPorts)/mftPorts + 1 }

// multicastTop reports whether the switch has MulticastFDBTop. Others leave it 0, while 0xBFFF
// means that no multicast LID is forwarded (opensm
// opensm/osm_mcast_mgr.c mcast_mgr_set_mfttop; rdma-core
// infiniband-diags/ibroute.c dump_multicast_tables).
func multicastTop(t *Table) bool { return t.Switch.MulticastFDBTop >= uint16(mad.MinMulticastLID)-1 }

// MulticastRows is how many LIDs, from 0xC000 on, the switch forwards.
func MulticastRows(t *Table) int {
	rows := int(t.Switch.MulticastFDBCap)
	if multicastTop(t) {
		rows = min(rows, int(t.Switch.MulticastFDBTop)+1-int(mad.MinMulticastLID))
	}
	return rows
}

// MulticastPorts are the ports, ascending, through which packets to the LID of a
// row leave.
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

// mftOffset is where the mask of a row is.
func mftOffset(t *Table, row, position int) int {
	return (row/mad.MFTBlock*mftPositions(t)+position)*2*mad.MFTBlock + row%mad.MFTBlock*2
}

// EditMulticast makes t a change of a multicast forwarding table: the ports of
// LIDs are merged into it, or replace all of it.
func EditMulticast(t *Table, entries map[mad.LID][]uint8, replace bool) {
	t.Kind = MulticastKind
	for lid, ports := range sorted(entries) {
		if len(ports) > 0 {
			t.Rows = int(lid-mad.MinMulticastLID) + 1
		}
	}
	t.Edit = func(t *Table) error {
		if replace {
			clear(t.Data)
		}
		for lid, ports := range sorted(entries) {
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
