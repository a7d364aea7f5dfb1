package mad

// ClassPortInfo is what a management class supports on a port, and where its
// requests are redirected and its traps go.
//
//mad:attr class=SubnAdm id=0x0001 methods=Get v1=Get required size=72 section=13.4.8.1 words=CapabilityMask:SubnAdmCapabilityMask,CapabilityMask2:SubnAdmCapabilityMask2
//mad:attr class=Perf id=0x0001 methods=Get,Set size=72 section=13.4.8.1 words=CapabilityMask:PerfCapabilityMask,CapabilityMask2:PerfCapabilityMask2
//mad:attr class=BM id=0x0001 methods=Get,Set size=72 section=13.4.8.1
//mad:attr class=DevMgt id=0x0001 methods=Get,Set size=72 section=13.4.8.1
//mad:attr class=ComMgt id=0x0001 methods=Get,Set size=72 section=13.4.8.1
//mad:attr class=SNMP id=0x0001 methods=Get size=72 section=13.4.8.1
//mad:attr class=Vendor0A id=0x0001 methods=Get size=72 section=13.4.8.1 safeget
//mad:attr class=Vendor0C id=0x0001 methods=Get size=72 section=13.4.8.1 safeget
//mad:attr class=CC id=0x0001 methods=Get,Set size=72 section=13.4.8.1
//mad:source rdma-core libibmad/fields.c ClassPortInfo fields
//mad:source opensm include/iba/ib_types.h ib_class_port_info_t
type ClassPortInfo struct {
	// BaseVersion is the MAD format version; 1.
	BaseVersion uint8 `mad:"0:8,ro"`
	// ClassVersion is the version of the management class in use.
	ClassVersion uint8 `mad:"8:8,ro"`
	// CapabilityMask is what the class supports on this port; from bit 8 on it differs by class.
	CapabilityMask uint16 `mad:"16:16,ro"`
	// CapabilityMask2 is what else it supports.
	CapabilityMask2 uint32 `mad:"32:27,ro"`
	// RespTimeValue is the longest time to an answer, 4.096 us * 2^value.
	RespTimeValue uint8 `mad:"59:5,ro"`
	// RedirectGID is the GID that requests should go to; all 0 without redirection.
	RedirectGID GID `mad:"64:128,ro"`
	// RedirectTC is the traffic class to use there.
	RedirectTC uint8 `mad:"192:8,ro,hex"`
	// RedirectSL is the service level to use there.
	RedirectSL uint8 `mad:"200:4,ro"`
	// RedirectFL is the flow label to use there.
	RedirectFL uint32 `mad:"204:20,ro,hex"`
	// RedirectLID is the LID to use there; 0 if RedirectGID has to be resolved.
	RedirectLID LID `mad:"224:16,ro"`
	// RedirectPKey is the P_Key to use there.
	RedirectPKey uint16 `mad:"240:16,ro,name=RedirectP_Key,hex"`
	_            uint8  `mad:"256:8"`
	// RedirectQP is the queue pair to use there.
	RedirectQP uint32 `mad:"264:24,ro,hex"`
	// RedirectQKey is the Q_Key of that queue pair.
	RedirectQKey uint32 `mad:"288:32,ro,name=RedirectQ_Key,hex"`
	// TrapGID is the GID that traps go to; all 0 if no traps are sent.
	TrapGID GID `mad:"320:128"`
	// TrapTC is the traffic class of traps.
	TrapTC uint8 `mad:"448:8,hex"`
	// TrapSL is the service level of traps.
	TrapSL uint8 `mad:"456:4"`
	// TrapFL is the flow label of traps.
	TrapFL uint32 `mad:"460:20,hex"`
	// TrapLID is the LID that traps go to; 0 if no traps are sent.
	TrapLID LID `mad:"480:16"`
	// TrapPKey is the P_Key of traps.
	TrapPKey uint16 `mad:"496:16,name=TrapP_Key,hex"`
	// TrapHL is the hop limit of traps.
	TrapHL uint8 `mad:"512:8"`
	// TrapQP is the queue pair that traps go to.
	TrapQP uint32 `mad:"520:24,hex"`
	// TrapQKey is the Q_Key of that queue pair.
	TrapQKey uint32 `mad:"544:32,name=TrapQ_Key,hex"`
}

// PerfCapabilityMask is ClassPortInfo.CapabilityMask of performance
// management (IBA 16.1.3.1; opensm include/iba/ib_types.h IB_PM_*).
//
//mad:mask
type PerfCapabilityMask uint16

const (
	PerfCapabilityMaskIsTrapSupported                               PerfCapabilityMask = 1 << 0
	PerfCapabilityMaskIsGetSetNoticeSupported                       PerfCapabilityMask = 1 << 1
	PerfCapabilityMaskAllPortSelect                                 PerfCapabilityMask = 1 << 8  // port 255 sums up all ports
	PerfCapabilityMaskIsExtendedWidthSupported                      PerfCapabilityMask = 1 << 9  // PortCountersExtended
	PerfCapabilityMaskIsExtendedWidthSupportedNoIETF                PerfCapabilityMask = 1 << 10 // the same without unicast and multicast
	PerfCapabilityMaskSamplesOnlySupported                          PerfCapabilityMask = 1 << 11
	PerfCapabilityMaskPortCountersXmitWaitSupported                 PerfCapabilityMask = 1 << 12
	PerfCapabilityMaskIsInhibitLimitedPKeyMulticastConstraintErrors PerfCapabilityMask = 1 << 13
	PerfCapabilityMaskIsRSFECModeSupported                          PerfCapabilityMask = 1 << 14
	PerfCapabilityMaskIsQP1DroppedSupported                         PerfCapabilityMask = 1 << 15
)

// PerfCapabilityMask2 is ClassPortInfo.CapabilityMask2 of performance
// management (opensm include/iba/ib_types.h IB_PM_IS_*).
//
//mad:mask
type PerfCapabilityMask2 uint32

const (
	PerfCapabilityMask2IsPMKeySupported                          PerfCapabilityMask2 = 1 << 0
	PerfCapabilityMask2IsAdditionalPortCountersExtendedSupported PerfCapabilityMask2 = 1 << 1
)

// SubnAdmCapabilityMask is ClassPortInfo.CapabilityMask of subnet
// administration (IBA 15.2.5.1; rdma-core libibumad/umad_sa.h UMAD_SA_CAP_MASK_*).
//
//mad:mask
type SubnAdmCapabilityMask uint16

const (
	SubnAdmCapabilityMaskIsTrapSupported                           SubnAdmCapabilityMask = 1 << 0
	SubnAdmCapabilityMaskIsGetSetNoticeSupported                   SubnAdmCapabilityMask = 1 << 1
	SubnAdmCapabilityMaskIsSubnetOptionalRecordsSupported          SubnAdmCapabilityMask = 1 << 8
	SubnAdmCapabilityMaskIsUDMulticastSupported                    SubnAdmCapabilityMask = 1 << 9
	SubnAdmCapabilityMaskIsMultiPathSupported                      SubnAdmCapabilityMask = 1 << 10
	SubnAdmCapabilityMaskIsReinitSupported                         SubnAdmCapabilityMask = 1 << 11
	SubnAdmCapabilityMaskIsGIDScopedMultiPathSupported             SubnAdmCapabilityMask = 1 << 12
	SubnAdmCapabilityMaskIsPortInfoCapabilityMaskMatchSupported    SubnAdmCapabilityMask = 1 << 13
	SubnAdmCapabilityMaskIsLinkSpeedWidthPairsTableRecordSupported SubnAdmCapabilityMask = 1 << 14
	SubnAdmCapabilityMaskIsPAServicesSupported                     SubnAdmCapabilityMask = 1 << 15
)

// SubnAdmCapabilityMask2 is ClassPortInfo.CapabilityMask2 of subnet
// administration (rdma-core libibumad/umad_sa.h UMAD_SA_CAP_MASK2_*; from bit 12 on
// opensm include/opensm/osm_base.h OSM_CAP2_IS_*).
//
//mad:mask
type SubnAdmCapabilityMask2 uint32

const (
	SubnAdmCapabilityMask2IsUnpathRepathSupported                 SubnAdmCapabilityMask2 = 1 << 0
	SubnAdmCapabilityMask2IsQoSSupported                          SubnAdmCapabilityMask2 = 1 << 1
	SubnAdmCapabilityMask2IsReversePathPKeyMemberBitSupported     SubnAdmCapabilityMask2 = 1 << 2
	SubnAdmCapabilityMask2IsMulticastTopSupported                 SubnAdmCapabilityMask2 = 1 << 3
	SubnAdmCapabilityMask2IsHierarchyInfoSupported                SubnAdmCapabilityMask2 = 1 << 4
	SubnAdmCapabilityMask2IsAdditionalGUIDSupported               SubnAdmCapabilityMask2 = 1 << 5
	SubnAdmCapabilityMask2IsFullPortInfoRecordSupported           SubnAdmCapabilityMask2 = 1 << 6
	SubnAdmCapabilityMask2IsExtendedSpeedsSupported               SubnAdmCapabilityMask2 = 1 << 7
	SubnAdmCapabilityMask2IsMulticastServiceRecordSupported       SubnAdmCapabilityMask2 = 1 << 8
	SubnAdmCapabilityMask2IsCableInfoRecordSupported              SubnAdmCapabilityMask2 = 1 << 9
	SubnAdmCapabilityMask2IsPortInfoCapabilityMask2MatchSupported SubnAdmCapabilityMask2 = 1 << 10
	SubnAdmCapabilityMask2IsPortInfoExtendedRecordSupported       SubnAdmCapabilityMask2 = 1 << 11
	SubnAdmCapabilityMask2IsSendOnlyFullMemberSupported           SubnAdmCapabilityMask2 = 1 << 12
	SubnAdmCapabilityMask2IsLinkWidth2xSupported                  SubnAdmCapabilityMask2 = 1 << 13
	SubnAdmCapabilityMask2IsLinkSpeedHDRSupported                 SubnAdmCapabilityMask2 = 1 << 15
)
