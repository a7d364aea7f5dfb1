package mad

// CongestionInfo is what a node supports of congestion control.
//
//mad:attr class=CC id=0x0011 methods=Get size=4 section=A10.4.3.3
//mad:source rdma-core libibmad/fields.c CongestionInfo fields
//mad:source opensm include/iba/ib_types.h ib_cong_info_t (which splits CongestionInfo in two bytes)
type CongestionInfo struct {
	// CongestionInfo is a mask of capabilities; bit 0 is set if the switch supports credit starvation.
	CongestionInfo uint16 `mad:"0:16,ro,hex"`
	// ControlTableCap is the number of blocks of 64 entries in the CongestionControlTable.
	ControlTableCap uint8 `mad:"16:8,ro"`
	_               uint8 `mad:"24:8"`
}

// CongestionKeyInfo is the key that protects congestion control.
//
//mad:attr class=CC id=0x0012 methods=Get,Set size=14 section=A10.4.3.4
//mad:source rdma-core libibmad/fields.c CongestionKeyInfo fields
//mad:source opensm include/iba/ib_types.h ib_cong_key_info_t
type CongestionKeyInfo struct {
	// CCKey protects against changes, and with CC_KeyProtectBit also against reading the key; 0 leaves it unprotected.
	CCKey uint64 `mad:"0:64,name=CC_Key,key,hex"`
	// CCKeyProtectBit is set if a Get returns the CC_Key only to a sender that has it.
	CCKeyProtectBit bool   `mad:"64:1,name=CC_KeyProtectBit"`
	_               uint16 `mad:"65:15"`
	// CCKeyLeasePeriod is the time in seconds after which CC_KeyProtectBit returns to 0; 0 is never.
	CCKeyLeasePeriod uint16 `mad:"80:16,name=CC_KeyLeasePeriod"`
	// CCKeyViolations counts requests with a wrong CC_Key.
	CCKeyViolations uint16 `mad:"96:16,name=CC_KeyViolations"`
}

// CongestionLog is a node's log of congestion.
//
//mad:attr class=CC id=0x0013 methods=Get size=224 section=A10.4.3.5 offset=32
//mad:source rdma-core libibmad/fields.c CongestionLog (common) fields
//mad:source opensm include/iba/ib_types.h ib_cong_log_t
type CongestionLog struct {
	// LogType is the kind of node whose log it is.
	LogType LogType `mad:"0:8,ro"`
	// CongestionFlags are the flags of the log.
	CongestionFlags uint8 `mad:"8:8,ro,hex"`
	// Log is the rest; its layout depends on LogType.
	Log [222]byte `mad:"16:1776,bytes,ro"`
}

// LogType is the kind of node whose CongestionLog it is (IBA A10.4.3.5).
//
//mad:enum
type LogType uint8

const (
	LogTypeSwitch LogType = 1
	LogTypeCA     LogType = 2
)

// SwitchCongestionLog is the log of a switch.
//
//mad:header size=218 section=A10.4.3.5
//mad:variant of=CongestionLog.Log name=switch when=LogType:1
//mad:source rdma-core libibmad/fields.c CongestionLog (Switch) fields
//mad:source opensm include/iba/ib_types.h ib_cong_log_t log_sw
type SwitchCongestionLog struct {
	// LogEventsCounter is the number of events since the log was last sent.
	LogEventsCounter uint16 `mad:"0:16,ro"`
	// CurrentTimeStamp is the time when the log was sent, in units of 1.024 us.
	CurrentTimeStamp uint32 `mad:"16:32,ro"`
	// PortMap are the ports that have marked packets, a bit each.
	PortMap [32]byte `mad:"48:256,bytes,ro"`
	// Event are the latest events.
	Event [15]SwitchCongestionEvent `mad:"304:96,ro"`
}

// SwitchCongestionEvent is an event in the log of a switch.
//
//mad:header size=12 section=A10.4.3.5
//mad:source rdma-core libibmad/fields.c CongestionLogEvent (Switch) fields
//mad:source opensm include/iba/ib_types.h ib_cong_log_event_sw_t
type SwitchCongestionEvent struct {
	// SLID is the source of the packet.
	SLID LID `mad:"0:16,ro"`
	// DLID is the destination of the packet.
	DLID LID `mad:"16:16,ro"`
	// SL is the service level of the packet.
	SL uint8  `mad:"32:4,ro"`
	_  uint32 `mad:"36:28"`
	// Timestamp is the time of the event, in units of 1.024 us.
	Timestamp uint32 `mad:"64:32,ro"`
}

// CACongestionLog is the log of a channel adapter.
//
//mad:header size=218 section=A10.4.3.5
//mad:variant of=CongestionLog.Log name=ca when=LogType:2
//mad:source rdma-core libibmad/fields.c CongestionLog (CA) fields
//mad:source opensm include/iba/ib_types.h ib_cong_log_t log_ca
type CACongestionLog struct {
	// ThresholdEventCounter is the number of events since the log was last sent.
	ThresholdEventCounter uint16 `mad:"0:16,ro"`
	// ThresholdCongestionEventMap are the service levels with events, a bit each.
	ThresholdCongestionEventMap uint16 `mad:"16:16,ro,hex"`
	_                           uint16 `mad:"32:16"`
	// CurrentTimeStamp is the time when the log was sent, in units of 1.024 us.
	CurrentTimeStamp uint32 `mad:"48:32,ro"`
	// Event are the latest events.
	Event [13]CACongestionEvent `mad:"80:128,ro"`
}

// CACongestionEvent is an event in the log of a channel adapter.
//
// The service level, the service type and the LIDs are left out: the public
// sources do not agree on their positions.
//
//mad:header size=16 section=A10.4.3.5
//mad:source rdma-core libibmad/fields.c CongestionLogEvent (CA) fields
//mad:source opensm include/iba/ib_types.h ib_cong_log_event_ca_t
type CACongestionEvent struct {
	// LocalQPCNEntry is the queue pair that reached the threshold.
	LocalQPCNEntry uint32 `mad:"0:24,ro,name=Local_QP_CN_Entry,hex"`
	_              uint8  `mad:"24:8"`
	// RemoteQPNumberCNEntry is the queue pair that it is connected to.
	RemoteQPNumberCNEntry uint32 `mad:"32:24,ro,name=Remote_QP_Number_CN_Entry,hex"`
	_                     uint8  `mad:"56:8"`
	_                     uint32 `mad:"64:32"`
	// TimestampCNEntry is the time of the event, in units of 1.024 us.
	TimestampCNEntry uint32 `mad:"96:32,ro,name=Timestamp_CN_Entry"`
}

// SwitchCongestionSetting is how a switch marks packets.
//
//mad:attr class=CC id=0x0014 methods=Get,Set size=76 section=A10.4.3.6
//mad:source rdma-core libibmad/fields.c SwitchCongestionSetting fields
//mad:source opensm include/iba/ib_types.h ib_sw_cong_setting_t
type SwitchCongestionSetting struct {
	// ControlMap selects the fields below that a Set changes, a bit each.
	ControlMap uint32 `mad:"0:32,name=Control_Map,hex"`
	// VictimMask are the ports that mark packets even if they are not the root of congestion, a bit each.
	VictimMask [32]byte `mad:"32:256,name=Victim_Mask,bytes"`
	// CreditMask are the ports that apply credit starvation, a bit each.
	CreditMask [32]byte `mad:"288:256,name=Credit_Mask,bytes"`
	// Threshold is how early ports mark packets: 0 is never, 15 the earliest.
	Threshold uint8 `mad:"544:4"`
	_         uint8 `mad:"548:4"`
	// PacketSize is the smallest size of packets to mark, in units of 64 bytes.
	PacketSize uint8 `mad:"552:8,name=Packet_Size"`
	// CSThreshold is how early ports apply credit starvation: 0 is never, 15 the earliest.
	CSThreshold uint8  `mad:"560:4,name=CS_Threshold"`
	_           uint16 `mad:"564:12"`
	// CSReturnDelay is the delay with which credits are then returned.
	CSReturnDelay uint16 `mad:"576:16,name=CS_ReturnDelay,hex"`
	// MarkingRate is the mean number of packets between two that are marked.
	MarkingRate uint16 `mad:"592:16,name=Marking_Rate"`
}

// SwitchPortCongestionSetting is how single ports of a switch mark packets:
// a block of 32 ports.
//
//mad:attr class=CC id=0x0015 methods=Get,Set size=128 section=A10.4.3.7 modifier=block:0:8
//mad:source rdma-core libibmad/fields.c SwitchPortCongestionSettingElement fields
//mad:source opensm include/iba/ib_types.h ib_sw_port_cong_setting_t
type SwitchPortCongestionSetting struct {
	// Element are the ports 32*block to 32*block+31.
	Element [32]SwitchPortCongestionElement `mad:"0:32"`
}

// SwitchPortCongestionElement is how a port of a switch marks packets.
//
//mad:header size=4 section=A10.4.3.7
//mad:source rdma-core libibmad/fields.c SwitchPortCongestionSettingElement fields
//mad:source opensm include/iba/ib_types.h ib_sw_port_cong_setting_element_t
type SwitchPortCongestionElement struct {
	// Valid is set if the port has its own setting.
	Valid bool `mad:"0:1"`
	// ControlType is set if the element is for credit starvation, not for marking.
	ControlType bool  `mad:"1:1,name=Control_Type"`
	_           uint8 `mad:"2:2"`
	// Threshold is how early the port marks packets or applies credit starvation: 0 is never, 15 the earliest.
	Threshold uint8 `mad:"4:4"`
	// PacketSize is the smallest size of packets to mark, in units of 64 bytes.
	PacketSize uint8 `mad:"8:8,name=Packet_Size"`
	// CongParmMarkingRate is the mean number of packets between two that are marked.
	CongParmMarkingRate uint16 `mad:"16:16,name=Cong_Parm_Marking_Rate"`
}

// CACongestionSetting is how a channel adapter's port slows down.
//
//mad:attr class=CC id=0x0016 methods=Get,Set size=132 section=A10.4.3.8
//mad:source rdma-core libibmad/fields.c CACongestionSetting fields, CACongestionEntry fields
//mad:source opensm include/iba/ib_types.h ib_ca_cong_setting_t
type CACongestionSetting struct {
	// PortControl is a mask; with bit 0 set the port slows down by service level, otherwise by queue pair.
	PortControl uint16 `mad:"0:16,name=Port_Control,hex"`
	// ControlMap are the service levels whose entries a Set changes, a bit each.
	ControlMap uint16 `mad:"16:16,name=Control_Map,hex"`
	// Entry are the settings of each service level from 0 to 15.
	Entry [16]CACongestionEntry `mad:"32:64"`
}

// CACongestionEntry is how a channel adapter's port slows down on a service level.
//
//mad:header size=8 section=A10.4.3.8
//mad:source rdma-core libibmad/fields.c CACongestionEntry fields
//mad:source opensm include/iba/ib_types.h ib_ca_cong_entry_t
type CACongestionEntry struct {
	// CCTITimer is the time after which the index into the CongestionControlTable decreases by one.
	CCTITimer uint16 `mad:"0:16,name=CCTI_Timer"`
	// CCTIIncrease is the amount by which a notification increases the index.
	CCTIIncrease uint8 `mad:"16:8,name=CCTI_Increase"`
	// TriggerThreshold is the index at which an event is logged.
	TriggerThreshold uint8 `mad:"24:8,name=Trigger_Threshold"`
	// CCTIMin is the smallest index.
	CCTIMin uint8  `mad:"32:8,name=CCTI_Min"`
	_       uint32 `mad:"40:24"`
}

// CongestionControlTable is a block of 64 entries: the delays that a channel
// adapter's port inserts between packets.
//
//mad:attr class=CC id=0x0017 methods=Get,Set size=132 section=A10.4.3.9 modifier=block:0:8
//mad:source rdma-core libibmad/fields.c CongestionControlTable fields, CongestionControlTableEntry fields
//mad:source opensm include/iba/ib_types.h ib_cc_tbl_t
type CongestionControlTable struct {
	// CCTILimit is the largest index in use.
	CCTILimit uint16 `mad:"0:16,name=CCTI_Limit"`
	_         uint16 `mad:"16:16"`
	// Entry are the entries 64*block to 64*block+63.
	Entry [64]CongestionControlEntry `mad:"32:16"`
}

// CongestionControlEntry is a delay between packets: CCT_Multiplier divided by
// two to the CCT_Shift, times the transmission time of the packet.
//
//mad:header size=2 section=A10.4.3.9
//mad:source rdma-core libibmad/fields.c CongestionControlTableEntry fields
//mad:source opensm include/iba/ib_types.h ib_cc_tbl_entry_t
type CongestionControlEntry struct {
	// CCTShift is the exponent of the divisor.
	CCTShift uint8 `mad:"0:2,name=CCT_Shift"`
	// CCTMultiplier is the factor.
	CCTMultiplier uint16 `mad:"2:14,name=CCT_Multiplier"`
}

// TimeStamp is the clock of a CongestionLog.
//
//mad:attr class=CC id=0x0018 methods=Get size=4 section=A10.4.3.10
//mad:source rdma-core libibmad/fields.c Timestamp fields
//mad:source opensm include/iba/ib_types.h ib_time_stamp_t
type TimeStamp struct {
	// TimeStamp is the time since the device began to count, in units of 1.024 us.
	TimeStamp uint32 `mad:"0:32,ro"`
}

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
