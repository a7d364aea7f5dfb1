package sim

import (
	"encoding/binary"

	"fabsh/mad"
)

// Records of tables in blocks. They show what the agents have.

// addSL2VLs adds the mappings of an end port: of a switch one for each pair of
// ports; of others the one that leaves through it, with input port 0 (opensm
// osm_sa_slvl_record.c osm_slvl_rec_rcv_process).
func (q *query) addSL2VLs(s *Subnet, p *port) {
	in := 1
	if p.node.isSwitch {
		in = len(p.node.ports)
	}
	for i := range p.managedPorts() {
		for from := range in {
			rec := &mad.SLtoVLMappingTableRecord{LID: p.lid, InputPortNum: uint8(from), OutputPortNum: p.managedPorts()[i].num}
			block := uint32(0)
			if p.node.isSwitch {
				block = uint32(from<<8 | i)
			}
			if q.mayMatch(rec) {
				rec.SLtoVLMappingTable.Decode(s.block(sl2vlBlocks, p, block))
				q.add(rec)
			}
		}
	}
}

// addVLArbs adds the VL arbitration tables of the ports of an end port.
func (q *query) addVLArbs(s *Subnet, p *port) {
	for i := range p.managedPorts() {
		m := &p.managedPorts()[i]
		for _, block := range []uint32{1, 3} {
			rec := &mad.VLArbitrationTableRecord{LID: p.lid, OutputPortNum: m.num, BlockNum: uint8(block)}
			if !q.mayMatch(rec) {
				continue
			}
			rec.VLArbitrationTable.Decode(s.block(vlArbBlocks, m, block))
			q.add(rec)
		}
	}
}

// addPKeys adds the partition tables of the ports of an end port (opensm
// osm_sa_pkey_record.c osm_pkey_rec_rcv_process).
func (q *query) addPKeys(s *Subnet, p *port) {
	for i := range p.managedPorts() {
		m := &p.managedPorts()[i]
		for block := range uint32(m.pkeyBlocks()) {
			rec := &mad.PKeyTableRecord{LID: p.lid, BlockNum: uint16(block), PortNum: m.num}
			if !q.mayMatch(rec) {
				continue
			}
			rec.PKeyTable.Decode(s.block(pkeyBlocks, m, block))
			q.add(rec)
		}
	}
}

// addGUIDs adds the GUID table of an end port.
func (q *query) addGUIDs(s *Subnet, p *port) {
	for block := range uint32(guidCap / mad.GUIDBlock) {
		rec := &mad.GUIDInfoRecord{LID: p.lid, BlockNum: uint8(block)}
		rec.GUIDInfo.Decode(s.block(guidBlocks, p, block))
		q.add(rec)
	}
}

// addMFT adds the blocks of a switch's multicast forwarding table that hold
// something.
func (q *query) addMFT(s *Subnet, p *port) {
	if !p.node.isSwitch {
		return
	}
	for block := range uint32(multicastCap / mad.MFTBlock) {
		for position := range uint32((len(p.node.ports) + 15) / 16) {
			content := s.blocks[blockKey{p, mftBlocks.attr, position<<28 | block}]
			if content == nil || *content == ([smpSize]byte{}) {
				continue
			}
			rec := &mad.MulticastForwardingTableRecord{LID: p.lid, Position: uint8(position), BlockNum: uint16(block)}
			rec.MulticastForwardingTable.Decode(content[:])
			q.add(rec)
		}
	}
}

// block is a block of a table.
func (s *Subnet) block(t *blockTable, p *port, block uint32) []byte {
	var data [smpSize]byte
	s.readBlock(t, p, block, data[:])
	return data[:]
}

// mayMatch: the fields of rec that are not of the table match.
func (q *query) mayMatch(rec encoder) bool {
	clear(q.record)
	rec.Encode(q.record)
	for i := range q.compare {
		if f := &q.compare[i]; f.Offset < ridBits && !q.matches(f) {
			return false
		}
	}
	return true
}

// ridBits is the size of what says which block a record is of, in bits.
const ridBits = 64

// findPKeys finds partition tables, for trusted requesters (opensm
// osm_sa_pkey_record.c osm_pkey_rec_rcv_process).
func (r *request) findPKeys(q *query) mad.Status {
	if !q.trusted {
		return mad.StatusRequestInvalid
	}
	return ofEndPorts(func(q *query, p *port) { q.addPKeys(r.Subnet, p) })(r, q)
}

// findNothing finds no records: switches have no such table.
func (r *request) findNothing(*query) mad.Status { return mad.StatusOK }

// withTables makes a finder of records of tables.
func withTables(add func(q *query, s *Subnet, p *port)) func(*request, *query) mad.Status {
	return func(r *request, q *query) mad.Status {
		return ofEndPorts(func(q *query, p *port) { add(q, r.Subnet, p) })(r, q)
	}
}

// Components of GUIDInfoRecord, and the first GUID that the subnet administrator
// gives (opensm osm_sa_guidinfo_record.c).
var (
	guidRecordRID   = mad.AttrGUIDInfoRecord.Field("lid").Mask() | mad.AttrGUIDInfoRecord.Field("block_num").Mask()
	firstChosenGUID = mad.GUID(0x0014_0500_0000_0001)
)

// changeGUIDs sets or deletes the entries of a GUID table that the mask selects.
func (r *request) changeGUIDs(mask uint64, _ bool) mad.Status {
	var asked mad.GUIDInfoRecord
	asked.Decode(r.data)
	if mask&guidRecordRID != guidRecordRID {
		return mad.StatusInsufficient
	}
	if int(asked.LID) >= len(r.lids) || r.lids[asked.LID] == nil || !r.lids[asked.LID].inService || int(asked.BlockNum) >= guidCap/mad.GUIDBlock {
		return mad.StatusRequestInvalid
	}
	p := r.lids[asked.LID]
	entries := guidRecordEntries(mask)
	data := r.block(guidBlocks, p, uint32(asked.BlockNum))
	for e := range mad.GUIDBlock {
		if entries>>e&1 == 0 || e == 0 && asked.BlockNum == 0 { // the port's own stays
			continue
		}
		guid := asked.GUIDInfo.GUIDBlock[e]
		switch {
		case r.Method == mad.MethodDelete:
			guid = 0
		case guid == 0:
			guid = firstChosenGUID + mad.GUID(r.madeGUIDs)
			r.madeGUIDs++
		}
		binary.BigEndian.PutUint64(data[8*e:], uint64(guid))
	}
	r.writeBlock(guidBlocks, p, uint32(asked.BlockNum), data)
	asked.LID = p.lid
	asked.GUIDInfo.Decode(data)
	asked.Encode(r.data)
	return mad.StatusOK
}

// guidRecordEntries are the entries that a mask selects, a bit each.
func guidRecordEntries(mask uint64) uint64 {
	for _, f := range mad.AttrGUIDInfoRecord.Flat() {
		if f.Count == mad.GUIDBlock {
			return mask >> f.Component
		}
	}
	return 0
}
