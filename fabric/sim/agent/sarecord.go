package agent

import (
	"encoding/binary"
	"slices"
	"time"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

func (q *saQuery) addNode(p *state.Port) {
	var info [state.SMPSize]byte
	p.ReadNodeInfo(info[:])
	rec := &mad.NodeRecord{LID: p.LID}
	rec.NodeInfo.Decode(info[:])
	rec.NodeDescription.Decode(p.Node.Description[:])
	q.add(rec)
}

// addPortInfos adds the PortInfo of all ports behind end port p, without M_Keys.
func (q *saQuery) addPortInfos(p *state.Port) {
	const extendedSpeeds = 0x80 // Options
	for i := range p.ManagedPorts() {
		m := &p.ManagedPorts()[i]
		rec := &mad.PortInfoRecord{EndportLID: p.LID, PortNum: m.Num, Options: extendedSpeeds}
		rec.PortInfo.Decode(m.Info[:])
		rec.PortInfo.MKey = 0
		q.add(rec)
	}
}

func (q *saQuery) addSwitchInfo(p *state.Port) {
	if p.Node.IsSwitch {
		rec := &mad.SwitchInfoRecord{LID: p.LID}
		rec.SwitchInfo.Decode(p.Node.SwitchInfo[:])
		q.add(rec)
	}
}

// addLFT adds the blocks of a switch up to its LinearFDBTop.
func (q *saQuery) addLFT(p *state.Port) {
	if !p.Node.IsSwitch {
		return
	}
	for block := range int(p.Node.FDBTop)/mad.LFTBlock + 1 {
		rec := &mad.LinearForwardingTableRecord{LID: p.LID, BlockNum: uint16(block)}
		p.Node.ReadLFT(block*mad.LFTBlock, rec.LinearForwardingTable.PortBlock[:])
		q.add(rec)
	}
}

// addLinks adds the links that are up, between nodes with a LID.
func (q *saQuery) addLinks(p *state.Port) {
	for i := range p.ManagedPorts() {
		if from := &p.ManagedPorts()[i]; from.Up && from.Peer.EndPort().LID != 0 {
			q.add(&mad.LinkRecord{
				FromLID: p.LID, FromPort: from.Num,
				ToLID: from.Peer.EndPort().LID, ToPort: from.Peer.Num,
			})
		}
	}
}

func (r *saRequest) findSMInfo(q *saQuery) mad.Status {
	q.add(&mad.SMInfoRecord{LID: r.SA.subnet.SM.LID, SMInfo: r.SA.sm.Info()})
	return mad.StatusOK
}

// Records of tables in blocks. They show the tables of the agents.

// addSL2VLs adds the mappings of an end port: of a switch one for each pair of
// ports; of others the one that leaves through it, with input port 0 (opensm
// osm_sa_slvl_record.c osm_slvl_rec_rcv_process).
func (q *saQuery) addSL2VLs(s *state.Subnet, p *state.Port) {
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
func (q *saQuery) addVLArbs(s *state.Subnet, p *state.Port) {
	for i := range p.ManagedPorts() {
		m := &p.ManagedPorts()[i]
		for _, block := range []uint32{state.VLArbLow, state.VLArbHigh} {
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
func (q *saQuery) addPKeys(s *state.Subnet, p *state.Port) {
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
func (q *saQuery) addGUIDs(s *state.Subnet, p *state.Port) {
	for block := range uint32(state.GUIDCap / mad.GUIDBlock) {
		rec := &mad.GUIDInfoRecord{LID: p.LID, BlockNum: uint8(block)}
		rec.GUIDInfo.Decode(s.Block(state.GUIDBlocks, p, block))
		q.add(rec)
	}
}

// addMFT adds the blocks of a switch's multicast forwarding table that are not empty.
func (q *saQuery) addMFT(s *state.Subnet, p *state.Port) {
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
func (r *saRequest) findPKeys(q *saQuery) mad.Status {
	if !q.trusted {
		return mad.StatusRequestInvalid
	}
	return ofEndPorts(func(q *saQuery, p *state.Port) { q.addPKeys(r.SA.subnet, p) })(r, q)
}

// findNothing finds no records: switches have no such table.
func (r *saRequest) findNothing(*saQuery) mad.Status { return mad.StatusOK }

// withTables returns a function that finds records of tables.
func withTables(add func(q *saQuery, s *state.Subnet, p *state.Port)) func(*saRequest, *saQuery) mad.Status {
	return func(r *saRequest, q *saQuery) mad.Status {
		return ofEndPorts(func(q *saQuery, p *state.Port) { add(q, r.SA.subnet, p) })(r, q)
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

// Services, as in OpenSM (opensm osm_sa_service_record.c): a ServiceKey is not
// checked, but is not shown either. A lease is shown as it was registered.

// saService is a ServiceRecord with the time when its lease ends.
type saService struct {
	mad.ServiceRecord
	LeaseEnd time.Time // zero: never
}

const infiniteLease = 1<<32 - 1

// expired reports whether the lease of s is over.
func (s *saService) expired(now time.Time) bool {
	return !s.LeaseEnd.IsZero() && !now.Before(s.LeaseEnd)
}

var (
	serviceID    = serviceComponent("service_id")
	serviceGID   = serviceComponent("service_gid")
	servicePKey  = serviceComponent("service_p_key")
	serviceLease = serviceComponent("service_lease")
)

func serviceComponent(script string) uint64 { return mad.AttrServiceRecord.Field(script).Mask() }

// changeService adds, changes or deletes a service.
func (r *saRequest) changeService(mask uint64, trusted bool) mad.Status {
	var asked mad.ServiceRecord
	asked.Decode(r.Data)
	if mask&servicePKey != 0 {
		if !r.SA.subnet.HasPKey(r.From, asked.ServicePKey) {
			return mad.StatusRequestInvalid
		}
		if mask&serviceGID != 0 && asked.ServiceGID[0] != 0xff {
			if p := r.SA.subnet.EndPortByGUID(asked.ServiceGID.GUID()); p == nil || !r.SA.subnet.HasPKey(p, asked.ServicePKey) {
				return mad.StatusRequestInvalid
			}
		}
	}
	now := r.SA.subnet.Now()
	r.SA.Services = slices.DeleteFunc(r.SA.Services, func(s saService) bool { return s.expired(now) })
	known := slices.IndexFunc(r.SA.Services, func(s saService) bool {
		return s.ServiceID == asked.ServiceID && s.ServiceGID == asked.ServiceGID && s.ServicePKey == asked.ServicePKey
	})
	switch {
	case r.Method == mad.MethodDelete && known < 0:
		return mad.StatusNoRecords
	case r.Method == mad.MethodDelete:
		asked = r.SA.Services[known].ServiceRecord
		r.SA.Services = slices.Delete(r.SA.Services, known, known+1)
	case mask&(serviceID|serviceGID) != serviceID|serviceGID:
		return mad.StatusRequestInvalid
	case known < 0 && len(r.SA.Services) >= maxStored:
		return mad.StatusNoResources
	default:
		if mask&serviceLease == 0 {
			asked.ServiceLease = infiniteLease
		}
		service := saService{ServiceRecord: asked}
		if asked.ServiceLease != infiniteLease {
			service.LeaseEnd = now.Add(time.Duration(asked.ServiceLease) * time.Second)
		}
		if known >= 0 {
			r.SA.Services[known] = service
		} else {
			r.SA.Services = slices.Insert(r.SA.Services, 0, service)
		}
		if mask&servicePKey == 0 {
			asked.ServicePKey = mad.DefaultPKey
		}
	}
	if !trusted {
		asked.ServiceKey = [16]byte{}
	}
	asked.Encode(r.Data)
	return mad.StatusOK
}

// findServices finds the services of the requester's partitions.
func (r *saRequest) findServices(q *saQuery) mad.Status {
	q.compare = slices.DeleteFunc(q.compare, func(f mad.Field) bool { return f.Mask() == serviceLease })
	now := r.SA.subnet.Now()
	for i := range r.SA.Services {
		s := &r.SA.Services[i]
		before := len(q.records)
		if !s.expired(now) && r.SA.subnet.HasPKey(r.From, s.ServicePKey) {
			q.add(s)
		}
		if len(q.records) > before && !q.trusted {
			clear(mad.AttrServiceRecord.Field("service_key").Bytes(q.records[before:]))
		}
	}
	return mad.StatusOK
}

// maxStored is the largest number of subscriptions, and of services, that requesters can
// store.
const maxStored = 1 << 16

// changeSubscription begins or ends a subscription of the requester (IBA 13.4.8.3,
// 15.4.12; opensm, osm_sa_informinfo.c, infr_rcv_process_set_method). The answer
// holds the request's InformInfo.
func (r *saRequest) changeSubscription(_ uint64, trusted bool) mad.Status {
	var info mad.InformInfo
	info.Decode(r.Data)
	return r.subscribe(r.From.EndPort(), &info, trusted)
}

// changeSubscriptionRecord begins or ends the subscription in an InformRecord, which
// version 1 of the class has (Shanley, InfiniBand Network Architecture, table 33-5). Only
// trusted requesters may change the subscription of another port.
func (r *saRequest) changeSubscriptionRecord(_ uint64, trusted bool) mad.Status {
	var rec mad.InformInfoRecord
	rec.Decode(r.Data)
	to := r.From.EndPort()
	if rec.SubscriberGID != to.GID() {
		if to = r.SA.subnet.EndPortByGUID(rec.SubscriberGID.GUID()); to == nil || !trusted {
			return mad.StatusRequestInvalid
		}
	}
	return r.subscribe(to, &rec.InformInfo, trusted)
}

func (r *saRequest) subscribe(to *state.Port, info *mad.InformInfo, trusted bool) mad.Status {
	i := state.Subscription{To: to, Info: *info}
	i.Info.QPN, i.Info.Subscribe = 0, 1
	at := -1
	for j := range r.SA.notices.Subscriptions {
		if r.SA.notices.Subscriptions[j] == i {
			at = j
		}
	}
	security := info.TrapNumber >= 256 && info.TrapNumber <= 259
	switch {
	case info.Subscribe > 1, info.Subscribe == 0 && at < 0,
		info.IsGeneric != 0 && security && !trusted, // for trusted requesters only
		info.GID != mad.GID{} && !r.SA.subnet.HasGID(info.GID):
		return mad.StatusRequestInvalid
	case info.Subscribe == 0:
		r.SA.notices.Subscriptions = append(r.SA.notices.Subscriptions[:at:at], r.SA.notices.Subscriptions[at+1:]...)
	case at < 0 && len(r.SA.notices.Subscriptions) >= maxStored:
		return mad.StatusNoResources
	case at < 0:
		r.SA.notices.Subscriptions = append(r.SA.notices.Subscriptions, i)
	}
	return mad.StatusOK
}

// findSubscriptions adds the subscriptions, without the queue pair, which only
// trusted requesters may see (IBA C15-0.2-1.16).
func (r *saRequest) findSubscriptions(q *saQuery) mad.Status {
	for i := range r.SA.notices.Subscriptions {
		sub := &r.SA.notices.Subscriptions[i]
		q.add(&mad.InformInfoRecord{SubscriberGID: sub.To.GID(), InformInfo: sub.Info})
	}
	return mad.StatusOK
}
