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

// EEPROMs of modules, with the addresses of the bus.

// SFF8636 is the EEPROM of a QSFP, QSFP+ or QSFP28 module: the lower half, and page
// 0.
//
//mad:header size=256 section=SFF-8636
//mad:source ethtool qsfp.h SFF8636_*
//mad:source sonic-platform-common sonic_platform_base/sonic_xcvr/mem_maps/public/sff8636.py Sff8636MemMap
type SFF8636 struct {
	// Identifier is the kind of module.
	Identifier ModuleIdentifier `mad:"0:8,ro"`
	// RevCompliance is the supported revision of SFF-8636.
	RevCompliance uint8 `mad:"8:8,ro"`
	_             uint8 `mad:"16:8"`
	// LOS has a bit for each lane without signal: 4 transmitted, 4 received.
	LOS uint8 `mad:"24:8,ro,hex,name=los"`
	// TxFault has a bit for each lane whose transmitter has a fault.
	TxFault uint8 `mad:"32:8,ro,hex"`
	_       uint8 `mad:"40:8"`
	// TemperatureAlarms are the alarms and warnings of the temperature.
	TemperatureAlarms ModuleAlarms `mad:"48:4,ro"`
	_                 uint8        `mad:"52:4"`
	// VoltageAlarms are the alarms and warnings of the voltage.
	VoltageAlarms ModuleAlarms `mad:"56:4,ro"`
	_             uint8        `mad:"60:4"`
	_             uint8        `mad:"64:8"`
	// RxPowerAlarms are the alarms and warnings of the received optical power, by lane.
	RxPowerAlarms [4]ModuleAlarms `mad:"72:4,ro"`
	// TxBiasAlarms are the alarms and warnings of the laser bias current, by lane.
	TxBiasAlarms [4]ModuleAlarms `mad:"88:4,ro"`
	// TxPowerAlarms are the alarms and warnings of the transmitted optical power, by lane.
	TxPowerAlarms [4]ModuleAlarms `mad:"104:4,ro"`
	_             [7]uint8        `mad:"120:8"`
	// Temperature is the temperature of the module, in degrees Celsius.
	Temperature uint16   `mad:"176:16,ro,signed,scale=256"`
	_           [2]uint8 `mad:"192:8"`
	// Voltage is the supply voltage, in V.
	Voltage uint16   `mad:"208:16,ro,scale=10000"`
	_       [6]uint8 `mad:"224:8"`
	// RxPower is the received optical power, by lane, in uW.
	RxPower [4]uint16 `mad:"272:16,ro,scale=10"`
	// TxBias is the laser bias current, by lane, in mA.
	TxBias [4]uint16 `mad:"336:16,ro,scale=500"`
	// TxPower is the transmitted optical power, by lane, in uW.
	TxPower [4]uint16 `mad:"400:16,ro,scale=10"`
	_       [72]uint8 `mad:"464:8"`
	// Connector is the kind of connector (SFF-8024).
	Connector uint8     `mad:"1040:8,ro,hex"`
	_         [11]uint8 `mad:"1048:8"`
	// LengthSMF is the reach over single-mode fibre, in km.
	LengthSMF uint8    `mad:"1136:8,ro,name=length_smf"`
	_         [3]uint8 `mad:"1144:8"`
	// LengthAssembly is the length of a cable, in m.
	LengthAssembly uint8 `mad:"1168:8,ro"`
	// DeviceTech is the transmitter technology, in the upper 4 bits.
	DeviceTech uint8 `mad:"1176:8,ro,hex"`
	// VendorName is the manufacturer, padded with blanks.
	VendorName [16]byte `mad:"1184:128,ro,text"`
	_          uint8    `mad:"1312:8"`
	// VendorOUI is the manufacturer's IEEE OUI.
	VendorOUI uint32 `mad:"1320:24,ro,hex"`
	// VendorPN is the part number.
	VendorPN [16]byte `mad:"1344:128,ro,text,name=vendor_pn"`
	// VendorRev is the revision.
	VendorRev [2]byte   `mad:"1472:16,ro,text"`
	_         [10]uint8 `mad:"1488:8"`
	// VendorSN is the serial number.
	VendorSN [16]byte `mad:"1568:128,ro,text,name=vendor_sn"`
	// DateCode is the date of manufacture: year, month, day, lot.
	DateCode [8]byte   `mad:"1696:64,ro,text"`
	_        [36]uint8 `mad:"1760:8"`
}

// CMIS is the EEPROM of an OSFP, QSFP-DD or newer QSFP module: the lower half, and the
// pages 0x00 and 0x11.
//
// A module with flat memory, such as a copper cable, has no page 0x11: it reads as 0.
//
//mad:header size=384 section=CMIS
//mad:source ethtool qsfp-dd.h QSFP_DD_*, cmis.h CMIS_*
//mad:source sonic-platform-common sonic_platform_base/sonic_xcvr/mem_maps/public/cmis/pages page00_lower.py, page00_upper.py, page11.py
type CMIS struct {
	// Identifier is the kind of module.
	Identifier ModuleIdentifier `mad:"0:8,ro"`
	// RevCompliance is the supported revision of CMIS, in two digits.
	RevCompliance uint8 `mad:"8:8,ro,hex"`
	// FlatMem is set if the module has only page 0x00.
	FlatMem bool  `mad:"16:1,ro"`
	_       uint8 `mad:"17:7"`
	_       uint8 `mad:"24:4"`
	// ModuleState is the state of the module: 1 low power, 3 ready, 5 fault.
	ModuleState uint8    `mad:"28:3,ro"`
	_           uint8    `mad:"31:1"`
	_           [5]uint8 `mad:"32:8"`
	// VoltageAlarms are the alarms and warnings of the voltage.
	VoltageAlarms CMISAlarms `mad:"72:4,ro"`
	// TemperatureAlarms are the alarms and warnings of the temperature.
	TemperatureAlarms CMISAlarms `mad:"76:4,ro"`
	_                 [4]uint8   `mad:"80:8"`
	// Temperature is the temperature of the module, in degrees Celsius.
	Temperature uint16 `mad:"112:16,ro,signed,scale=256"`
	// Voltage is the supply voltage, in V.
	Voltage uint16    `mad:"128:16,ro,scale=10000"`
	_       [67]uint8 `mad:"144:8"`
	// MediaType is the medium: 1 multi-mode fibre, 2 single-mode fibre, 3 passive copper, 4 an active cable.
	MediaType uint8     `mad:"680:8,ro"`
	_         [43]uint8 `mad:"688:8"`
	// VendorName is the manufacturer, padded with blanks.
	VendorName [16]byte `mad:"1032:128,ro,text"`
	// VendorOUI is the manufacturer's IEEE OUI.
	VendorOUI uint32 `mad:"1160:24,ro,hex"`
	// VendorPN is the part number.
	VendorPN [16]byte `mad:"1184:128,ro,text,name=vendor_pn"`
	// VendorRev is the revision.
	VendorRev [2]byte `mad:"1312:16,ro,text"`
	// VendorSN is the serial number.
	VendorSN [16]byte `mad:"1328:128,ro,text,name=vendor_sn"`
	// DateCode is the date of manufacture: year, month, day, lot.
	DateCode [8]byte   `mad:"1456:64,ro,text"`
	_        [11]uint8 `mad:"1520:8"`
	// MaxPower is the largest power consumption, in W.
	MaxPower uint8 `mad:"1608:8,ro,scale=4"`
	// LengthMultiplier is the unit of LengthValue: 0.1, 1, 10 or 100 m.
	LengthMultiplier uint8 `mad:"1616:2,ro"`
	// LengthValue is the length of a cable, in that unit.
	LengthValue uint8 `mad:"1618:6,ro"`
	// Connector is the kind of connector (SFF-8024).
	Connector uint8    `mad:"1624:8,ro,hex"`
	_         [8]uint8 `mad:"1632:8"`
	// MediaInterfaceTech is the transmitter technology.
	MediaInterfaceTech uint8     `mad:"1696:8,ro,hex"`
	_                  [50]uint8 `mad:"1704:8"`
	// TxFault are the lanes whose transmitter has a fault.
	TxFault ModuleLanes `mad:"2104:8,ro"`
	// TxLOS are the lanes without a signal from the host.
	TxLOS ModuleLanes `mad:"2112:8,ro"`
	_     [2]uint8    `mad:"2120:8"`
	// TxPowerHighAlarm are the lanes whose transmitted power is too high.
	TxPowerHighAlarm ModuleLanes `mad:"2136:8,ro"`
	// TxPowerLowAlarm are the lanes whose transmitted power is too low.
	TxPowerLowAlarm ModuleLanes `mad:"2144:8,ro"`
	_               [2]uint8    `mad:"2152:8"`
	// TxBiasHighAlarm are the lanes whose laser bias current is too high.
	TxBiasHighAlarm ModuleLanes `mad:"2168:8,ro"`
	// TxBiasLowAlarm are the lanes whose laser bias current is too low.
	TxBiasLowAlarm ModuleLanes `mad:"2176:8,ro"`
	_              [2]uint8    `mad:"2184:8"`
	// RxLOS are the lanes without a received signal.
	RxLOS ModuleLanes `mad:"2200:8,ro"`
	_     uint8       `mad:"2208:8"`
	// RxPowerHighAlarm are the lanes whose received power is too high.
	RxPowerHighAlarm ModuleLanes `mad:"2216:8,ro"`
	// RxPowerLowAlarm are the lanes whose received power is too low.
	RxPowerLowAlarm ModuleLanes `mad:"2224:8,ro"`
	_               [3]uint8    `mad:"2232:8"`
	// TxPower is the transmitted optical power, by lane, in uW.
	TxPower [8]uint16 `mad:"2256:16,ro,scale=10"`
	// TxBias is the laser bias current, by lane, in mA.
	TxBias [8]uint16 `mad:"2384:16,ro,scale=500"`
	// RxPower is the received optical power, by lane, in uW.
	RxPower [8]uint16 `mad:"2512:16,ro,scale=10"`
	_       [54]uint8 `mad:"2640:8"`
}

// ModuleIdentifier is a kind of module (SFF-8024; ethtool sff-common.h
// SFF8024_ID_*; sonic-platform-common sff8024.py XCVR_IDENTIFIERS).
//
//mad:enum
type ModuleIdentifier uint8

const (
	ModuleIdentifierSFP      ModuleIdentifier = 0x03 // "sfp"
	ModuleIdentifierQSFP     ModuleIdentifier = 0x0c // "qsfp"
	ModuleIdentifierQSFPPlus ModuleIdentifier = 0x0d // "qsfp_plus"
	ModuleIdentifierQSFP28   ModuleIdentifier = 0x11 // "qsfp28"
	ModuleIdentifierQSFPDD   ModuleIdentifier = 0x18 // "qsfp_dd"
	ModuleIdentifierOSFP     ModuleIdentifier = 0x19 // "osfp"
	ModuleIdentifierSFPDD    ModuleIdentifier = 0x1a // "sfp_dd"
	ModuleIdentifierDSFP     ModuleIdentifier = 0x1b // "dsfp"
	ModuleIdentifierQSFPCMIS ModuleIdentifier = 0x1e // "qsfp_cmis"
)

// ModuleAlarms are the alarms and warnings of a measured value, by SFF-8636.
//
//mad:mask
type ModuleAlarms uint8

const (
	ModuleAlarmsLowWarning  ModuleAlarms = 1 << 0
	ModuleAlarmsHighWarning ModuleAlarms = 1 << 1
	ModuleAlarmsLowAlarm    ModuleAlarms = 1 << 2
	ModuleAlarmsHighAlarm   ModuleAlarms = 1 << 3
)

// CMISAlarms are the same by CMIS.
//
//mad:mask
type CMISAlarms uint8

const (
	CMISAlarmsHighAlarm   CMISAlarms = 1 << 0
	CMISAlarmsLowAlarm    CMISAlarms = 1 << 1
	CMISAlarmsHighWarning CMISAlarms = 1 << 2
	CMISAlarmsLowWarning  CMISAlarms = 1 << 3
)

// ModuleLanes are lanes of a module.
//
//mad:mask
type ModuleLanes uint8

const (
	ModuleLanesLane0 ModuleLanes = 1 << 0
	ModuleLanesLane1 ModuleLanes = 1 << 1
	ModuleLanesLane2 ModuleLanes = 1 << 2
	ModuleLanesLane3 ModuleLanes = 1 << 3
	ModuleLanesLane4 ModuleLanes = 1 << 4
	ModuleLanesLane5 ModuleLanes = 1 << 5
	ModuleLanesLane6 ModuleLanes = 1 << 6
	ModuleLanesLane7 ModuleLanes = 1 << 7
)

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
// A bit error rate is its coefficient times 10 to the minus magnitude, as the device measured it
// since the counters were cleared. It is 15e-255 where the device counted no error, and unknown where
// the coefficient is 0. Lanes 4 to 7 are left out.
//
//mad:header size=108 section=vendor
//mad:variant of=PPCNT.CounterSet name=statistical when=Grp:0x16
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb phys_layer_stat_cntrs_ext
//mad:source linux include/linux/mlx5/mlx5_ifc.h mlx5_ifc_phys_layer_statistical_cntrs_bits (the lanes are phy_corrected_bits_lane0 to lane3 there; without the rates)
//mad:source Mellanox SDK sxd_emad_parser ppcnt phys_layer_stat_cntrs (the rates)
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
	_                [32]uint8 `mad:"512:8"`
	_                uint16    `mad:"768:16"`
	// RawBERMagnitude is the magnitude of the bit error rate before FEC.
	RawBERMagnitude uint8 `mad:"784:8,ro,name=raw_ber_magnitude"`
	_               uint8 `mad:"792:4"`
	// RawBERCoef is its coefficient.
	RawBERCoef uint8  `mad:"796:4,ro,name=raw_ber_coef"`
	_          uint16 `mad:"800:16"`
	// EffectiveBERMagnitude is the magnitude of the bit error rate after FEC.
	EffectiveBERMagnitude uint8 `mad:"816:8,ro,name=effective_ber_magnitude"`
	_                     uint8 `mad:"824:4"`
	// EffectiveBERCoef is its coefficient.
	EffectiveBERCoef uint8  `mad:"828:4,ro,name=effective_ber_coef"`
	_                uint16 `mad:"832:16"`
	// SymbolBERMagnitude is the magnitude of the error rate of symbols, after FEC and retransmission.
	SymbolBERMagnitude uint8 `mad:"848:8,ro,name=symbol_ber_magnitude"`
	_                  uint8 `mad:"856:4"`
	// SymbolBERCoef is its coefficient.
	SymbolBERCoef uint8 `mad:"860:4,ro,name=symbol_ber_coef"`
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
