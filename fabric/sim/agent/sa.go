package agent

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Administrator is the subnet administrator (SA) of a subnet. It follows OpenSM's as far as
// possible: what it lacks, and where it differs, is stated with its records. Its fields are guarded by the
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
	Data    []byte // its attribute; afterwards the attribute of the answer
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
	find func(r *saRequest, q *saQuery) mad.Status
	// change executes a Set or Delete; nil: the record cannot be changed. mask is
	// the ComponentMask; trusted: the requester has the SM_Key.
	change func(r *saRequest, mask uint64, trusted bool) mad.Status
}

// recordHandlers are the attributes of subnet administration (IBA 15.2.5).
var recordHandlers = []recordHandler{
	{attr: mad.AttrNodeRecord, find: ofEndPorts((*saQuery).addNode)},
	{attr: mad.AttrPortInfoRecord, find: ofEndPorts((*saQuery).addPortInfos)},
	{attr: mad.AttrSwitchInfoRecord, find: ofEndPorts((*saQuery).addSwitchInfo)},
	{attr: mad.AttrLinearForwardingTableRecord, find: ofEndPorts((*saQuery).addLFT)},
	{attr: mad.AttrLinkRecord, find: ofEndPorts((*saQuery).addLinks)},
	{attr: mad.AttrSLtoVLMappingTableRecord, find: withTables((*saQuery).addSL2VLs)},
	{attr: mad.AttrVLArbitrationTableRecord, find: withTables((*saQuery).addVLArbs)},
	{attr: mad.AttrPKeyTableRecord, find: (*saRequest).findPKeys},
	{attr: mad.AttrGUIDInfoRecord, find: withTables((*saQuery).addGUIDs), change: (*saRequest).changeGUIDs},
	{attr: mad.AttrMulticastForwardingTableRecord, find: withTables((*saQuery).addMFT)},
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
func ofEndPorts(add func(q *saQuery, p *state.Port)) func(*saRequest, *saQuery) mad.Status {
	return func(r *saRequest, q *saQuery) mad.Status {
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
		if status := r.checkVersion1(); status != mad.StatusOK {
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
	q := newSAQuery(r.attr, mask, want)
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
		return r.answerVersion1(q.records, q.size)
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

// saQuery is a search for records by any of their components, whose positions are in the
// declaration of the attribute.
type saQuery struct {
	mask       uint64      // ComponentMask
	want       []byte      // the attribute of the request
	compare    []mad.Field // the fields that the mask selects
	maskFields []string    // names of the fields that match if they have all the bits of want
	size       int         // of a record in a table: a multiple of 8 bytes
	records    []byte      // that were found
	record     []byte      // scratch
	trusted    bool        // the requester has the SM_Key
	limit      int         // bytes of records after which the search ends
}

func newSAQuery(a *mad.Attribute, mask uint64, want []byte) *saQuery {
	q := &saQuery{mask: mask, want: bytes.Clone(want), limit: maxTable}
	q.setRecord(a)
	return q
}

// setRecord makes q a query for records of a.
func (q *saQuery) setRecord(a *mad.Attribute) {
	q.size = (a.Size + 7) &^ 7
	q.record = make([]byte, q.size)
	q.compare = nil
	for _, f := range a.Flat() {
		if f.Mask()&q.mask != 0 {
			q.compare = append(q.compare, f)
		}
	}
}

// add adds a record, if it matches.
func (q *saQuery) add(e state.Encoder) {
	clear(q.record)
	e.Encode(q.record)
	for i := range q.compare {
		if !q.matches(&q.compare[i]) {
			return
		}
	}
	q.records = append(q.records, q.record...)
}

func (q *saQuery) matches(f *mad.Field) bool {
	switch {
	case f.Bits > 64:
		return bytes.Equal(f.Bytes(q.record), f.Bytes(q.want))
	case slices.Contains(q.maskFields, f.Name):
		want := f.Uint(q.want)
		return f.Uint(q.record)&want == want
	}
	for e := range f.Count {
		// Of some arrays, each element is a component.
		if f.Components == f.Count && q.mask>>(f.Component+e)&1 == 0 {
			continue
		}
		if f.UintAt(q.record, e) != f.UintAt(q.want, e) {
			return false
		}
	}
	return true
}

// full reports whether the search may end.
func (q *saQuery) full() bool { return len(q.records) >= q.limit }

// lidComponent is the component of the LID, the first one of the records of ports.
const lidComponent = 1 << 0

// endPorts are the end ports that match the query's LID, by LID.
func (q *saQuery) endPorts(s *state.Subnet) iter.Seq[*state.Port] {
	lids := s.LIDs
	if q.mask&lidComponent != 0 {
		lid := min(int(binary.BigEndian.Uint16(q.want)), len(lids)-1)
		lids = lids[lid : lid+1]
	}
	return func(yield func(*state.Port) bool) {
		for p := range state.EndPorts(lids) {
			if q.full() || !yield(p) {
				return
			}
		}
	}
}

// mayMatch reports whether the fields of rec that are not of the table match.
func (q *saQuery) mayMatch(rec state.Encoder) bool {
	clear(q.record)
	rec.Encode(q.record)
	for i := range q.compare {
		if f := &q.compare[i]; f.Offset < recordIDBits && !q.matches(f) {
			return false
		}
	}
	return true
}

// recordIDBits returns the size of the block number in a record, in bits.
const recordIDBits = 64

// Capabilities of the subnet administrator: the ones of OpenSM that are implemented here
// (opensm osm_sa_class_port_info.c cpi_rcv_respond). OpenSM also announces
// IsGetSetNoticeSupported, without answering such requests, and with use_mfttop
// IsMulticastTopSupported.
const (
	saCapabilities = mad.SubnAdmCapabilityMaskIsUDMulticastSupported |
		mad.SubnAdmCapabilityMaskIsMultiPathSupported |
		mad.SubnAdmCapabilityMaskIsPortInfoCapabilityMaskMatchSupported
	saCapabilities2 = mad.SubnAdmCapabilityMask2IsAdditionalGUIDSupported |
		mad.SubnAdmCapabilityMask2IsFullPortInfoRecordSupported |
		mad.SubnAdmCapabilityMask2IsExtendedSpeedsSupported |
		mad.SubnAdmCapabilityMask2IsMulticastServiceRecordSupported |
		mad.SubnAdmCapabilityMask2IsPortInfoCapabilityMask2MatchSupported |
		mad.SubnAdmCapabilityMask2IsSendOnlyFullMemberSupported |
		mad.SubnAdmCapabilityMask2IsLinkWidth2xSupported |
		mad.SubnAdmCapabilityMask2IsLinkSpeedHDRSupported
)

func (r *saRequest) getSAClassPortInfo() mad.Status {
	info := mad.ClassPortInfo{
		BaseVersion: 1, ClassVersion: r.ClassVersion, RespTimeValue: state.LifeTime,
		CapabilityMask: uint16(saCapabilities), CapabilityMask2: uint32(saCapabilities2),
	}
	if r.ClassVersion == 1 { // MCGroupRecord, which its multicast needs, has no public layout
		info.CapabilityMask, info.CapabilityMask2 = 0, 0
	}
	return encodeAnswer(r.Data, &info, r.Modifier)
}

// capabilityMasks are the fields of PortInfo that, with bit 31 of the modifier, match if
// they have all the bits of the query (IBA 15.2.5.3; opensm osm_sa_portinfo_record.c
// sa_pir_check_physp).
var capabilityMasks = []string{"CapabilityMask", "CapabilityMask2"}

// checkVersion1 returns the status of a request of class version 1 that is not supported.
// Supported are requests that fit in one MAD, of attributes whose layout two public
// sources give, and tables of records that never exist here. GetBulk is optional, and the contents
// of SAResponse, its first MAD, are not public (Shanley, InfiniBand Network Architecture, table
// 33-3). Config is required, and each of its MADs is answered; but the values of its
// EditModifier are not public, so that none is valid here.
func (r *saRequest) checkVersion1() mad.Status {
	switch r.Method {
	case mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodInform, mad.MethodConfig:
	default:
		return mad.StatusBadMethod
	}
	switch {
	case r.attr == nil, !slices.Contains(r.attr.MethodsIn(1), r.Method):
		return mad.StatusBadMethodAttribute
	case r.Method == mad.MethodConfig:
		return mad.StatusBadValue
	case !r.attr.Confirmed && r.isChange():
		return mad.StatusBadMethodAttribute
	}
	return mad.StatusOK
}

// answerVersion1 answers in version 1 of the class: in one MAD, or in a series of them.
func (r *saRequest) answerVersion1(records []byte, size int) mad.Status {
	var h mad.SA1Header
	h.Decode(r.MAD[mad.RMPPOffset:])
	h.SegmentNumber, h.PayloadLength, h.AttributeOffset = 0, uint32(len(records)), uint16(size/8)
	h.FragmentFlag = mad.FragmentFlagFirst | mad.FragmentFlagLast
	h.Encode(r.MAD[mad.RMPPOffset:])
	if len(records) > len(r.Data) {
		r.IsTable, r.Table = true, records
		return mad.StatusOK
	}
	copy(r.Data, records)
	return mad.StatusOK
}

// Fragments calls send with the MADs of a table of class version 1 of subnet administration, one
// after the other. p is the answer without records. They have the transaction ID of the request, and
// none is acknowledged: how a receiver does that is not public (Shanley, InfiniBand Network
// Architecture, table 33-3; the header is that of opensm osm_vendor_umadt.c ib_sa_mad_t_vM3).
func Fragments(p *Packet, table []byte, send func(*Packet)) {
	at := mad.SAPlacesIn(1).Data
	var h mad.SA1Header
	h.Decode(p.MAD[mad.RMPPOffset:])
	for n, rest := uint32(1), table; n == 1 || len(rest) > 0; n++ {
		q := *p
		clear(q.MAD[at:])
		part := copy(q.MAD[at:], rest)
		rest = rest[part:]
		h.SegmentNumber, h.FragmentFlag = n, 0
		if n > 1 {
			h.PayloadLength = uint32(part) // in the first, that of the whole table
		} else {
			h.FragmentFlag |= mad.FragmentFlagFirst
		}
		if len(rest) == 0 {
			h.FragmentFlag |= mad.FragmentFlagLast
		}
		h.Encode(q.MAD[mad.RMPPOffset:])
		send(&q)
	}
}
