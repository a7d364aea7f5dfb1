package mad

// NodeDescription is a node's name, set by its administrator or driver.
//
//mad:attr class=Subn id=0x0010 methods=Get,Set size=64 section=14.2.5.2
//mad:source rdma-core libibmad/fields.c IB_NODE_DESC_F
//mad:source opensm include/iba/ib_types.h ib_node_desc_t
type NodeDescription struct {
	// NodeString is UTF-8 text, padded with NUL. It may be any text: it need not be unique or printable.
	NodeString [64]byte `mad:"0:512,text"`
}

// String returns the text up to the first NUL.
func (t *NodeDescription) String() string { return untilNUL(t.NodeString[:]) }

// NodeInfo identifies a node: its type, its GUIDs, its number of ports. It also
// has the port through which the request came in.
//
//mad:attr class=Subn id=0x0011 methods=Get size=40 section=14.2.5.3
//mad:source rdma-core libibmad/fields.c NodeInfo fields
//mad:source opensm include/iba/ib_types.h ib_node_info_t
type NodeInfo struct {
	// BaseVersion is the MAD format version; 1.
	BaseVersion uint8 `mad:"0:8,ro,minor"`
	// ClassVersion is the version of the subnet management class; 1.
	ClassVersion uint8 `mad:"8:8,ro,minor"`
	// NodeType is the type of the node: channel adapter, switch or router.
	NodeType NodeType `mad:"16:8,ro"`
	// NumPorts is the number of physical ports; a switch's port 0 is not counted.
	NumPorts uint8 `mad:"24:8,ro"`
	// SystemImageGUID is shared by the nodes of one chassis or board; 0 if unused.
	SystemImageGUID GUID `mad:"32:64,ro,minor"`
	// NodeGUID identifies the node.
	NodeGUID GUID `mad:"96:64,ro"`
	// PortGUID identifies the port the request came in through; of a switch, its port 0.
	PortGUID GUID `mad:"160:64,ro"`
	// PartitionCap is the number of entries in each port's P_KeyTable.
	PartitionCap uint16 `mad:"224:16,ro,minor"`
	// DeviceID is the vendor's number of the device type.
	DeviceID uint16 `mad:"240:16,ro,hex,minor"`
	// Revision is the vendor's revision of the device.
	Revision uint32 `mad:"256:32,ro,hex,minor"`
	// LocalPortNum is the port the request came in through.
	LocalPortNum uint8 `mad:"288:8,ro,minor"`
	// VendorID is the IEEE OUI of the vendor.
	VendorID uint32 `mad:"296:24,ro,hex,minor"`
}

// SwitchInfo is the configuration of a switch: table sizes, default ports and the
// highest LIDs of the forwarding tables.
//
//mad:attr class=Subn id=0x0012 methods=Get,Set size=20 section=14.2.5.4 smowned
//mad:source rdma-core libibmad/fields.c SwitchInfo fields
//mad:source opensm include/iba/ib_types.h ib_switch_info_t
type SwitchInfo struct {
	// LinearFDBCap is the number of entries the linear forwarding table can hold.
	LinearFDBCap uint16 `mad:"0:16,ro"`
	// RandomFDBCap is the number of entries the random forwarding table can hold; 0 without such a table.
	RandomFDBCap uint16 `mad:"16:16,ro"`
	// MulticastFDBCap is the number of entries the multicast forwarding table can hold.
	MulticastFDBCap uint16 `mad:"32:16,ro"`
	// LinearFDBTop is the highest LID the switch looks up in its linear forwarding table; it drops packets to higher ones.
	LinearFDBTop uint16 `mad:"48:16"`
	// DefaultPort is the output port for LIDs that are not in the random forwarding table.
	DefaultPort uint8 `mad:"64:8"`
	// DefaultMulticastPrimaryPort is the output port of multicast packets to LIDs that are not in the table; 255 drops them.
	DefaultMulticastPrimaryPort uint8 `mad:"72:8"`
	// DefaultMulticastNotPrimaryPort is the output port of such packets that came in through DefaultMulticastPrimaryPort; 255 drops them.
	DefaultMulticastNotPrimaryPort uint8 `mad:"80:8"`
	// LifeTimeValue is the longest time of a packet in the switch, 4.096 us * 2^value; above 19 unlimited.
	LifeTimeValue uint8 `mad:"88:5"`
	// PortStateChange is set when the state of any port changed; writing 1 clears it.
	PortStateChange bool `mad:"93:1,w1c"`
	// OptimizedSLtoVLMappingProgramming is a mask; with bit 0 set, one SLtoVLMappingTable can be set for all input or output ports at once.
	OptimizedSLtoVLMappingProgramming uint8 `mad:"94:2"`
	// LIDsPerPort is the number of LIDs that each port may use with the random forwarding table.
	LIDsPerPort uint16 `mad:"96:16,ro"`
	// PartitionEnforcementCap is the number of P_KeyTable entries of each external port; 0 if the switch does not enforce partitions.
	PartitionEnforcementCap uint16 `mad:"112:16,ro"`
	// InboundEnforcementCap is set if partitions can be enforced on received packets.
	InboundEnforcementCap bool `mad:"128:1,ro"`
	// OutboundEnforcementCap is set if partitions can be enforced on packets sent.
	OutboundEnforcementCap bool `mad:"129:1,ro"`
	// FilterRawInboundCap is set if received raw packets can be filtered.
	FilterRawInboundCap bool `mad:"130:1,ro,name=FilterRawPacketInboundCap"`
	// FilterRawOutboundCap is set if raw packets to be sent can be filtered.
	FilterRawOutboundCap bool `mad:"131:1,ro,name=FilterRawPacketOutboundCap"`
	// EnhancedPort0 is set if port 0 has the functions of a channel adapter's port.
	EnhancedPort0 bool  `mad:"132:1,ro"`
	_             uint8 `mad:"133:3"`
	_             uint8 `mad:"136:8"`
	// MulticastFDBTop is the highest LID the switch looks up in its multicast forwarding table; 0xBFFF: it should look up no LID; 0: unused.
	MulticastFDBTop uint16 `mad:"144:16,hex"`
}

// GUIDBlock is the number of GUIDs in a block (IBA 14.2.5.5).
const GUIDBlock = 8

// GUIDInfo is a block of 8 entries of a port's GUID table. Entry 0 of block 0
// is the port's own GUID and cannot be changed.
//
//mad:attr class=Subn id=0x0014 alias=GuidInfo methods=Get,Set size=64 section=14.2.5.5 modifier=block:0:8 smowned
//mad:source rdma-core libibmad/fields.c GUIDInfo fields
//mad:source opensm include/iba/ib_types.h ib_guid_info_t
type GUIDInfo struct {
	// GUIDBlock are the entries 8*block to 8*block+7; 0 is unassigned.
	GUIDBlock [8]GUID `mad:"0:64,components=8"`
}

// PortInfo is the configuration and state of one port.
//
// The attribute modifier is the port number; on a channel adapter 0 means the
// port that received the request. Its top bit is set if the sender supports the
// extended speeds; without it, agents may ignore the LinkSpeedExt fields.
// In a Set, 0 leaves the port states and the enabled widths and speeds unchanged.
//
//mad:attr class=Subn id=0x0015 methods=Get,Set size=64 section=14.2.5.6 modifier=port:0:8,extended_speeds:31:1 smowned
//mad:source rdma-core libibmad/fields.c PortInfo fields, More PortInfo fields
//mad:source opensm include/iba/ib_types.h ib_port_info_t (not the extended speeds 2)
//mad:source linux drivers/infiniband/hw/mlx5/mad.c mlx5_query_mad_ifc_port (LinkSpeedExtActive2)
type PortInfo struct {
	// MKey protects the node against changes (and, with M_KeyProtectBits, against reads); 0 leaves it unprotected.
	MKey uint64 `mad:"0:64,name=M_Key,key,hex"`
	// GIDPrefix is the subnet prefix, the upper half of the port's GIDs.
	GIDPrefix uint64 `mad:"64:64,hex"`
	// LID is the base LID; 0 if unassigned. Valid on CA and router ports and on switch port 0.
	LID LID `mad:"128:16"`
	// MasterSMLID is the LID of the master subnet manager; 0 before one has configured the port.
	MasterSMLID LID `mad:"144:16"`
	// CapabilityMask is what the port supports.
	CapabilityMask CapabilityMask `mad:"160:32,ro"`
	// DiagCode is the state of the port's self test; 0 is ready.
	DiagCode uint16 `mad:"192:16,ro,hex"`
	// MKeyLeasePeriod is the time in seconds after which M_Key no longer protects the node; 0 is never.
	MKeyLeasePeriod uint16 `mad:"208:16,name=M_KeyLeasePeriod"`
	// LocalPortNum is the port through which the request came in.
	LocalPortNum uint8 `mad:"224:8,ro"`
	// LinkWidthEnabled are the widths that may be negotiated.
	LinkWidthEnabled LinkWidth `mad:"232:8,nochange=0"`
	// LinkWidthSupported are the widths that the port supports.
	LinkWidthSupported LinkWidth `mad:"240:8,ro"`
	// LinkWidthActive is the width in use; meaningless while the link is down.
	LinkWidthActive LinkWidth `mad:"248:8,ro,enum"`
	// LinkSpeedSupported are the supported speeds up to 10 Gb/s a lane.
	LinkSpeedSupported LinkSpeed `mad:"256:4,ro"`
	// PortState is the logical state.
	PortState PortState `mad:"260:4,nochange=0"`
	// PortPhysicalState is the state of link training.
	PortPhysicalState PortPhysicalState `mad:"264:4,nochange=0"`
	// LinkDownDefaultState is the state of the port after the link is lost: polling or sleep.
	LinkDownDefaultState LinkDownDefaultState `mad:"268:4,nochange=0"`
	// MKeyProtectBits select the requests that need the M_Key: 0 Sets only, 1 Sets only and Gets return it as 0, 2 and 3 also Gets.
	MKeyProtectBits uint8 `mad:"272:2,name=M_KeyProtectBits"`
	_               uint8 `mad:"274:3"`
	// LMC is the number of low LID bits the port ignores: it answers to 2^LMC LIDs.
	LMC uint8 `mad:"277:3"`
	// LinkSpeedActive is the speed in use, up to 10 Gb/s a lane.
	LinkSpeedActive LinkSpeed `mad:"280:4,ro,enum"`
	// LinkSpeedEnabled are the speeds up to 10 Gb/s a lane that may be negotiated.
	LinkSpeedEnabled LinkSpeed `mad:"284:4,nochange=0"`
	// NeighborMTU is the largest packet the port may send to its neighbour, in bytes.
	NeighborMTU MTU `mad:"288:4"`
	// MasterSMSL is the service level to use towards the subnet manager.
	MasterSMSL uint8 `mad:"292:4"`
	// VLCap are the data virtual lanes that the port has.
	VLCap VLs `mad:"296:4,ro"`
	// InitType is the initialisation that the port requests from the subnet manager.
	InitType uint8 `mad:"300:4,ro,hex"`
	// VLHighLimit is the amount of data that high-priority lanes may send before a low-priority packet is sent, in units of 4 KiB; 255 is unlimited.
	VLHighLimit uint8 `mad:"304:8"`
	// VLArbitrationHighCap is the length of the high-priority VL arbitration table.
	VLArbitrationHighCap uint8 `mad:"312:8,ro"`
	// VLArbitrationLowCap is the length of the low-priority VL arbitration table.
	VLArbitrationLowCap uint8 `mad:"320:8,ro"`
	// InitTypeReply is the initialisation that the subnet manager performed.
	InitTypeReply uint8 `mad:"328:4,hex"`
	// MTUCap is the largest packet that the port supports, in bytes.
	MTUCap MTU `mad:"332:4,ro"`
	// VLStallCount is the number of packets dropped at the head of a lane after which the lane counts as stalled.
	VLStallCount uint8 `mad:"336:3"`
	// HOQLife is the longest time of a packet at the head of its lane, 4.096 us * 2^value; above 19 unlimited.
	HOQLife uint8 `mad:"339:5"`
	// OperationalVLs are the data virtual lanes in use. In a Set, 0 should leave them unchanged; not every agent supports this (ibsim's does not), so smp_set sends the value that it read.
	OperationalVLs OperationalVLs `mad:"344:4"`
	// PartitionEnforcementInbound is set if a switch port checks the P_Key of packets it receives.
	PartitionEnforcementInbound bool `mad:"348:1"`
	// PartitionEnforcementOutbound is set if a switch port checks the P_Key of packets it sends.
	PartitionEnforcementOutbound bool `mad:"349:1"`
	// FilterRawInbound is set if a switch port drops raw packets it receives.
	FilterRawInbound bool `mad:"350:1"`
	// FilterRawOutbound is set if a switch port drops raw packets to be sent.
	FilterRawOutbound bool `mad:"351:1"`
	// MKeyViolations counts requests with a wrong M_Key; it stops at 65535.
	MKeyViolations uint16 `mad:"352:16,name=M_KeyViolations"`
	// PKeyViolations counts packets with a wrong P_Key; it stops at 65535.
	PKeyViolations uint16 `mad:"368:16,name=P_KeyViolations"`
	// QKeyViolations counts packets with a wrong Q_Key; it stops at 65535.
	QKeyViolations uint16 `mad:"384:16,name=Q_KeyViolations"`
	// GUIDCap is the number of entries in the port's GUID table.
	GUIDCap uint8 `mad:"400:8,ro,minor"`
	// ClientReregister asks the port's clients to subscribe again with the subnet administrator.
	ClientReregister bool `mad:"408:1,w1c"`
	// MulticastPKeyTrapSuppressionEnabled stops traps on wrong P_Keys of multicast packets.
	MulticastPKeyTrapSuppressionEnabled uint8 `mad:"409:2,name=MulticastP_KeyTrapSuppressionEnabled"`
	// SubnetTimeOut is the longest time of a packet through the subnet, 4.096 us * 2^value; traps are sent no more often than that.
	SubnetTimeOut uint8 `mad:"411:5"`
	_             uint8 `mad:"416:3"`
	// RespTimeValue is the longest time in which the agent answers, 4.096 us * 2^value.
	RespTimeValue uint8 `mad:"419:5,ro,minor"`
	// LocalPhyErrors is the number of physical errors above which a local link integrity error is counted.
	LocalPhyErrors uint8 `mad:"424:4"`
	// OverrunErrors is the number of buffer overruns in a row above which an excessive buffer overrun error is counted.
	OverrunErrors uint8 `mad:"428:4"`
	// MaxCreditHint is the largest number of credits of a lane, in units of 64 bytes; 0 is unknown.
	MaxCreditHint uint16 `mad:"432:16,ro"`
	_             uint8  `mad:"448:1"`
	// LinkSpeedExtActive2 is the speed in use, from 200 Gb/s a lane on.
	LinkSpeedExtActive2 LinkSpeedExt2 `mad:"449:2,ro,enum,component=none"`
	// LinkSpeedExtSupported2 are the supported speeds from 200 Gb/s a lane on (known only from rdma-core).
	LinkSpeedExtSupported2 LinkSpeedExt2 `mad:"451:2,ro,component=none"`
	// LinkSpeedExtEnabled2 are the speeds from 200 Gb/s a lane on that may be negotiated (known only from rdma-core).
	LinkSpeedExtEnabled2 LinkSpeedExt2 `mad:"453:3,nochange=0,component=none"`
	// LinkRoundTripLatency is the time of a signal to the neighbour and back, if CapabilityMask has it.
	LinkRoundTripLatency uint32 `mad:"456:24"`
	// CapabilityMask2 is what else the port supports.
	CapabilityMask2 CapabilityMask2 `mad:"480:16,ro"`
	// LinkSpeedExtActive is the speed in use, from 14 to 100 Gb/s a lane.
	LinkSpeedExtActive LinkSpeedExt `mad:"496:4,ro,enum"`
	// LinkSpeedExtSupported are the supported speeds from 14 to 100 Gb/s a lane.
	LinkSpeedExtSupported LinkSpeedExt `mad:"500:4,ro"`
	_                     uint8        `mad:"504:3"`
	// LinkSpeedExtEnabled are the speeds from 14 to 100 Gb/s a lane that may be negotiated.
	LinkSpeedExtEnabled LinkSpeedExt `mad:"507:5,nochange=0"`
}

// ExtendedSpeeds is the bit in the modifier of a Set of PortInfo by which the sender states
// that it knows the extended speeds (IBA 14.2.5.6; opensm osm_link_mgr.c sets it where the
// port has them).
const ExtendedSpeeds = 1 << 31

// PKeyBlock is the number of P_Keys in a block (IBA 14.2.5.7).
const PKeyBlock = 32

// P_KeyTable is a block of 32 entries of a port's partition table. Bit 15 of
// an entry is full membership; an entry whose other bits are 0 is empty.
//
// Only external ports of switches have the port in the modifier; channel
// adapters answer for the port that received the request.
//
//mad:attr class=Subn id=0x0016 name=P_KeyTable methods=Get,Set size=64 section=14.2.5.7 modifier=block:0:16,port:16:16 smowned
//mad:source python-rdma codegen/iba_14.xml SMPPKeyTable
//mad:source opensm include/iba/ib_types.h ib_pkey_table_t
type PKeyTable struct {
	// PKeyBlock are the entries 32*block to 32*block+31.
	PKeyBlock [32]uint16 `mad:"0:16,name=P_KeyBlock,hex"`
}

// Service levels, and the virtual lane in a mapping that drops the packets (IBA
// 7.6.6, 14.2.5.8).
const (
	ServiceLevels = 16
	DropVL        = 15
)

// SLtoVLMappingTable is the virtual lane that a packet of each service level
// leaves through. On a switch it depends on input and output port.
//
// On a switch with OptimizedSLtoVLMappingProgramming, bit 17 of the modifier
// selects all input ports and bit 16 all output ports.
//
//mad:attr class=Subn id=0x0017 alias=SltoVlMappingTable methods=Get,Set size=8 section=14.2.5.8 modifier=out_port:0:8,in_port:8:8,all_out_ports:16:1,all_in_ports:17:1 smowned
//mad:source rdma-core libibmad/dump.c ib_slvl_get_i
//mad:source opensm include/iba/ib_types.h ib_slvl_table_t
type SLtoVLMappingTable struct {
	// SLtoVL is the lane of each service level from 0 to 15; 15 drops the packet.
	SLtoVL [16]uint8 `mad:"0:4,components=16"`
}

// VLArbBlock is the number of pairs of virtual lane and weight in a block (IBA 14.2.5.9).
const VLArbBlock = 32

// VLArbitrationTable is a block of 32 entries of a port's arbitration tables.
// Blocks 1 and 2 are the low-priority table, 3 and 4 the high-priority one.
//
//mad:attr class=Subn id=0x0018 methods=Get,Set size=64 section=14.2.5.9 modifier=port:0:16,block:16:16 smowned
//mad:source rdma-core libibmad/dump.c ib_vl_arb_table_t
//mad:source opensm include/iba/ib_types.h ib_vl_arb_table_t
type VLArbitrationTable struct {
	_ [32]uint8 `mad:"0:4,stride=16,component=none"`
	// VL is the virtual lane of each entry.
	VL [32]uint8 `mad:"4:4,stride=16,component=none"`
	// Weight is the amount of data that the lane may send in its turn, in units of 64 bytes; 0 skips the entry.
	Weight [32]uint8 `mad:"8:8,stride=16,component=none"`
}

// SMInfo is the information that subnet managers exchange. In a Set, the modifier
// is the request to the other: 1 handover, 2 acknowledge, 3 disable, 4 standby,
// 5 discover.
//
//mad:attr class=Subn id=0x0020 methods=Get,Set size=24 section=14.2.5.13 modifier=control:0:32 smowned
//mad:source rdma-core libibmad/fields.c SMInfo
//mad:source opensm include/iba/ib_types.h ib_sm_info_t
type SMInfo struct {
	// GUID is the port GUID of the subnet manager.
	GUID GUID `mad:"0:64"`
	// SMKey is the SM_Key of the subnet manager; 0 unless the requester is trusted.
	SMKey uint64 `mad:"64:64,name=SM_Key,key,hex"`
	// ActCount increases with the activity of the subnet manager: its heartbeat.
	ActCount uint32 `mad:"128:32,minor"`
	// Priority selects the master subnet manager: the highest priority, then the lowest GUID.
	Priority uint8 `mad:"160:4"`
	// SMState is the role of the subnet manager.
	SMState SMState `mad:"164:4"`
	_       uint32  `mad:"168:24"`
}

// Forwarding tables of switches: the linear one (LFT), the one that is searched, the
// multicast one (MFT).

// Entries in a block of a forwarding table.
const (
	LFTBlock = 64 // LIDs (IBA 14.2.5.10)
	MFTBlock = 32 // multicast LIDs (IBA 14.2.5.12)
)

// NoPort is the forwarding table entry of a LID whose packets the switch drops (IBA
// 14.2.5.10).
const NoPort = 255

// LinearForwardingTable is a block of 64 entries of a switch's unicast
// forwarding table: the port that packets to each LID leave through.
//
//mad:attr class=Subn id=0x0019 methods=Get,Set size=64 section=14.2.5.10 modifier=block:0:16 smowned
//mad:source python-rdma codegen/iba_14.xml SMPLinearForwardingTable
//mad:source opensm include/iba/ib_types.h ib_lft_record_t
type LinearForwardingTable struct {
	// PortBlock are the ports of LIDs 64*block to 64*block+63; 255 drops the packet.
	PortBlock [64]uint8 `mad:"0:8"`
}

// RandomForwardingTable is a block of 16 entries of the forwarding table of a
// switch that searches it for LIDs, in place of a LinearForwardingTable.
//
//mad:attr class=Subn id=0x001a methods=Get,Set size=64 section=14.2.5.11 modifier=block:0:16 smowned
//mad:source python-rdma codegen/iba_14.xml SMPRandomForwardingTable
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_random_forwarding_table_t
type RandomForwardingTable struct {
	// LIDPortBlock are the entries 16*block to 16*block+15.
	LIDPortBlock [16]LIDPort `mad:"0:32"`
}

// LIDPort is an entry of a RandomForwardingTable.
//
//mad:header size=4 section=14.2.5.11
//mad:source python-rdma codegen/iba_14.xml SMPLIDPortBlock
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_lid_port_block_t
type LIDPort struct {
	// EntryLID is the first LID of the entry.
	EntryLID LID `mad:"0:16"`
	// Valid is set if the entry is in use.
	Valid bool `mad:"16:1"`
	// LMC is the number of low LID bits to ignore: the entry is for 2^LMC LIDs.
	LMC uint8 `mad:"17:3"`
	_   uint8 `mad:"20:4"`
	// Port is the port that packets to these LIDs leave through.
	Port uint8 `mad:"24:8"`
}

// MulticastForwardingTable is a block of 32 entries of a switch's multicast
// forwarding table: the ports, 16 at a time, that packets to each LID leave through.
//
//mad:attr class=Subn id=0x001b methods=Get,Set size=64 section=14.2.5.12 modifier=block:0:9,position:28:4 smowned
//mad:source python-rdma codegen/iba_14.xml SMPMulticastForwardingTable
//mad:source opensm include/iba/ib_types.h ib_mft_record_t
type MulticastForwardingTable struct {
	// PortMaskBlock are masks of ports for LIDs 0xC000+32*block on; bit n is port 16*position+n.
	PortMaskBlock [32]uint16 `mad:"0:16,hex"`
}

// Attributes of subnet management that few devices have.

// VendorDiag is vendor-specific diagnostic data of a device.
//
// The modifier is 0 in the first request, then NextIndex of the last answer until
// that is 0.
//
//mad:attr class=Subn id=0x0030 methods=Get size=64 section=14.2.5.14 modifier=index:0:32
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_vendor_diag_t
//mad:source wireshark epan/dissectors/packet-infiniband.c parse_VendorDiag
//mad:source python-rdma codegen/iba_14.xml SMPVendorDiag (DiagData 16 bits later)
type VendorDiag struct {
	// NextIndex is the modifier of the next request; 0 at the end.
	NextIndex uint16 `mad:"0:16"`
	// DiagData is the vendor-specific data.
	DiagData [62]byte `mad:"16:496,bytes"`
}

// LedInfo is the port's beacon light, for people who look for the port.
//
//mad:attr class=Subn id=0x0031 alias=LEDInfo methods=Get,Set size=4 section=14.2.5.15 modifier=port:0:8
//mad:source python-rdma codegen/iba_14.xml SMPLedInfo
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_ledinfo_t
type LedInfo struct {
	// LedMask is set if the light is on.
	LedMask bool   `mad:"0:1"`
	_       uint32 `mad:"1:31"`
}

// PortInfoExtended is further configuration and state of a port: the forward
// error correction of each speed.
//
//mad:attr class=Subn id=0x0033 methods=Get,Set size=64 section=14.2.5.19 modifier=port:0:8 smowned
//mad:source opensm include/iba/ib_types.h ib_port_info_ext_t
//mad:source rdma-core libibmad/fields.c PortInfoExtended fields (of HDR and NDR, each two fields there are the other way round)
type PortInfoExtended struct {
	// CapabilityMask is what the port supports of this attribute.
	CapabilityMask ExtendedCapabilityMask `mad:"0:32,ro"`
	// FECModeActive is the forward error correction in use.
	FECModeActive FECMode `mad:"32:16,ro"`
	// FDRFECModeSupported are the modes that the port supports at FDR, a bit each.
	FDRFECModeSupported uint16 `mad:"48:16,ro,hex"`
	// FDRFECModeEnabled are the modes that may be used at FDR, a bit each.
	FDRFECModeEnabled uint16 `mad:"64:16,hex"`
	// EDRFECModeSupported are the modes that the port supports at EDR, a bit each.
	EDRFECModeSupported uint16 `mad:"80:16,ro,hex"`
	// EDRFECModeEnabled are the modes that may be used at EDR, a bit each.
	EDRFECModeEnabled uint16 `mad:"96:16,hex"`
	// HDRFECModeSupported are the modes that the port supports at HDR, a bit each.
	HDRFECModeSupported uint16 `mad:"112:16,ro,hex"`
	// HDRFECModeEnabled are the modes that may be used at HDR, a bit each.
	HDRFECModeEnabled uint16 `mad:"128:16,hex"`
	// NDRFECModeSupported are the modes that the port supports at NDR, a bit each.
	NDRFECModeSupported uint16 `mad:"144:16,ro,hex"`
	// NDRFECModeEnabled are the modes that may be used at NDR, a bit each.
	NDRFECModeEnabled uint16    `mad:"160:16,hex"`
	_                 [42]uint8 `mad:"176:8"`
}

// FECMode is a forward error correction (opensm include/iba/ib_types.h,
// rdma-core libibmad/iba_types.h IB_PORT_EXT_*_MODE_ACTIVE).
//
//mad:enum
type FECMode uint16

const (
	FECModeNone         FECMode = 0
	FECModeFireCode     FECMode = 1
	FECModeRS           FECMode = 2 // Reed-Solomon
	FECModeLowLatencyRS FECMode = 3
	FECModeRS2          FECMode = 4 // "rs2"
)

// ExtendedCapabilityMask is what a port supports of PortInfoExtended (opensm
// include/iba/ib_types.h IB_PORT_EXT_CAP_*).
//
//mad:mask
type ExtendedCapabilityMask uint32

const (
	ExtendedCapabilityMaskIsFECModeSupported ExtendedCapabilityMask = 1 << 0
)

// LinkSpeedWidthPairsTable is the supported pairs of widths and speeds.
//
//mad:attr class=Subn id=0x001c methods=Get size=64 section=14.2.5 modifier=port:0:8 unconfirmed
//mad:source rdma-core libibumad/umad_sm.h UMAD_SM_ATTR_LINK_SPD_WIDTH_TABLE (the number alone)
type LinkSpeedWidthPairsTable struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}

// VendorSpecificMadsTable is the vendor-specific MADs that a node supports.
//
//mad:attr class=Subn id=0x001d methods=Get size=64 section=14.2.5 modifier=index:0:32 unconfirmed
//mad:source rdma-core libibumad/umad_sm.h UMAD_SM_ATTR_VENDOR_MADS_TABLE (the number alone)
type VendorSpecificMadsTable struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}

// HierarchyInfo is the position of a port in its chassis.
//
//mad:attr class=Subn id=0x001e methods=Get,Set size=64 section=A15 modifier=port:0:8,index:8:8 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_hierarchy_info_t, IB_HIERARCHY_INFO_ATTR_MOD_*
type HierarchyInfo struct {
	// TemplateGUID is the meaning of the levels.
	TemplateGUID GUID `mad:"0:64"`
	// MaxSupportedIndex is the largest index that is supported.
	MaxSupportedIndex uint8 `mad:"64:8,ro"`
	// MaxActiveIndex is the largest index in use.
	MaxActiveIndex uint8 `mad:"72:8,ro"`
	// ActiveLevels is the number of levels in use.
	ActiveLevels uint8  `mad:"80:4"`
	_            uint16 `mad:"84:12"`
	// Level are the positions, from the outermost.
	Level [13]uint32 `mad:"96:32"`
}

// CableInfo reads the memory of the cable or transceiver in a port.
//
//mad:attr class=Subn id=0x0032 methods=Get size=64 section=14.2.5 modifier=index:0:32 unconfirmed
//mad:source rdma-core libibumad/umad_sm.h UMAD_SM_ATTR_CABLE_INFO (the number alone)
type CableInfo struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}
