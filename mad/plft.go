package mad

// Private forwarding tables (pLFTs) of NVIDIA's and Mellanox' switches: the input port and
// the service level of a packet select the table that forwards it.

// PrivateLFTInfo is what a switch supports of private forwarding tables.
//
//mad:attr class=Subn id=0xff10 methods=Get,Set size=18 section=vendor capability=private_lft safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_info_t
type PrivateLFTInfo struct {
	_ uint8 `mad:"0:8"`
	// NumPLFTs is the number of tables in all banks; 0 means 36.
	NumPLFTs uint8 `mad:"8:8,ro"`
	// ModeCap is the number of modes that the switch supports.
	ModeCap uint8 `mad:"16:8,ro"`
	// ActiveMode is the mode in use, from 1 on; 0 means that private tables are off.
	ActiveMode uint8 `mad:"24:8"`
	// Mode are the modes from 1 on.
	Mode [7]PrivateLFTMode `mad:"32:16,ro"`
}

// PrivateLFTMode is a mode of private forwarding tables: the number and size of the banks.
//
//mad:header size=2 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_bank_entry_t
type PrivateLFTMode struct {
	// BankSize is the largest size of a bank, in units of 1024 LIDs.
	BankSize uint8 `mad:"0:8,ro"`
	// NumBanks is the number of independent banks.
	NumBanks uint8 `mad:"8:8,ro"`
}

// PrivateLFTDef is the place of 16 private forwarding tables in their banks.
//
//mad:attr class=Subn id=0xff11 methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=private_lft safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_def_t, IB_PLFT_DEF_BLOCK_SIZE
type PrivateLFTDef struct {
	// Table are the tables 16*block to 16*block+15.
	Table [16]PrivateLFTPlace `mad:"0:32"`
}

// PrivateLFTPlace is the place of a private forwarding table.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_def_element_t
type PrivateLFTPlace struct {
	// ForceSubGroup0Bank is a flag (force sub-group 0) and the index of the bank; the source does not divide the byte.
	ForceSubGroup0Bank uint8 `mad:"0:8,hex"`
	// LIDSpace is the size of the table, from 1 to 96, in units of 512 LIDs.
	LIDSpace uint8 `mad:"8:8"`
	_        uint8 `mad:"16:8"`
	// LIDOffset is the begin of the table in the bank, in units of 512 LIDs.
	LIDOffset uint8 `mad:"24:8"`
}

// PrivateLFTMap is the ports that share a private forwarding table, and its last LID.
//
//mad:attr class=Subn id=0xff12 methods=Get,Set size=64 section=vendor modifier=plft:0:32 capability=private_lft safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_map_t, IB_PLFT_MAP_CONTROL_MAP_*
type PrivateLFTMap struct {
	_ uint32 `mad:"0:30"`
	// LFTTopEnable is set if LFTTop is valid.
	LFTTopEnable bool `mad:"30:1"`
	// PortMaskEnable is set if PortGroupMask is valid.
	PortMaskEnable bool `mad:"31:1"`
	// PortGroupMask are the ports that use the table; port p is bit p%8 of byte 31-p/8.
	PortGroupMask [32]byte `mad:"32:256,bytes"`
	_             uint16   `mad:"288:16"`
	// LFTTop is the last LID of the table.
	LFTTop LID       `mad:"304:16"`
	_      [24]uint8 `mad:"320:8"`
}

// PortSLToPrivateLFTMap is the private forwarding table of each port and service level, of
// a block of 4 ports.
//
//mad:attr class=Subn id=0xff14 methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=port_sl_to_private_lft safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_port_sl_to_plft_map_t, IB_PORT_SL_TO_PLFT_MAP_BLOCK_SIZE
type PortSLToPrivateLFTMap struct {
	// PLFTID are the tables: element 16*i+SL is that of packets with this SL that enter through port 4*block+i.
	PLFTID [64]uint8 `mad:"0:8"`
}
