package mad

// Congestion control of NVIDIA's devices (class 0x21), with programmable algorithms (PPCC).

// EnhancedCongestionInfo is what a device supports of congestion control.
//
//mad:attr class=CC id=0xff00 methods=Get size=16 section=vendor capability=congestion_control safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_cc_enh_info_t, IB_CC_ENH_INFO_*, IB_CC_CAPABILITY_MASK_*
type EnhancedCongestionInfo struct {
	// Ver0Sup is set if the attributes without algorithms are supported.
	Ver0Sup bool `mad:"0:1,ro"`
	// Ver1Sup is set if algorithms are supported.
	Ver1Sup bool   `mad:"1:1,ro"`
	_       uint64 `mad:"2:62"`
	// CapMask are optional capabilities.
	CapMask CongestionCapabilities `mad:"64:64,ro"`
}

// CongestionCapabilities are what a device supports of congestion control (opensm-mlnx
// include/iba/ib_types.h IB_CC_CAPABILITY_MASK_*).
//
//mad:mask
type CongestionCapabilities uint64

const (
	CongestionCapabilitiesHCACounters CongestionCapabilities = 1 << 1
	CongestionCapabilitiesAlgoConfig  CongestionCapabilities = 1 << 2
	CongestionCapabilitiesGranularity CongestionCapabilities = 1 << 3
	CongestionCapabilitiesDualCCKey   CongestionCapabilities = 1 << 5 // "dual_cc_key"
	CongestionCapabilitiesPerPlane    CongestionCapabilities = 1 << 6
)

// CongestionSwitchGeneralSettings is how a switch measures its queues.
//
//mad:attr class=CC id=0xff08 methods=Get,Set size=12 section=vendor capability=congestion_control safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_cc_sw_general_settings_t, IB_CC_SW_SETTINGS_CC_ENABLE_MASK (the comment has another bit)
type CongestionSwitchGeneralSettings struct {
	_ uint8 `mad:"0:7"`
	// En is set if congestion control is enabled.
	En bool  `mad:"7:1"`
	_  uint8 `mad:"8:8"`
	// AQSWeight is the weight of the latest size of a queue in the mean, as a power of 1/2.
	AQSWeight uint8 `mad:"16:8,name=AQSWeight"`
	// AQSTime is the interval of the mean: 64 ns * 2^value.
	AQSTime uint8 `mad:"24:8,name=AQSTime"`
	// CapTotalBufferSize is the size of all buffers in bytes.
	CapTotalBufferSize uint32 `mad:"32:32,ro"`
	_                  uint32 `mad:"64:24"`
	// CapProfileStep is the unit of profiles in KB.
	CapProfileStep uint8 `mad:"88:8,ro"`
}

// CongestionPortProfileSettings is from which size of its queue on a port marks packets, in three profiles.
//
//mad:attr class=CC id=0xff09 methods=Get,Set size=28 section=vendor modifier=port:0:8 capability=congestion_control safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_cc_port_profile_settings_t, IB_CC_PORT_PROFILE_SETTINGS_*
type CongestionPortProfileSettings struct {
	// Mode is set if Min and Max are percentages of the buffers of the port.
	Mode bool `mad:"0:1"`
	// Granularity is set if they are in KB, and clear for bytes.
	Granularity bool   `mad:"1:1"`
	_           uint16 `mad:"2:14"`
	// VLMask are the virtual lanes, a bit each; 65535 is all.
	VLMask uint16 `mad:"16:16,hex"`
	// Profile are the profiles 1 to 3.
	Profile [3]CongestionProfile `mad:"32:64"`
}

// CongestionProfile is from which size of its queue on a port marks packets.
//
//mad:header size=8 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_cc_port_profile_t
type CongestionProfile struct {
	// Min is the size from which packets are marked.
	Min uint32 `mad:"0:32"`
	_   uint8  `mad:"32:1"`
	// Percent is the share of packets that are marked at Max.
	Percent uint8 `mad:"33:7"`
	_       uint8 `mad:"40:4"`
	// Max is the size from which all packets are marked.
	Max uint32 `mad:"44:20"`
}

// CongestionSLMappingSettings is the profile of each service level of a port.
//
//mad:attr class=CC id=0xff10 methods=Get,Set size=4 section=vendor modifier=port:0:8 capability=congestion_control safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_cc_sl_mapping_settings_t
type CongestionSLMappingSettings struct {
	// Profile are the profiles, 1 to 3, of the service levels from 0 to 15.
	Profile [16]uint8 `mad:"0:2"`
}

// CongestionHCAGeneralSettings is what a port of an adapter does about congestion.
//
//mad:attr class=CC id=0xff20 methods=Get,Set size=1 section=vendor modifier=port:0:8 capability=congestion_control safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_cc_hca_general_settings_t (its comment counts these bits from 8 down)
type CongestionHCAGeneralSettings struct {
	// EnNotify is set if it notifies senders (CNP).
	EnNotify bool `mad:"0:1"`
	// EnReact is set if it slows down.
	EnReact bool `mad:"1:1"`
	// EnCCPerPlane is set if each plane slows down for itself.
	EnCCPerPlane bool  `mad:"2:1,name=EnCCPerPlane"`
	_            uint8 `mad:"3:5"`
}

// CongestionHCARPParameters is how a port of an adapter slows down.
//
//mad:attr class=CC id=0xff21 methods=Get,Set size=60 section=vendor modifier=port:0:8 capability=congestion_control safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_cc_hca_rp_parameters_t, IB_CC_HCA_RP_PARAMS_*
type CongestionHCARPParameters struct {
	// ClampTgtRate is set if each notification sets the target rate to the current rate.
	ClampTgtRate bool `mad:"0:1"`
	// ClampTgtRateAfterTimeInc is set if that is also done after an increase by time.
	ClampTgtRateAfterTimeInc bool   `mad:"1:1"`
	_                        uint64 `mad:"2:45"`
	// TimeReset is the time between increases in microseconds.
	TimeReset uint32 `mad:"47:17"`
	_         uint16 `mad:"64:13"`
	// ByteReset is the number of bytes between increases.
	ByteReset uint32 `mad:"77:19"`
	_         uint32 `mad:"96:27"`
	// Threshold is the number of increases before the next phase.
	Threshold uint8  `mad:"123:5"`
	_         uint16 `mad:"128:13"`
	// MaxRate is the largest rate in Mbit/s.
	MaxRate uint32 `mad:"141:19"`
	_       uint16 `mad:"160:16"`
	// AIRate is the increase in the active phase in Mbit/s.
	AIRate uint16 `mad:"176:16,name=AIRate"`
	_      uint16 `mad:"192:16"`
	// HAIRate is the increase in the hyper-active phase in Mbit/s.
	HAIRate uint16 `mad:"208:16,name=HAIRate"`
	_       uint32 `mad:"224:28"`
	// Gd is the reduction: alpha is divided by 2^Gd.
	Gd uint8  `mad:"252:4"`
	_  uint32 `mad:"256:24"`
	// MinDecFac is the largest reduction in percent.
	MinDecFac uint8  `mad:"280:8"`
	_         uint16 `mad:"288:13"`
	// MinRate is the smallest rate in Mbit/s.
	MinRate uint32 `mad:"301:19"`
	// RateOnFirstCNP is the rate after the first notification in Mbit/s.
	RateOnFirstCNP uint32 `mad:"320:32,name=RateOnFirstCNP"`
	_              uint32 `mad:"352:22"`
	// DCETCPG is a parameter of alpha.
	DCETCPG uint16 `mad:"374:10,name=DCETCPG"`
	_       uint16 `mad:"384:15"`
	// DCETCPRTT is a parameter of alpha.
	DCETCPRTT uint32 `mad:"399:17,name=DCETCPRTT"`
	// RateReduceMonitorPeriod is the time between reductions in microseconds.
	RateReduceMonitorPeriod uint32 `mad:"416:32"`
	_                       uint32 `mad:"448:22"`
	// InitialAlpha is the first alpha in units of 1/1024.
	InitialAlpha uint16 `mad:"470:10"`
}

// CongestionHCANPParameters is how a port of an adapter notifies senders.
//
//mad:attr class=CC id=0xff22 methods=Get,Set size=8 section=vendor modifier=port:0:8 capability=congestion_control safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_cc_hca_np_parameters_t, IB_CC_HCA_NP_PARAMS_*
type CongestionHCANPParameters struct {
	_ uint16 `mad:"0:16"`
	// MinTimeBetweenCNPs is the shortest time between two notifications in microseconds.
	MinTimeBetweenCNPs uint16 `mad:"16:16,name=MinTimeBetweenCNPs"`
	_                  uint16 `mad:"32:14"`
	// RTTRespSLMode is set if RTTRespSL is used, and clear for the service level of the request.
	RTTRespSLMode bool `mad:"46:1,name=RTTRespSLMode"`
	// CNPSLMode is set if CNPSL is used, and clear for the service level of the packet.
	CNPSLMode bool  `mad:"47:1,name=CNPSLMode"`
	_         uint8 `mad:"48:4"`
	// RTTRespSL is the service level of answers to measurements of the round trip.
	RTTRespSL uint8 `mad:"52:4,name=RTTRespSL"`
	_         uint8 `mad:"56:4"`
	// CNPSL is the service level of notifications.
	CNPSL uint8 `mad:"60:4,name=CNPSL"`
}

// CongestionHCAAlgoConfig is an algorithm of congestion control of a port.
//
//mad:attr class=CC id=0xff24 methods=Get,Set size=192 section=vendor modifier=unknown capability=congestion_control needs=EnhancedCongestionInfo.CapMask&0x4 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ppcc_hca_algo_config_t
type CongestionHCAAlgoConfig struct {
	// AlgoEn enables the algorithm.
	AlgoEn bool `mad:"0:1"`
	// AlgoStatus is set if the algorithm is in use.
	AlgoStatus bool `mad:"1:1,ro"`
	// TraceEn is set if it is traced.
	TraceEn bool `mad:"2:1"`
	// CounterEn is set if its counters are enabled.
	CounterEn bool   `mad:"3:1"`
	_         uint32 `mad:"4:28"`
	// SLMask are the service levels, a bit each; a Get has one.
	SLMask uint16 `mad:"32:16,hex"`
	// EncapLen is the length of the part below in bytes.
	EncapLen uint8 `mad:"48:8"`
	// EncapType is its kind.
	EncapType PPCCEncapsulation `mad:"56:8"`
	_         uint64            `mad:"64:64"`
	// Encapsulation is text, or the supported algorithms.
	Encapsulation [176]byte `mad:"128:1408,bytes"`
}

// PPCCEncapsulation is the kind of data on algorithms of congestion control
// (opensm-mlnx include/iba/ib_types.h ib_ppcc_hca_algo_config_t).
//
//mad:enum
type PPCCEncapsulation uint8

const (
	PPCCEncapsulationNone PPCCEncapsulation = 0
	PPCCEncapsulationText PPCCEncapsulation = 1
	PPCCEncapsulationList PPCCEncapsulation = 2 // "list", of algorithms or parameters
)

// PPCCAlgorithms are the algorithms that a port supports.
//
//mad:header size=64 section=vendor unconfirmed
//mad:variant of=CongestionHCAAlgoConfig.Encapsulation name=algorithms when=EncapType:2
//mad:source opensm-mlnx include/iba/ib_types.h ib_ppcc_hca_algo_config_t encap_algo_info
type PPCCAlgorithms struct {
	// Slot are the algorithms, by slot.
	Slot [16]PPCCAlgorithm `mad:"0:32"`
}

// PPCCAlgorithm is an algorithm of congestion control.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ppcc_algo_info_t
type PPCCAlgorithm struct {
	// AlgoID is the number of the algorithm.
	AlgoID uint16 `mad:"0:16,hex"`
	// Major is the first part of its version.
	Major uint8 `mad:"16:8"`
	// Minor is the second part.
	Minor uint8 `mad:"24:8"`
}

// CongestionHCAConfigParams is the parameters of an algorithm of congestion control of a port.
//
//mad:attr class=CC id=0xff25 methods=Get,Set size=192 section=vendor modifier=unknown capability=congestion_control needs=EnhancedCongestionInfo.CapMask&0x4 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ppcc_hca_config_param_t
type CongestionHCAConfigParams struct {
	_ uint32 `mad:"0:32"`
	// SLMask are the service levels with these parameters, a bit each.
	SLMask uint16 `mad:"32:16,ro,hex"`
	// EncapLen is the length of the parameters in bytes, 4 each.
	EncapLen uint8 `mad:"48:8"`
	// EncapType is the kind of data.
	EncapType PPCCEncapsulation `mad:"56:8"`
	_         uint64            `mad:"64:64"`
	// Param are the parameters.
	Param [44]uint32 `mad:"128:32"`
}
