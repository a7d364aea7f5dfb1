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
