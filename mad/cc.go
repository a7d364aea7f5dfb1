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
