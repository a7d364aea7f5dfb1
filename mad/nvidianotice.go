package mad

// NVIDIANotice is the details of a notice of NVIDIA.
//
//mad:header size=54 section=vendor unconfirmed
//mad:variant of=Notice.DataDetails name=nvidia when=IsGeneric:0,ProducerType:0x0002c9
//mad:source opensm-mlnx include/iba/ib_types.h ib_mad_notice_attr_t vendor_data_details
type NVIDIANotice struct {
	// Details are the details; their layout depends on NoticeNumber.
	Details [52]byte `mad:"0:416,bytes"`
	// NoticeNumber is the kind of event.
	NoticeNumber NVIDIANoticeNumber `mad:"416:16"`
}

// NVIDIANoticeNumber is the kind of event of a notice of NVIDIA (opensm-mlnx
// include/iba/ib_types.h *_TRAP_NUM_*, ROUTING_ENGINE_ACTION_*, ISSU_*).
//
//mad:enum
type NVIDIANoticeNumber uint16

const (
	NVIDIANoticeNumberKeyViolation        NVIDIANoticeNumber = 0
	NVIDIANoticeNumberKeyMisconfigured    NVIDIANoticeNumber = 1
	NVIDIANoticeNumberVPortChange         NVIDIANoticeNumber = 1144 // "vport_change"
	NVIDIANoticeNumberVPortState          NVIDIANoticeNumber = 1146 // "vport_state"
	NVIDIANoticeNumberRouterChange        NVIDIANoticeNumber = 1148
	NVIDIANoticeNumberVPortPKey           NVIDIANoticeNumber = 1257 // "vport_bad_p_key"
	NVIDIANoticeNumberVPortQKey           NVIDIANoticeNumber = 1258 // "vport_bad_q_key"
	NVIDIANoticeNumberSAKey               NVIDIANoticeNumber = 1300 // "bad_sa_key"
	NVIDIANoticeNumberSpoofedSGID         NVIDIANoticeNumber = 1301 // "spoofed_sgid"
	NVIDIANoticeNumberRateLimit           NVIDIANoticeNumber = 1302 // "sa_rate_limit"
	NVIDIANoticeNumberMulticastLimit      NVIDIANoticeNumber = 1303
	NVIDIANoticeNumberServiceLimit        NVIDIANoticeNumber = 1304
	NVIDIANoticeNumberSubscriptionLimit   NVIDIANoticeNumber = 1305
	NVIDIANoticeNumberSMGUIDFound         NVIDIANoticeNumber = 1306 // "sm_guid_not_allowed"
	NVIDIANoticeNumberSMGUIDSet           NVIDIANoticeNumber = 1307 // "sm_guid_not_allowed_set"
	NVIDIANoticeNumberMKey                NVIDIANoticeNumber = 1308 // "bad_m_key_response"
	NVIDIANoticeNumberSMKey               NVIDIANoticeNumber = 1309 // "bad_sm_key"
	NVIDIANoticeNumberDuplicateNodeGUID   NVIDIANoticeNumber = 1310
	NVIDIANoticeNumberDuplicatePortGUID   NVIDIANoticeNumber = 1311
	NVIDIANoticeNumberReboot              NVIDIANoticeNumber = 1312
	NVIDIANoticeNumberRouterLIDRange      NVIDIANoticeNumber = 1313
	NVIDIANoticeNumberFastRecovery        NVIDIANoticeNumber = 1314
	NVIDIANoticeNumberTopologyFile        NVIDIANoticeNumber = 1315
	NVIDIANoticeNumberTopologyLink        NVIDIANoticeNumber = 1316
	NVIDIANoticeNumberContainAndDrain     NVIDIANoticeNumber = 1317
	NVIDIANoticeNumberUnauthorizedPackets NVIDIANoticeNumber = 1318
	NVIDIANoticeNumberISSU                NVIDIANoticeNumber = 1319 // "issu_state"
	NVIDIANoticeNumberPortRecovered       NVIDIANoticeNumber = 1320
	NVIDIANoticeNumberLinkFlap            NVIDIANoticeNumber = 1321
	NVIDIANoticeNumberKeysUpdated         NVIDIANoticeNumber = 1322
	NVIDIANoticeNumberReportedKey         NVIDIANoticeNumber = 1600 // "reported_key_violation"
	NVIDIANoticeNumberTenant              NVIDIANoticeNumber = 1601 // "tenant_violation"
	NVIDIANoticeNumberRoutingRemoved      NVIDIANoticeNumber = 1605
	NVIDIANoticeNumberRoutingRestored     NVIDIANoticeNumber = 1606
	NVIDIANoticeNumberISSUIsolation       NVIDIANoticeNumber = 1609 // "issu_isolation"
	NVIDIANoticeNumberISSURestored        NVIDIANoticeNumber = 1610 // "issu_restored"
)

// Notices of NVIDIA's OpenSM on links, topology and updates.

// NVIDIANoticeNodeGUID is the details of a GUID that two nodes have.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=duplicate_node_guid when=NoticeNumber:1310
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1310
type NVIDIANoticeNodeGUID struct {
	_ [2]uint8 `mad:"0:8"`
	// NodeGUID is the GUID.
	NodeGUID GUID `mad:"16:64"`
	// PeerGUID1 is the node next to one of them.
	PeerGUID1 GUID `mad:"80:64"`
	// PeerGUID2 is the node next to the other.
	PeerGUID2 GUID `mad:"144:64"`
	// PeerPort1 is the port of the first of these.
	PeerPort1 uint8 `mad:"208:8"`
	// PeerPort2 is the port of the second.
	PeerPort2 uint8     `mad:"216:8"`
	_         [24]uint8 `mad:"224:8"`
}

// NVIDIANoticePortGUID is the details of a GUID that two ports have.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=duplicate_port_guid when=NoticeNumber:1311
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1311
type NVIDIANoticePortGUID struct {
	_ [2]uint8 `mad:"0:8"`
	// PortGUID is the GUID.
	PortGUID GUID `mad:"16:64"`
	// NodeGUID1 is the node of one of them.
	NodeGUID1 GUID `mad:"80:64"`
	// NodeGUID2 is the node of the other.
	NodeGUID2 GUID `mad:"144:64"`
	// Port1 is the number of the first port.
	Port1 uint8 `mad:"208:8"`
	// Port2 is that of the second.
	Port2 uint8 `mad:"216:8"`
	// VPortIndex1 is the virtual port of the first.
	VPortIndex1 uint16 `mad:"224:16,name=VPortIndex1"`
	// VPortIndex2 is that of the second.
	VPortIndex2 uint16    `mad:"240:16,name=VPortIndex2"`
	_           [20]uint8 `mad:"256:8"`
}

// NVIDIANoticeReboot is the details of a node that has restarted.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=reboot when=NoticeNumber:1312
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1312
type NVIDIANoticeReboot struct {
	_ [2]uint8 `mad:"0:8"`
	// PortGUID is the GUID of the port.
	PortGUID GUID `mad:"16:64"`
	// NodeGUID is that of the node.
	NodeGUID GUID  `mad:"80:64"`
	_        uint8 `mad:"144:8"`
	// PortNum is the port.
	PortNum uint8     `mad:"152:8"`
	_       [32]uint8 `mad:"160:8"`
}

// NVIDIANoticeRouterLID is the details of invalid ranges of FLIDs.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=router_lid_range when=NoticeNumber:1313
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1313
type NVIDIANoticeRouterLID struct {
	// Syndrome is the fault.
	Syndrome RouterLIDSyndrome `mad:"0:8"`
	// CompRatio is the compression of the ranges.
	CompRatio uint8 `mad:"8:8"`
	// GlobalStart is the first FLID of all subnets.
	GlobalStart uint32 `mad:"16:32"`
	// GlobalEnd is the last.
	GlobalEnd uint32 `mad:"48:32"`
	// LocalStart is the first FLID of the subnet.
	LocalStart uint32 `mad:"80:32"`
	// LocalEnd is the last.
	LocalEnd uint32    `mad:"112:32"`
	_        [34]uint8 `mad:"144:8"`
}

// RouterLIDSyndrome is the fault of ranges of FLIDs (opensm-mlnx
// include/iba/ib_types.h osm_vs_trap_lid_router_error_syndrom_t).
//
//mad:enum
type RouterLIDSyndrome uint8

const (
	RouterLIDSyndromeInconsistent RouterLIDSyndrome = 2
	RouterLIDSyndromeGlobal       RouterLIDSyndrome = 3 // "invalid_global_range"
	RouterLIDSyndromeLocal        RouterLIDSyndrome = 4 // "invalid_local_range"
	RouterLIDSyndromeTooMany      RouterLIDSyndrome = 5
)

// NVIDIANoticeFastRecovery is the details of a threshold of a link that was reached.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=fast_recovery when=NoticeNumber:1314
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1314, ib_fast_recovery_threshold_type_t
type NVIDIANoticeFastRecovery struct {
	_ uint8 `mad:"0:8"`
	// PortNum is the port.
	PortNum uint8 `mad:"8:8"`
	// Trigger is what was counted.
	Trigger uint8 `mad:"16:8"`
	// ThresholdType is the threshold.
	ThresholdType ThresholdType `mad:"24:8"`
	// FieldsSelect are the fields below that are valid.
	FieldsSelect uint16   `mad:"32:16,hex"`
	_            [2]uint8 `mad:"48:8"`
	// CounterOverflow are the fields below that have overflown.
	CounterOverflow uint16 `mad:"64:16,hex"`
	// NumErrors is the number of times at the error threshold.
	NumErrors uint32 `mad:"80:32"`
	// NumWarnings is the number of times at the warning threshold.
	NumWarnings uint32 `mad:"112:32"`
	// NumNormals is the number of times at the normal threshold.
	NumNormals uint32 `mad:"144:32"`
	// MinValue is the smallest value.
	MinValue uint32 `mad:"176:32"`
	// MaxValue is the largest value.
	MaxValue uint32 `mad:"208:32"`
	// ConsecutiveNormal is the number of normal values without another.
	ConsecutiveNormal uint32 `mad:"240:32"`
	// LastValue are the last values.
	LastValue [3]uint32 `mad:"272:32"`
	_         [6]uint8  `mad:"368:8"`
}

// ThresholdType is a threshold of a link (opensm-mlnx include/iba/ib_types.h
// ib_fast_recovery_threshold_type_t).
//
//mad:enum
type ThresholdType uint8

const (
	ThresholdTypeError   ThresholdType = 1
	ThresholdTypeWarning ThresholdType = 2
	ThresholdTypeNormal  ThresholdType = 3
)

// NVIDIANoticeTopologyFile is the details of an invalid topology file of OpenSM.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=topology_file when=NoticeNumber:1315
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1315, osm_vs_trap_topoconfig_parsing_error_syndrom_t
type NVIDIANoticeTopologyFile struct {
	// ErrorType is the fault.
	ErrorType TopologyFileError `mad:"0:8"`
	_         [51]uint8         `mad:"8:8"`
}

// TopologyFileError is the fault of a topology file (opensm-mlnx include/iba/ib_types.h
// osm_vs_trap_topoconfig_parsing_error_syndrom_t).
//
//mad:enum
type TopologyFileError uint8

const (
	TopologyFileErrorNotOpened  TopologyFileError = 0
	TopologyFileErrorSyntax     TopologyFileError = 1
	TopologyFileErrorValidation TopologyFileError = 2
)

// NVIDIANoticeTopologyLink is the details of a link that differs from the topology file of OpenSM.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=topology_link when=NoticeNumber:1316
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1316
type NVIDIANoticeTopologyLink struct {
	// NodeGUID is the node.
	NodeGUID GUID `mad:"0:64"`
	// NeighborGUID is the node that it is connected to.
	NeighborGUID GUID `mad:"64:64"`
	// ExpectedGUID is the node that the file has.
	ExpectedGUID GUID `mad:"128:64"`
	// PortNum is the port of the node.
	PortNum uint8 `mad:"192:8"`
	// NeighborPort is the port that it is connected to.
	NeighborPort uint8 `mad:"200:8"`
	// NeighborType is the type of the node there.
	NeighborType uint8 `mad:"208:8"`
	// ExpectedPort is the port that the file has.
	ExpectedPort uint8 `mad:"216:8"`
	// ExpectedType is the type of node that the file has.
	ExpectedType uint8     `mad:"224:8"`
	_            [23]uint8 `mad:"232:8"`
}

// NVIDIANoticeContainAndDrain is the details of a change of contained ports.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=contain_and_drain when=NoticeNumber:1317
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1317
type NVIDIANoticeContainAndDrain struct {
	// LIDAddr is the LID.
	LIDAddr LID      `mad:"0:16"`
	_       [4]uint8 `mad:"16:8"`
	// BlockMask are the blocks of ports that have changed; block b is bit b%8 of byte 31-b/8.
	BlockMask [32]byte  `mad:"48:256,bytes"`
	_         [14]uint8 `mad:"304:8"`
}

// NVIDIANoticeUnauthorized is the details of packets that are not authorized.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=unauthorized_packets when=NoticeNumber:1318
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1318, IB_TRAP_UNAUTHORIZED_PACKETS_*
type NVIDIANoticeUnauthorized struct {
	// DataValid are the fields below that are valid.
	DataValid UnauthorizedFields `mad:"0:16"`
	// LIDAddr1 is the first LID.
	LIDAddr1 LID `mad:"16:16"`
	// LIDAddr2 is the second LID.
	LIDAddr2 LID    `mad:"32:16"`
	_        uint32 `mad:"48:28"`
	// Reason is the reason.
	Reason uint8 `mad:"76:4"`
	_      uint8 `mad:"80:8"`
	// QP1 is the first queue pair.
	QP1 uint32 `mad:"88:24,hex"`
	// HopCount is the number of hops of Path.
	HopCount uint8 `mad:"112:8"`
	// QP2 is the second queue pair.
	QP2 uint32 `mad:"120:24,hex"`
	// Path are the ports of the directed route.
	Path [16]uint16 `mad:"144:16"`
	_    [2]uint8   `mad:"400:8"`
}

// UnauthorizedFields are the valid fields of NVIDIANoticeUnauthorized (opensm-mlnx
// include/iba/ib_types.h IB_TRAP_UNAUTHORIZED_PACKETS_DATA_VALID_*).
//
//mad:mask
type UnauthorizedFields uint16

const (
	UnauthorizedFieldsLIDAddr1 UnauthorizedFields = 1 << 0 // "lid_addr1"
	UnauthorizedFieldsLIDAddr2 UnauthorizedFields = 1 << 1 // "lid_addr2"
	UnauthorizedFieldsReason   UnauthorizedFields = 1 << 2
	UnauthorizedFieldsQP1      UnauthorizedFields = 1 << 4 // "qp1"
	UnauthorizedFieldsQP2      UnauthorizedFields = 1 << 5 // "qp2"
	UnauthorizedFieldsPath     UnauthorizedFields = 1 << 6
)

// NVIDIANoticeISSU is the details of an update in service.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=issu_state when=NoticeNumber:1319
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1319
type NVIDIANoticeISSU struct {
	_ uint8 `mad:"0:8"`
	// ISSUState is its state.
	ISSUState uint8     `mad:"8:8"`
	_         [50]uint8 `mad:"16:8"`
}

// NVIDIANoticeRecovered is the details of ports that have recovered.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=port_recovered when=NoticeNumber:1320
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1320
type NVIDIANoticeRecovered struct {
	// BlockID is the block of 256 ports.
	BlockID uint8 `mad:"0:8"`
	_       uint8 `mad:"8:8"`
	// PortMask are the ports of the block.
	PortMask [32]byte  `mad:"16:256,bytes"`
	_        [18]uint8 `mad:"272:8"`
}

// NVIDIANoticeLinkFlap is the details of a link that went down and up.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=link_flap when=NoticeNumber:1321
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1321
type NVIDIANoticeLinkFlap struct {
	_ [2]uint8 `mad:"0:8"`
	// NodeGUID1 is the node at one end.
	NodeGUID1 GUID `mad:"16:64"`
	// NodeGUID2 is the node at the other.
	NodeGUID2 GUID `mad:"80:64"`
	// Port1 is the port at one end.
	Port1 uint16 `mad:"144:16"`
	// Port2 is the port at the other.
	Port2 uint16    `mad:"160:16"`
	_     [30]uint8 `mad:"176:8"`
}

// NVIDIANoticeReportedKey is the details of a wrong key of class 0x0A or of congestion control, as OpenSM reports it.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=reported_key when=NoticeNumber:1600
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1600
type NVIDIANoticeReportedKey struct {
	// SLID is the source of the request.
	SLID LID `mad:"0:16"`
	// AttributeID is its attribute.
	AttributeID uint16 `mad:"16:16,hex"`
	// Method is its method.
	Method uint8 `mad:"32:8,hex"`
	// MgmtClass is its class.
	MgmtClass uint8 `mad:"40:8,hex"`
	// SGID is the GID of the source.
	SGID GID `mad:"48:128"`
	// PortGUID is the GUID of its port.
	PortGUID GUID `mad:"176:64"`
	// Key is its key.
	Key uint64    `mad:"240:64,key,hex"`
	_   [14]uint8 `mad:"304:8"`
}

// NVIDIANoticeTenant is the details of a violation of the limits between tenants.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=tenant when=NoticeNumber:1601
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1601
type NVIDIANoticeTenant struct {
	// PhysicalGroupID is the group of the physical port.
	PhysicalGroupID uint64 `mad:"0:64,hex"`
	// PhysicalGUID is its GUID.
	PhysicalGUID GUID `mad:"64:64"`
	// VirtualGroupID is the group of the virtual port.
	VirtualGroupID uint64 `mad:"128:64,hex"`
	// VirtualGUID is its GUID.
	VirtualGUID GUID `mad:"192:64"`
	// VPortIndex is its number.
	VPortIndex uint16 `mad:"256:16,name=VPortIndex"`
	// TenantNoticeType is the kind of violation.
	TenantNoticeType uint8     `mad:"272:8"`
	_                [17]uint8 `mad:"280:8"`
}

// NVIDIANoticeRouting is the details of an action of the routing of OpenSM.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=routing_action when=NoticeNumber:1605-1606
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1605, ntc_1606
type NVIDIANoticeRouting struct {
	// GUID is the node.
	GUID GUID      `mad:"0:64"`
	_    [44]uint8 `mad:"64:8"`
}

// NVIDIANoticeISSUIsolation is the details of a switch that is isolated for an update, or no longer.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=issu_isolation when=NoticeNumber:1609-1610
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1609, ntc_1610
type NVIDIANoticeISSUIsolation struct {
	// GUID is the switch.
	GUID GUID `mad:"0:64"`
	// ISSUState is the state of the update.
	ISSUState uint8     `mad:"64:8"`
	_         [43]uint8 `mad:"72:8"`
}

// Notices of NVIDIA's devices and of its OpenSM on keys, virtual ports and limits of
// requests. TrapNumber of the Notice is the number of the device; the number of the notice
// is at the end of the details.

// NVIDIANoticeClassKey is the details of a request with a wrong key in class 0x0A or 0x0C.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=class_key when=NoticeNumber:0-1
//mad:source opensm-mlnx include/iba/ib_types.h ntc_vskey
type NVIDIANoticeClassKey struct {
	// SLID is the source of the request.
	SLID LID `mad:"0:16"`
	// Method is its method.
	Method uint8 `mad:"16:8,hex"`
	_      uint8 `mad:"24:8"`
	// AttributeID is its attribute.
	AttributeID uint16 `mad:"32:16,hex"`
	// AttributeModifier is its modifier.
	AttributeModifier uint32 `mad:"48:32,hex"`
	_                 uint8  `mad:"80:8"`
	// QP is the queue pair that sent it.
	QP uint32 `mad:"88:24,hex"`
	// Key is its key.
	Key uint64 `mad:"112:64,key,hex"`
	// SGID is the GID of the source.
	SGID GID       `mad:"176:128"`
	_    [14]uint8 `mad:"304:8"`
}

// NVIDIANoticeVPort is the details of a change of a virtual port.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=vport_change when=NoticeNumber:1144
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1144
type NVIDIANoticeVPort struct {
	_ [2]uint8 `mad:"0:8"`
	// LIDAddr is the LID.
	LIDAddr LID    `mad:"16:16"`
	_       uint16 `mad:"32:15"`
	// OtherLocalChanges is set if ChangeFlags are valid.
	OtherLocalChanges bool `mad:"47:1"`
	// CapMask are the capabilities of the virtual port.
	CapMask VPortCapabilities `mad:"48:16"`
	_       uint16            `mad:"64:10"`
	// ChangeFlags are what has changed, as in trap 144.
	ChangeFlags uint8    `mad:"74:6,hex"`
	_           [2]uint8 `mad:"80:8"`
	// VPortIndex is the virtual port.
	VPortIndex uint16    `mad:"96:16,name=VPortIndex"`
	_          [38]uint8 `mad:"112:8"`
}

// NVIDIANoticeVPortState is the details of a change of the state of virtual ports.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=vport_state when=NoticeNumber:1146
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1146
type NVIDIANoticeVPortState struct {
	_ [2]uint8 `mad:"0:8"`
	// LIDAddr is the LID.
	LIDAddr LID       `mad:"16:16"`
	_       [48]uint8 `mad:"32:8"`
}

// NVIDIANoticeVPortKey is the details of a packet with a wrong P_Key or Q_Key at a virtual port.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=vport_key when=NoticeNumber:1257-1258
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1257, ntc_1258
type NVIDIANoticeVPortKey struct {
	_ [2]uint8 `mad:"0:8"`
	// LIDAddr1 is the source.
	LIDAddr1 LID `mad:"16:16"`
	// LIDAddr2 is the destination.
	LIDAddr2 LID `mad:"32:16"`
	// PacketKey is the P_Key or Q_Key.
	PacketKey uint32 `mad:"48:32,hex"`
	// SL is the service level.
	SL uint8 `mad:"80:4"`
	_  uint8 `mad:"84:4"`
	// QP1 is the queue pair of the source.
	QP1 uint32 `mad:"88:24,hex"`
	_   uint8  `mad:"112:8"`
	// QP2 is that of the destination.
	QP2 uint32 `mad:"120:24,hex"`
	// GIDAddr1 is the GID of the source.
	GIDAddr1 GID `mad:"144:128"`
	// GIDAddr2 is that of the destination.
	GIDAddr2 GID `mad:"272:128"`
	// VPortIndex is the virtual port.
	VPortIndex uint16 `mad:"400:16,name=VPortIndex"`
}

// NVIDIANoticeSAKey is the details of a request of subnet administration with a wrong key.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=sa_key when=NoticeNumber:1300
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1300
type NVIDIANoticeSAKey struct {
	// SLID is the source of the request.
	SLID LID `mad:"0:16"`
	// AttributeID is its attribute.
	AttributeID uint16 `mad:"16:16,hex"`
	// Method is its method.
	Method uint8 `mad:"32:8,hex"`
	_      uint8 `mad:"40:8"`
	// SGID is the GID of the source.
	SGID GID `mad:"48:128"`
	// PortGUID is the GUID of its port.
	PortGUID GUID `mad:"176:64"`
	// SAKey is the key.
	SAKey uint64    `mad:"240:64,name=SA_Key,key,hex"`
	_     [14]uint8 `mad:"304:8"`
}

// NVIDIANoticeSpoofed is the details of a request of subnet administration with the GID of another port.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=spoofed_sgid when=NoticeNumber:1301
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1301
type NVIDIANoticeSpoofed struct {
	// SLID is the source of the request.
	SLID LID `mad:"0:16"`
	// AttributeID is its attribute.
	AttributeID uint16 `mad:"16:16,hex"`
	// Method is its method.
	Method uint8 `mad:"32:8,hex"`
	_      uint8 `mad:"40:8"`
	// SGID is that GID.
	SGID GID `mad:"48:128"`
	// PortGUID is the GUID of the port of the source.
	PortGUID GUID      `mad:"176:64"`
	_        [22]uint8 `mad:"240:8"`
}

// NVIDIANoticeRateLimit is the details of too many requests to subnet administration.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=sa_rate_limit when=NoticeNumber:1302
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1302
type NVIDIANoticeRateLimit struct {
	_ [6]uint8 `mad:"0:8"`
	// SGID is the GID of the source.
	SGID GID `mad:"48:128"`
	// PortGUID is the GUID of its port.
	PortGUID GUID      `mad:"176:64"`
	_        [22]uint8 `mad:"240:8"`
}

// NVIDIANoticeLimit is the details of too many multicast groups, services or subscriptions of a port.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=sa_limit when=NoticeNumber:1303-1305
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1303_1305
type NVIDIANoticeLimit struct {
	_ [6]uint8 `mad:"0:8"`
	// SGID is the GID of the source.
	SGID GID `mad:"48:128"`
	// PortGUID is the GUID of its port.
	PortGUID GUID `mad:"176:64"`
	// TargetGUID is the GUID of the port that they are for.
	TargetGUID GUID `mad:"240:64"`
	// PhysTargetGUID is the GUID of its physical port.
	PhysTargetGUID GUID     `mad:"304:64"`
	_              [6]uint8 `mad:"368:8"`
}

// NVIDIANoticeSMGUID is the details of a subnet manager with a GUID that is not allowed.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=sm_guid when=NoticeNumber:1306-1307
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1306_1307
type NVIDIANoticeSMGUID struct {
	_ [2]uint8 `mad:"0:8"`
	// LIDAddr is the LID.
	LIDAddr LID      `mad:"16:16"`
	_       [4]uint8 `mad:"32:8"`
	// SMGUID is its GUID.
	SMGUID GUID     `mad:"64:64"`
	_      [3]uint8 `mad:"128:8"`
	// DRNotice is set if DRPath is valid.
	DRNotice bool `mad:"152:1,name=DRNotice"`
	// DRPathTruncated is set if DRPath is not complete.
	DRPathTruncated bool `mad:"153:1,name=DRPathTruncated"`
	// DRHopCount is the number of hops of DRPath.
	DRHopCount uint8 `mad:"154:6,name=DRHopCount"`
	// DRPath is the directed route.
	DRPath [24]byte `mad:"160:192,bytes,name=DRPath"`
	_      [8]uint8 `mad:"352:8"`
}

// NVIDIANoticeMKey is the details of an answer with a wrong M_Key.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=m_key when=NoticeNumber:1308
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1308
type NVIDIANoticeMKey struct {
	_ [2]uint8 `mad:"0:8"`
	// LIDAddr is the LID.
	LIDAddr LID `mad:"16:16"`
	// AttributeID is its attribute.
	AttributeID uint16 `mad:"32:16,hex"`
	_           uint8  `mad:"48:8"`
	// Method is its method.
	Method uint8 `mad:"56:8,hex"`
	// PortGUID is the GUID of the port.
	PortGUID GUID     `mad:"64:64"`
	_        [3]uint8 `mad:"128:8"`
	// DRNotice is set if DRPath is valid.
	DRNotice bool `mad:"152:1,name=DRNotice"`
	// DRPathTruncated is set if DRPath is not complete.
	DRPathTruncated bool `mad:"153:1,name=DRPathTruncated"`
	// DRHopCount is the number of hops of DRPath.
	DRHopCount uint8 `mad:"154:6,name=DRHopCount"`
	// DRPath is the directed route.
	DRPath [24]byte `mad:"160:192,bytes,name=DRPath"`
	// MKey is the key.
	MKey uint64 `mad:"352:64,name=M_Key,key,hex"`
}

// NVIDIANoticeSMKey is the details of an answer with a wrong SM_Key.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=NVIDIANotice.Details name=sm_key when=NoticeNumber:1309
//mad:source opensm-mlnx include/iba/ib_types.h ntc_1309
type NVIDIANoticeSMKey struct {
	_ [2]uint8 `mad:"0:8"`
	// LIDAddr is the LID.
	LIDAddr LID      `mad:"16:16"`
	_       [4]uint8 `mad:"32:8"`
	// PortGUID is the GUID of the port.
	PortGUID GUID     `mad:"64:64"`
	_        [3]uint8 `mad:"128:8"`
	// DRNotice is set if DRPath is valid.
	DRNotice bool `mad:"152:1,name=DRNotice"`
	// DRPathTruncated is set if DRPath is not complete.
	DRPathTruncated bool `mad:"153:1,name=DRPathTruncated"`
	// DRHopCount is the number of hops of DRPath.
	DRHopCount uint8 `mad:"154:6,name=DRHopCount"`
	// DRPath is the directed route.
	DRPath [24]byte `mad:"160:192,bytes,name=DRPath"`
	// SMKey is the key.
	SMKey uint64 `mad:"352:64,name=SM_Key,key,hex"`
}
