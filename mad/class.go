package mad

import (
	"fmt"
	"slices"
)

// Class is a management class (IBA 13.4.4, table 112).
type Class uint8

const (
	ClassSubn         Class = 0x01 // subnet management, LID-routed
	ClassSubnDirected Class = 0x81 // subnet management, directed route
	ClassSubnAdm      Class = 0x03
	ClassPerf         Class = 0x04
	ClassBM           Class = 0x05
	ClassDevMgt       Class = 0x06
	ClassComMgt       Class = 0x07
	ClassSNMP         Class = 0x08
	ClassVendor09     Class = 0x09 // Mellanox, configuration space of old devices
	ClassVendor0A     Class = 0x0a // Mellanox
	ClassVendor0C     Class = 0x0c // Mellanox, between nodes (N2N)
	ClassCongestion   Class = 0x21
	ClassPing         Class = 0x32 // OpenIB, vendor 0x001405: ibping
	ClassSysStat      Class = 0x33 // OpenIB, vendor 0x001405: ibsysstat
	ClassVendorFirst  Class = 0x09
	classVendorLast   Class = 0x0f
	classAppFirst     Class = 0x10
	classAppLast      Class = 0x2f // includes ClassCongestion
	classVendor2First Class = 0x30
	classVendor2Last  Class = 0x4f
)

// String returns the name in the specification.
func (c Class) String() string {
	switch {
	case c == ClassSubn:
		return "Subn"
	case c == ClassSubnDirected:
		return "SubnDirected"
	case c == ClassSubnAdm:
		return "SubnAdm"
	case c == ClassPerf:
		return "Perf"
	case c == ClassBM:
		return "BM"
	case c == ClassDevMgt:
		return "DevMgt"
	case c == ClassComMgt:
		return "ComMgt"
	case c == ClassSNMP:
		return "SNMP"
	case c == ClassCongestion:
		return "CC"
	case c.IsVendor():
		return fmt.Sprintf("Vendor(%#02x)", uint8(c))
	case c >= classAppFirst && c <= classAppLast:
		return fmt.Sprintf("Application(%#02x)", uint8(c))
	}
	return fmt.Sprintf("unknown(%#02x)", uint8(c))
}

// IsVendor reports whether a vendor defines the class.
func (c Class) IsVendor() bool { return c >= ClassVendorFirst && c <= classVendorLast || c.HasOUI() }

// HasOUI reports whether it is a vendor class whose MADs carry the vendor's OUI.
func (c Class) HasOUI() bool { return c >= classVendor2First && c <= classVendor2Last }

// Family returns the class whose attributes c has: ClassSubn for both classes
// of subnet management, otherwise c itself.
func (c Class) Family() Class {
	if c == ClassSubnDirected {
		return ClassSubn
	}
	return c
}

// Version returns the current class version (libibmad register.c, mgmt_class_vers).
func (c Class) Version() uint8 {
	switch c {
	case ClassSubnAdm, ClassComMgt, ClassCongestion:
		return 2
	}
	return 1
}

// DataOffset returns the offset of the attribute in a MAD of this class, in its
// current version, in bytes.
func (c Class) DataOffset() int {
	switch c.Family() {
	case ClassSubn, ClassPerf, ClassBM, ClassDevMgt, ClassSNMP, ClassCongestion:
		return 64
	case ClassSubnAdm:
		return SADataOffset
	}
	if c.HasOUI() {
		return VendorDataOffset
	}
	return HeaderSize
}

// DataSize returns the size of the attribute data in one MAD of this class, in bytes.
func (c Class) DataSize() int {
	if c.Family() == ClassSubn {
		return 64
	}
	return Size - c.DataOffset()
}

// Method is the operation of a request on an attribute (IBA 13.4.5); bit 7 is the response bit.
type Method uint8

const (
	MethodGet           Method = 0x01
	MethodSet           Method = 0x02
	MethodSend          Method = 0x03
	MethodTrap          Method = 0x05
	MethodReport        Method = 0x06
	MethodTrapRepress   Method = 0x07
	MethodGetTable      Method = 0x12 // SubnAdm from here on (IBA 15.2.2, version 2)
	MethodGetTraceTable Method = 0x13
	MethodGetMulti      Method = 0x14
	MethodDelete        Method = 0x15
	MethodInform        Method = 0x10 // SubnAdm, version 1 only, from here on (IBA 1.0.a; Shanley, InfiniBand Network Architecture, table 33-3)
	MethodGetBulk       Method = 0x13
	MethodConfig        Method = 0x15
	// Response is the bit that a response carries.
	Response                Method = 0x80
	MethodGetResp                  = MethodGet | Response
	MethodReportResp               = MethodReport | Response
	MethodGetTableResp             = MethodGetTable | Response
	MethodGetTraceTableResp        = MethodGetTraceTable | Response
	MethodGetMultiResp             = MethodGetMulti | Response
	MethodDeleteResp               = MethodDelete | Response
)

// ResponseTo returns the method of the response to a request: to a Set it is GetResp.
func (m Method) ResponseTo() Method {
	if m == MethodSet {
		return MethodGetResp
	}
	return m | Response
}

// IsResponse reports whether the response bit is set.
func (m Method) IsResponse() bool { return m&Response != 0 }

// IsTable reports whether the response, of SubnAdm, is a table of any number of records.
func (m Method) IsTable() bool {
	switch m &^ Response {
	case MethodGetTable, MethodGetTraceTable, MethodGetMulti:
		return true
	}
	return false
}

// Name returns the name of m in the specification, in a MAD of this class and class version.
func (m Method) Name(c Class, version uint8) string {
	if name := m.name(c, version); name != "" {
		return name
	}
	return fmt.Sprintf("unknown(%#02x)", uint8(m))
}

// IsNamed reports whether the specification has m, in a MAD of this class and class version.
func (m Method) IsNamed(c Class, version uint8) bool { return m.name(c, version) != "" }

// name returns "" if the specification does not have the method.
func (m Method) name(c Class, version uint8) string {
	info, ok := MethodOf(c, version, m&^Response)
	if !ok {
		info, ok = MethodOf(0, 0, m&^Response) // a common method that the class does not have
	}
	switch {
	case !ok, m.IsResponse() && (!info.Answered || m == MethodSet|Response):
		return ""
	case m.IsResponse():
		return info.Name + "Resp"
	}
	return info.Name
}

// MethodInfo describes a method of a class.
type MethodInfo struct {
	Method   Method
	Name     string // in the specification, without the class: "GetTable"
	Answered bool   // has a response: the method with the response bit, or GetResp to a Set
	Table    bool   // the response is a table, in any number of MADs
	Required bool   // mandatory, of a subnet administrator
	Doc      string
}

// MethodOf returns the method of a version of a class with a number, without the
// response bit; ok is false if the class does not have the method.
func MethodOf(c Class, version uint8, m Method) (info MethodInfo, ok bool) {
	list := methodsOf(c, version)
	i := slices.IndexFunc(list, func(i MethodInfo) bool { return i.Method == m })
	if i < 0 {
		return MethodInfo{}, false
	}
	return list[i], true
}

// Methods lists the methods of a version of a class.
func Methods(c Class, version uint8) []MethodInfo { return slices.Clone(methodsOf(c, version)) }

func methodsOf(c Class, version uint8) []MethodInfo {
	switch {
	case c == ClassSubnAdm && version == 1:
		return saMethods1
	case c == ClassSubnAdm:
		return saMethods2
	}
	return commonMethods
}

// IsReserved reports whether no class may use the number (IBA 13.4.5; Shanley,
// InfiniBand Network Architecture, table 28-4).
func (m Method) IsReserved() bool {
	switch r := m &^ Response; {
	case r == MethodGet, r == MethodReport, r >= 0x10:
		return false
	case m.IsResponse():
		return true
	default:
		return r == 0 || r == 4 || r >= 8
	}
}

// commonMethods are the methods of all classes but SubnAdm (IBA 13.4.5; Shanley,
// InfiniBand Network Architecture, table 28-4).
var commonMethods = []MethodInfo{
	{MethodGet, "Get", true, false, false, "reads an attribute"},
	{MethodSet, "Set", true, false, false, "writes an attribute; GetResp answers"},
	{MethodSend, "Send", false, false, false, "sends a datagram; no answer is required"},
	{MethodTrap, "Trap", false, false, false, "reports an event to a manager, without a request"},
	{MethodReport, "Report", true, false, false, "forwards a trap to subscribers"},
	{MethodTrapRepress, "TrapRepress", false, false, false, "stops an agent from repeating a trap"},
}

// The methods of SubnAdm. Its two versions use some numbers for different
// methods (version 1: IBA 1.0.a, Shanley, InfiniBand Network Architecture,
// table 33-3; version 2: IBA 1.3 15.2.2).
var (
	saMethods1 = []MethodInfo{
		{MethodGet, "Get", true, false, true, "reads a record"},
		{MethodSet, "Set", true, false, true, "writes a record; GetResp answers"},
		{MethodReport, "Report", true, false, true, "forwards a trap to subscribers"},
		{MethodInform, "Inform", true, false, true, "subscribes to reports, or unsubscribes; in version 2 a Set does"},
		{MethodGetTable, "GetTable", true, true, true, "reads all records that match; the response is of one or more MADs"},
		{MethodGetBulk, "GetBulk", true, true, false, "reads all records, for another subnet manager; the response is of one or more MADs"},
		{MethodConfig, "Config", true, true, true, "adds, deletes or changes a whole table of records; requests and responses are of one or more MADs"},
	}
	saMethods2 = []MethodInfo{
		{MethodGet, "Get", true, false, true, "reads the one record that matches"},
		{MethodSet, "Set", true, false, true, "writes a record; GetResp answers"},
		{MethodReport, "Report", true, false, true, "forwards a trap to subscribers"},
		{MethodGetTable, "GetTable", true, true, true, "reads all records that match; the response is of one or more MADs"},
		{MethodGetTraceTable, "GetTraceTable", true, true, false, "reads the hops of a path; the response is of one or more MADs"},
		{MethodGetMulti, "GetMulti", true, true, false, "queries paths between sets of ports; requests and responses are of one or more MADs"},
		{MethodDelete, "Delete", true, false, true, "deletes a record"},
	}
)

// ClassInfo describes a management class, or a range of classes.
type ClassInfo struct {
	First, Last Class
	Name        string // as of Class.String; of a range, the beginning of its names
	Doc         string
	Support     string // which nodes must support it
}

// Classes lists the management classes (IBA 13.4.4; Shanley, InfiniBand
// Network Architecture, table 28-3).
func Classes() []ClassInfo { return slices.Clone(classes) }

// Info returns the description of c; ok is false for a reserved class.
func (c Class) Info() (info ClassInfo, ok bool) {
	i := slices.IndexFunc(classes, func(i ClassInfo) bool { return i.First <= c && c <= i.Last })
	if i < 0 {
		return ClassInfo{}, false
	}
	return classes[i], true
}

// WasReserved reports whether version 1.0 of the specification reserves c.
// Later versions give these classes to applications (to 0x2f) and vendors (from
// 0x30 on; Shanley, InfiniBand Network Architecture, table 28-3).
func (c Class) WasReserved() bool { return 0x20 <= c && c <= classVendor2Last }

var classes = []ClassInfo{
	{ClassSubn, ClassSubn, "Subn", "subnet management; datagrams are routed by LID", "required on all channel adapters, switches and routers"},
	{ClassSubnDirected, ClassSubnDirected, "SubnDirected", "subnet management; datagrams follow a directed route", "required on all channel adapters, switches and routers"},
	{ClassSubnAdm, ClassSubnAdm, "SubnAdm", "subnet administration: the subnet manager's data, as records", "required on nodes that host a subnet manager"},
	{ClassPerf, ClassPerf, "Perf", "performance management: counters", "required on all channel adapters, switches and routers"},
	{ClassBM, ClassBM, "BM", "baseboard management: the chassis and its modules", "required on all channel adapters, switches and routers"},
	{ClassDevMgt, ClassDevMgt, "DevMgt", "device management: I/O units and their controllers", "optional"},
	{ClassComMgt, ClassComMgt, "ComMgt", "communication management: connections", "required on channel adapters with connections, or with datagram services at no fixed address"},
	{ClassSNMP, ClassSNMP, "SNMP", "SNMP tunnelling", "optional"},
	{ClassVendorFirst, classVendorLast, "Vendor", "vendor-defined; the datagram does not identify the vendor", "optional"},
	{ClassCongestion, ClassCongestion, "CC", "congestion control", "optional"},
	{classAppFirst, classAppLast, "Application", "for applications", "optional"},
	{classVendor2First, classVendor2Last, "Vendor", "vendor-defined; the datagram identifies the vendor", "optional"},
}

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
	RespTimeValue uint8 `mad:"59:5,ro,minor"`
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
