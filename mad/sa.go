package mad

import (
	"encoding/binary"
)

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
	Options uint8 `mad:"24:8,hex,minor"`
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

// SLtoVLMappingTableRecord is an SLtoVLMappingTable as the subnet
// administrator knows it.
//
//mad:attr class=SubnAdm id=0x0013 alias=SltoVlMappingTableRecord methods=Get,GetTable v1=Get,GetTable,GetBulk state required size=16 section=15.2.5.4
//mad:source opensm include/iba/ib_types.h ib_slvl_table_record_t, IB_SLVL_COMPMASK_*
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_SLtoVLmapping_record_t
type SLtoVLMappingTableRecord struct {
	// LID is the LID of the port; of a switch, that of its port 0.
	LID LID `mad:"0:16"`
	// InputPortNum is the switch's port that packets come in through.
	InputPortNum uint8 `mad:"16:8"`
	// OutputPortNum is the switch's port that packets leave through.
	OutputPortNum uint8  `mad:"24:8"`
	_             uint32 `mad:"32:32"`
	// SLtoVLMappingTable is the table.
	SLtoVLMappingTable SLtoVLMappingTable `mad:"64:64"`
}

// RandomForwardingTableRecord is a block of a switch's RandomForwardingTable
// as the subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x0016 methods=Get,GetTable v1=GetTable,GetBulk state size=72 section=15.2.5.7
//mad:source python-rdma codegen/iba_15.xml SARandomForwardingTableRecord
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_randomft_record_t
type RandomForwardingTableRecord struct {
	// LID is the LID of the switch.
	LID LID `mad:"0:16"`
	// BlockNum is the block of entries 16*BlockNum to 16*BlockNum+15.
	BlockNum uint16 `mad:"16:16"`
	_        uint32 `mad:"32:32"`
	// RandomForwardingTable is the block's content.
	RandomForwardingTable RandomForwardingTable `mad:"64:512"`
}

// MulticastForwardingTableRecord is a block of a switch's multicast forwarding
// table as the subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x0017 methods=Get,GetTable v1=GetTable,GetBulk state size=72 section=15.2.5.8
//mad:source opensm opensm/osm_sa_mft_record.c mftr_rcv_new_mftr, include/iba/ib_types.h ib_mft_record_t
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_multicastft_record_t
//mad:source python-rdma codegen/iba_15.xml SAMulticastForwardingTableRecord (Position 2 bits later, BlockNum of 10 bits)
type MulticastForwardingTableRecord struct {
	// LID is the LID of the switch.
	LID LID `mad:"0:16"`
	// Position selects the 16 ports of the masks, from 16*Position on.
	Position uint8 `mad:"16:4"`
	_        uint8 `mad:"20:3"`
	// BlockNum is the block of LIDs 0xC000+32*BlockNum on.
	BlockNum uint16 `mad:"23:9"`
	_        uint32 `mad:"32:32"`
	// MulticastForwardingTable is the block's content.
	MulticastForwardingTable MulticastForwardingTable `mad:"64:512"`
}

// PortInfoExtendedRecord is a PortInfoExtended as the subnet administrator knows
// it. OpenSM 3.3 does not have this record.
//
//mad:attr class=SubnAdm id=0x003e methods=Get,GetTable size=68 section=15.2.5 unconfirmed
//mad:source opensm include/iba/ib_types.h ib_portinfoext_record_t
type PortInfoExtendedRecord struct {
	// LID is the LID of the port; of a switch's external port, that of its port 0.
	LID LID `mad:"0:16"`
	// PortNum is the number of the port.
	PortNum uint8 `mad:"16:8"`
	// Options are undocumented; compare PortInfoRecord.
	Options uint8 `mad:"24:8,hex,minor"`
	// PortInfoExtended is the port's PortInfoExtended.
	PortInfoExtended PortInfoExtended `mad:"32:512"`
}

// LinkSpeedWidthPairsTableRecord is a LinkSpeedWidthPairsTable as the subnet
// administrator knows it.
//
//mad:attr class=SubnAdm id=0x0019 methods=Get,GetTable size=200 section=15.2.5 unconfirmed
//mad:source rdma-core libibumad/umad_sa.h UMAD_SA_ATTR_LINK_SPD_WIDTH_TABLE_REC (the number alone)
type LinkSpeedWidthPairsTableRecord struct {
	// Data is the record as it came, and the rest of the MAD.
	Data [200]byte `mad:"0:1600,bytes,component=none"`
}

// GUIDInfoRecord is a block of a port's GUID table as the subnet administrator
// knows it.
//
// A Set requests GUIDs for virtual ports; for a 0 the subnet manager chooses the
// GUID. A Delete releases them.
//
//mad:attr class=SubnAdm id=0x0030 alias=GuidInfoRecord methods=Get,GetTable,Set,Delete v1=Get,GetTable,GetBulk state size=72 section=15.2.5.18
//mad:source opensm include/iba/ib_types.h ib_guidinfo_record_t, IB_GIR_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SAGUIDInfoRecord
type GUIDInfoRecord struct {
	// LID is the LID of the port.
	LID LID `mad:"0:16"`
	// BlockNum is the block of entries 8*BlockNum to 8*BlockNum+7.
	BlockNum uint8  `mad:"16:8"`
	_        uint8  `mad:"24:8"`
	_        uint32 `mad:"32:32"`
	// GUIDInfo is the block's content.
	GUIDInfo GUIDInfo `mad:"64:512"`
}

// P_KeyTableRecord is a block of a port's partition table as the subnet
// administrator knows it. OpenSM shows it only to requests with its SM_Key.
//
//mad:attr class=SubnAdm id=0x0033 name=P_KeyTableRecord alias=PartitionRecord methods=Get,GetTable v1=Get,GetTable,GetBulk state required size=72 section=15.2.5.11
//mad:source opensm include/iba/ib_types.h ib_pkey_table_record_t, IB_PKEY_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SAPKeyTableRecord
type PKeyTableRecord struct {
	// LID is the LID of the port; of a switch, that of its port 0.
	LID LID `mad:"0:16"`
	// BlockNum is the block of entries 32*BlockNum to 32*BlockNum+31.
	BlockNum uint16 `mad:"16:16"`
	// PortNum is the switch's port.
	PortNum uint8   `mad:"32:8"`
	_       [3]byte `mad:"40:24,bytes"`
	// PKeyTable is the block's content.
	PKeyTable PKeyTable `mad:"64:512,name=P_KeyTable"`
}

// VLArbitrationTableRecord is a block of a port's VLArbitrationTable as the
// subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x0036 alias=VLArbitrationRecord methods=Get,GetTable v1=GetTable,GetBulk state required size=72 section=15.2.5.9
//mad:source opensm include/iba/ib_types.h ib_vl_arb_table_record_t, IB_VLA_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SAVLArbitrationTableRecord
type VLArbitrationTableRecord struct {
	// LID is the LID of the port; of a switch, that of its port 0.
	LID LID `mad:"0:16"`
	// OutputPortNum is the switch's port.
	OutputPortNum uint8 `mad:"16:8"`
	// BlockNum is the block: 1 and 2 of the low-priority table, 3 and 4 of the high-priority one.
	BlockNum uint8  `mad:"24:8"`
	_        uint32 `mad:"32:32"`
	// VLArbitrationTable is the block's content.
	VLArbitrationTable VLArbitrationTable `mad:"64:512"`
}

// RecordData is a record of which only the number is certain.
//
//mad:attr class=SubnAdm id=0x003c name=HierarchyInfoRecord methods=Get,GetTable size=200 section=15.2.5 unconfirmed ; is a HierarchyInfo as the subnet administrator knows it.
//mad:attr class=SubnAdm id=0x003d name=CableInfoRecord methods=Get,GetTable size=200 section=15.2.5 unconfirmed ; is a CableInfo as the subnet administrator knows it.
//mad:source rdma-core libibumad/umad_sa.h UMAD_SA_ATTR_* (the numbers alone)
type RecordData struct {
	// Data is the record as it came, and the rest of the MAD.
	Data [200]byte `mad:"0:1600,bytes,component=none"`
}

// RecordData1 is one of class version 1.
//
//mad:attr class=SubnAdm version=1 id=0x0034 name=RangeRecord v1=Get,Set,GetTable,GetBulk,Config state config required size=192 section=15.2.5 unconfirmed ; is a range of LIDs, recorded in version 1 so that no two subnet managers assign the same LIDs.
//mad:attr class=SubnAdm version=1 id=0x0037 name=MCGroupRecord v1=Get,Set,GetTable,GetBulk,Config state config size=192 section=15.2.5 unconfirmed ; is a multicast group, in version 1; MCMemberRecord replaced it.
//mad:attr class=SubnAdm version=1 id=0x00f4 name=NoticeRecord v1=Get,GetTable,GetBulk state size=192 section=15.2.5 unconfirmed ; is a received Notice, in version 1.
//mad:attr class=SubnAdm version=1 id=0x8001 name=SAResponse v1=GetBulk size=192 section=15.2.5 unconfirmed ; begins the answer to GetBulk, in version 1: it describes what follows.
//mad:source Shanley, InfiniBand Network Architecture, table 33-4 (the numbers alone)
type RecordData1 struct {
	// Data is the record as it came, and the rest of the MAD.
	Data [192]byte `mad:"0:1536,bytes,component=none"`
}

// MCMemberRecord is a multicast group, or a port's membership in one.
//
// A Set joins a port to a group, and creates the group if it does not exist; a
// Delete removes the port from it. In a query, the selectors are how MTU, Rate
// and PacketLifeTime are compared.
//
//mad:attr class=SubnAdm id=0x0038 methods=Get,GetTable,Set,Delete v1=Get,Set,GetTable,GetBulk,Config state config size=52 section=15.2.5.17
//mad:source opensm include/iba/ib_types.h ib_member_rec_t, IB_MCR_COMPMASK_*
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_mcmember_record_t
//mad:source python-rdma codegen/iba_15.xml SAMCMemberRecord
type MCMemberRecord struct {
	// MGID is the multicast GID of the group.
	MGID GID `mad:"0:128"`
	// PortGID is the GID of the member.
	PortGID GID `mad:"128:128"`
	// QKey is the Q_Key of the group.
	QKey uint32 `mad:"256:32,name=Q_Key,hex"`
	// MLID is the multicast LID of the group.
	MLID LID `mad:"288:16,hex"`
	// MTUSelector is how the query compares MTU.
	MTUSelector Selector `mad:"304:2"`
	// MTU is the largest packet in the group, in bytes.
	MTU MTU `mad:"306:6"`
	// TClass is the value for the global route header.
	TClass uint8 `mad:"312:8,hex"`
	// PKey is the P_Key of the group.
	PKey uint16 `mad:"320:16,name=P_Key,hex"`
	// RateSelector is how the query compares Rate.
	RateSelector Selector `mad:"336:2"`
	// Rate is that of the group, in Gb/s.
	Rate Rate `mad:"338:6"`
	// PacketLifeTimeSelector is how the query compares PacketLifeTime.
	PacketLifeTimeSelector LifeTimeSelector `mad:"344:2"`
	// PacketLifeTime is the longest time of a packet on the path, 4.096 us * 2^value.
	PacketLifeTime uint8 `mad:"346:6"`
	// SL is the service level of the group.
	SL uint8 `mad:"352:4"`
	// FlowLabel is the value for the global route header.
	FlowLabel uint32 `mad:"356:20,hex"`
	// HopLimit is the value for the global route header.
	HopLimit uint8 `mad:"376:8"`
	// Scope is the reach of the group.
	Scope Scope `mad:"384:4"`
	// JoinState is the kind of membership; in a Delete, the membership to remove.
	JoinState JoinState `mad:"388:4"`
	// ProxyJoin is set if another port joined for this one.
	ProxyJoin bool   `mad:"392:1"`
	_         uint32 `mad:"393:23"`
}

// JoinState is a kind of membership (IBA 15.2.5.17; rdma-core
// libibumad/umad_sa_mcm.h UMAD_SA_MCM_JOIN_STATE_*).
//
//mad:mask
type JoinState uint8

const (
	JoinStateFullMember         JoinState = 1 << 0
	JoinStateNonMember          JoinState = 1 << 1
	JoinStateSendOnlyNonMember  JoinState = 1 << 2
	JoinStateSendOnlyFullMember JoinState = 1 << 3
)

// Scope is the reach of a multicast group (IBA 4.1.1; rdma-core
// libibumad/umad_sa_mcm.h UMAD_SA_MCM_ADDR_SCOPE_*).
//
//mad:enum
type Scope uint8

const (
	ScopeLinkLocal         Scope = 0x2
	ScopeSiteLocal         Scope = 0x5
	ScopeOrganizationLocal Scope = 0x8
	ScopeGlobal            Scope = 0xe
)

// ServiceRecord is a service that a port offers: a Set registers it, a Delete
// removes it.
//
//mad:attr class=SubnAdm id=0x0031 methods=Get,GetTable,Set,Delete v1=Get,Set,GetTable,GetBulk,Config state config required size=176 section=15.2.5.14
//mad:source opensm include/iba/ib_types.h ib_service_record_t, IB_SR_COMPMASK_*
//mad:source opa-ff IbAccess/Common/Inc/ib_sa_records.h IB_SERVICE_RECORD
//mad:source python-rdma codegen/iba_15.xml SAServiceRecord
type ServiceRecord struct {
	// ServiceID is the number of the service, for programs.
	ServiceID uint64 `mad:"0:64,hex"`
	// ServiceGID is the port that offers it.
	ServiceGID GID `mad:"64:128"`
	// ServicePKey is the P_Key to reach it with.
	ServicePKey uint16 `mad:"192:16,name=ServiceP_Key,hex,minor"`
	_           uint16 `mad:"208:16"`
	// ServiceLease is the remaining time of the registration in seconds; 4294967295 is unlimited.
	ServiceLease uint32 `mad:"224:32"`
	// ServiceKey protects the record: a request to change or delete it must have the same key.
	ServiceKey [16]byte `mad:"256:128,bytes,key"`
	// ServiceName is the name of the service, for people.
	ServiceName [64]byte `mad:"384:512,text"`
	// ServiceData8 are bytes defined by the service.
	ServiceData8 [16]uint8 `mad:"896:8,components=16,minor"`
	// ServiceData16 are numbers defined by the service.
	ServiceData16 [8]uint16 `mad:"1024:16,components=8,minor"`
	// ServiceData32 are numbers defined by the service.
	ServiceData32 [4]uint32 `mad:"1152:32,components=4,minor"`
	// ServiceData64 are numbers defined by the service.
	ServiceData64 [2]uint64 `mad:"1280:64,components=2,minor"`
}

// ServiceAssociationRecord associates the key of a ServiceRecord with its name.
//
//mad:attr class=SubnAdm id=0x003b methods=Get,GetTable size=80 section=15.2.5.15
//mad:source python-rdma codegen/iba_15.xml SAServiceAssociationRecord
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_service_assn_record_t
//mad:source opa-ff IbAccess/Common/Inc/ib_sa_records.h IB_SERVICEASSOCIATION_RECORD (ServiceName of 16 bytes)
type ServiceAssociationRecord struct {
	// ServiceKey is the key.
	ServiceKey [16]byte `mad:"0:128,bytes,key"`
	// ServiceName is the name.
	ServiceName [64]byte `mad:"128:512,text"`
}

// TraceRecord is a hop of a path: the node, and the ports that a packet comes
// in and leaves through.
//
//mad:attr class=SubnAdm id=0x0039 methods=GetTraceTable size=46 section=15.2.5.19
//mad:source python-rdma codegen/iba_15.xml SATraceRecord
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_trace_record_t
type TraceRecord struct {
	// GIDPrefix is the subnet prefix.
	GIDPrefix uint64 `mad:"0:64,hex"`
	// IDGeneration changes when NodeID and the other IDs below, which need not be GUIDs, get other meanings.
	IDGeneration uint16 `mad:"64:16"`
	_            uint8  `mad:"80:8"`
	// NodeType is the kind of the node.
	NodeType NodeType `mad:"88:8"`
	// NodeID names the node.
	NodeID uint64 `mad:"96:64,hex"`
	// ChassisID names the chassis that the node is in.
	ChassisID uint64 `mad:"160:64,hex"`
	// EntryPortID names the port that the packet comes in through.
	EntryPortID uint64 `mad:"224:64,hex"`
	// ExitPortID names the port that it leaves through.
	ExitPortID uint64 `mad:"288:64,hex"`
	// EntryPort is the number of the port that it comes in through.
	EntryPort uint8 `mad:"352:8"`
	// ExitPort is the number of the port that it leaves through.
	ExitPort uint8 `mad:"360:8"`
}

// MultiPathRecord queries paths between a set of sources and a set of
// destinations that fail independently. The answer has PathRecords.
//
//mad:attr class=SubnAdm id=0x003a methods=GetMulti answer=PathRecord size=200 section=15.2.5.20
//mad:source opensm include/iba/ib_types.h ib_multipath_rec_t, IB_MPR_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SAMultiPathRecord (reserved where QoSClass and the service ID are)
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_multipath_record_t (likewise)
type MultiPathRecord struct {
	// RawTraffic is set if the paths are for raw packets.
	RawTraffic bool  `mad:"0:1"`
	_          uint8 `mad:"1:3"`
	// FlowLabel is the value for the global route header.
	FlowLabel uint32 `mad:"4:20,hex"`
	// HopLimit is the value for the global route header.
	HopLimit uint8 `mad:"24:8"`
	// TClass is the value for the global route header.
	TClass uint8 `mad:"32:8,hex"`
	// Reversible is set if answers must be able to take the same path back.
	Reversible bool `mad:"40:1"`
	// NumbPath is the largest number of paths to return.
	NumbPath uint8 `mad:"41:7"`
	// PKey is the P_Key that both ends share.
	PKey uint16 `mad:"48:16,name=P_Key,hex"`
	// QoSClass is the quality of service class (known only from opensm).
	QoSClass uint16 `mad:"64:12,hex"`
	// SL is the service level.
	SL uint8 `mad:"76:4"`
	// MTUSelector is how the query compares MTU.
	MTUSelector Selector `mad:"80:2"`
	// MTU is the largest packet, in bytes.
	MTU MTU `mad:"82:6"`
	// RateSelector is how the query compares Rate.
	RateSelector Selector `mad:"88:2"`
	// Rate is in Gb/s.
	Rate Rate `mad:"90:6"`
	// PacketLifeTimeSelector is how the query compares PacketLifeTime.
	PacketLifeTimeSelector LifeTimeSelector `mad:"96:2"`
	// PacketLifeTime is the longest time of a packet on the path, 4.096 us * 2^value.
	PacketLifeTime uint8 `mad:"98:6"`
	// ServiceID8MSB is the upper byte of the service that the paths are for (known only from opensm).
	ServiceID8MSB uint8 `mad:"104:8,hex"`
	// IndependenceSelector is 0 for any paths, 1 for paths that are as independent as possible; 2 and 3 are reserved.
	IndependenceSelector uint8 `mad:"112:2"`
	_                    uint8 `mad:"114:6"`
	// SGIDCount is the number of sources in SDGID.
	SGIDCount uint8 `mad:"120:8"`
	// DGIDCount is the number of destinations after them.
	DGIDCount uint8 `mad:"128:8"`
	// ServiceID56LSB is the rest of the service that the paths are for (known only from opensm).
	ServiceID56LSB uint64 `mad:"136:56,hex"`
	// SDGID are the sources and then the destinations: as many as one MAD holds.
	SDGID [11]GID `mad:"192:128"`
}

// SA1Header follows the MADHeader in MADs of subnet administration of class
// version 1, at RMPPOffset. That version has no RMPP.
//
//mad:header size=40 section=15.2.1.1 unconfirmed
//mad:source opensm libvendor/osm_vendor_umadt.c ib_sa_mad_t_vM3
type SA1Header struct {
	_ [8]uint8 `mad:"0:8"`
	// SMKey shows that the sender is trusted; 0 in most requests.
	SMKey uint64 `mad:"64:64,name=SM_Key,key,hex"`
	// SegmentNumber counts the MADs of a transfer from 1; 0 in a single MAD.
	SegmentNumber uint32 `mad:"128:32"`
	// PayloadLength is the number of bytes after this header: of the whole transfer in the first MAD, of this MAD in the others.
	PayloadLength uint32 `mad:"160:32"`
	// FragmentFlag marks the first and the last MAD of a transfer.
	FragmentFlag FragmentFlag `mad:"192:8"`
	// EditModifier is the operation of a Config on the records; its values are not public.
	EditModifier uint8 `mad:"200:8,hex"`
	// Window is the number of MADs that may be unacknowledged.
	Window uint16 `mad:"208:16"`
	// AttributeOffset is the distance from record to record in a table, in units of 8 bytes.
	AttributeOffset uint16 `mad:"224:16"`
	_               uint16 `mad:"240:16"`
	// ComponentMask selects the components of the record that a query compares, a bit each.
	ComponentMask uint64 `mad:"256:64,hex"`
}

// sa1FragmentFlagOffset is the offset of FragmentFlag in a MAD, in bytes.
const sa1FragmentFlagOffset = 48

// FragmentFlag distinguishes the MADs of a transfer, in version 1 of SubnAdm
// (opensm libvendor/osm_vendor_umadt.c osm_vendor_send, __mad_recv_processor).
//
//mad:mask
type FragmentFlag uint8

const (
	FragmentFlagFirst FragmentFlag = 1 << 0
	FragmentFlagLast  FragmentFlag = 1 << 2
	FragmentFlagACK   FragmentFlag = 1 << 5 // "ack"
)

// SAPlaces are the offsets of the fields of a MAD of subnet administration, in
// bytes. They depend on the class version.
type SAPlaces struct {
	Key        int // SM_Key, 8 bytes
	AttrOffset int // AttributeOffset, 2 bytes, units of 8 bytes
	Mask       int // ComponentMask, 8 bytes
	Data       int // the records, to the end
}

// SAPlacesIn returns the offsets in a version of the class.
func SAPlacesIn(version uint8) SAPlaces {
	if version == 1 {
		return SAPlaces{Key: 32, AttrOffset: 52, Mask: 56, Data: 64}
	}
	return SAPlaces{Key: SAKeyOffset, AttrOffset: SAAttrOffsetOffset, Mask: SAMaskOffset, Data: SADataOffset}
}

// PutSA writes the header of m, a request to subnet administration in one MAD:
// the mask of the components that count, and in class version 1 the length of
// the record.
func PutSA(m []byte, mask uint64, size int) {
	version := m[ClassVersionOffset]
	binary.BigEndian.PutUint64(m[SAPlacesIn(version).Mask:], mask)
	if version == 1 {
		h := SA1Header{PayloadLength: uint32(size), FragmentFlag: FragmentFlagFirst | FragmentFlagLast, ComponentMask: mask}
		h.Encode(m[RMPPOffset:])
	}
}

// sa1Records returns the offset where the records in m end, a table of class
// version 1, and whether m is all of it. The offset is 0 in all MADs but the
// first: a record may begin in one and end in the next.
func sa1Records(m []byte) (end int, whole bool) {
	at := SAPlacesIn(1).Data
	if len(m) < at {
		return 0, false
	}
	var h SA1Header
	h.Decode(m[RMPPOffset:])
	switch {
	case h.FragmentFlag&FragmentFlagFirst == 0 || h.FragmentFlag&FragmentFlagACK != 0:
		return 0, false
	case h.FragmentFlag&FragmentFlagLast == 0:
		return len(m), false
	}
	return int(min(uint64(len(m)), uint64(at)+uint64(h.PayloadLength))), true
}

// SA1Fragment returns the header of m, one of several MADs of a table of class version 1, and the
// bytes of the table in it; ok is false for a MAD that is the whole table, or an acknowledgement.
func SA1Fragment(m []byte) (h SA1Header, data []byte, ok bool) {
	at := SAPlacesIn(1).Data
	if len(m) < Size || m[ClassVersionOffset] != 1 {
		return h, nil, false
	}
	h.Decode(m[RMPPOffset:])
	const whole = FragmentFlagFirst | FragmentFlagLast
	if h.FragmentFlag&FragmentFlagACK != 0 || h.FragmentFlag&whole == whole {
		return h, nil, false
	}
	return h, m[at:min(uint64(Size), uint64(at)+uint64(h.PayloadLength))], true
}

// SA1Table returns the table in m, an answer of class version 1 in one MAD; ok is
// false for a longer answer.
func SA1Table(m []byte) (table []byte, ok bool) {
	end, whole := sa1Records(m)
	if !whole {
		return nil, false
	}
	return m[SAPlacesIn(1).Data:end], true
}
