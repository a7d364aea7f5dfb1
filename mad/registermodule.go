package mad

// The module or cable in a port of a Mellanox device, and why the port is down: PDDR,
// and the EEPROM through MCIA.

// PDDRModule is the cable or transceiver in the port, as read by the device.
//
//mad:header size=196 section=vendor unconfirmed
//mad:variant of=PDDR.PageData name=module when=PageSelect:3
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb pddr_module_info_ext
type PDDRModule struct {
	// CableTechnology is the transmitter technology: byte 147 of SFF-8636, byte 212 of CMIS.
	CableTechnology uint8    `mad:"0:8,ro"`
	_               [3]uint8 `mad:"8:8"`
	// CableType is the kind of cable.
	CableType CableType `mad:"32:4,ro"`
	_         uint8     `mad:"36:4"`
	// CableLength is the length in m; with CMIS the upper 2 bits are the unit: 0.1, 1, 10 or 100 m.
	CableLength uint8 `mad:"40:8,ro"`
	// CableIdentifier is the kind of module.
	CableIdentifier CableIdentifier `mad:"48:8,ro"`
	_               [13]uint8       `mad:"56:8"`
	// VendorName is the manufacturer, padded with blanks.
	VendorName [16]byte `mad:"160:128,ro,text"`
	// VendorPN is the part number.
	VendorPN [16]byte `mad:"288:128,ro,text,name=vendor_pn"`
	// VendorRev is the revision.
	VendorRev [4]byte `mad:"416:32,ro,text"`
	// FWVersion is the firmware version of the module.
	FWVersion uint32 `mad:"448:32,ro,hex,name=fw_version"`
	// VendorSN is the serial number.
	VendorSN [16]byte `mad:"480:128,ro,text,name=vendor_sn"`
	// Temperature is the temperature in degrees Celsius; 0 may mean that it is not measured.
	Temperature uint16 `mad:"608:16,ro,signed,scale=256"`
	// Voltage is the voltage, in V.
	Voltage uint16 `mad:"624:16,ro,scale=10000"`
	// RxPowerLane is the received optical power, by lane, in dBm.
	RxPowerLane [8]uint16 `mad:"640:16,ro,signed,name=rx_power_lane"`
	// TxPowerLane is the transmitted optical power, by lane, in dBm.
	TxPowerLane [8]uint16 `mad:"768:16,ro,signed,name=tx_power_lane"`
	// TxBiasLane is the laser bias current, by lane, in units of 2 uA.
	TxBiasLane [8]uint16 `mad:"896:16,ro,name=tx_bias_lane"`
	// TemperatureHighTh is the high alarm threshold of the temperature.
	TemperatureHighTh uint16 `mad:"1024:16,ro,signed,scale=256"`
	// TemperatureLowTh is the low alarm threshold of the temperature.
	TemperatureLowTh uint16   `mad:"1040:16,ro,signed,scale=256"`
	_                [4]uint8 `mad:"1056:8"`
	// RxPowerHighTh is the high alarm threshold of the received power, in dBm.
	RxPowerHighTh uint16 `mad:"1088:16,ro,signed"`
	// RxPowerLowTh is the low alarm threshold of the received power, in dBm.
	RxPowerLowTh uint16 `mad:"1104:16,ro,signed"`
	// TxPowerHighTh is the high alarm threshold of the transmitted power, in dBm.
	TxPowerHighTh uint16 `mad:"1120:16,ro,signed"`
	// TxPowerLowTh is the low alarm threshold of the transmitted power, in dBm.
	TxPowerLowTh uint16    `mad:"1136:16,ro,signed"`
	_            [14]uint8 `mad:"1152:8"`
	// MonitorCapMask is the values that the module measures.
	MonitorCapMask ModuleMonitors `mad:"1264:8,ro"`
	_              [37]uint8      `mad:"1272:8"`
}

// ModuleMonitors is the values that a module measures (mstflint register_access_table.adb
// pddr_module_info_ext monitor_cap_mask).
//
//mad:mask
type ModuleMonitors uint8

const (
	ModuleMonitorsTemperature ModuleMonitors = 1 << 0
	ModuleMonitorsVoltage     ModuleMonitors = 1 << 1
	ModuleMonitorsTxPower     ModuleMonitors = 1 << 2
	ModuleMonitorsRxPower     ModuleMonitors = 1 << 3
	ModuleMonitorsTxBias      ModuleMonitors = 1 << 4
)

// CableIdentifier is a kind of module (mstflint register_access_table.adb
// pddr_module_info_ext cable_identifier).
//
//mad:enum
type CableIdentifier uint8

const (
	CableIdentifierQSFP28    CableIdentifier = 0 // "qsfp28"
	CableIdentifierQSFPPlus  CableIdentifier = 1 // "qsfp_plus"
	CableIdentifierSFP       CableIdentifier = 2 // "sfp"
	CableIdentifierQSA       CableIdentifier = 3 // "qsa"
	CableIdentifierBackplane CableIdentifier = 4
	CableIdentifierSFPDD     CableIdentifier = 5 // "sfp_dd"
	CableIdentifierQSFPDD    CableIdentifier = 6 // "qsfp_dd"
	CableIdentifierQSFPCMIS  CableIdentifier = 7 // "qsfp_cmis"
	CableIdentifierOSFP      CableIdentifier = 8 // "osfp"
)

// CableType is a kind of cable (mstflint register_access_table.adb
// pddr_module_info_ext cable_type).
//
//mad:enum
type CableType uint8

const (
	CableTypeUnidentified  CableType = 0
	CableTypeActive        CableType = 1
	CableTypeOptical       CableType = 2
	CableTypePassiveCopper CableType = 3
	CableTypeUnplugged     CableType = 4
	CableTypeTwistedPair   CableType = 5
)

// MCIA reads the EEPROM of a module.
//
// All firmware supports 48 bytes at a time. reg_get("EEPROM", port) reads and
// decodes all known pages.
//
//mad:header size=148 section=vendor register=0x9014
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mcia_ext
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mcia
type MCIA struct {
	// L locks the page that was read last.
	L bool  `mad:"0:1,w1c"`
	_ uint8 `mad:"1:7"`
	// Module is the number of the module, from 0 on; reg_get fills in the port number minus 1.
	Module uint8 `mad:"8:8"`
	// SlotIndex is the slot of a modular system; 0 is the main board.
	SlotIndex uint8 `mad:"16:4"`
	_         uint8 `mad:"20:4"`
	// ModuleStatus is the result of the read.
	ModuleStatus ModuleStatus `mad:"24:8,ro"`
	// I2CDeviceAddress is the address of the module on its bus: 0x50.
	I2CDeviceAddress uint8 `mad:"32:8,hex,name=i2c_device_address"`
	// PageNumber is the page to read, for bytes 128 and up.
	PageNumber uint8 `mad:"40:8,hex"`
	// DeviceAddress is the first byte to read.
	DeviceAddress uint16 `mad:"48:16"`
	_             uint8  `mad:"64:8"`
	// BankNumber is the bank of the page.
	BankNumber uint8 `mad:"72:8"`
	// Size is the number of bytes.
	Size uint16   `mad:"80:16"`
	_    [4]uint8 `mad:"96:8"`
	// EEPROM are the bytes.
	EEPROM [128]byte `mad:"128:1024,ro,bytes,name=eeprom"`
	_      [4]uint8  `mad:"1152:8"`
}

// ModuleStatus is the result of a read of a module (mstflint
// register_access_table.adb mcia_ext status; linux mlxsw reg.h
// MLXSW_REG_MCIA_STATUS_*).
//
//mad:enum
type ModuleStatus uint8

const (
	ModuleStatusOK           ModuleStatus = 0
	ModuleStatusNoEEPROM     ModuleStatus = 1 // "no_eeprom"
	ModuleStatusNotSupported ModuleStatus = 2
	ModuleStatusNotConnected ModuleStatus = 3
	ModuleStatusTypeInvalid  ModuleStatus = 4
	ModuleStatusI2CError     ModuleStatus = 9 // "i2c_error"
	ModuleStatusDisabled     ModuleStatus = 16
)

// DiagnosticPage is a page of PDDR (mstflint register_access_table.adb
// pddr_reg_ext page_select; freebsd sys/dev/mlx5/mlx5_core/mlx5_core.h
// mlx5_pddr_page_select has 0, 1 and 3).
//
//mad:enum
type DiagnosticPage uint8

const (
	DiagnosticPageOperational     DiagnosticPage = 0
	DiagnosticPageTroubleshooting DiagnosticPage = 1
	DiagnosticPagePhy             DiagnosticPage = 2
	DiagnosticPageModule          DiagnosticPage = 3
	DiagnosticPageLinkDown        DiagnosticPage = 6
)

// PDDR is the diagnostic data of a port.
//
// It is 256 bytes long; the layout has those that fit in a datagram.
//
//mad:header size=220 section=vendor register=0x5031
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb pddr_reg_ext
//mad:source freebsd sys/dev/mlx5/mlx5_ifc.h mlx5_ifc_pddr_reg_bits
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h pddr
type PDDR struct {
	_ uint8 `mad:"0:8"`
	// LocalPort is the lowest 8 bits of the port number; reg_get fills it in.
	LocalPort uint8 `mad:"8:8"`
	// PNAT is the numbering that LocalPort uses; reg_get fills it in.
	PNAT PortAccess `mad:"16:2"`
	// LPMSB are the highest 2 bits of the port number.
	LPMSB uint8    `mad:"18:2,name=lp_msb"`
	_     uint8    `mad:"20:4"`
	_     [4]uint8 `mad:"24:8"`
	// PageSelect is the page to read.
	PageSelect DiagnosticPage `mad:"56:8"`
	// PageData is the content of the page.
	PageData [212]byte `mad:"64:1696,ro,bytes"`
}

// PDDRTroubleshooting is the diagnosis by the firmware.
//
//mad:header size=212 section=vendor
//mad:variant of=PDDR.PageData name=troubleshooting when=PageSelect:1
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb pddr_troubleshooting_page_ext
//mad:source freebsd sys/dev/mlx5/mlx5_ifc.h mlx5_ifc_troubleshooting_info_page_layout_bits
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h pddr (trblsh_group_opcode, trblsh_status_opcode)
type PDDRTroubleshooting struct {
	_ [2]uint8 `mad:"0:8"`
	// GroupOpcode is the list that StatusOpcode belongs to; 0 is the list of the words here.
	GroupOpcode uint16   `mad:"16:16"`
	_           [2]uint8 `mad:"32:8"`
	// StatusOpcode is the problem found.
	StatusOpcode TroubleshootingStatus `mad:"48:16,ro"`
	_            [4]uint8              `mad:"64:8"`
	// StatusMessage is the same as text, with advice.
	StatusMessage [200]byte `mad:"96:1600,ro,text"`
}

// TroubleshootingStatus is a problem of a port found by the firmware (freebsd
// sys/dev/mlx5/mlx5_core/mlx5_core.h mlx5_pddr_monitor_opcodes; mstflint
// tools_layouts/reg_access_switch_layouts.h pddr_monitor_opcode_ext).
//
//mad:enum
type TroubleshootingStatus uint16

const (
	TroubleshootingStatusNoIssueObserved             TroubleshootingStatus = 0x0   // "no_issue_observed"
	TroubleshootingStatusPortClosed                  TroubleshootingStatus = 0x1   // "port_closed"
	TroubleshootingStatusAutonegotiationFailure      TroubleshootingStatus = 0x2   // "autonegotiation_failure"
	TroubleshootingStatusLinkTrainingFailure         TroubleshootingStatus = 0x5   // "link_training_failure"
	TroubleshootingStatusLogicalMismatch             TroubleshootingStatus = 0x9   // "logical_mismatch"
	TroubleshootingStatusRemoteFault                 TroubleshootingStatus = 0xe   // "remote_fault"
	TroubleshootingStatusBadSignalIntegrity          TroubleshootingStatus = 0xf   // "bad_signal_integrity"
	TroubleshootingStatusCableComplianceCodeMismatch TroubleshootingStatus = 0x10  // "cable_compliance_code_mismatch"
	TroubleshootingStatusInternalError               TroubleshootingStatus = 0x17  // "internal_error"
	TroubleshootingStatusInfoNotAvailable            TroubleshootingStatus = 0x3ff // "info_not_available"
	TroubleshootingStatusCableUnplugged              TroubleshootingStatus = 0x400 // "cable_unplugged"
	TroubleshootingStatusLongRangeForForeignCable    TroubleshootingStatus = 0x401 // "long_range_for_foreign_cable"
	TroubleshootingStatusBusStuck                    TroubleshootingStatus = 0x402 // "bus_stuck"
	TroubleshootingStatusUnsupportedEeprom           TroubleshootingStatus = 0x403 // "unsupported_eeprom"
	TroubleshootingStatusPartNumberList              TroubleshootingStatus = 0x404 // "part_number_list"
	TroubleshootingStatusUnsupportedCable            TroubleshootingStatus = 0x405 // "unsupported_cable"
	TroubleshootingStatusModuleTemperatureShutdown   TroubleshootingStatus = 0x406 // "module_temperature_shutdown"
	TroubleshootingStatusShortedCable                TroubleshootingStatus = 0x407 // "shorted_cable"
	TroubleshootingStatusPowerBudgetExceeded         TroubleshootingStatus = 0x408 // "power_budget_exceeded"
	TroubleshootingStatusManagementForcedDown        TroubleshootingStatus = 0x409 // "management_forced_down"
)

// PDDRLinkDown is the reason why the link last went down.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=PDDR.PageData name=link_down when=PageSelect:6
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb pddr_link_down_info_page_ext
type PDDRLinkDown struct {
	_ [3]uint8 `mad:"0:8"`
	_ uint8    `mad:"24:4"`
	// DownBlame is the side whose receiver caused it.
	DownBlame DownBlame `mad:"28:4,ro"`
	_         [3]uint8  `mad:"32:8"`
	// LocalReasonOpcode is the reason of this side.
	LocalReasonOpcode LinkDownReason `mad:"56:8,ro"`
	_                 [3]uint8       `mad:"64:8"`
	// RemoteReasonOpcode is the reason of the other side.
	RemoteReasonOpcode LinkDownReason `mad:"88:8,ro"`
	_                  [40]uint8      `mad:"96:8"`
}

// DownBlame is a side of a link (mstflint register_access_table.adb
// pddr_link_down_info_page_ext down_blame).
//
//mad:enum
type DownBlame uint8

const (
	DownBlameUnknown DownBlame = 0
	DownBlameLocal   DownBlame = 1
	DownBlameRemote  DownBlame = 2
)

// LinkDownReason is the reason why a link went down (mstflint register_access_table.adb
// pddr_link_down_info_page_ext).
//
//mad:enum
type LinkDownReason uint8

const (
	LinkDownReasonNoLinkDownIndication                 LinkDownReason = 0x0  // "no_link_down_indication"
	LinkDownReasonUnknownReason                        LinkDownReason = 0x1  // "unknown_reason"
	LinkDownReasonHiBer                                LinkDownReason = 0x2  // "hi_ber"
	LinkDownReasonBlockLockLoss                        LinkDownReason = 0x3  // "block_lock_loss"
	LinkDownReasonAlignmentLoss                        LinkDownReason = 0x4  // "alignment_loss"
	LinkDownReasonFecSyncLoss                          LinkDownReason = 0x5  // "fec_sync_loss"
	LinkDownReasonPllLockLoss                          LinkDownReason = 0x6  // "pll_lock_loss"
	LinkDownReasonFifoOverflow                         LinkDownReason = 0x7  // "fifo_overflow"
	LinkDownReasonFalseSkipCondition                   LinkDownReason = 0x8  // "false_skip_condition"
	LinkDownReasonMinorErrorThresholdExceeded          LinkDownReason = 0x9  // "minor_error_threshold_exceeded"
	LinkDownReasonPhysicalLayerRetransmissionTimeout   LinkDownReason = 0xa  // "physical_layer_retransmission_timeout"
	LinkDownReasonHeartbeatErrors                      LinkDownReason = 0xb  // "heartbeat_errors"
	LinkDownReasonLinkLayerCreditMonitoringWatchdog    LinkDownReason = 0xc  // "link_layer_credit_monitoring_watchdog"
	LinkDownReasonLinkLayerIntegrityThresholdExceeded  LinkDownReason = 0xd  // "link_layer_integrity_threshold_exceeded"
	LinkDownReasonLinkLayerBufferOverrun               LinkDownReason = 0xe  // "link_layer_buffer_overrun"
	LinkDownReasonDownByOutbandCommandWithHealthyLink  LinkDownReason = 0xf  // "down_by_outband_command_with_healthy_link"
	LinkDownReasonDownByOutbandCommandForLinkWithHiBer LinkDownReason = 0x10 // "down_by_outband_command_for_link_with_hi_ber"
	LinkDownReasonDownByInbandCommandWithHealthyLink   LinkDownReason = 0x11 // "down_by_inband_command_with_healthy_link"
	LinkDownReasonDownByInbandCommandForLinkWithHiBer  LinkDownReason = 0x12 // "down_by_inband_command_for_link_with_hi_ber"
	LinkDownReasonDownByVerificationGw                 LinkDownReason = 0x13 // "down_by_verification_gw"
	LinkDownReasonReceivedRemoteFault                  LinkDownReason = 0x14 // "received_remote_fault"
	LinkDownReasonReceivedTs1                          LinkDownReason = 0x15 // "received_ts1"
	LinkDownReasonDownByManagementCommand              LinkDownReason = 0x16 // "down_by_management_command"
	LinkDownReasonCableWasUnplugged                    LinkDownReason = 0x17 // "cable_was_unplugged"
	LinkDownReasonCableAccessIssue                     LinkDownReason = 0x18 // "cable_access_issue"
	LinkDownReasonCableThermalShutdown                 LinkDownReason = 0x19 // "cable_thermal_shutdown"
	LinkDownReasonCurrentIssue                         LinkDownReason = 0x1a // "current_issue"
	LinkDownReasonPowerBudget                          LinkDownReason = 0x1b // "power_budget"
	LinkDownReasonFastRecoveryRawBer                   LinkDownReason = 0x1c // "fast_recovery_raw_ber"
	LinkDownReasonFastRecoveryEffectiveBer             LinkDownReason = 0x1d // "fast_recovery_effective_ber"
	LinkDownReasonFastRecoverySymbolBer                LinkDownReason = 0x1e // "fast_recovery_symbol_ber"
	LinkDownReasonFastRecoveryCreditWatchdog           LinkDownReason = 0x1f // "fast_recovery_credit_watchdog"
	LinkDownReasonPeerSideDownToSleepState             LinkDownReason = 0x20 // "peer_side_down_to_sleep_state"
	LinkDownReasonPeerSideDownToDisableState           LinkDownReason = 0x21 // "peer_side_down_to_disable_state"
	LinkDownReasonPeerSideDownToDisableAndPortLock     LinkDownReason = 0x22 // "peer_side_down_to_disable_and_port_lock"
	LinkDownReasonPeerSideDownDueToThermalEvent        LinkDownReason = 0x23 // "peer_side_down_due_to_thermal_event"
	LinkDownReasonPeerSideDownDueToForceEvent          LinkDownReason = 0x24 // "peer_side_down_due_to_force_event"
	LinkDownReasonPeerSideDownDueToResetEvent          LinkDownReason = 0x25 // "peer_side_down_due_to_reset_event"
)
