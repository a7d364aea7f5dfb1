package mad

// The notices of NVIDIA's devices and of its OpenSM. TrapNumber of the Notice is the
// number of the device; that of the notice is at the end of the details.

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
