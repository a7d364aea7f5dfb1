package agent

import (
	"encoding/binary"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Records of tables in blocks. They show the tables of the agents.

// addSL2VLs adds the mappings of an end port: of a switch one for each pair of
// ports; of others the one that leaves through it, with input port 0 (opensm
// osm_sa_slvl_record.c osm_slvl_rec_rcv_process).
func (q *query) addSL2VLs(s *state.Subnet, p *state.Port) {
	in := 1
	if p.Node.IsSwitch {
		in = len(p.Node.Ports)
	}
	for i := range p.ManagedPorts() {
		for from := range in {
			rec := &mad.SLtoVLMappingTableRecord{LID: p.LID, InputPortNum: uint8(from), OutputPortNum: p.ManagedPorts()[i].Num}
			block := uint32(0)
			if p.Node.IsSwitch {
				block = uint32(from<<8 | i)
			}
			if q.mayMatch(rec) {
				rec.SLtoVLMappingTable.Decode(s.Block(state.SL2VLBlocks, p, block))
				q.add(rec)
			}
		}
	}
}

// addVLArbs adds the VL arbitration tables of the ports of an end port.
func (q *query) addVLArbs(s *state.Subnet, p *state.Port) {
	for i := range p.ManagedPorts() {
		m := &p.ManagedPorts()[i]
		for _, block := range []uint32{1, 3} {
			rec := &mad.VLArbitrationTableRecord{LID: p.LID, OutputPortNum: m.Num, BlockNum: uint8(block)}
			if !q.mayMatch(rec) {
				continue
			}
			rec.VLArbitrationTable.Decode(s.Block(state.VLArbBlocks, m, block))
			q.add(rec)
		}
	}
}

// addPKeys adds the partition tables of the ports of an end port (opensm
// osm_sa_pkey_record.c osm_pkey_rec_rcv_process).
func (q *query) addPKeys(s *state.Subnet, p *state.Port) {
	for i := range p.ManagedPorts() {
		m := &p.ManagedPorts()[i]
		for block := range uint32(m.NumPKeyBlocks()) {
			rec := &mad.PKeyTableRecord{LID: p.LID, BlockNum: uint16(block), PortNum: m.Num}
			if !q.mayMatch(rec) {
				continue
			}
			rec.PKeyTable.Decode(s.Block(state.PKeyBlocks, m, block))
			q.add(rec)
		}
	}
}

// addGUIDs adds the GUID table of an end port.
func (q *query) addGUIDs(s *state.Subnet, p *state.Port) {
	for block := range uint32(state.GUIDCap / mad.GUIDBlock) {
		rec := &mad.GUIDInfoRecord{LID: p.LID, BlockNum: uint8(block)}
		rec.GUIDInfo.Decode(s.Block(state.GUIDBlocks, p, block))
		q.add(rec)
	}
}

// addMFT adds the blocks of a switch's multicast forwarding table that are not empty.
func (q *query) addMFT(s *state.Subnet, p *state.Port) {
	if !p.Node.IsSwitch {
		return
	}
	for block := range uint32(state.MulticastCap / mad.MFTBlock) {
		for position := range uint32((len(p.Node.Ports) + 15) / 16) {
			content := s.Blocks[state.BlockKey{Port: p, Attr: state.MFTBlocks.Attr, Block: position<<28 | block}]
			if content == nil || *content == ([state.SMPSize]byte{}) {
				continue
			}
			rec := &mad.MulticastForwardingTableRecord{LID: p.LID, Position: uint8(position), BlockNum: uint16(block)}
			rec.MulticastForwardingTable.Decode(content[:])
			q.add(rec)
		}
	}
}

// findPKeys finds partition tables, for trusted requesters (opensm
// osm_sa_pkey_record.c osm_pkey_rec_rcv_process).
func (r *saRequest) findPKeys(q *query) mad.Status {
	if !q.trusted {
		return mad.StatusRequestInvalid
	}
	return ofEndPorts(func(q *query, p *state.Port) { q.addPKeys(r.SA.subnet, p) })(r, q)
}

// findNothing finds no records: switches have no such table.
func (r *saRequest) findNothing(*query) mad.Status { return mad.StatusOK }

// withTables returns a function that finds records of tables.
func withTables(add func(q *query, s *state.Subnet, p *state.Port)) func(*saRequest, *query) mad.Status {
	return func(r *saRequest, q *query) mad.Status {
		return ofEndPorts(func(q *query, p *state.Port) { add(q, r.SA.subnet, p) })(r, q)
	}
}

// Components of GUIDInfoRecord, and the first GUID that the subnet administrator
// gives (opensm osm_sa_guidinfo_record.c).
var (
	guidRecordRID   = mad.AttrGUIDInfoRecord.Field("lid").Mask() | mad.AttrGUIDInfoRecord.Field("block_num").Mask()
	firstChosenGUID = mad.GUID(0x0014_0500_0000_0001)
)

// changeGUIDs sets or deletes the entries of a GUID table that the mask selects.
func (r *saRequest) changeGUIDs(mask uint64, _ bool) mad.Status {
	var asked mad.GUIDInfoRecord
	asked.Decode(r.Data)
	if mask&guidRecordRID != guidRecordRID {
		return mad.StatusInsufficient
	}
	if int(asked.LID) >= len(r.SA.subnet.LIDs) || r.SA.subnet.LIDs[asked.LID] == nil || !r.SA.subnet.LIDs[asked.LID].InService || int(asked.BlockNum) >= state.GUIDCap/mad.GUIDBlock {
		return mad.StatusRequestInvalid
	}
	p := r.SA.subnet.LIDs[asked.LID]
	entries := guidRecordEntries(mask)
	data := r.SA.subnet.Block(state.GUIDBlocks, p, uint32(asked.BlockNum))
	for e := range mad.GUIDBlock {
		if entries>>e&1 == 0 || e == 0 && asked.BlockNum == 0 { // the port's own GUID cannot be changed
			continue
		}
		guid := asked.GUIDInfo.GUIDBlock[e]
		switch {
		case r.Method == mad.MethodDelete:
			guid = 0
		case guid == 0:
			guid = firstChosenGUID + mad.GUID(r.SA.madeGUIDs)
			r.SA.madeGUIDs++
		}
		binary.BigEndian.PutUint64(data[8*e:], uint64(guid))
	}
	r.SA.subnet.WriteBlock(state.GUIDBlocks, p, uint32(asked.BlockNum), data)
	asked.LID = p.LID
	asked.GUIDInfo.Decode(data)
	asked.Encode(r.Data)
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
