// Package sa is the subnet administrator in the process of a simulated subnet. It follows
// OpenSM's as far as possible.
//
//	sa.go            Administrator, Request, and the records that it has
//	classport.go     classPortInfo: the capabilities
//	version1.go      version 1 of the class
//	query.go         a query, and the records that match
//	record.go        records of nodes, ports, forwarding tables and links
//	tablerecord.go   records of tables in blocks
//	path.go          PathRecord; rate.go: rates and selectors
//	multipath.go     MultiPathRecord
//	trace.go         TraceRecord
//	group.go         MCMemberRecord: who joins and leaves multicast groups
//	newgroup.go      groups that are made; what a request must match
//	service.go       ServiceRecord
//	subscription.go  InformInfo

package agent

import (
	"encoding/binary"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Administrator is the subnet administrator of a subnet. Its fields are guarded by the
// subnet's lock.
type Administrator struct {
	subnet  *state.Subnet
	notices *state.Notices
	sm      *Manager

	Muted     bool   // it does not answer
	madeMGIDs uint32 // counts the MGIDs that were chosen for groups
	madeGUIDs uint32 // counts the GUIDs that were chosen for ports
	Services  []saService
}

// NewAdministrator returns the subnet administrator of a subnet.
func NewAdministrator(s *state.Subnet, n *state.Notices, m *Manager) *Administrator {
	return &Administrator{subnet: s, notices: n, sm: m}
}

// Mute stops the answers of the subnet administrator, or starts them again.
func (a *Administrator) Mute(mute bool) {
	a.subnet.Lock()
	defer a.subnet.Unlock()
	a.Muted = mute
}

// saRequest is a request to the subnet administrator.
type saRequest struct {
	SA *Administrator
	mad.Header
	From    *state.Port // that it was sent from
	MAD     []byte
	Data    []byte // its attribute; afterwards that of the answer
	Payload []byte // the attribute of a request in several segments
	attr    *mad.Attribute
	Table   []byte // records that are the answer, in segments with the MAD's header
	IsTable bool
	Silent  bool // there is no answer
}

// maxTable is the largest answer of the subnet administrator, in bytes.
const maxTable = 256 << 20

// recordHandler answers for one attribute of subnet administration.
type recordHandler struct {
	attr *mad.Attribute
	// find adds to q the records that a Get, GetTable, GetMulti or GetTraceTable
	// requests; nil: the attribute has no records.
	find func(r *saRequest, q *query) mad.Status
	// change executes a Set or Delete; nil: the record cannot be changed. mask is
	// the ComponentMask; trusted: the requester has the SM_Key.
	change func(r *saRequest, mask uint64, trusted bool) mad.Status
}

// recordHandlers are the attributes of subnet administration (IBA 15.2.5).
var recordHandlers = []recordHandler{
	{attr: mad.AttrNodeRecord, find: ofEndPorts((*query).addNode)},
	{attr: mad.AttrPortInfoRecord, find: ofEndPorts((*query).addPortInfos)},
	{attr: mad.AttrSwitchInfoRecord, find: ofEndPorts((*query).addSwitchInfo)},
	{attr: mad.AttrLinearForwardingTableRecord, find: ofEndPorts((*query).addLFT)},
	{attr: mad.AttrLinkRecord, find: ofEndPorts((*query).addLinks)},
	{attr: mad.AttrSLtoVLMappingTableRecord, find: withTables((*query).addSL2VLs)},
	{attr: mad.AttrVLArbitrationTableRecord, find: withTables((*query).addVLArbs)},
	{attr: mad.AttrPKeyTableRecord, find: (*saRequest).findPKeys},
	{attr: mad.AttrGUIDInfoRecord, find: withTables((*query).addGUIDs), change: (*saRequest).changeGUIDs},
	{attr: mad.AttrMulticastForwardingTableRecord, find: withTables((*query).addMFT)},
	{attr: mad.AttrRandomForwardingTableRecord, find: (*saRequest).findNothing},
	{attr: mad.AttrSMInfoRecord, find: (*saRequest).findSMInfo},
	{attr: mad.AttrInformInfo, change: (*saRequest).changeSubscription},
	{attr: mad.AttrInformInfoRecord, find: (*saRequest).findSubscriptions, change: (*saRequest).changeSubscriptionRecord},
	{attr: mad.AttrPathRecord, find: (*saRequest).findPaths},
	{attr: mad.AttrMultiPathRecord, find: (*saRequest).findMultiPaths},
	{attr: mad.AttrTraceRecord, find: (*saRequest).findTrace},
	{attr: mad.AttrMCMemberRecord, find: (*saRequest).findGroups, change: (*saRequest).changeGroup},
	{attr: mad.AttrServiceRecord, find: (*saRequest).findServices, change: (*saRequest).changeService},
	{attr: mad.AttrSubnAdm1RangeRecord, find: (*saRequest).findNothing},  // of version 1
	{attr: mad.AttrSubnAdm1NoticeRecord, find: (*saRequest).findNothing}, // of version 1
}

// ofEndPorts finds the records that add creates for each end port that the latest sweep
// reached: OpenSM drops the others (opensm osm_drop_mgr.c).
func ofEndPorts(add func(q *query, p *state.Port)) func(*saRequest, *query) mad.Status {
	return func(r *saRequest, q *query) mad.Status {
		for p := range q.endPorts(r.SA.subnet) {
			if p.InService {
				add(q, p)
			}
		}
		return mad.StatusOK
	}
}

// Run executes a request to the subnet administrator. For a table, the MAD becomes the
// header of its segments. A request with a wrong SM_Key is not answered.
func (r *saRequest) Run() mad.Status {
	places := mad.SAPlacesIn(r.ClassVersion)
	key := binary.BigEndian.Uint64(r.MAD[places.Key:])
	if key != 0 && key != SMKey {
		r.Silent = true
		return mad.StatusOK
	}
	r.attr = mad.Lookup(mad.ClassSubnAdm, r.Attribute)
	if r.ClassVersion == 1 {
		r.Data = r.MAD[places.Data:]
		if status := r.check1(); status != mad.StatusOK {
			return status
		}
	} else if info, ok := mad.MethodOf(r.Class, r.ClassVersion, r.Method); !ok || !info.Answered || r.Method == mad.MethodReport {
		return mad.StatusBadMethod
	} else if !methodAllowed(r.attr, r.Method) {
		return mad.StatusBadMethodAttribute
	}
	if r.attr == mad.AttrSubnAdmClassPortInfo {
		return r.getSAClassPortInfo()
	}
	var h recordHandler
	for i := range recordHandlers {
		if recordHandlers[i].attr == r.attr {
			h = recordHandlers[i]
		}
	}
	mask, trusted := binary.BigEndian.Uint64(r.MAD[places.Mask:]), key != 0
	switch {
	case !r.isChange():
		return r.query(h, mask, trusted)
	case h.change != nil:
		return h.change(r, mask, trusted)
	}
	return mad.StatusBadMethodAttribute
}

// isChange reports whether the request changes a record.
func (r *saRequest) isChange() bool {
	if r.ClassVersion == 1 {
		return r.Method == mad.MethodSet || r.Method == mad.MethodInform
	}
	return r.Method == mad.MethodSet || r.Method == mad.MethodDelete
}

// query answers with the records that match.
func (r *saRequest) query(h recordHandler, mask uint64, trusted bool) mad.Status {
	want := r.Data
	if len(r.Payload) > len(want) {
		want = r.Payload
	}
	q := newQuery(r.attr, mask, want)
	q.trusted = trusted
	if r.Method == mad.MethodGet {
		q.limit = 2 * q.size // one too many
	}
	const capabilityMaskMatch = 1 << 31 // IBA 15.2.5.3
	if r.attr == mad.AttrPortInfoRecord && r.Modifier&capabilityMaskMatch != 0 {
		q.maskFields = capabilityMasks
	}
	if r.Method == mad.MethodGetMulti && r.Payload == nil { // as opensm osm_mpr_rcv_process
		return mad.StatusRequestInvalid
	}
	status := mad.StatusBadMethodAttribute
	if h.find != nil {
		status = h.find(r, q)
	}
	switch n := len(q.records) / q.size; {
	case status != mad.StatusOK:
	case r.Method != mad.MethodGet && q.full():
		status = mad.StatusNoResources
	case r.Method == mad.MethodGet && n == 0:
		status = mad.StatusNoRecords
	case r.Method == mad.MethodGet && n > 1:
		status = mad.StatusTooManyRecords
	}
	clear(r.Data)
	if r.ClassVersion == 1 {
		if status != mad.StatusOK {
			return status
		}
		return r.answer1(q.records, q.size)
	}
	clear(r.MAD[mad.RMPPOffset:mad.SAKeyOffset])
	if status != mad.StatusOK {
		return status
	}
	binary.BigEndian.PutUint16(r.MAD[mad.SAAttrOffsetOffset:], uint16(q.size/8))
	if r.Method == mad.MethodGet {
		copy(r.Data, q.records)
		return status
	}
	if r.attr.Answer != nil { // opensm osm_sa_multipath_record.c osm_mpr_rcv_process
		binary.BigEndian.PutUint16(r.MAD[mad.AttributeOffset:], uint16(r.attr.Answer.ID))
	}
	r.IsTable, r.Table = true, q.records
	return status
}
