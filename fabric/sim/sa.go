package sim

import (
	"encoding/binary"
	"slices"

	"fabsh/mad"
)

// saKey is the SM_Key of a trusted requester: OpenSM's default (opensm osm_base.h
// OSM_DEFAULT_SA_KEY).
const saKey = 1

// maxTable is the largest answer of the subnet administrator, in bytes.
const maxTable = 256 << 20

// recordHandler answers for one attribute of subnet administration.
type recordHandler struct {
	attr *mad.Attribute
	// find adds the records that a Get, GetTable, GetMulti or GetTraceTable asks
	// for to q; nil: there are none of the attribute.
	find func(r *request, q *query) mad.Status
	// change executes a Set or Delete; nil: nobody may change the record. mask is
	// the ComponentMask; trusted: the requester has the SM_Key.
	change func(r *request, mask uint64, trusted bool) mad.Status
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
	{attr: mad.AttrPKeyTableRecord, find: (*request).findPKeys},
	{attr: mad.AttrGUIDInfoRecord, find: withTables((*query).addGUIDs), change: (*request).changeGUIDs},
	{attr: mad.AttrMulticastForwardingTableRecord, find: withTables((*query).addMFT)},
	{attr: mad.AttrRandomForwardingTableRecord, find: (*request).findNothing},
	{attr: mad.AttrSMInfoRecord, find: (*request).findSMInfo},
	{attr: mad.AttrInformInfo, change: (*request).changeSubscription},
	{attr: mad.AttrInformInfoRecord, find: (*request).findSubscriptions},
	{attr: mad.AttrPathRecord, find: (*request).findPaths},
	{attr: mad.AttrMultiPathRecord, find: (*request).findMultiPaths},
	{attr: mad.AttrTraceRecord, find: (*request).findTrace},
	{attr: mad.AttrMCMemberRecord, find: (*request).findGroups, change: (*request).changeGroup},
	{attr: mad.AttrServiceRecord, find: (*request).findServices, change: (*request).changeService},
}

// ofEndPorts finds the records that add makes of each end port that the latest
// sweep reached: OpenSM drops the others (opensm osm_drop_mgr.c).
func ofEndPorts(add func(q *query, p *port)) func(*request, *query) mad.Status {
	return func(r *request, q *query) mad.Status {
		for p := range q.endPorts(r.Subnet) {
			if p.inService {
				add(q, p)
			}
		}
		return mad.StatusOK
	}
}

// executeSA executes a request to the subnet administrator. Of a table, the MAD
// becomes the header of its segments. A request with a wrong SM_Key gets no
// answer.
func (r *request) executeSA() mad.Status {
	places := mad.SAPlacesIn(r.ClassVersion)
	key := binary.BigEndian.Uint64(r.mad[places.Key:])
	if key != 0 && key != saKey {
		r.reply = replyNone
		return mad.StatusOK
	}
	if info, ok := mad.MethodOf(r.Class, r.ClassVersion, r.Method); !ok || !info.Answered || r.Method == mad.MethodReport {
		return mad.StatusBadMethod
	}
	r.attr = mad.Lookup(mad.ClassSubnAdm, r.Attribute)
	if r.ClassVersion == 1 {
		r.data = r.mad[places.Data:]
		if !r.allows1() {
			return mad.StatusBadMethodAttribute
		}
	} else if !allows(r.attr, r.Method) {
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
	mask, trusted := binary.BigEndian.Uint64(r.mad[places.Mask:]), key != 0
	switch {
	case r.Method != mad.MethodSet && r.Method != mad.MethodDelete:
		return r.query(h, mask, trusted)
	case h.change != nil:
		return h.change(r, mask, trusted)
	}
	return mad.StatusBadMethodAttribute
}

// allows1: version 1 of the class has the request, and its layout is known from two
// sources. Sets, GetBulk and Config are not known so.
func (r *request) allows1() bool {
	return r.attr != nil && r.attr.Confirmed && slices.Contains(r.attr.MethodsIn(1), r.Method) &&
		(r.Method == mad.MethodGet || r.Method == mad.MethodGetTable)
}

// answer1 answers in version 1 of the class with records, as many as one MAD holds:
// how that version sends more is not public.
func (r *request) answer1(records []byte, size int) mad.Status {
	if len(records) > len(r.data) {
		return mad.StatusNoResources
	}
	copy(r.data, records)
	var h mad.SA1Header
	h.Decode(r.mad[mad.RMPPOffset:])
	h.SegmentNumber, h.PayloadLength, h.AttributeOffset = 0, uint32(len(records)), uint16(size/8)
	h.FragmentFlag = mad.FragmentFlagFirst | mad.FragmentFlagLast
	h.Encode(r.mad[mad.RMPPOffset:])
	return mad.StatusOK
}

// query answers with the records that match.
func (r *request) query(h recordHandler, mask uint64, trusted bool) mad.Status {
	want := r.data
	if len(r.payload) > len(want) {
		want = r.payload
	}
	q := newQuery(r.attr, mask, want)
	q.trusted = trusted
	if r.Method == mad.MethodGet {
		q.limit = 2 * q.size // one too many
	}
	const capabilityMaskMatch = 1 << 31 // IBA 15.2.5.3
	if r.attr == mad.AttrPortInfoRecord && r.Modifier&capabilityMaskMatch != 0 {
		q.maskField = r.attr.Field("capability_mask")
	}
	if r.Method == mad.MethodGetMulti && r.payload == nil { // as opensm osm_mpr_rcv_process
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
	clear(r.data)
	if r.ClassVersion == 1 {
		if status != mad.StatusOK {
			return status
		}
		return r.answer1(q.records, q.size)
	}
	clear(r.mad[mad.RMPPOffset:mad.SAKeyOffset])
	if status != mad.StatusOK {
		return status
	}
	binary.BigEndian.PutUint16(r.mad[mad.SAAttrOffsetOffset:], uint16(q.size/8))
	if r.Method == mad.MethodGet {
		copy(r.data, q.records)
		return status
	}
	if r.attr.Answer != nil { // opensm osm_sa_multipath_record.c osm_mpr_rcv_process
		binary.BigEndian.PutUint16(r.mad[mad.AttributeOffset:], uint16(r.attr.Answer.ID))
	}
	r.reply, r.table = replyTable, q.records
	return status
}

func (r *request) getSAClassPortInfo() mad.Status {
	clear(r.data)
	info := mad.ClassPortInfo{
		BaseVersion: 1, ClassVersion: r.ClassVersion, RespTimeValue: lifeTime,
		CapabilityMask: uint16(mad.SubnAdmCapabilityMaskIsPortInfoCapabilityMaskMatchSupported),
		CapabilityMask2: uint32(mad.SubnAdmCapabilityMask2IsFullPortInfoRecordSupported |
			mad.SubnAdmCapabilityMask2IsExtendedSpeedsSupported),
	}
	info.Encode(r.data)
	return r.modifierIs0()
}
