package mad

// Registers of Mellanox' devices about a port: counters of the physical layer,
// FEC.

// PortAccess is the numbering of ports in a register (mstflint
// register_access_table.adb pnat; linux mlxsw reg.h MLXSW_PORT_... pnat).
//
//mad:enum
type PortAccess uint8

const (
	PortAccessLocalPort PortAccess = 0
	PortAccessIBPort    PortAccess = 1
)

// CounterGroup is a group of counters of PPCNT (mstflint
// register_access_table.adb ppcnt_reg_ext grp; linux include/linux/mlx5/device.h
// MLX5_*_GROUP). It has the groups whose layout is known here.
//
//mad:enum
type CounterGroup uint8

const (
	CounterGroupPhysicalLayer  CounterGroup = 0x12
	CounterGroupStatistical    CounterGroup = 0x16
	CounterGroupRSFECHistogram CounterGroup = 0x23 // "rs_fec_histogram"
)

// PPCNT are counters of a port.
//
// It is 256 bytes long; the layout has those that fit in a datagram. Reading it
// clears nothing.
//
//mad:header size=220 section=vendor register=0x5008
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb ppcnt_reg_ext
//mad:source linux include/linux/mlx5/mlx5_ifc.h mlx5_ifc_ppcnt_reg_bits
//mad:source freebsd sys/dev/mlx5/mlx5_ifc.h mlx5_ifc_ppcnt_reg_bits
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h ppcnt (LPMSB and all of PrioTC)
type PPCNT struct {
	// SWID is the partition of the switch that the port is in.
	SWID uint8 `mad:"0:8"`
	// LocalPort is the lowest 8 bits of the port number; reg_get fills it in.
	LocalPort uint8 `mad:"8:8"`
	// PNAT is the numbering that LocalPort uses; reg_get fills it in.
	PNAT PortAccess `mad:"16:2"`
	// LPMSB are the highest 2 bits of the port number.
	LPMSB uint8 `mad:"18:2,name=lp_msb"`
	_     uint8 `mad:"20:4"`
	_     uint8 `mad:"24:2"`
	// Grp is the group of counters.
	Grp CounterGroup `mad:"26:6"`
	// Clr clears the counters.
	Clr bool     `mad:"32:1,w1c"`
	_   uint8    `mad:"33:7"`
	_   [2]uint8 `mad:"40:8"`
	_   uint8    `mad:"56:3"`
	// PrioTC is the priority, in groups that count by priority.
	PrioTC uint8 `mad:"59:5"`
	// CounterSet are the counters.
	CounterSet [212]byte `mad:"64:1696,ro,bytes"`
}

// PPCNTPhysicalLayer are the counters of errors of the physical layer.
//
//mad:header size=200 section=vendor
//mad:variant of=PPCNT.CounterSet name=physical_layer when=Grp:0x12
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb phys_layer_cntrs_ext
//mad:source linux include/linux/mlx5/mlx5_ifc.h mlx5_ifc_phys_layer_cntrs_bits
type PPCNTPhysicalLayer struct {
	// TimeSinceLastClear is the time since the counters were cleared, in ms.
	TimeSinceLastClear uint64 `mad:"0:64,ro"`
	// SymbolErrors are symbols with errors that were not corrected.
	SymbolErrors uint64 `mad:"64:64,ro"`
	// SyncHeadersErrors are blocks with a wrong header.
	SyncHeadersErrors uint64 `mad:"128:64,ro"`
	// EDPLBIPErrorsLane are errors detected by parity, by lane.
	EDPLBIPErrorsLane [4]uint64 `mad:"192:64,ro,name=edpl_bip_errors_lane"`
	// FCFECCorrectedBlocksLane are blocks corrected by Firecode FEC, by lane.
	FCFECCorrectedBlocksLane [4]uint64 `mad:"448:64,ro,name=fc_fec_corrected_blocks_lane"`
	// FCFECUncorrectableBlocksLane are blocks that Firecode FEC could not correct, by lane.
	FCFECUncorrectableBlocksLane [4]uint64 `mad:"704:64,ro,name=fc_fec_uncorrectable_blocks_lane"`
	// RSFECCorrectedBlocks are blocks corrected by Reed-Solomon FEC.
	RSFECCorrectedBlocks uint64 `mad:"960:64,ro,name=rs_fec_corrected_blocks"`
	// RSFECUncorrectableBlocks are blocks that Reed-Solomon FEC could not correct.
	RSFECUncorrectableBlocks uint64 `mad:"1024:64,ro,name=rs_fec_uncorrectable_blocks"`
	// RSFECNoErrorsBlocks are blocks without errors.
	RSFECNoErrorsBlocks uint64   `mad:"1088:64,ro,name=rs_fec_no_errors_blocks"`
	_                   [8]uint8 `mad:"1152:8"`
	// RSFECCorrectedSymbolsTotal are symbols corrected by Reed-Solomon FEC.
	RSFECCorrectedSymbolsTotal uint64 `mad:"1216:64,ro,name=rs_fec_corrected_symbols_total"`
	// RSFECCorrectedSymbolsLane are the same by lane.
	RSFECCorrectedSymbolsLane [4]uint64 `mad:"1280:64,ro,name=rs_fec_corrected_symbols_lane"`
	// LinkDownEvents is the number of times that the link went down because of this side.
	LinkDownEvents uint32 `mad:"1536:32,ro"`
	// SuccessfulRecoveryEvents is the number of successful recoveries of the link.
	SuccessfulRecoveryEvents uint32 `mad:"1568:32,ro"`
}

// PPCNTStatistical are the counters for bit error rates.
//
//mad:header size=64 section=vendor
//mad:variant of=PPCNT.CounterSet name=statistical when=Grp:0x16
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb phys_layer_stat_cntrs_ext
//mad:source linux include/linux/mlx5/mlx5_ifc.h mlx5_ifc_phys_layer_statistical_cntrs_bits (the lanes are phy_corrected_bits_lane0 to lane3 there)
type PPCNTStatistical struct {
	// TimeSinceLastClear is the time since the counters were cleared, in ms.
	TimeSinceLastClear uint64 `mad:"0:64,ro"`
	// PhyReceivedBits are received bits.
	PhyReceivedBits uint64 `mad:"64:64,ro"`
	// PhySymbolErrors are errors that FEC did not correct.
	PhySymbolErrors uint64 `mad:"128:64,ro"`
	// PhyCorrectedBits are bits corrected by FEC.
	PhyCorrectedBits uint64 `mad:"192:64,ro"`
	// PhyRawErrorsLane are bits in error, by lane; with FEC, the bits that it corrected.
	PhyRawErrorsLane [4]uint64 `mad:"256:64,ro"`
}

// PPCNTHistogram counts the blocks of Reed-Solomon FEC by how many of their symbols
// were wrong.
//
// Newer devices have more bins than 16; they are left out here.
//
//mad:header size=128 section=vendor
//mad:variant of=PPCNT.CounterSet name=rs_fec_histogram when=Grp:0x23
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb ppcnt_rs_fec_histograms_counters_ext
//mad:source linux include/linux/mlx5/mlx5_ifc.h mlx5_ifc_rs_histogram_cntrs_bits
type PPCNTHistogram struct {
	// Hist has in element n the blocks with n wrong symbols, unless PPHCR configures other bins.
	Hist [16]uint64 `mad:"0:64,ro"`
}

// ActiveFEC is a kind of FEC (mstflint register_access_table.adb pplm_reg_ext
// fec_mode_active; linux mlx5 en/port.c MLX5E_FEC_* has bits 0 to 2, 7 and 9).
//
//mad:mask
type ActiveFEC uint32

const (
	ActiveFECNone                  ActiveFEC = 1 << 0
	ActiveFECFirecode              ActiveFEC = 1 << 1
	ActiveFECStandardRS            ActiveFEC = 1 << 2 // "standard_rs"
	ActiveFECStandardLLRS          ActiveFEC = 1 << 3 // "standard_ll_rs"
	ActiveFECInterleavedQuadRS     ActiveFEC = 1 << 4 // "interleaved_quad_rs"
	ActiveFECInterleavedQuadRSPLR  ActiveFEC = 1 << 5 // "interleaved_quad_rs_plr"
	ActiveFECInterleavedStandardRS ActiveFEC = 1 << 6 // "interleaved_standard_rs"
	ActiveFECRS544                 ActiveFEC = 1 << 7 // "rs_544_514"
	ActiveFECInterleavedOctetRSPLR ActiveFEC = 1 << 8 // "interleaved_octet_rs_plr"
	ActiveFECLL50G                 ActiveFEC = 1 << 9 // "ll_50g_rs"
)

// PPLM is the FEC of a port.
//
//mad:header size=128 section=vendor register=0x5023 unconfirmed
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb pplm_reg_ext
//mad:source linux include/linux/mlx5/mlx5_ifc.h mlx5_ifc_pplm_reg_bits (LocalPort, FECModeActive)
type PPLM struct {
	_ uint8 `mad:"0:8"`
	// LocalPort is the lowest 8 bits of the port number; reg_get fills it in.
	LocalPort uint8 `mad:"8:8"`
	// PNAT is the numbering that LocalPort uses; reg_get fills it in.
	PNAT PortAccess `mad:"16:2"`
	// LPMSB are the highest 2 bits of the port number.
	LPMSB uint8     `mad:"18:2,name=lp_msb"`
	_     uint8     `mad:"20:4"`
	_     [10]uint8 `mad:"24:8"`
	// FECModeActive is the FEC in use.
	FECModeActive ActiveFEC  `mad:"104:24,ro,name=fec_mode_active"`
	_             [112]uint8 `mad:"128:8"`
}
