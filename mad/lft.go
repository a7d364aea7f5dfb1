package mad

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
