package mad

// Quality of service, profiles and the health of links of NVIDIA's devices.

// QoSConfigSL is the bandwidth of each service level of a port; with vport in the modifier, of a virtual port.
//
//mad:attr class=Subn id=0xff82 methods=Get,Set size=64 section=vendor modifier=port:0:8,vport:31:1 capability=qos_config_sl_rate_limit|qos_config_sl_vport_rate_limit safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h qos_config_sl_t; include/opensm/osm_enhanced_qos_mgr.h VPORT_QOS_CONFIG_SL_ATTR_MOD_HO
type QoSConfigSL struct {
	// SL are the service levels from 0 to 15.
	SL [16]QoSBandwidth `mad:"0:32"`
}

// QoSBandwidth is the bandwidth of a service level. The source gives no units.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_bw_layout_t
type QoSBandwidth struct {
	// BandwidthAlloc is the bandwidth that is guaranteed.
	BandwidthAlloc uint16 `mad:"0:12"`
	// RateLimit is the largest bandwidth.
	RateLimit uint32 `mad:"12:20"`
}

// QoSConfigVL is the buffers and the types of data of each virtual lane.
//
//mad:attr class=Subn id=0xff85 methods=Get,Set size=64 section=vendor modifier=profile:0:31,by_profile:31:1 capability=qos_config_vl safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_qos_config_vl_t, IB_QOS_CONFIG_VL_ATTR_MOD_PROFILE_EN_BIT
type QoSConfigVL struct {
	// VL are the virtual lanes from 0 to 14.
	VL [15]QoSLane `mad:"0:32"`
	_  uint32      `mad:"480:32"`
}

// QoSLane is the buffer and the types of data of a virtual lane.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_vl_config_block_t
type QoSLane struct {
	// BufferWeight is the share of the buffers of the port, relative to the other lanes.
	BufferWeight uint8 `mad:"0:8"`
	// DataTypes are the types of data.
	DataTypes VLDataTypes `mad:"8:16"`
	_         uint8       `mad:"24:7"`
	// DisableHOQLife is set if packets do not expire at the head of the queue.
	DisableHOQLife bool `mad:"31:1"`
}

// VLDataTypes are the types of data of a virtual lane (opensm-mlnx
// include/iba/ib_types.h IB_VL_CONFIG_DATA_TYPE_*).
//
//mad:mask
type VLDataTypes uint16

const (
	VLDataTypesIB        VLDataTypes = 1 << 0
	VLDataTypesNVLUCReq  VLDataTypes = 1 << 1 // "nvl_uc_request"
	VLDataTypesNVLUCResp VLDataTypes = 1 << 2 // "nvl_uc_response"
	VLDataTypesNVLMCReq  VLDataTypes = 1 << 3 // "nvl_mc_request"
	VLDataTypesNVLMCResp VLDataTypes = 1 << 4 // "nvl_mc_response"
)

// ProfilesConfig is the profile of each of 128 ports for a feature. The feature is in the modifier from bit 8 on:
// 0 is fast recovery, 1 QoSConfigVL, 2 types of data, 3 HBF of NVLink, 4 port recovery; the place of the block is not public.
//
//mad:attr class=Subn id=0xff73 methods=Get,Set size=64 section=vendor modifier=unknown capability=fast_recovery|nvl_hbf|port_recovery_policy safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_profiles_config_t, ib_profiles_feature_t, IB_PROFILES_FEATURE_MASK_SHIFT
type ProfilesConfig struct {
	// Profile are the profiles of the ports of the block; 15 is invalid.
	Profile [128]uint8 `mad:"0:4"`
}

// CreditWatchdogConfig is how switches watch for ports that get no credits.
//
//mad:attr class=Subn id=0xff71 methods=Get,Set size=32 section=vendor modifier=profile:0:32 capability=credit_watchdog safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_credit_watchdog_config_t
type CreditWatchdogConfig struct {
	_ uint64 `mad:"0:64"`
	// TrapErr is set if a trap is sent at the error threshold.
	TrapErr bool `mad:"64:1"`
	// TrapWarn is set if one is sent at the warning threshold.
	TrapWarn bool `mad:"65:1"`
	// TrapNorm is set if one is sent at the normal threshold.
	TrapNorm bool   `mad:"66:1"`
	_        uint32 `mad:"67:23"`
	// ErrAction is the action at the error threshold.
	ErrAction LinkErrorAction `mad:"90:2"`
	_         uint8           `mad:"92:2"`
	// EnThr are the thresholds that are enabled.
	EnThr EnabledThresholds `mad:"94:2"`
	_     uint32            `mad:"96:27"`
	// ErrorThr is the error threshold, in events in a time window.
	ErrorThr uint8  `mad:"123:5"`
	_        uint32 `mad:"128:27"`
	// WarningThr is the warning threshold.
	WarningThr uint8  `mad:"155:5"`
	_          uint32 `mad:"160:27"`
	// NormalThr is the normal threshold.
	NormalThr uint8  `mad:"187:5"`
	_         uint32 `mad:"192:24"`
	// TimeWindow is the time window, in units of SamplingRate.
	TimeWindow uint8  `mad:"216:8"`
	_          uint32 `mad:"224:24"`
	// SamplingRate is the interval of samples in units of 10 ms.
	SamplingRate uint8 `mad:"248:8"`
}

// LinkErrorAction is what a switch does at an error threshold of a link (opensm-mlnx
// include/iba/ib_types.h ib_credit_watchdog_config_t).
//
//mad:enum
type LinkErrorAction uint8

const (
	LinkErrorActionNone     LinkErrorAction = 0
	LinkErrorActionToggle   LinkErrorAction = 1 // "toggle_link"
	LinkErrorActionInit     LinkErrorAction = 2 // "init", the state of the port becomes initialize
	LinkErrorActionRecovery LinkErrorAction = 3
)

// EnabledThresholds are the thresholds of a link that are enabled (opensm-mlnx
// include/iba/ib_types.h ib_credit_watchdog_config_t).
//
//mad:enum
type EnabledThresholds uint8

const (
	EnabledThresholdsNone          EnabledThresholds = 0
	EnabledThresholdsError         EnabledThresholds = 1
	EnabledThresholdsWarningNormal EnabledThresholds = 2 // "warning_and_normal"
	EnabledThresholdsAll           EnabledThresholds = 3
)

// BERConfig is how switches watch the bit error rates of links, by type: 0 is raw, 1 effective, 2 symbol. A threshold is mantissa * 10^-exponent.
//
//mad:attr class=Subn id=0xff72 methods=Get,Set size=32 section=vendor modifier=profile:0:3,type:8:3,defaults:31:1 capability=ber safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ber_config_t, IB_BER_ATTR_MOD_*_SHIFT (the masks of type and defaults are exchanged there)
type BERConfig struct {
	_ uint64 `mad:"0:64"`
	// TrapErr is set if a trap is sent at the error threshold.
	TrapErr bool `mad:"64:1"`
	// TrapWarn is set if one is sent at the warning threshold.
	TrapWarn bool `mad:"65:1"`
	// TrapNorm is set if one is sent at the normal threshold.
	TrapNorm bool   `mad:"66:1"`
	_        uint32 `mad:"67:23"`
	// ErrAction is the action at the error threshold.
	ErrAction LinkErrorAction `mad:"90:2"`
	_         uint8           `mad:"92:2"`
	// EnThr are the thresholds that are enabled.
	EnThr EnabledThresholds `mad:"94:2"`
	_     uint32            `mad:"96:20"`
	// ErrMantissa is the mantissa of the error threshold.
	ErrMantissa uint8 `mad:"116:4"`
	// ErrExponent is its exponent.
	ErrExponent uint8  `mad:"120:8"`
	_           uint32 `mad:"128:20"`
	// WarnMantissa is the mantissa of the warning threshold.
	WarnMantissa uint8 `mad:"148:4"`
	// WarnExponent is its exponent.
	WarnExponent uint8  `mad:"152:8"`
	_            uint32 `mad:"160:20"`
	// NormMantissa is the mantissa of the normal threshold.
	NormMantissa uint8 `mad:"180:4"`
	// NormExponent is its exponent.
	NormExponent uint8 `mad:"184:8"`
	// TimeWindow is the time window, in units of SamplingRate.
	TimeWindow uint32 `mad:"192:32,ro"`
	_          uint32 `mad:"224:24"`
	// SamplingRate is the interval of samples in units of 10 ms.
	SamplingRate uint8 `mad:"248:8"`
}

// PortRecoveryPolicyConfig is how a port recovers after its link went down.
//
//mad:attr class=Subn id=0xffda methods=Get,Set size=12 section=vendor modifier=unknown capability=port_recovery_policy safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_port_recovery_policy_config_t
type PortRecoveryPolicyConfig struct {
	// TypeCap are the supported types of recovery.
	TypeCap PortRecoveryTypes `mad:"0:16,ro"`
	// TypeEn are the enabled types.
	TypeEn PortRecoveryTypes `mad:"16:16"`
	_      uint32            `mad:"32:24"`
	// DrainingTimeout is the time until the port discards packets, in units of 10 ms.
	DrainingTimeout uint8  `mad:"56:8"`
	_               uint16 `mad:"64:16"`
	// LinkDownTimeout is the time until the link is down, in units of 10 ms.
	LinkDownTimeout uint16 `mad:"80:16"`
}

// PortRecoveryTypes are types of recovery of a port (opensm-mlnx include/iba/ib_types.h
// ib_port_recovery_policy_config_t).
//
//mad:mask
type PortRecoveryTypes uint16

const (
	PortRecoveryTypesHostRelock      PortRecoveryTypes = 1 << 0
	PortRecoveryTypesHostSerDesFEQ   PortRecoveryTypes = 1 << 1 // "host_serdes_feq"
	PortRecoveryTypesModuleTXDisable PortRecoveryTypes = 1 << 2 // "module_tx_disable"
	PortRecoveryTypesModuleToggle    PortRecoveryTypes = 1 << 3 // "module_datapath_toggle"
)

// Arbitration of bandwidth, and the states of a switch's ports.

// SwitchPortStateTable is the states of 128 ports of a switch. With extended in the modifier the switch may report state 5, active with deferred traffic.
//
//mad:attr class=Subn id=0x0034 methods=Get size=64 section=14.2.5.20 modifier=block:0:1,extended:15:1 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_switch_port_state_table_t, IB_SPST_*, OSM_SPST_PORT_STATE_MASK_ATTR_MOD_HO
type SwitchPortStateTable struct {
	// State are the states of the ports 128*block to 128*block+127, as PortInfo.PortState; 5 is active-defer.
	State [128]uint8 `mad:"0:4,ro,name=SwitchPortState"`
}

// EnhQoSArbiterInfo is what a port supports of the arbitration of bandwidth.
//
//mad:attr class=Subn id=0x0050 methods=Get size=64 section=14.2.6.21 modifier=port:0:8 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_enh_qos_arbiter_info_t, IB_ENH_QOS_*
type EnhQoSArbiterInfo struct {
	// CapMask are the supported limits and shares.
	CapMask QoSArbiterCapabilities `mad:"0:32,ro"`
	// NumVLGroupsCap is the number of groups of virtual lanes.
	NumVLGroupsCap uint8 `mad:"32:4,ro,name=NumVLGroupsCap"`
	// SLCap is the largest service level.
	SLCap uint8 `mad:"36:4,ro"`
	_     uint8 `mad:"40:8"`
	// RLGranCap is the smallest unit of rate limits.
	RLGranCap BandwidthUnit `mad:"48:4,ro,name=RLGranCap"`
	// RLGranEn is the unit of rate limits in use.
	RLGranEn BandwidthUnit `mad:"52:4,ro,name=RLGranEn"`
	// MinBWGranCap is the smallest unit of minimum bandwidths.
	MinBWGranCap BandwidthUnit `mad:"56:4,ro"`
	// MinBWGranEn is the unit of minimum bandwidths in use.
	MinBWGranEn BandwidthUnit `mad:"60:4,ro"`
	_           [56]uint8     `mad:"64:8"`
}

// QoSArbiterCapabilities are the limits and shares that a port supports (opensm-mlnx
// include/iba/ib_types.h IB_ENH_QOS_ARBINFO_CAPMASK_*).
//
//mad:mask
type QoSArbiterCapabilities uint32

const (
	QoSArbiterCapabilitiesPortRL      QoSArbiterCapabilities = 1 << 1  // "port_rate_limit"
	QoSArbiterCapabilitiesVLG0RL      QoSArbiterCapabilities = 1 << 2  // "vl_group0_rate_limit"
	QoSArbiterCapabilitiesVLGRL       QoSArbiterCapabilities = 1 << 3  // "vl_group_rate_limit"
	QoSArbiterCapabilitiesVLGShare    QoSArbiterCapabilities = 1 << 4  // "vl_group_share"
	QoSArbiterCapabilitiesVLShare     QoSArbiterCapabilities = 1 << 5  // "vl_share"
	QoSArbiterCapabilitiesVLRL        QoSArbiterCapabilities = 1 << 6  // "vl_rate_limit"
	QoSArbiterCapabilitiesSLShare     QoSArbiterCapabilities = 1 << 7  // "sl_share"
	QoSArbiterCapabilitiesSLRL        QoSArbiterCapabilities = 1 << 8  // "sl_rate_limit"
	QoSArbiterCapabilitiesVLG0Min     QoSArbiterCapabilities = 1 << 9  // "vl_group0_minimum"
	QoSArbiterCapabilitiesVLGMin      QoSArbiterCapabilities = 1 << 10 // "vl_group_minimum"
	QoSArbiterCapabilitiesVLMin       QoSArbiterCapabilities = 1 << 11 // "vl_minimum"
	QoSArbiterCapabilitiesGranularity QoSArbiterCapabilities = 1 << 12 // "separate_granularities"
)

// BandwidthUnit is a unit of bandwidth (opensm-mlnx include/iba/ib_types.h
// ib_enh_qos_ariter_rate_t).
//
//mad:enum
type BandwidthUnit uint8

const (
	BandwidthUnit1M   BandwidthUnit = 1 // "1_mbit"
	BandwidthUnit10M  BandwidthUnit = 2 // "10_mbit"
	BandwidthUnit100M BandwidthUnit = 3 // "100_mbit"
	BandwidthUnit1G   BandwidthUnit = 4 // "1_gbit"
	BandwidthUnit10G  BandwidthUnit = 5 // "10_gbit"
	BandwidthUnit100G BandwidthUnit = 6 // "100_gbit"
	BandwidthUnit1T   BandwidthUnit = 7 // "1_tbit"
)

// EnhPortVLArbiter is the arbitration of bandwidth of a port: rate limits, or minimum bandwidths with minimum in the modifier.
//
//mad:attr class=Subn id=0x0051 methods=Get,Set size=64 section=14.2.6.22 modifier=port:0:8,by_vl:30:1,minimum:31:1 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_enh_port_vl_arbiter_t, IB_VL_PORT_ARBITER_*
type EnhPortVLArbiter struct {
	// Arbiter is of groups of virtual lanes, or of virtual lanes with by_vl in the modifier.
	Arbiter [64]byte `mad:"0:512,bytes"`
}

// VLGroupArbiter is EnhPortVLArbiter of groups of virtual lanes.
//
//mad:header size=64 section=14.2.6.22 unconfirmed
//mad:variant of=EnhPortVLArbiter.Arbiter name=groups when=modifier.by_vl:0
//mad:source opensm-mlnx include/iba/ib_types.h ib_vl_groups_arbiter_config_t
type VLGroupArbiter struct {
	// VLGroupMask are the groups that are valid, a bit each.
	VLGroupMask uint8  `mad:"0:8,hex"`
	_           uint32 `mad:"8:24"`
	// PortRateLimit is the rate limit of the port.
	PortRateLimit uint32 `mad:"32:20"`
	_             uint16 `mad:"52:12"`
	// VLMask are the virtual lanes of each group, a bit each.
	VLMask [8]uint16 `mad:"64:16,hex"`
	// Group are the groups.
	Group [8]BandwidthShare `mad:"192:32"`
	_     uint64            `mad:"448:64"`
}

// VLArbiter is EnhPortVLArbiter of virtual lanes.
//
//mad:header size=64 section=14.2.6.22 unconfirmed
//mad:variant of=EnhPortVLArbiter.Arbiter name=lanes when=modifier.by_vl:1
//mad:source opensm-mlnx include/iba/ib_types.h ib_vl_arbiter_config_t
type VLArbiter struct {
	// VLMask are the virtual lanes that are valid, a bit each.
	VLMask uint16 `mad:"0:16,hex"`
	_      uint16 `mad:"16:16"`
	// VL are the virtual lanes from 0 to 14.
	VL [15]BandwidthShare `mad:"32:32"`
}

// BandwidthShare is a share of the bandwidth, and a limit or minimum.
//
//mad:header size=4 section=14.2.6.22 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_enh_bw_per_element_t, IB_ENH_BW_PER_ELEMENT_*
type BandwidthShare struct {
	// Share is the share.
	Share uint16 `mad:"0:12"`
	// Limit is the rate limit or the minimum bandwidth.
	Limit uint32 `mad:"12:20"`
}

// EnhSLArbiter is the bandwidth of each service level of a port.
//
//mad:attr class=Subn id=0x0052 methods=Get,Set size=64 section=14.2.6.23 modifier=port:0:8 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_enh_sl_arbiter_t
type EnhSLArbiter struct {
	// SL are the service levels from 0 to 15.
	SL [16]BandwidthShare `mad:"0:32"`
}

// EnhVPortData is the arbitration of bandwidth of virtual ports, of which only the
// number is certain.
//
//mad:attr class=Subn id=0x0053 name=EnhVPortQoSArbiterInfo methods=Get size=64 section=14.2.6 modifier=unknown unconfirmed ; is EnhQoSArbiterInfo of a virtual port.
//mad:attr class=Subn id=0x0054 name=EnhVPortSLArbiter methods=Get,Set size=64 section=14.2.6 modifier=unknown unconfirmed ; is EnhSLArbiter of a virtual port.
//mad:source opensm-mlnx include/iba/ib_types.h IB_MAD_ATTR_VPORT_ENH_QOS_ARBITER_INFO, IB_MAD_ATTR_VPORT_ENH_SL_ARBITER (the numbers alone)
type EnhVPortData struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}

// Virtual ports of NVIDIA's adapters.

// VirtualizationInfo is what a port supports of virtual ports.
//
//mad:attr class=Subn id=0xffb0 methods=Get,Set size=63 section=vendor modifier=port:0:8 capability=virtualization safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_virtualization_info_t, IB_VIRTUALIZATION_INFO_*
type VirtualizationInfo struct {
	// VPortCap is the largest number of virtual ports.
	VPortCap uint16 `mad:"0:16,ro,name=VPortCap"`
	// VPortIndexTop is the last virtual port in use.
	VPortIndexTop uint16 `mad:"16:16,name=VPortIndexTop"`
	// VirtualizationEnable is set if virtual ports are enabled.
	VirtualizationEnable bool `mad:"32:1"`
	// VClientReregister asks the clients of all virtual ports to renew their registrations.
	VClientReregister bool `mad:"33:1,name=VClientReregister"`
	// VPortStateChange is set if the state of a virtual port has changed.
	VPortStateChange bool   `mad:"34:1,name=VPortStateChange,w1c"`
	_                uint16 `mad:"35:13"`
	// VirtualizationRevision is the revision of virtualization.
	VirtualizationRevision uint8 `mad:"48:8,ro"`
	// CapMask are optional capabilities.
	CapMask uint8     `mad:"56:8,ro,hex"`
	_       [55]uint8 `mad:"64:8"`
}

// VPortInfo is the state of a virtual port.
//
//mad:attr class=Subn id=0xffb1 methods=Get,Set size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_vport_info_t, IB_VPORT_INFO_*
type VPortInfo struct {
	// State is the state of the virtual port.
	State PortState `mad:"0:4,name=VPortState"`
	// ClientReregister asks the clients to renew their registrations.
	ClientReregister bool `mad:"4:1"`
	// LIDRequired is set if the virtual port needs its own LID.
	LIDRequired bool  `mad:"5:1,ro"`
	_           uint8 `mad:"6:2"`
	// GUIDCap is the number of entries of VPortGUIDInfo.
	GUIDCap uint8 `mad:"8:8,ro,minor"`
	// CapMask are the capabilities of the virtual port.
	CapMask VPortCapabilities `mad:"16:16,ro"`
	// PKeyViolations counts packets with a wrong P_Key.
	PKeyViolations uint16 `mad:"32:16"`
	// QKeyViolations counts packets with a wrong Q_Key.
	QKeyViolations uint16 `mad:"48:16"`
	// LID is the LID of the virtual port.
	LID LID `mad:"64:16"`
	// LIDByVPortIndex is the virtual port whose LID it uses, if LIDRequired is clear.
	LIDByVPortIndex uint16 `mad:"80:16,name=LIDByVPortIndex"`
	// PortGUID is the GUID of the virtual port.
	PortGUID GUID `mad:"96:64"`
	// PortProfile is the profile of the virtual port.
	PortProfile uint64    `mad:"160:64,hex"`
	_           [36]uint8 `mad:"224:8"`
}

// VPortCapabilities are the capabilities of a virtual port (opensm-mlnx
// include/iba/ib_types.h IB_VPORT_INFO_CAP_IS_*).
//
//mad:mask
type VPortCapabilities uint16

const (
	VPortCapabilitiesCM         VPortCapabilities = 1 << 0 // "communication_management"
	VPortCapabilitiesSNMP       VPortCapabilities = 1 << 1
	VPortCapabilitiesDM         VPortCapabilities = 1 << 2 // "device_management"
	VPortCapabilitiesVendor     VPortCapabilities = 1 << 3 // "vendor_class"
	VPortCapabilitiesBM         VPortCapabilities = 1 << 4 // "boot_management"
	VPortCapabilitiesSM         VPortCapabilities = 1 << 5 // "is_sm"
	VPortCapabilitiesSMDisabled VPortCapabilities = 1 << 6 // "is_sm_disabled"
)

// VNodeInfo is the virtual node of a virtual port.
//
//mad:attr class=Subn id=0xffb2 methods=Get size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_vnode_info_t
type VNodeInfo struct {
	// PartitionCap is the number of entries of VPortPKeyTable.
	PartitionCap uint16 `mad:"0:16,ro"`
	// LocalPortNum is the port of the virtual node that received the request.
	LocalPortNum uint8 `mad:"16:8,ro"`
	// NumPorts is the number of virtual ports of the virtual node.
	NumPorts uint8 `mad:"24:8,ro"`
	// VNodeGUID is the GUID of the virtual node.
	VNodeGUID GUID      `mad:"32:64,ro,name=VNodeGUID"`
	_         [52]uint8 `mad:"96:8"`
}

// VPortState is the states of 128 virtual ports.
//
//mad:attr class=Subn id=0xffb3 methods=Get size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_vport_state_t, IB_VPORT_STATE_*
type VPortState struct {
	// State are the states of the virtual ports of the block.
	State [128]PortState `mad:"0:4,ro,name=VPortState"`
}

// VPortData is an attribute of virtual ports of which only the number is certain: its
// layout is probably that of the attribute without V.
//
//mad:attr class=Subn id=0xffb4 name=VNodeDescription methods=Get size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed ; is the description of a virtual node.
//mad:attr class=Subn id=0xffb5 name=VPortGUIDInfo methods=Get,Set size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed ; is the GUIDs of a virtual port.
//mad:attr class=Subn id=0xffb6 name=VPortPKeyTable methods=Get,Set size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed ; is the partitions of a virtual port.
//mad:source opensm-mlnx include/iba/ib_types.h IB_MAD_ATTR_VNODE_DESC, IB_MAD_ATTR_VPORT_GUID_INFO, IB_MAD_ATTR_V_PKEY_TABLE (the numbers alone)
type VPortData struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}

// Attributes of NVLink fabrics and of planes, of which fabsh has the names and numbers.

// NVLinkData is an attribute that fabsh does not decode.
//
//mad:attr class=Subn id=0xff26 name=LinearForwardingTableSplit methods=Get,Set size=64 section=vendor capability=lft_split safeget unconfirmed ; divides the LIDs of a switch into ranges.
//mad:attr class=Subn id=0xff27 name=NVLHBFConfig methods=Get,Set size=64 section=vendor modifier=profile:0:31,by_profile:31:1 capability=nvl_hbf safeget unconfirmed ; is how a switch computes the hash of NVLink packets.
//mad:attr class=Subn id=0xff54 name=EndPortPlaneFilterConfig methods=Set size=64 section=vendor modifier=unknown capability=end_port_plane_filter unconfirmed ; is the LIDs of the planes of a port.
//mad:attr class=Subn id=0xff87 name=ContainAndDrainInfo methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=contain_and_drain safeget unconfirmed ; is the action on the traffic of 128 ports.
//mad:attr class=Subn id=0xff88 name=ContainAndDrainPortState methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=contain_and_drain safeget unconfirmed ; is the state of containment of 128 ports.
//mad:attr class=Subn id=0xff89 name=AnycastLIDInfo methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=extended_node_info needs=ExtendedNodeInfo.AnycastLIDCap safeget unconfirmed ; is 16 anycast LIDs of a GPU.
//mad:attr class=Subn id=0xff8a name=RailFilterConfig methods=Get,Set size=64 section=vendor modifier=unknown capability=rail_filter safeget unconfirmed ; is the ports between which a switch forwards.
//mad:attr class=Subn id=0xff8e name=FabricManagerInfo methods=Get,Set size=64 section=vendor capability=fabric_manager_info safeget unconfirmed ; is the state of the fabric manager.
//mad:source opensm-mlnx include/iba/ib_types.h IB_MAD_ATTR_LFT_SPLIT, IB_MAD_ATTR_NVL_HBF_CONFIG, IB_MAD_ATTR_END_PORT_PLANE_FILTER_CONFIG, IB_MAD_ATTR_CONTAIN_AND_DRAIN_*, IB_MAD_ATTR_ALID_INFO, IB_MAD_ATTR_RAIL_FILTER_CONFIG, IB_MAD_ATTR_FABRIC_MANAGER_INFO (the numbers alone)
type NVLinkData struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}
