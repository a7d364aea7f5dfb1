package mad

// NodeDescription is a node's name, as its administrator or driver set it.
//
//mad:attr class=Subn id=0x0010 methods=Get,Set size=64 section=14.2.5.2
//mad:source rdma-core libibmad/fields.c IB_NODE_DESC_F
//mad:source opensm include/iba/ib_types.h ib_node_desc_t
type NodeDescription struct {
	// NodeString is UTF-8 text, padded with NUL. It is free: neither unique nor printable for sure.
	NodeString [64]byte `mad:"0:512,text"`
}

// String is the text up to the first NUL.
func (t *NodeDescription) String() string { return untilNUL(t.NodeString[:]) }

// NodeInfo says what a node is: its type, its GUIDs, its number of ports. It
// also names the port through which the request came in.
//
//mad:attr class=Subn id=0x0011 methods=Get size=40 section=14.2.5.3
//mad:source rdma-core libibmad/fields.c NodeInfo fields
//mad:source opensm include/iba/ib_types.h ib_node_info_t
type NodeInfo struct {
	// BaseVersion is the MAD format version; 1.
	BaseVersion uint8 `mad:"0:8,ro"`
	// ClassVersion is the version of the subnet management class; 1.
	ClassVersion uint8 `mad:"8:8,ro"`
	// NodeType tells channel adapters, switches and routers apart.
	NodeType NodeType `mad:"16:8,ro"`
	// NumPorts is the number of physical ports; a switch's port 0 is not counted.
	NumPorts uint8 `mad:"24:8,ro"`
	// SystemImageGUID is shared by the nodes of one chassis or board; 0 when unused.
	SystemImageGUID GUID `mad:"32:64,ro"`
	// NodeGUID identifies the node.
	NodeGUID GUID `mad:"96:64,ro"`
	// PortGUID identifies the port the request came in through; of a switch, its port 0.
	PortGUID GUID `mad:"160:64,ro"`
	// PartitionCap is the number of entries in each port's P_KeyTable.
	PartitionCap uint16 `mad:"224:16,ro"`
	// DeviceID is the vendor's number of the device type.
	DeviceID uint16 `mad:"240:16,ro,hex"`
	// Revision is the vendor's revision of the device.
	Revision uint32 `mad:"256:32,ro,hex"`
	// LocalPortNum is the port the request came in through.
	LocalPortNum uint8 `mad:"288:8,ro"`
	// VendorID is the IEEE OUI of the vendor.
	VendorID uint32 `mad:"296:24,ro,hex"`
}

// SwitchInfo is what only switches have: table sizes, default ports and how
// far the forwarding tables are filled.
//
//mad:attr class=Subn id=0x0012 methods=Get,Set size=20 section=14.2.5.4 smowned
//mad:source rdma-core libibmad/fields.c SwitchInfo fields
//mad:source opensm include/iba/ib_types.h ib_switch_info_t
type SwitchInfo struct {
	// LinearFDBCap is the number of entries the linear forwarding table can hold.
	LinearFDBCap uint16 `mad:"0:16,ro"`
	// RandomFDBCap is the number of entries the random forwarding table can hold; 0 when there is none.
	RandomFDBCap uint16 `mad:"16:16,ro"`
	// MulticastFDBCap is the number of entries the multicast forwarding table can hold.
	MulticastFDBCap uint16 `mad:"32:16,ro"`
	// LinearFDBTop is the highest LID the switch looks up in its linear forwarding table; it drops packets to higher ones.
	LinearFDBTop uint16 `mad:"48:16"`
	// DefaultPort takes packets to LIDs that the random forwarding table lacks.
	DefaultPort uint8 `mad:"64:8"`
	// DefaultMulticastPrimaryPort takes multicast packets to LIDs the table lacks; 255 drops them.
	DefaultMulticastPrimaryPort uint8 `mad:"72:8"`
	// DefaultMulticastNotPrimaryPort takes such packets when they came in through DefaultMulticastPrimaryPort; 255 drops them.
	DefaultMulticastNotPrimaryPort uint8 `mad:"80:8"`
	// LifeTimeValue is how long a packet may stay in the switch, 4.096 us times two to this power; above 19 without limit.
	LifeTimeValue uint8 `mad:"88:5"`
	// PortStateChange is set when the state of any port changed; writing 1 clears it.
	PortStateChange bool `mad:"93:1,w1c"`
	// OptimizedSLtoVLMappingProgramming: with bit 0 set, one SLtoVLMappingTable can be set for all input or output ports at once.
	OptimizedSLtoVLMappingProgramming uint8 `mad:"94:2"`
	// LIDsPerPort is how many LIDs each port may use with the random forwarding table.
	LIDsPerPort uint16 `mad:"96:16,ro"`
	// PartitionEnforcementCap is the number of P_KeyTable entries of each external port; 0 when the switch enforces no partitions.
	PartitionEnforcementCap uint16 `mad:"112:16,ro"`
	// InboundEnforcementCap: partitions can be enforced on received packets.
	InboundEnforcementCap bool `mad:"128:1,ro"`
	// OutboundEnforcementCap: partitions can be enforced on packets sent.
	OutboundEnforcementCap bool `mad:"129:1,ro"`
	// FilterRawInboundCap: received raw packets can be filtered.
	FilterRawInboundCap bool `mad:"130:1,ro,name=FilterRawPacketInboundCap"`
	// FilterRawOutboundCap: raw packets to be sent can be filtered.
	FilterRawOutboundCap bool `mad:"131:1,ro,name=FilterRawPacketOutboundCap"`
	// EnhancedPort0: port 0 has what channel adapters' ports have.
	EnhancedPort0 bool  `mad:"132:1,ro"`
	_             uint8 `mad:"133:3"`
	_             uint8 `mad:"136:8"`
	// MulticastFDBTop is the highest LID the switch looks up in its multicast forwarding table; 0xBFFF where it should look up none, 0 where it is not in use.
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
	// GUIDBlock are the entries 8*block to 8*block+7; 0 where none is assigned.
	GUIDBlock [8]GUID `mad:"0:64,components=8"`
}

// PortInfo is the configuration and state of one port.
//
// The attribute modifier is the port number; on a channel adapter 0 means the
// port that received the request. Its top bit says that the sender knows the
// extended speeds: without it agents may leave the LinkSpeedExt fields alone.
// In a Set, 0 leaves the port states and the enabled widths and speeds as they are.
//
//mad:attr class=Subn id=0x0015 methods=Get,Set size=64 section=14.2.5.6 modifier=port:0:8,extended_speeds:31:1 smowned
//mad:source rdma-core libibmad/fields.c PortInfo fields, More PortInfo fields
//mad:source opensm include/iba/ib_types.h ib_port_info_t (not the extended speeds 2)
//mad:source linux drivers/infiniband/hw/mlx5/mad.c mlx5_query_mad_ifc_port (LinkSpeedExtActive2)
type PortInfo struct {
	// MKey guards changes to the node (and, by M_KeyProtectBits, reads too); 0 leaves it open.
	MKey uint64 `mad:"0:64,name=M_Key,key,hex"`
	// GIDPrefix is the subnet prefix, the upper half of the port's GIDs.
	GIDPrefix uint64 `mad:"64:64,hex"`
	// LID is the base LID; 0 when unassigned. Valid on CA and router ports and on switch port 0.
	LID LID `mad:"128:16"`
	// MasterSMLID is the LID of the subnet manager in charge; 0 when none has come by.
	MasterSMLID LID `mad:"144:16"`
	// CapabilityMask is what the port supports.
	CapabilityMask CapabilityMask `mad:"160:32,ro"`
	// DiagCode tells the state of the port's self test; 0 is ready.
	DiagCode uint16 `mad:"192:16,ro,hex"`
	// MKeyLeasePeriod is the time in seconds after which M_Key no longer protects the node; 0 for ever.
	MKeyLeasePeriod uint16 `mad:"208:16,name=M_KeyLeasePeriod"`
	// LocalPortNum is the port through which the request came in.
	LocalPortNum uint8 `mad:"224:8,ro"`
	// LinkWidthEnabled are the widths that may be negotiated.
	LinkWidthEnabled LinkWidth `mad:"232:8,nochange=0"`
	// LinkWidthSupported are the widths that the port can do.
	LinkWidthSupported LinkWidth `mad:"240:8,ro"`
	// LinkWidthActive is the width in use; meaningless while the link is down.
	LinkWidthActive LinkWidth `mad:"248:8,ro,enum"`
	// LinkSpeedSupported are the speeds to 10 Gb/s a lane that the port can do.
	LinkSpeedSupported LinkSpeed `mad:"256:4,ro"`
	// PortState is the logical state.
	PortState PortState `mad:"260:4,nochange=0"`
	// PortPhysicalState is the state of link training.
	PortPhysicalState PortPhysicalState `mad:"264:4,nochange=0"`
	// LinkDownDefaultState is what the port does when the link is lost: poll or sleep.
	LinkDownDefaultState LinkDownDefaultState `mad:"268:4,nochange=0"`
	// MKeyProtectBits say what needs the M_Key: 0 Sets only, 1 Gets show it as 0, 2 and 3 Gets too.
	MKeyProtectBits uint8 `mad:"272:2,name=M_KeyProtectBits"`
	_               uint8 `mad:"274:3"`
	// LMC is the number of low LID bits the port ignores: it answers to 2^LMC LIDs.
	LMC uint8 `mad:"277:3"`
	// LinkSpeedActive is the speed in use to 10 Gb/s a lane.
	LinkSpeedActive LinkSpeed `mad:"280:4,ro,enum"`
	// LinkSpeedEnabled are the speeds to 10 Gb/s a lane that may be negotiated.
	LinkSpeedEnabled LinkSpeed `mad:"284:4,nochange=0"`
	// NeighborMTU is the largest packet the port may send to its neighbour, in bytes.
	NeighborMTU MTU `mad:"288:4"`
	// MasterSMSL is the service level to use towards the subnet manager.
	MasterSMSL uint8 `mad:"292:4"`
	// VLCap are the data virtual lanes that the port has.
	VLCap VLs `mad:"296:4,ro"`
	// InitType is the initialisation the port asks the subnet manager for.
	InitType uint8 `mad:"300:4,ro,hex"`
	// VLHighLimit is how much high-priority lanes may send before a low-priority packet has its turn, in units of 4 KiB; 255 without limit.
	VLHighLimit uint8 `mad:"304:8"`
	// VLArbitrationHighCap is the length of the high-priority VL arbitration table.
	VLArbitrationHighCap uint8 `mad:"312:8,ro"`
	// VLArbitrationLowCap is the length of the low-priority VL arbitration table.
	VLArbitrationLowCap uint8 `mad:"320:8,ro"`
	// InitTypeReply is the initialisation the subnet manager did.
	InitTypeReply uint8 `mad:"328:4,hex"`
	// MTUCap is the largest packet the port can do, in bytes.
	MTUCap MTU `mad:"332:4,ro"`
	// VLStallCount is the number of packets dropped at the head of a lane after which the lane counts as stalled.
	VLStallCount uint8 `mad:"336:3"`
	// HOQLife is how long a packet may wait at the head of its lane, 4.096 us times two to this power; above 19 without limit.
	HOQLife uint8 `mad:"339:5"`
	// OperationalVLs are the data virtual lanes in use. In a Set, 0 should leave them as they are; not every agent knows (ibsim's does not), so smp_set sends what it read.
	OperationalVLs OperationalVLs `mad:"344:4"`
	// PartitionEnforcementInbound: a switch port checks the P_Key of packets it receives.
	PartitionEnforcementInbound bool `mad:"348:1"`
	// PartitionEnforcementOutbound: a switch port checks the P_Key of packets it sends.
	PartitionEnforcementOutbound bool `mad:"349:1"`
	// FilterRawInbound: a switch port drops raw packets it receives.
	FilterRawInbound bool `mad:"350:1"`
	// FilterRawOutbound: a switch port drops raw packets it should send.
	FilterRawOutbound bool `mad:"351:1"`
	// MKeyViolations counts requests with a wrong M_Key; it stops at 65535.
	MKeyViolations uint16 `mad:"352:16,name=M_KeyViolations"`
	// PKeyViolations counts packets with a wrong P_Key; it stops at 65535.
	PKeyViolations uint16 `mad:"368:16,name=P_KeyViolations"`
	// QKeyViolations counts packets with a wrong Q_Key; it stops at 65535.
	QKeyViolations uint16 `mad:"384:16,name=Q_KeyViolations"`
	// GUIDCap is the number of entries in the port's GUID table.
	GUIDCap uint8 `mad:"400:8,ro"`
	// ClientReregister asks the port's clients to subscribe again with the subnet administrator.
	ClientReregister bool `mad:"408:1,w1c"`
	// MulticastPKeyTrapSuppressionEnabled stops traps on wrong P_Keys of multicast packets.
	MulticastPKeyTrapSuppressionEnabled uint8 `mad:"409:2,name=MulticastP_KeyTrapSuppressionEnabled"`
	// SubnetTimeOut is the longest time a packet needs through the subnet, 4.096 us times two to this power; traps wait as long.
	SubnetTimeOut uint8 `mad:"411:5"`
	_             uint8 `mad:"416:3"`
	// RespTimeValue is how long the agent takes to answer, 4.096 us times two to this power.
	RespTimeValue uint8 `mad:"419:5,ro"`
	// LocalPhyErrors is the number of physical errors above which a local link integrity error is counted.
	LocalPhyErrors uint8 `mad:"424:4"`
	// OverrunErrors is the number of buffer overruns in a row above which an excessive buffer overrun error is counted.
	OverrunErrors uint8 `mad:"428:4"`
	// MaxCreditHint is the most credits a lane can have, in units of 64 bytes; 0 unknown.
	MaxCreditHint uint16 `mad:"432:16,ro"`
	_             uint8  `mad:"448:1"`
	// LinkSpeedExtActive2 is the speed in use from 200 Gb/s a lane on.
	LinkSpeedExtActive2 LinkSpeedExt2 `mad:"449:2,ro,enum,component=none"`
	// LinkSpeedExtSupported2 are the speeds from 200 Gb/s a lane on that the port can do (known from rdma-core alone).
	LinkSpeedExtSupported2 LinkSpeedExt2 `mad:"451:2,ro,component=none"`
	// LinkSpeedExtEnabled2 are the speeds from 200 Gb/s a lane on that may be negotiated (known from rdma-core alone).
	LinkSpeedExtEnabled2 LinkSpeedExt2 `mad:"453:3,nochange=0,component=none"`
	// LinkRoundTripLatency is the time that a signal needs to the neighbour and back, where CapabilityMask says so.
	LinkRoundTripLatency uint32 `mad:"456:24"`
	// CapabilityMask2 is what else the port supports.
	CapabilityMask2 CapabilityMask2 `mad:"480:16,ro"`
	// LinkSpeedExtActive is the speed in use from 14 to 100 Gb/s a lane.
	LinkSpeedExtActive LinkSpeedExt `mad:"496:4,ro,enum"`
	// LinkSpeedExtSupported are the speeds from 14 to 100 Gb/s a lane that the port can do.
	LinkSpeedExtSupported LinkSpeedExt `mad:"500:4,ro"`
	_                     uint8        `mad:"504:3"`
	// LinkSpeedExtEnabled are the speeds from 14 to 100 Gb/s a lane that may be negotiated.
	LinkSpeedExtEnabled LinkSpeedExt `mad:"507:5,nochange=0"`
}

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

// Service levels, and the virtual lane that stands in a mapping of them where
// packets are to be dropped (IBA 7.6.6, 14.2.5.8).
const (
	ServiceLevels = 16
	DropVL        = 15
)

// SLtoVLMappingTable says which virtual lane a packet of each service level
// leaves through. On a switch it depends on input and output port.
//
// A switch with OptimizedSLtoVLMappingProgramming takes bit 17 of the modifier
// for all input ports and bit 16 for all output ports.
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
	// Weight is how much that lane may send when its turn comes, in units of 64 bytes; 0 skips the entry.
	Weight [32]uint8 `mad:"8:8,stride=16,component=none"`
}

// SMInfo is what subnet managers know of each other. In a Set, the modifier
// is what one asks of the other: 1 handover, 2 acknowledge, 3 disable,
// 4 standby, 5 discover.
//
//mad:attr class=Subn id=0x0020 methods=Get,Set size=24 section=14.2.5.13 modifier=control:0:32 smowned
//mad:source rdma-core libibmad/fields.c SMInfo
//mad:source opensm include/iba/ib_types.h ib_sm_info_t
type SMInfo struct {
	// GUID is the port GUID of the subnet manager.
	GUID GUID `mad:"0:64"`
	// SMKey is the SM_Key of the subnet manager; 0 unless the asker proved to be a trusted one.
	SMKey uint64 `mad:"64:64,name=SM_Key,key,hex"`
	// ActCount grows with each thing the subnet manager does: its heartbeat.
	ActCount uint32 `mad:"128:32"`
	// Priority decides which subnet manager becomes master; the highest, then the lowest GUID.
	Priority uint8 `mad:"160:4"`
	// SMState is the subnet manager's role.
	SMState SMState `mad:"164:4"`
	_       uint32  `mad:"168:24"`
}

// MlnxExtPortInfo is Mellanox' ExtendedPortInfo: whether a port runs FDR10,
// which PortInfo shows as QDR. Only their devices have it.
//
//mad:attr class=Subn id=0xff90 methods=Get,Set size=64 section=vendor modifier=port:0:8
//mad:source rdma-core libibmad/fields.c Mellanox ExtendedPortInfo fields
//mad:source opensm include/iba/ib_types.h ib_mlnx_ext_port_info_t
type MlnxExtPortInfo struct {
	_ uint32 `mad:"0:24"`
	// StateChangeEnable says which of the fields below a Set changes.
	StateChangeEnable uint8  `mad:"24:8,hex"`
	_                 uint32 `mad:"32:24"`
	// LinkSpeedSupported: bit 0 is FDR10.
	LinkSpeedSupported uint8  `mad:"56:8,ro,hex"`
	_                  uint32 `mad:"64:24"`
	// LinkSpeedEnabled: bit 0 is FDR10.
	LinkSpeedEnabled uint8  `mad:"88:8,hex"`
	_                uint32 `mad:"96:24"`
	// LinkSpeedActive: bit 0 is FDR10.
	LinkSpeedActive uint8     `mad:"120:8,ro,hex"`
	_               [48]uint8 `mad:"128:8"`
}
