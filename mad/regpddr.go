package mad

// PDDR of Mellanox' devices: why a port is down, and what is plugged into it.

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

// PDDR is what a port knows of its trouble.
//
// It is 256 bytes long: here are those that fit in a datagram.
//
//mad:header size=220 section=vendor register=0x5031
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb pddr_reg_ext
//mad:source freebsd sys/dev/mlx5/mlx5_ifc.h mlx5_ifc_pddr_reg_bits
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h pddr
type PDDR struct {
	_ uint8 `mad:"0:8"`
	// LocalPort is the number of the port, its lowest 8 bits; reg_get fills it in.
	LocalPort uint8 `mad:"8:8"`
	// PNAT says what LocalPort counts; reg_get fills it in.
	PNAT PortAccess `mad:"16:2"`
	// LPMSB are the highest 2 bits of the number of the port.
	LPMSB uint8    `mad:"18:2,name=lp_msb"`
	_     uint8    `mad:"20:4"`
	_     [4]uint8 `mad:"24:8"`
	// PageSelect is the page that is meant.
	PageSelect DiagnosticPage `mad:"56:8"`
	// PageData is that page.
	PageData [212]byte `mad:"64:1696,ro,bytes"`
}

// PDDRTroubleshooting is what the firmware makes of it.
//
//mad:header size=212 section=vendor
//mad:variant of=PDDR.PageData name=troubleshooting when=PageSelect:1
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb pddr_troubleshooting_page_ext
//mad:source freebsd sys/dev/mlx5/mlx5_ifc.h mlx5_ifc_troubleshooting_info_page_layout_bits
type PDDRTroubleshooting struct {
	_ [2]uint8 `mad:"0:8"`
	// GroupOpcode is the list that StatusOpcode is of; 0 is that of the words here.
	GroupOpcode uint16   `mad:"16:16"`
	_           [2]uint8 `mad:"32:8"`
	// StatusOpcode is what it found.
	StatusOpcode TroubleshootingStatus `mad:"48:16,ro"`
	_            [4]uint8              `mad:"64:8"`
	// StatusMessage is the same as a text, and advice.
	StatusMessage [200]byte `mad:"96:1600,ro,text"`
}

// TroubleshootingStatus is what the firmware finds wrong with a port (freebsd
// sys/dev/mlx5/mlx5_core/mlx5_core.h mlx5_pddr_monitor_opcodes).
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

// PDDRLinkDown is why the link went down the last time.
//
//mad:header size=52 section=vendor unconfirmed
//mad:variant of=PDDR.PageData name=link_down when=PageSelect:6
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb pddr_link_down_info_page_ext
type PDDRLinkDown struct {
	_ [3]uint8 `mad:"0:8"`
	_ uint8    `mad:"24:4"`
	// DownBlame is the side whose receiver began it.
	DownBlame DownBlame `mad:"28:4,ro"`
	_         [3]uint8  `mad:"32:8"`
	// LocalReasonOpcode is this side's reason.
	LocalReasonOpcode LinkDownReason `mad:"56:8,ro"`
	_                 [3]uint8       `mad:"64:8"`
	// RemoteReasonOpcode is the other side's.
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

// LinkDownReason is why a link went down (mstflint register_access_table.adb
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
