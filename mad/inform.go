package mad

// InformInfo subscribes to the reports of events, or ends a subscription.
//
//mad:attr class=SubnAdm id=0x0003 methods=Set v1=Inform required size=36 section=13.4.8.3
//mad:source opensm include/iba/ib_types.h ib_inform_info_t
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ib_mad.h ib_mad_informinfo_t
type InformInfo struct {
	// GID is the port whose events are requested; all 0 requests those of the LIDs from LIDRangeBegin on.
	GID GID `mad:"0:128"`
	// LIDRangeBegin is the first LID whose events are requested; 65535 is all LIDs.
	LIDRangeBegin LID `mad:"128:16"`
	// LIDRangeEnd is the last LID whose events are requested.
	LIDRangeEnd LID    `mad:"144:16"`
	_           uint16 `mad:"160:16"`
	// IsGeneric is 1 for traps that the specification defines, 0 for a vendor's.
	IsGeneric uint8 `mad:"176:8"`
	// Subscribe is 1 to subscribe, 0 to end the subscription.
	Subscribe uint8 `mad:"184:8"`
	// Type is the severity of the requested events.
	Type InformType `mad:"192:16"`
	// TrapNumber is the kind of event, 65535 for all; of a vendor's traps, the vendor's number of the device.
	TrapNumber uint16 `mad:"208:16,vendor=DeviceID"`
	// QPN is the queue pair whose subscription ends; ignored in a request to subscribe.
	QPN uint32 `mad:"224:24,hex"`
	_   uint8  `mad:"248:3"`
	// RespTimeValue is the longest time in which the subscriber answers a report, 4.096 us * 2^value.
	RespTimeValue uint8 `mad:"251:5"`
	_             uint8 `mad:"256:8"`
	// ProducerType is the kind of node where the event occurs; of a vendor's traps, the vendor's OUI.
	ProducerType ProducerType `mad:"264:24,also=node_type,vendor=VendorID"`
}

// InformType is the severity of the events of a subscription (IBA 13.4.8.3).
//
//mad:enum
type InformType uint16

const (
	InformTypeFatal         InformType = 0
	InformTypeUrgent        InformType = 1
	InformTypeSecurity      InformType = 2
	InformTypeSM            InformType = 3 // "subnet_management"
	InformTypeInformational InformType = 4
	InformTypeAll           InformType = 0xffff
)

// InformInfoRecord is a subscription as the subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x00f3 alias=InformRecord methods=Get,GetTable v1=Get,Set,GetTable,GetBulk,Config state config size=60 section=15.2.5.12
//mad:source opensm include/iba/ib_types.h ib_inform_info_record_t, IB_IIR_COMPMASK_*
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_informinfo_record_t
type InformInfoRecord struct {
	// SubscriberGID is the port that subscribed.
	SubscriberGID GID `mad:"0:128"`
	// Enum distinguishes the subscriptions of a port.
	Enum uint16  `mad:"128:16"`
	_    [6]byte `mad:"144:48,bytes"`
	// InformInfo is the subscription.
	InformInfo InformInfo `mad:"192:288"`
}

// Values of an InformInfo that select all, as InformTypeAll and ProducerTypeAll
// do (IBA 13.4.8.3; rdma-core, srp_handle_traps.c, register_to_trap).
const (
	AllTraps uint16 = 0xffff
	AllLIDs  LID    = 0xffff
)

// Matches reports whether subscription i selects notice n. The GID, or without
// one the range of LIDs, is that of the port that issued the notice; traps 64
// to 67 are issued by the subnet manager (IBA 13.4.8.3; opensm, osm_inform.c,
// match_notice_to_inf_rec).
func (i *InformInfo) Matches(n *Notice) bool {
	switch {
	case i.GID != GID{}:
		if i.GID != n.IssuerGID {
			return false
		}
	case i.LIDRangeBegin == AllLIDs:
	case n.IssuerLID < i.LIDRangeBegin || n.IssuerLID > max(i.LIDRangeBegin, i.LIDRangeEnd):
		return false
	}
	return (i.IsGeneric != 0) == n.IsGeneric &&
		(i.Type == InformTypeAll || uint16(i.Type) == uint16(n.Type)) &&
		(i.TrapNumber == AllTraps || i.TrapNumber == n.TrapNumber) &&
		(i.ProducerType == ProducerTypeAll || i.ProducerType == n.ProducerType)
}
