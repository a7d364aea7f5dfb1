package mad

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
	ServicePKey uint16 `mad:"192:16,name=ServiceP_Key,hex"`
	_           uint16 `mad:"208:16"`
	// ServiceLease is the remaining time of the registration in seconds; 4294967295 is unlimited.
	ServiceLease uint32 `mad:"224:32"`
	// ServiceKey protects the record: a request to change or delete it must have the same key.
	ServiceKey [16]byte `mad:"256:128,bytes,key"`
	// ServiceName is the name of the service, for people.
	ServiceName [64]byte `mad:"384:512,text"`
	// ServiceData8 are bytes defined by the service.
	ServiceData8 [16]uint8 `mad:"896:8,components=16"`
	// ServiceData16 are numbers defined by the service.
	ServiceData16 [8]uint16 `mad:"1024:16,components=8"`
	// ServiceData32 are numbers defined by the service.
	ServiceData32 [4]uint32 `mad:"1152:32,components=4"`
	// ServiceData64 are numbers defined by the service.
	ServiceData64 [2]uint64 `mad:"1280:64,components=2"`
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
