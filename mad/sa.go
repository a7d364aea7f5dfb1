package mad

// RMPPHeader divides a transfer of more than one MAD into segments. It is at
// RMPPOffset.
//
//mad:header size=12 section=13.6.2.1
//mad:source opensm include/iba/ib_types.h ib_rmpp_mad_t
//mad:source rdma-core libibumad/umad_types.h umad_rmpp_hdr
type RMPPHeader struct {
	// RMPPVersion is 1; 0 if the MAD is not part of a transfer.
	RMPPVersion uint8 `mad:"0:8"`
	// RMPPType is the role of the MAD in the transfer.
	RMPPType RMPPType `mad:"8:8"`
	// RRespTime is the longest time in which the receiver of this MAD answers, 4.096 us * 2^value; 31 is unspecified.
	RRespTime uint8 `mad:"16:5"`
	// RMPPFlags mark the first and the last segment.
	RMPPFlags RMPPFlags `mad:"21:3"`
	// RMPPStatus is why the transfer was stopped or aborted.
	RMPPStatus RMPPStatus `mad:"24:8"`
	// SegmentNumber counts segments from 1; in an ACK it is the last one received in order.
	SegmentNumber uint32 `mad:"32:32"`
	// PayloadLength is the number of bytes after this header: of the whole transfer (or 0) in the first segment, of this segment in the last. In an ACK it is NewWindowLast, the last segment that may be sent.
	PayloadLength uint32 `mad:"64:32"`
}

// SAHeader follows the RMPPHeader in MADs of subnet administration, at SAKeyOffset.
//
//mad:header size=20 section=15.2.1.1
//mad:source opensm include/iba/ib_types.h ib_sa_mad_t
//mad:source rdma-core libibumad/umad_sa.h umad_sa_packet
type SAHeader struct {
	// SMKey shows that the sender is trusted; 0 in most requests.
	SMKey uint64 `mad:"0:64,name=SM_Key,key,hex"`
	// AttributeOffset is the distance from record to record in a table, in units of 8 bytes.
	AttributeOffset uint16 `mad:"64:16"`
	_               uint16 `mad:"80:16"`
	// ComponentMask selects the components of the record that a query compares, a bit each.
	ComponentMask uint64 `mad:"96:64,hex"`
}

// RMPPType is the role of a MAD in a transfer (IBA 13.6.2.1).
//
//mad:enum
type RMPPType uint8

const (
	RMPPTypeNone  RMPPType = 0
	RMPPTypeData  RMPPType = 1
	RMPPTypeACK   RMPPType = 2 // "ack"
	RMPPTypeStop  RMPPType = 3
	RMPPTypeAbort RMPPType = 4
)

// RMPPFlags mark a transfer's first and last segment (IBA 13.6.2.1).
//
//mad:mask
type RMPPFlags uint8

const (
	RMPPFlagsActive RMPPFlags = 1 << 0
	RMPPFlagsFirst  RMPPFlags = 1 << 1
	RMPPFlagsLast   RMPPFlags = 1 << 2
)

// RMPPStatus is why a transfer ended early (IBA 13.6.2.1).
//
//mad:enum
type RMPPStatus uint8

const (
	RMPPStatusNormal                            RMPPStatus = 0
	RMPPStatusResourcesExhausted                RMPPStatus = 1
	RMPPStatusTotalTimeTooLong                  RMPPStatus = 118
	RMPPStatusInconsistentLastAndPayloadLength  RMPPStatus = 119
	RMPPStatusInconsistentFirstAndSegmentNumber RMPPStatus = 120
	RMPPStatusBadRMPPType                       RMPPStatus = 121 // "bad_rmpp_type"
	RMPPStatusNewWindowLastTooSmall             RMPPStatus = 122
	RMPPStatusSegmentNumberTooBig               RMPPStatus = 123
	RMPPStatusIllegalStatus                     RMPPStatus = 124
	RMPPStatusUnsupportedVersion                RMPPStatus = 125
	RMPPStatusTooManyRetries                    RMPPStatus = 126
	RMPPStatusUnspecified                       RMPPStatus = 127
)

// NodeRecord is a node as the subnet administrator knows it: one record per
// port of a channel adapter or router, one per switch.
//
//mad:attr class=SubnAdm id=0x0011 methods=Get,GetTable v1=Get,GetTable,GetBulk state required size=108 section=15.2.5.2
//mad:source opensm include/iba/ib_types.h ib_node_record_t, IB_NR_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SANodeRecord
type NodeRecord struct {
	// LID is the port's LID.
	LID LID    `mad:"0:16"`
	_   uint16 `mad:"16:16"`
	// NodeInfo is the node's NodeInfo, as this port shows it.
	NodeInfo NodeInfo `mad:"32:320"`
	// NodeDescription is the node's NodeDescription.
	NodeDescription NodeDescription `mad:"352:512"`
}

// PortInfoRecord is a port as the subnet administrator knows it.
//
// With bit 31 of the modifier, a CapabilityMask in the query matches ports
// that have at least these capabilities.
//
//mad:attr class=SubnAdm id=0x0012 methods=Get,GetTable v1=Get,GetTable,GetBulk state required size=68 section=15.2.5.3 modifier=match_capability_mask:31:1
//mad:source opensm include/iba/ib_types.h ib_portinfo_record_t, IB_PIR_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SAPortInfoRecord
type PortInfoRecord struct {
	// EndportLID is the LID of the port; of a switch's external port, that of its port 0.
	EndportLID LID `mad:"0:16"`
	// PortNum is the port number; on channel adapters it may be 0 in answers.
	PortNum uint8 `mad:"16:8"`
	// Options is 0x80 in a query from a sender that supports the extended speeds; without it, a subnet manager may show the speeds of such a port as QDR.
	Options uint8 `mad:"24:8,hex"`
	// PortInfo is the port's PortInfo.
	PortInfo PortInfo `mad:"32:512"`
}

// SwitchInfoRecord is a switch as the subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x0014 alias=SwitchRecord methods=Get,GetTable v1=Get,GetTable,GetBulk state size=24 section=15.2.5.5
//mad:source opensm include/iba/ib_types.h ib_switch_info_record_t, IB_SWIR_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SASwitchInfoRecord
type SwitchInfoRecord struct {
	// LID is the LID of the switch.
	LID LID    `mad:"0:16"`
	_   uint16 `mad:"16:16"`
	// SwitchInfo is the switch's SwitchInfo.
	SwitchInfo SwitchInfo `mad:"32:160"`
}

// LinearForwardingTableRecord is a block of a switch's unicast forwarding
// table as the subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x0015 methods=Get,GetTable v1=GetTable,GetBulk state size=72 section=15.2.5.6
//mad:source opensm include/iba/ib_types.h ib_lft_record_t, IB_LFTR_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SALinearForwardingTableRecord
type LinearForwardingTableRecord struct {
	// LID is the LID of the switch.
	LID LID `mad:"0:16"`
	// BlockNum is the block of LIDs 64*BlockNum to 64*BlockNum+63.
	BlockNum uint16 `mad:"16:16"`
	_        uint32 `mad:"32:32"`
	// LinearForwardingTable is the block's content.
	LinearForwardingTable LinearForwardingTable `mad:"64:512"`
}

// SMInfoRecord is a subnet manager as the subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x0018 methods=Get,GetTable v1=Get,GetTable,GetBulk state size=28 section=15.2.5.10
//mad:source opensm include/iba/ib_types.h ib_sminfo_record_t, IB_SMIR_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SASMInfoRecord
type SMInfoRecord struct {
	// LID is the LID of the port that the subnet manager runs on.
	LID LID    `mad:"0:16"`
	_   uint16 `mad:"16:16"`
	// SMInfo is the subnet manager's SMInfo.
	SMInfo SMInfo `mad:"32:192"`
}

// LinkRecord is a link in one direction.
//
//mad:attr class=SubnAdm id=0x0020 methods=Get,GetTable v1=Get,GetTable,GetBulk state size=8 section=15.2.5.13
//mad:source opensm include/iba/ib_types.h ib_link_record_t, IB_LR_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SALinkRecord
type LinkRecord struct {
	// FromLID is the LID of the node at this end.
	FromLID LID `mad:"0:16"`
	// FromPort is the port at this end.
	FromPort uint8 `mad:"16:8"`
	// ToPort is the port at the other end.
	ToPort uint8 `mad:"24:8"`
	// ToLID is the LID of the node at the other end.
	ToLID LID    `mad:"32:16"`
	_     uint16 `mad:"48:16"`
}

// PathRecord is a path between two ports: the header fields of its packets, and
// the limits of the path.
//
// In a query, the selectors are how MTU, Rate and PacketLifeTime are compared.
//
//mad:attr class=SubnAdm id=0x0035 methods=Get,GetTable v1=Get,GetTable state required size=64 section=15.2.5.16
//mad:source opensm include/iba/ib_types.h ib_path_rec_t, IB_PR_COMPMASK_*
//mad:source linux drivers/infiniband/core/sa_query.c path_rec_table
//mad:source python-rdma codegen/iba_15.xml SAPathRecord
type PathRecord struct {
	// ServiceID is the service that the path is for, if the quality of service depends on it.
	ServiceID uint64 `mad:"0:64,hex,components=2"`
	// DGID is the GID of the destination.
	DGID GID `mad:"64:128"`
	// SGID is the GID of the source.
	SGID GID `mad:"192:128"`
	// DLID is the LID of the destination.
	DLID LID `mad:"320:16"`
	// SLID is the LID of the source.
	SLID LID `mad:"336:16"`
	// RawTraffic is set if the path is for raw packets.
	RawTraffic bool  `mad:"352:1"`
	_          uint8 `mad:"353:3"`
	// FlowLabel is the value for the global route header.
	FlowLabel uint32 `mad:"356:20,hex"`
	// HopLimit is the value for the global route header.
	HopLimit uint8 `mad:"376:8"`
	// TClass is the value for the global route header.
	TClass uint8 `mad:"384:8,hex"`
	// Reversible is set if answers may take the same path back.
	Reversible bool `mad:"392:1"`
	// NumbPath is the largest number of paths to return, in a query.
	NumbPath uint8 `mad:"393:7"`
	// PKey is the P_Key that both ends share.
	PKey uint16 `mad:"400:16,name=P_Key,hex"`
	// QoSClass is the quality of service class.
	QoSClass uint16 `mad:"416:12,hex"`
	// SL is the service level to use.
	SL uint8 `mad:"428:4"`
	// MTUSelector is how the query compares MTU.
	MTUSelector Selector `mad:"432:2"`
	// MTU is the largest packet on the path, in bytes.
	MTU MTU `mad:"434:6"`
	// RateSelector is how the query compares Rate.
	RateSelector Selector `mad:"440:2"`
	// Rate is that of the slowest link, in Gb/s.
	Rate Rate `mad:"442:6"`
	// PacketLifeTimeSelector is how the query compares PacketLifeTime.
	PacketLifeTimeSelector LifeTimeSelector `mad:"448:2"`
	// PacketLifeTime is the longest time of a packet on the path, 4.096 us * 2^value.
	PacketLifeTime uint8 `mad:"450:6"`
	// Preference is the rank of the path; lower is better.
	Preference uint8    `mad:"456:8"`
	_          [6]uint8 `mad:"464:8"`
}

// Selector is how a query compares a number (IBA 15.2.5.16).
//
//mad:enum
type Selector uint8

const (
	SelectorGreaterThan      Selector = 0
	SelectorLessThan         Selector = 1
	SelectorExactly          Selector = 2
	SelectorLargestAvailable Selector = 3
)

// LifeTimeSelector is how a query compares a packet lifetime (IBA 15.2.5.16).
//
//mad:enum
type LifeTimeSelector uint8

const (
	LifeTimeSelectorGreaterThan       LifeTimeSelector = 0
	LifeTimeSelectorLessThan          LifeTimeSelector = 1
	LifeTimeSelectorExactly           LifeTimeSelector = 2
	LifeTimeSelectorSmallestAvailable LifeTimeSelector = 3
)

// Rate is a data rate in Gb/s, as a code (IBA 15.2.5.16; rdma-core
// libibverbs/verbs.h ibv_rate; linux include/rdma/ib_verbs.h ib_rate, which alone
// has 1600).
//
//mad:enum
type Rate uint8

const (
	Rate2_5  Rate = 2 // "2.5"
	Rate10   Rate = 3
	Rate30   Rate = 4
	Rate5    Rate = 5
	Rate20   Rate = 6
	Rate40   Rate = 7
	Rate60   Rate = 8
	Rate80   Rate = 9
	Rate120  Rate = 10
	Rate14   Rate = 11
	Rate56   Rate = 12
	Rate112  Rate = 13
	Rate168  Rate = 14
	Rate25   Rate = 15
	Rate100  Rate = 16
	Rate200  Rate = 17
	Rate300  Rate = 18
	Rate28   Rate = 19
	Rate50   Rate = 20
	Rate400  Rate = 21
	Rate600  Rate = 22
	Rate800  Rate = 23
	Rate1200 Rate = 24
	Rate1600 Rate = 25
)
