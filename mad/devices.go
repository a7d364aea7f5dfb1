package mad

// IOUnitInfo lists the I/O controllers of an I/O unit.
//
//mad:attr class=DevMgt id=0x0010 methods=Get size=132 section=16.3.3.3
//mad:source python-rdma codegen/iba_16_3.xml DMIOUnitInfo
//mad:source opensm include/iba/ib_types.h ib_iou_info_t
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ib_dm_attr.h ib_dm_io_unitinfo_t
type IOUnitInfo struct {
	// ChangeID increases with every change of ControllerList.
	ChangeID uint16 `mad:"0:16,ro,name=Change_ID"`
	// MaxControllers is the number of slots in ControllerList.
	MaxControllers uint8 `mad:"16:8,ro"`
	_              uint8 `mad:"24:6"`
	// DiagDeviceID is set if the modifier of the diagnostic attributes selects a slot; otherwise the unit itself is tested.
	DiagDeviceID bool `mad:"30:1,ro"`
	// OptionROM is set if the unit has an option ROM.
	OptionROM bool `mad:"31:1,ro"`
	// ControllerList is the content of each slot, from 1 on.
	ControllerList [256]IOCSlot `mad:"32:4,ro"`
}

// IOCSlot is the content of a slot of an I/O unit (IBA 16.3.3.3).
//
//mad:enum
type IOCSlot uint8

const (
	IOCSlotNotInstalled IOCSlot = 0
	IOCSlotPresent      IOCSlot = 1
	IOCSlotDoesNotExist IOCSlot = 15
)

// IOControllerProfile is the identity and the capabilities of an I/O controller.
//
//mad:attr class=DevMgt id=0x0011 methods=Get size=128 section=16.3.3.4 modifier=slot:0:8
//mad:source python-rdma codegen/iba_16_3.xml DMIOControllerProfile
//mad:source opensm include/iba/ib_types.h ib_ioc_profile_t
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ib_dm_attr.h ib_dm_ioc_ctrl_profile_t
type IOControllerProfile struct {
	// GUID identifies the controller.
	GUID GUID `mad:"0:64,ro"`
	// VendorID is the IEEE OUI of its vendor.
	VendorID uint32 `mad:"64:24,ro,hex"`
	_        uint8  `mad:"88:8"`
	// DeviceID is the vendor's number of the controller's type.
	DeviceID uint32 `mad:"96:32,ro,hex"`
	// DeviceVersion is the vendor's version of the controller.
	DeviceVersion uint16 `mad:"128:16,ro"`
	_             uint16 `mad:"144:16"`
	// SubsystemVendorID is the IEEE OUI of the enclosure's vendor; 0 without one.
	SubsystemVendorID uint32 `mad:"160:24,ro,hex"`
	_                 uint8  `mad:"184:8"`
	// SubsystemID is that vendor's number of the enclosure.
	SubsystemID uint32 `mad:"192:32,ro,hex"`
	// IOClass is the class of the controller; 0xffff is vendor-specific.
	IOClass uint16 `mad:"224:16,ro,hex"`
	// IOSubclass is the subclass; 0xffff is vendor-specific.
	IOSubclass uint16 `mad:"240:16,ro,hex"`
	// Protocol is the I/O protocol; 0xffff is vendor-specific.
	Protocol uint16 `mad:"256:16,ro,hex"`
	// ProtocolVersion is the version of the protocol.
	ProtocolVersion uint16 `mad:"272:16,ro"`
	_               uint16 `mad:"288:16"`
	_               uint16 `mad:"304:16"`
	// SendMessageDepth is the number of messages to it that may be outstanding.
	SendMessageDepth uint16 `mad:"320:16,ro"`
	_                uint8  `mad:"336:8"`
	// RDMAReadDepth is the number of its RDMA reads that may be outstanding.
	RDMAReadDepth uint8 `mad:"344:8,ro"`
	// SendMessageSize is the longest message, in bytes.
	SendMessageSize uint32 `mad:"352:32,ro"`
	// RDMATransferSize is the longest RDMA transfer that it starts, in bytes.
	RDMATransferSize uint32 `mad:"384:32,ro"`
	// ControllerOperationsMask are the operations that it supports.
	ControllerOperationsMask ControllerOperations `mad:"416:8,ro"`
	_                        uint8                `mad:"424:8"`
	// ServiceEntries is the number of its ServiceEntries.
	ServiceEntries uint8    `mad:"432:8,ro"`
	_              [9]uint8 `mad:"440:8"`
	// IDString is its name for people.
	IDString [64]byte `mad:"512:512,text,ro"`
}

// ControllerOperations are operations of an I/O controller (IBA 16.3.3.4).
//
//mad:mask
type ControllerOperations uint8

const (
	ControllerOperationsSendTo        ControllerOperations = 1 << 0
	ControllerOperationsSendFrom      ControllerOperations = 1 << 1
	ControllerOperationsRDMAReadTo    ControllerOperations = 1 << 2
	ControllerOperationsRDMAReadFrom  ControllerOperations = 1 << 3
	ControllerOperationsRDMAWriteTo   ControllerOperations = 1 << 4
	ControllerOperationsRDMAWriteFrom ControllerOperations = 1 << 5
	ControllerOperationsAtomicTo      ControllerOperations = 1 << 6
	ControllerOperationsAtomicFrom    ControllerOperations = 1 << 7
)

// ServiceEntries are up to four services of an I/O controller.
//
//mad:attr class=DevMgt id=0x0012 methods=Get size=192 section=16.3.3.5 modifier=first:0:8,last:8:8,slot:16:8
//mad:source python-rdma codegen/iba_16_3.xml DMServiceEntries
//mad:source opensm include/iba/ib_types.h ib_svc_entries_t, ib_dm_get_slot_lo_hi
//mad:source opa-ff IbAccess/Common/Inc/ib_dm.h DM_IOC_SERVICE_ENTRIES
type ServiceEntries struct {
	// ServiceEntry are the services, from the first to the last in the modifier.
	ServiceEntry [4]ServiceEntry `mad:"0:384,ro"`
}

// ServiceEntry is a service of an I/O controller.
//
//mad:header size=48 section=16.3.3.5
//mad:source python-rdma codegen/iba_16_3.xml DMServiceEntry
//mad:source opensm include/iba/ib_types.h ib_svc_entry_t
type ServiceEntry struct {
	// ServiceName is its name for people.
	ServiceName [40]byte `mad:"0:320,text,ro"`
	// ServiceID is its number for programs.
	ServiceID uint64 `mad:"320:64,ro,hex"`
}

// DiagnosticTimeout is the longest time that a diagnostic test may take.
//
//mad:attr class=DevMgt id=0x0020 methods=Get size=4 section=16.3.3.6 modifier=slot:0:32
//mad:source python-rdma codegen/iba_16_3.xml DMDiagnosticTimeout
//mad:source opa-ff IbAccess/Common/Inc/ib_dm.h DIAGNOSTIC_TIMEOUT
type DiagnosticTimeout struct {
	// MaxDiagTime is the time in milliseconds.
	MaxDiagTime uint32 `mad:"0:32,ro"`
}

// DiagnosticTest starts a diagnostic test. It has no content.
//
//mad:attr class=DevMgt id=0x0021 name=PrepareToTest methods=Get,Set size=4 section=16.3.3.7 modifier=slot:0:32 ; prepares for a test.
//mad:attr class=DevMgt id=0x0022 name=TestDeviceOnce methods=Set size=4 section=16.3.3.8 modifier=slot:0:32 ; tests once.
//mad:attr class=DevMgt id=0x0023 name=TestDeviceLoop methods=Set size=4 section=16.3.3.9 modifier=slot:0:32 ; tests until the next request.
//mad:source python-rdma codegen/iba_16_3.xml DMPrepareToTest, DMTestDeviceOnce, DMTestDeviceLoop
//mad:source opa-ff IbAccess/Common/Inc/ib_dm.h DM_ATTRIB_ID_*
type DiagnosticTest struct {
	_ uint32 `mad:"0:32"`
}

// DiagCode is the result of a diagnostic test.
//
//mad:attr class=DevMgt id=0x0024 methods=Get size=4 section=16.3.3.10 modifier=slot:0:32
//mad:source python-rdma codegen/iba_16_3.xml DMDiagCode
//mad:source opa-ff IbAccess/Common/Inc/ib_dm.h DIAG_CODE
type DiagCode struct {
	// DiagCode is 0 on success; other values are vendor-specific.
	DiagCode uint16 `mad:"0:16,ro,hex"`
	_        uint16 `mad:"16:16"`
}

// BKeyInfo is the key that protects baseboard management.
//
//mad:attr class=BM id=0x0010 methods=Get,Set size=192 section=16.2.3.3 unconfirmed
//mad:source opa-ff IbAccess/Common/Inc/ib_bm.h BKEY_INFO
//mad:source ibutils ibis/src/ibbbm_base.h ib_bbm_bkey_info_t (which has a B_Key of 32 bits)
type BKeyInfo struct {
	// BKey is the key: 64 bits by one source; by the other 32, and what follows it.
	BKey [8]byte `mad:"0:64,bytes,name=B_Key,key"`
	// More is the rest of the attribute as it came.
	More [184]byte `mad:"64:1472,bytes"`
}

// BMParameters is a command to a baseboard, or its answer.
//
// Bit 0 of the modifier is set in answers.
//
//mad:attr class=BM id=0x0020 name=WriteVPD methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; writes vital product data.
//mad:attr class=BM id=0x0021 name=ReadVPD methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; reads vital product data.
//mad:attr class=BM id=0x0022 name=ResetIBML methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; resets the management link.
//mad:attr class=BM id=0x0023 name=SetModulePMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets a module's power management.
//mad:attr class=BM id=0x0024 name=GetModulePMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; gets a module's power management.
//mad:attr class=BM id=0x0025 name=SetUnitPMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets a unit's power management.
//mad:attr class=BM id=0x0026 name=GetUnitPMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; gets a unit's power management.
//mad:attr class=BM id=0x0027 name=SetIOCPMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets an I/O controller's power management.
//mad:attr class=BM id=0x0028 name=GetIOCPMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; gets an I/O controller's power management.
//mad:attr class=BM id=0x0029 name=SetModuleState methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets a module's state.
//mad:attr class=BM id=0x002a name=SetModuleAttention methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets a module's attention light.
//mad:attr class=BM id=0x002b name=GetModuleStatus methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; gets a module's status.
//mad:attr class=BM id=0x002c name=IB2IBML methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; passes a command on to the management link.
//mad:attr class=BM id=0x002d name=IB2CME methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; passes a command on to the chassis' management entity.
//mad:attr class=BM id=0x002e name=IB2MME methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; passes a command on to the module's management entity.
//mad:attr class=BM id=0x002f name=OEM methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; is a vendor's command.
//mad:source opa-ff IbAccess/Common/Inc/ib_bm.h BM_SEND
//mad:source ibutils ibis/src/ibbbm_base.h ib_bbm_vpd_t
type BMParameters struct {
	// BMSequence ties an answer to its command.
	BMSequence uint16 `mad:"0:16,minor"`
	// BMSourceDevice is the sending device: 0xfe for the baseboard manager.
	BMSourceDevice uint8 `mad:"16:8,hex,minor"`
	// BMParameterCount is the number of bytes of parameters.
	BMParameterCount uint8 `mad:"24:8,minor"`
	// BMParameters are the parameters; they depend on the command.
	BMParameters [188]byte `mad:"32:1504,bytes"`
}

// VPDRequest are the parameters of ReadVPD and WriteVPD.
//
//mad:header size=188 section=16.2.3
//mad:variant of=BMParameters.BMParameters name=vpd_request only=ReadVPD,WriteVPD when=modifier.answer:0
//mad:source opa-ff IbAccess/Common/Inc/ib_bm.h BM_REQ_GET_VPD_*
//mad:source ibutils ibis/src/ibbbm_base.h ib_bbm_vpd_t
type VPDRequest struct {
	// VPDDeviceSelector selects the memory.
	VPDDeviceSelector uint8 `mad:"0:8,hex"`
	// VPDBytes is the number of bytes to read or write.
	VPDBytes uint16 `mad:"8:16"`
	// VPDOffset is the position of the first byte in the memory.
	VPDOffset uint16 `mad:"24:16"`
	// VPDData are the bytes to write.
	VPDData [183]byte `mad:"40:1464,bytes"`
}

// SNMPHeader is at byte 56 of the MADs that carry SNMP.
//
//mad:header size=8 section=16.4.1 unconfirmed
//mad:source python-rdma codegen/iba_16_4.xml SNMPFormat
type SNMPHeader struct {
	// RAddress is the address for the answer.
	RAddress uint32 `mad:"0:32,hex"`
	// PayloadLength is the number of bytes of data.
	PayloadLength uint8 `mad:"32:8"`
	// SegmentNumber counts the MADs of a message.
	SegmentNumber uint8 `mad:"40:8"`
	// SourceLID is the LID of the sender.
	SourceLID LID `mad:"48:16"`
}

// SNMPData is the SNMP data of a MAD.
//
//mad:attr class=SNMP id=0x0010 name=CommunityInfo methods=Send size=64 section=16.4.3.2 unconfirmed ; is the community name of the messages that follow.
//mad:attr class=SNMP id=0x0011 name=PDUInfo methods=Send size=192 section=16.4.3.3 unconfirmed ; is a segment of a message.
//mad:source python-rdma codegen/iba_16_4.xml SNMPCommunityInfo, SNMPPDUInfo
type SNMPData struct {
	// Data is the attribute's first 64 bytes as they came.
	Data [64]byte `mad:"0:512,bytes"`
	// More is the rest of it.
	More [128]byte `mad:"512:1024,bytes"`
}

// HostPing checks whether a host answers: ibping.
//
//mad:attr class=Ping id=0x0000 oui=0x001405 methods=Get size=216 section=vendor safeget unconfirmed
//mad:source rdma-core infiniband-diags/ibping.c ibping
type HostPing struct {
	// Data is the attribute as it came; ibping's server answers with the name of its host.
	Data [216]byte `mad:"0:1728,bytes"`
}

// SysStat is information about a host: ibsysstat.
//
//mad:attr class=SysStat id=0x0010 name=SysStatPing oui=0x001405 methods=Get size=216 section=vendor safeget ; checks whether the host answers.
//mad:attr class=SysStat id=0x0011 name=HostInfo oui=0x001405 methods=Get size=216 section=vendor safeget ; is the name of the host.
//mad:attr class=SysStat id=0x0012 name=CPUInfo oui=0x001405 methods=Get size=216 section=vendor safeget ; is a line for each processor. (python-rdma has it at 0x0112.)
//mad:source rdma-core infiniband-diags/ibsysstat.c mk_reply
//mad:source python-rdma codegen/vend_ofa.xml OFASysStatHostInfo, OFASysStatCPUInfo
type SysStat struct {
	// Text is the answer of the host.
	Text [216]byte `mad:"0:1728,text"`
}
