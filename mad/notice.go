package mad

import (
	"fmt"
	"slices"
)

// Notice reports an event: a trap from an agent, or the report of a trap that
// the subnet administrator forwards to subscribers.
//
//mad:attr class=Subn id=0x0002 methods=Get,Set,Trap,TrapRepress size=64 section=13.4.8.2
//mad:attr class=SubnAdm id=0x0002 methods=Report size=80 section=13.4.8.2
//mad:attr class=SubnAdm version=1 id=0x0002 v1=Report required size=64 section=13.4.8.2
//mad:attr class=BM id=0x0002 methods=Get,Set,Trap,TrapRepress,Report size=80 section=13.4.8.2
//mad:attr class=DevMgt id=0x0002 methods=Get,Set,Trap,TrapRepress,Report size=80 section=13.4.8.2
//mad:attr class=Vendor0A id=0x0002 methods=Get,Set,Trap,TrapRepress size=80 section=13.4.8.2 offset=32 unconfirmed
//mad:attr class=Vendor0C id=0x0002 methods=Get,Set,Trap,TrapRepress size=80 section=13.4.8.2 offset=32 unconfirmed
//mad:attr class=CC id=0x0002 methods=Get,Set,Trap,TrapRepress size=80 section=13.4.8.2
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ib_mad.h ib_mad_notice_t
//mad:source python-rdma codegen/iba_13_4.xml MADNotice
type Notice struct {
	// IsGeneric is set if the specification defines the trap; otherwise a vendor does.
	IsGeneric bool `mad:"0:1,minor"`
	// Type is the severity of the event.
	Type NoticeType `mad:"1:7"`
	// ProducerType is the kind of node where the event occurred; of a vendor's trap, the vendor's OUI.
	ProducerType ProducerType `mad:"8:24,also=node_type,vendor=VendorID,minor"`
	// TrapNumber is the kind of event; of a vendor's trap, the vendor's number of the device.
	TrapNumber uint16 `mad:"32:16,vendor=DeviceID"`
	// IssuerLID is the LID of the port that sent the trap.
	IssuerLID LID `mad:"48:16"`
	// NoticeToggle alternates with each notice that is read and cleared; 0 in a trap.
	NoticeToggle bool `mad:"64:1,minor"`
	// NoticeCount is the number of notices waiting to be read; 0 in a trap.
	NoticeCount uint16 `mad:"65:15,minor"`
	// DataDetails are the details; their layout depends on TrapNumber.
	DataDetails [54]byte `mad:"80:432,bytes"`
	// IssuerGID is the GID of the port that sent the trap.
	IssuerGID GID `mad:"512:128"`
}

// NoticeType is the severity of an event (IBA 13.4.8.2).
//
//mad:enum
type NoticeType uint8

const (
	NoticeTypeFatal         NoticeType = 0
	NoticeTypeUrgent        NoticeType = 1
	NoticeTypeSecurity      NoticeType = 2
	NoticeTypeSM            NoticeType = 3 // "subnet_management"
	NoticeTypeInformational NoticeType = 4
	NoticeTypeEmpty         NoticeType = 127 // no notice
)

// ProducerType is the kind of node where an event occurred (IBA 13.4.8.2).
//
//mad:enum
type ProducerType uint32

const (
	ProducerTypeCA     ProducerType = 1
	ProducerTypeSwitch ProducerType = 2
	ProducerTypeRouter ProducerType = 3
	ProducerTypeSM     ProducerType = 4 // "subnet_management"
	ProducerTypeAll    ProducerType = 0xffffff
)

// NoticePort1 reports a port that came into service (trap 64) or went out of service
// (65), in version 1 of the specification. Later versions have six reserved bytes and a
// GID here.
//
//mad:header size=3 section=14.2.5.1 unconfirmed
//mad:variant of=Notice.DataDetails name=port_service only=SubnAdm1 when=IsGeneric:1,TrapNumber:64-65
//mad:variant of=Notice.DataDetails name=port_service only=Subn when=IsGeneric:1,TrapNumber:64-65,DataDetails:1-0xffff
//mad:source Shanley, InfiniBand Network Architecture, table 29-8
type NoticePort1 struct {
	// LIDAddr is the LID of the port.
	LIDAddr LID `mad:"0:16"`
	// PortNo is the number of the port.
	PortNo uint8 `mad:"16:8"`
}

// NoticeGID reports a GID that came into service (trap 64) or went out of service
// (65), or a multicast group that was created (66) or deleted (67).
//
//mad:header size=22 section=14.2.5.1
//mad:variant of=Notice.DataDetails name=gid only=SubnAdm,Subn when=IsGeneric:1,TrapNumber:64-67
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_64_67
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_trap_64_t
//mad:source opa-ff IbAccess/Common/Inc/ib_mad.h TRAPS_64_65_66_67_DETAILS
type NoticeGID struct {
	_ [6]uint8 `mad:"0:8"`
	// GIDAddr is the GID of the port or of the multicast group.
	GIDAddr GID `mad:"48:128"`
}

// NoticeSwitch reports a switch whose link state changed on some port (trap 128).
//
//mad:header size=2 section=14.2.5.1
//mad:variant of=Notice.DataDetails name=switch only=Subn,SubnAdm,SubnAdm1 when=IsGeneric:1,TrapNumber:128
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_128
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_trap_128_t
type NoticeSwitch struct {
	// LIDAddr is the LID of the switch.
	LIDAddr LID `mad:"0:16"`
}

// NoticePort reports a port where the threshold of local link integrity (trap
// 129) or of excessive buffer overruns (130) was reached, or the flow control
// update watchdog timer expired (131).
//
//mad:header size=5 section=14.2.5.1
//mad:variant of=Notice.DataDetails name=port only=Subn,SubnAdm,SubnAdm1 when=IsGeneric:1,TrapNumber:129-131
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_129_131
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_trap_129_t
type NoticePort struct {
	_ uint16 `mad:"0:16"`
	// LIDAddr is the LID of the port; of a switch's port, that of its port 0.
	LIDAddr LID `mad:"16:16"`
	// PortNo is the number of the port.
	PortNo uint8 `mad:"32:8"`
}

// NoticeLocalChange reports a port whose capabilities or other settings changed
// (trap 144).
//
//mad:header size=14 section=14.2.5.1
//mad:variant of=Notice.DataDetails name=local_change only=Subn,SubnAdm when=IsGeneric:1,TrapNumber:144
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_144, TRAP_144_MASK_*
//mad:source python-rdma codegen/iba_14.xml MADNoticeTrap144
type NoticeLocalChange struct {
	_ uint16 `mad:"0:16"`
	// LIDAddr is the LID of the port.
	LIDAddr LID   `mad:"16:16"`
	_       uint8 `mad:"32:8"`
	_       uint8 `mad:"40:7"`
	// OtherLocalChanges is set if one of the bits from SMPriorityChange on is set.
	OtherLocalChanges bool `mad:"47:1"`
	// CapabilityMask is the current one of PortInfo.
	CapabilityMask CapabilityMask `mad:"48:32"`
	_              uint16         `mad:"80:10"`
	// CapabilityMask2Change is set if CapabilityMask2 has changed (known only from opensm).
	CapabilityMask2Change bool `mad:"90:1"`
	// HierarchyInfoChange is set if HierarchyInfo has changed (known only from opensm).
	HierarchyInfoChange bool `mad:"91:1"`
	// SMPriorityChange is set if the priority of the subnet manager on the port has changed.
	SMPriorityChange bool `mad:"92:1"`
	// LinkSpeedEnabledChange is set if LinkSpeedEnabled has changed.
	LinkSpeedEnabledChange bool `mad:"93:1"`
	// LinkWidthEnabledChange is set if LinkWidthEnabled has changed.
	LinkWidthEnabledChange bool `mad:"94:1"`
	// NodeDescriptionChange is set if NodeDescription has changed.
	NodeDescriptionChange bool `mad:"95:1"`
	// CapabilityMask2 is the current one of PortInfo (known only from opensm).
	CapabilityMask2 CapabilityMask2 `mad:"96:16"`
}

// NoticeSystemImage reports a node whose SystemImageGUID changed (trap 145).
//
//mad:header size=14 section=14.2.5.1
//mad:variant of=Notice.DataDetails name=system_image only=Subn,SubnAdm when=IsGeneric:1,TrapNumber:145
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_145
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_trap_145_t
type NoticeSystemImage struct {
	_ uint16 `mad:"0:16"`
	// LIDAddr is the LID of the port.
	LIDAddr LID    `mad:"16:16"`
	_       uint16 `mad:"32:16"`
	// SystemImageGUID is the current one of the node.
	SystemImageGUID GUID `mad:"48:64"`
}

// NoticeBadMKey reports an SMP with a wrong M_Key (trap 256).
//
//mad:header size=54 section=14.2.5.1
//mad:variant of=Notice.DataDetails name=bad_m_key only=Subn,SubnAdm when=IsGeneric:1,TrapNumber:256
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_256
//mad:source python-rdma codegen/iba_14.xml MADNoticeTrap256
type NoticeBadMKey struct {
	_ uint16 `mad:"0:16"`
	// LIDAddr is the LID of the port that the SMP came from.
	LIDAddr LID `mad:"16:16"`
	// DrSLID is the DrSLID of the SMP, if it had a directed route.
	DrSLID LID `mad:"32:16"`
	// Method is the method of the SMP.
	Method uint8 `mad:"48:8,hex"`
	_      uint8 `mad:"56:8"`
	// AttributeID is the attribute ID of the SMP.
	AttributeID uint16 `mad:"64:16,hex"`
	// AttributeModifier is the attribute modifier of the SMP.
	AttributeModifier uint32 `mad:"80:32,hex"`
	// MKey is the wrong key.
	MKey uint64 `mad:"112:64,name=M_Key,key,hex"`
	_    uint8  `mad:"176:8"`
	// DRNotice is set if the SMP had a directed route.
	DRNotice bool `mad:"184:1"`
	// DRPathTruncated is set if the path was too long for DRNoticeReturnPath.
	DRPathTruncated bool `mad:"185:1"`
	// DRHopCount is the number of bytes in DRNoticeReturnPath.
	DRHopCount uint8 `mad:"186:6"`
	// DRNoticeReturnPath is the return path of the SMP.
	DRNoticeReturnPath [30]uint8 `mad:"192:8"`
}

// NoticeBadMKey1 reports an SMP with a wrong M_Key (trap 256), in version 1 of
// SubnAdm.
//
//mad:header size=22 section=14.2.5.1 unconfirmed
//mad:variant of=Notice.DataDetails name=bad_m_key only=SubnAdm1 when=IsGeneric:1,TrapNumber:256
//mad:source Shanley, InfiniBand Network Architecture, table 29-11
type NoticeBadMKey1 struct {
	_ uint16 `mad:"0:16"`
	// LIDAddr is the LID of the port that the SMP came from.
	LIDAddr LID    `mad:"16:16"`
	_       uint16 `mad:"32:16"`
	// Method is the method of the SMP.
	Method uint8 `mad:"48:8,hex"`
	_      uint8 `mad:"56:8"`
	// AttributeID is the attribute ID of the SMP.
	AttributeID uint16 `mad:"64:16,hex"`
	// AttributeModifier is the attribute modifier of the SMP.
	AttributeModifier uint32 `mad:"80:32,hex"`
	// MKey is the wrong key.
	MKey uint64 `mad:"112:64,name=M_Key,key,hex"`
}

// NoticeBadKey reports a packet with a wrong P_Key (trap 257) or Q_Key (258).
//
//mad:header size=50 section=14.2.5.1
//mad:variant of=Notice.DataDetails name=bad_key only=Subn,SubnAdm,SubnAdm1 when=IsGeneric:1,TrapNumber:257-258
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_257_258
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_trap_257_t
type NoticeBadKey struct {
	_ uint16 `mad:"0:16"`
	// LIDAddr1 is the LID of the port that the packet came from.
	LIDAddr1 LID `mad:"16:16"`
	// LIDAddr2 is the LID of the port that it was sent to.
	LIDAddr2 LID `mad:"32:16"`
	// Key is the packet's Q_Key, or its P_Key in the lower 16 bits.
	Key uint32 `mad:"48:32,hex"`
	// SL is the packet's service level.
	SL uint8 `mad:"80:4"`
	_  uint8 `mad:"84:4"`
	// QP1 is the queue pair that the packet came from.
	QP1 uint32 `mad:"88:24,hex"`
	_   uint8  `mad:"112:8"`
	// QP2 is the queue pair that it was sent to.
	QP2 uint32 `mad:"120:24,hex"`
	// GIDAddr1 is the GID of the port that the packet came from; all 0 if it had no global route header.
	GIDAddr1 GID `mad:"144:128"`
	// GIDAddr2 is the GID of the port that it was sent to; all 0 if it had no global route header.
	GIDAddr2 GID `mad:"272:128"`
}

// NoticeSwitchBadPKey reports a packet with a wrong P_Key at a switch's port
// (trap 259).
//
//mad:header size=51 section=14.2.5.1
//mad:variant of=Notice.DataDetails name=switch_bad_p_key only=Subn,SubnAdm when=IsGeneric:1,TrapNumber:259
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_259
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_trap_259_t
type NoticeSwitchBadPKey struct {
	// DataValid is the fields below that are known, a bit each.
	DataValid uint16 `mad:"0:16,hex"`
	// LIDAddr1 is the LID of the port that the packet came from.
	LIDAddr1 LID `mad:"16:16"`
	// LIDAddr2 is the LID of the port that it was sent to.
	LIDAddr2 LID `mad:"32:16"`
	// PKey is the packet's P_Key.
	PKey uint16 `mad:"48:16,name=P_Key,hex"`
	// SL is the packet's service level.
	SL uint8 `mad:"64:4"`
	_  uint8 `mad:"68:4"`
	// QP1 is the queue pair that the packet came from.
	QP1 uint32 `mad:"72:24,hex"`
	_   uint8  `mad:"96:8"`
	// QP2 is the queue pair that it was sent to.
	QP2 uint32 `mad:"104:24,hex"`
	// GIDAddr1 is the GID of the port that the packet came from.
	GIDAddr1 GID `mad:"128:128"`
	// GIDAddr2 is the GID of the port that it was sent to.
	GIDAddr2 GID `mad:"256:128"`
	// SwLIDAddr is the LID of the switch.
	SwLIDAddr LID `mad:"384:16"`
	// PortNo is the port of the switch.
	PortNo uint8 `mad:"400:8"`
}

// NoticeBadBKey reports a MAD with a wrong B_Key (trap 259 of baseboard
// management).
//
//mad:header size=38 section=16.2.3.2
//mad:variant of=Notice.DataDetails name=bad_b_key only=BM when=IsGeneric:1,TrapNumber:259
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_bkey_259
//mad:source opa-ff IbAccess/Common/Inc/ib_bm.h BMA_TRAP_DATA_BAD_BKEY
type NoticeBadBKey struct {
	// LIDAddr is the LID of the port that the MAD came from.
	LIDAddr LID `mad:"0:16"`
	// Method is the method of the MAD.
	Method uint8 `mad:"16:8,hex"`
	_      uint8 `mad:"24:8"`
	// AttributeID is the attribute ID of the MAD.
	AttributeID uint16 `mad:"32:16,hex"`
	// AttributeModifier is the attribute modifier of the MAD.
	AttributeModifier uint32 `mad:"48:32,hex"`
	_                 uint8  `mad:"80:8"`
	// QP is the queue pair that the MAD came from.
	QP uint32 `mad:"88:24,hex"`
	// BKey is the wrong key.
	BKey uint64 `mad:"112:64,name=B_Key,key,hex"`
	// GIDAddr is the GID of the port that the MAD came from.
	GIDAddr GID `mad:"176:128"`
}

// NoticeBadCCKey reports a MAD with a wrong CC_Key (trap 0 of congestion
// control).
//
//mad:header size=40 section=A10.4.3.2
//mad:variant of=Notice.DataDetails name=bad_cc_key only=CC when=IsGeneric:1,TrapNumber:0
//mad:source opensm include/iba/ib_types.h ib_mad_notice_attr_t ntc_cckey_0
//mad:source ibutils ibis/src/ibcc.i ccNotice
type NoticeBadCCKey struct {
	// SLID is the LID of the port that the MAD came from.
	SLID LID `mad:"0:16"`
	// Method is the method of the MAD.
	Method uint8 `mad:"16:8,hex"`
	_      uint8 `mad:"24:8"`
	// AttributeID is the attribute ID of the MAD.
	AttributeID uint16 `mad:"32:16,hex"`
	_           uint16 `mad:"48:16"`
	// AttributeModifier is the attribute modifier of the MAD.
	AttributeModifier uint32 `mad:"64:32,hex"`
	_                 uint8  `mad:"96:8"`
	// QP is the queue pair that the MAD was sent to.
	QP uint32 `mad:"104:24,hex"`
	// CCKey is the wrong key.
	CCKey uint64 `mad:"128:64,name=CC_Key,key,hex"`
	// SourceGID is the GID of the port that the MAD came from.
	SourceGID GID `mad:"192:128"`
}

// TrapInfo describes a trap of the specification.
type TrapInfo struct {
	Number uint16
	Class  Class  // of the sender
	Name   string // of the event
}

// Traps lists the traps that the specification defines.
func Traps() []TrapInfo { return slices.Clone(traps) }

// traps are the events that the specification defines, by class and number (Shanley,
// InfiniBand Network Architecture, table 29-7; opensm include/iba/ib_types.h SM_*_TRAP;
// for BM and CC the sources of NoticeBadBKey and NoticeBadCCKey).
var traps = []TrapInfo{
	{64, ClassSubn, "port in service"},
	{65, ClassSubn, "port out of service"},
	{66, ClassSubn, "multicast group created"},
	{67, ClassSubn, "multicast group deleted"},
	{68, ClassSubn, "path no longer valid"},
	{69, ClassSubn, "path recomputed"},
	{128, ClassSubn, "link state changed"},
	{129, ClassSubn, "local link integrity threshold reached"},
	{130, ClassSubn, "excessive buffer overrun threshold reached"},
	{131, ClassSubn, "flow control update watchdog timer expired"},
	{144, ClassSubn, "local change"},
	{145, ClassSubn, "SystemImageGUID changed"},
	{256, ClassSubn, "bad M_Key"},
	{257, ClassSubn, "bad P_Key"},
	{258, ClassSubn, "bad Q_Key"},
	{259, ClassSubn, "bad P_Key at a switch"},
	{259, ClassBM, "bad B_Key"},
	{0, ClassCongestion, "bad CC_Key"},
}

// Event names the event of a notice of a class: "trap 128 (link state changed)", or "trap
// of vendor 0x0002c9, device 0x0042"; "" without a notice.
func (n *Notice) Event(c Class) string {
	switch c = c.Family(); {
	case !n.IsGeneric:
		return fmt.Sprintf("trap of vendor 0x%06x, device 0x%04x", uint32(n.ProducerType), n.TrapNumber)
	case n.Type == NoticeTypeEmpty:
		return ""
	case c == ClassSubnAdm: // it forwards traps of subnet management
		c = ClassSubn
	}
	if i := slices.IndexFunc(traps, func(t TrapInfo) bool { return t.Class == c && t.Number == n.TrapNumber }); i >= 0 {
		return fmt.Sprintf("trap %d (%s)", n.TrapNumber, traps[i].Name)
	}
	return fmt.Sprintf("trap %d", n.TrapNumber)
}

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
	IsGeneric uint8 `mad:"176:8,minor"`
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
	RespTimeValue uint8 `mad:"251:5,minor"`
	_             uint8 `mad:"256:8"`
	// ProducerType is the kind of node where the event occurs; of a vendor's traps, the vendor's OUI.
	ProducerType ProducerType `mad:"264:24,also=node_type,vendor=VendorID,minor"`
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
