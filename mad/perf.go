package mad

// AllPorts as a PortSelect means all ports (IBA 16.1.3.1, AllPortSelect).
const AllPorts = 255

// PortCounters are a port's counters of errors and traffic. They stop at their
// largest value; PortCountersExtended has wider ones.
//
// In a Set, CounterSelect and CounterSelect2 select the counters that take the
// values of the request; 0 clears them.
//
//mad:attr class=Perf id=0x0012 methods=Get,Set size=44 section=16.1.3.5
//mad:source opensm include/iba/ib_types.h ib_port_counters_t
//mad:source linux include/rdma/ib_pma.h ib_pma_portcounters
//mad:source rdma-core libibmad/fields.c Port counters (not QP1Dropped, whose offset there is that of VL15Dropped)
type PortCounters struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port; 255 is the sum of all ports, if the agent supports it.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0: SymbolErrorCounter to VL15Dropped, then data and packets.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// SymbolErrorCounter counts symbol errors on any lane.
	SymbolErrorCounter uint16 `mad:"32:16"`
	// LinkErrorRecoveryCounter counts successful link error recoveries.
	LinkErrorRecoveryCounter uint8 `mad:"48:8"`
	// LinkDownedCounter counts failed recoveries, after which the link went down.
	LinkDownedCounter uint8 `mad:"56:8"`
	// PortRcvErrors counts received packets with an error: CRC, length, VL, buffer overrun.
	PortRcvErrors uint16 `mad:"64:16"`
	// PortRcvRemotePhysicalErrors counts received packets that an earlier switch had marked bad.
	PortRcvRemotePhysicalErrors uint16 `mad:"80:16"`
	// PortRcvSwitchRelayErrors counts received packets that the switch could not forward.
	PortRcvSwitchRelayErrors uint16 `mad:"96:16"`
	// PortXmitDiscards counts outbound packets that were dropped: port down, too long, lifetime exceeded.
	PortXmitDiscards uint16 `mad:"112:16"`
	// PortXmitConstraintErrors counts packets not sent because of raw filter, partition or IP version.
	PortXmitConstraintErrors uint8 `mad:"128:8"`
	// PortRcvConstraintErrors counts received packets dropped for the same reasons.
	PortRcvConstraintErrors uint8 `mad:"136:8"`
	// CounterSelect2 selects further counters: bit 0 is PortXmitWait, bit 1 QP1Dropped.
	CounterSelect2 uint8 `mad:"144:8,hex,minor"`
	// LocalLinkIntegrityErrors counts how often LocalPhyErrors was exceeded.
	LocalLinkIntegrityErrors uint8 `mad:"152:4"`
	// ExcessiveBufferOverrunErrors counts how often OverrunErrors was exceeded.
	ExcessiveBufferOverrunErrors uint8 `mad:"156:4"`
	// QP1Dropped counts general management packets dropped for lack of room, if CapabilityMask has it.
	QP1Dropped uint16 `mad:"160:16,select2=1"`
	// VL15Dropped counts subnet management packets dropped for lack of room.
	VL15Dropped uint16 `mad:"176:16"`
	// PortXmitData is the data sent, in units of 4 bytes.
	PortXmitData uint32 `mad:"192:32"`
	// PortRcvData is the data received, in units of 4 bytes.
	PortRcvData uint32 `mad:"224:32"`
	// PortXmitPkts counts packets sent.
	PortXmitPkts uint32 `mad:"256:32"`
	// PortRcvPkts counts packets received.
	PortRcvPkts uint32 `mad:"288:32"`
	// PortXmitWait counts ticks during which there was data to send but no credit, if CapabilityMask has it.
	PortXmitWait uint32 `mad:"320:32,select2=0"`
}

// PortCountersExtended are a port's counters with 64 bits each.
//
// ClassPortInfo.CapabilityMask shows whether the port has them, and whether
// unicast and multicast packets are counted separately. The errors from
// SymbolErrorCounter on are available only if ClassPortInfo.CapabilityMask2 has
// is_additional_port_counters_extended_supported; otherwise they read as 0.
//
//mad:attr class=Perf id=0x001d methods=Get,Set size=184 section=16.1.4.11
//mad:source opensm include/iba/ib_types.h ib_port_counters_ext_t
//mad:source rdma-core libibmad/fields.c Extended port counters, More PortCountersExtended fields
type PortCountersExtended struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port; 255 is the sum of all ports, if the agent supports it.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set, PortXmitData to PortMulticastRcvPkts from bit 0.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// CounterSelect2 selects the counters of a Set, SymbolErrorCounter to QP1Dropped from bit 0.
	CounterSelect2 uint32 `mad:"32:32,hex,minor"`
	// PortXmitData is the data sent, in units of 4 bytes.
	PortXmitData uint64 `mad:"64:64"`
	// PortRcvData is the data received, in units of 4 bytes.
	PortRcvData uint64 `mad:"128:64"`
	// PortXmitPkts counts packets sent.
	PortXmitPkts uint64 `mad:"192:64"`
	// PortRcvPkts counts packets received.
	PortRcvPkts uint64 `mad:"256:64"`
	// PortUnicastXmitPkts counts unicast packets sent.
	PortUnicastXmitPkts uint64 `mad:"320:64"`
	// PortUnicastRcvPkts counts unicast packets received.
	PortUnicastRcvPkts uint64 `mad:"384:64"`
	// PortMulticastXmitPkts counts multicast packets sent.
	PortMulticastXmitPkts uint64 `mad:"448:64"`
	// PortMulticastRcvPkts counts multicast packets received.
	PortMulticastRcvPkts uint64 `mad:"512:64"`
	// SymbolErrorCounter counts symbol errors on any lane.
	SymbolErrorCounter uint64 `mad:"576:64,select2=0"`
	// LinkErrorRecoveryCounter counts successful link error recoveries.
	LinkErrorRecoveryCounter uint64 `mad:"640:64,select2=1"`
	// LinkDownedCounter counts failed recoveries, after which the link went down.
	LinkDownedCounter uint64 `mad:"704:64,select2=2"`
	// PortRcvErrors counts received packets with an error.
	PortRcvErrors uint64 `mad:"768:64,select2=3"`
	// PortRcvRemotePhysicalErrors counts received packets that an earlier switch had marked bad.
	PortRcvRemotePhysicalErrors uint64 `mad:"832:64,select2=4"`
	// PortRcvSwitchRelayErrors counts received packets that the switch could not forward.
	PortRcvSwitchRelayErrors uint64 `mad:"896:64,select2=5"`
	// PortXmitDiscards counts outbound packets that were dropped.
	PortXmitDiscards uint64 `mad:"960:64,select2=6"`
	// PortXmitConstraintErrors counts packets not sent because of raw filter, partition or IP version.
	PortXmitConstraintErrors uint64 `mad:"1024:64,select2=7"`
	// PortRcvConstraintErrors counts received packets dropped for the same reasons.
	PortRcvConstraintErrors uint64 `mad:"1088:64,select2=8"`
	// LocalLinkIntegrityErrors counts how often LocalPhyErrors was exceeded.
	LocalLinkIntegrityErrors uint64 `mad:"1152:64,select2=9"`
	// ExcessiveBufferOverrunErrors counts how often OverrunErrors was exceeded.
	ExcessiveBufferOverrunErrors uint64 `mad:"1216:64,select2=10"`
	// VL15Dropped counts subnet management packets dropped for lack of room.
	VL15Dropped uint64 `mad:"1280:64,select2=11"`
	// PortXmitWait counts ticks during which there was data to send but no credit.
	PortXmitWait uint64 `mad:"1344:64,select2=12"`
	// QP1Dropped counts general management packets dropped for lack of room.
	QP1Dropped uint64 `mad:"1408:64,select2=13"`
}

// Counters whose layout is in rdma-core only (libibmad/fields.c, used by
// perfquery); the first four bytes are as in all counters.

// PortRcvConCtrl counts congestion notifications received.
//
//mad:attr class=Perf id=0x0031 methods=Get,Set size=12 section=A10.5 unconfirmed
//mad:source rdma-core libibmad/fields.c PortRcvConCtrl fields
type PortRcvConCtrl struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortPktRcvFECN counts received packets that were marked on their path.
	PortPktRcvFECN uint32 `mad:"32:32"`
	// PortPktRcvBECN counts received notifications that packets from this port were marked.
	PortPktRcvBECN uint32 `mad:"64:32"`
}

// PortSLRcvFECN counts received packets that were marked on their path, on each
// service level.
//
//mad:attr class=Perf id=0x0032 methods=Get,Set size=68 section=A10.5 unconfirmed
//mad:source rdma-core libibmad/fields.c PortSLRcvFECN fields
type PortSLRcvFECN struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is service level n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortSLRcvFECN are the packets of each service level.
	PortSLRcvFECN [16]uint32 `mad:"32:32"`
}

// PortSLRcvBECN counts received notifications that packets from this port were
// marked, on each service level.
//
//mad:attr class=Perf id=0x0033 methods=Get,Set size=68 section=A10.5 unconfirmed
//mad:source rdma-core libibmad/fields.c PortSLRcvBECN fields
type PortSLRcvBECN struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is service level n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortSLRcvBECN are the packets of each service level.
	PortSLRcvBECN [16]uint32 `mad:"32:32"`
}

// PortXmitConCtrl counts ticks during which a port was congested.
//
//mad:attr class=Perf id=0x0034 methods=Get,Set size=8 section=A10.5 unconfirmed
//mad:source rdma-core libibmad/fields.c PortXmitConCtrl fields
type PortXmitConCtrl struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortXmitTimeCong are the ticks.
	PortXmitTimeCong uint32 `mad:"32:32"`
}

// PortVLXmitTimeCong counts ticks during which a port was congested, on each
// lane.
//
//mad:attr class=Perf id=0x0035 methods=Get,Set size=64 section=A10.5 unconfirmed
//mad:source rdma-core libibmad/fields.c PortVLXmitTimeCong fields
type PortVLXmitTimeCong struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortVLXmitTimeCong are the ticks of each lane from 0 to 14.
	PortVLXmitTimeCong [15]uint32 `mad:"32:32"`
}

// PortExtendedSpeedsCounters counts errors of links from 14 Gb/s a lane on.
//
// The layout of Counters depends on the forward error correction in use (see
// PortInfoExtended): variant rs_fec for Reed-Solomon, otherwise lanes.
//
//mad:attr class=Perf id=0x001f methods=Get,Set size=152 section=16.1.4 unconfirmed
//mad:source rdma-core libibmad/fields.c PortExtendedSpeedsCounters fields
type PortExtendedSpeedsCounters struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8    `mad:"8:8"`
	_          [6]uint8 `mad:"16:8"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint64 `mad:"64:64,hex,minor"`
	// SyncHeaderErrorCounter counts blocks with a bad synchronisation header, on any lane.
	SyncHeaderErrorCounter uint16 `mad:"128:16"`
	// UnknownBlockCounter counts blocks of an unknown type, on any lane.
	UnknownBlockCounter uint16 `mad:"144:16"`
	// Counters are the rest.
	Counters [132]byte `mad:"160:1056,bytes"`
}

// LaneFECCounters are the counters of each lane without Reed-Solomon code.
//
//mad:header size=120 section=16.1.4 unconfirmed
//mad:variant of=PortExtendedSpeedsCounters.Counters name=lanes
//mad:source rdma-core libibmad/fields.c PortExtendedSpeedsCounters fields
type LaneFECCounters struct {
	// ErrorDetectionCounterLane counts errors that were detected, on each lane.
	ErrorDetectionCounterLane [12]uint16 `mad:"0:16"`
	// FECCorrectableBlockCtrLane counts blocks that were corrected, on each lane.
	FECCorrectableBlockCtrLane [12]uint32 `mad:"192:32"`
	// FECUncorrectableBlockCtrLane counts blocks that could not be corrected, on each lane.
	FECUncorrectableBlockCtrLane [12]uint32 `mad:"576:32"`
}

// RSFECCounters are the counters with Reed-Solomon code.
//
//mad:header size=132 section=16.1.4 unconfirmed
//mad:variant of=PortExtendedSpeedsCounters.Counters name=rs_fec
//mad:source rdma-core libibmad/fields.c PortExtendedSpeedsCounters RSFEC Active fields
type RSFECCounters struct {
	_ [24]uint8 `mad:"0:8"`
	// FECCorrectableSymbolCtrLane counts symbols that were corrected, on each lane.
	FECCorrectableSymbolCtrLane [12]uint32 `mad:"192:32"`
	_                           [48]uint8  `mad:"576:8"`
	// PortFECCorrectableBlockCtr counts blocks that were corrected.
	PortFECCorrectableBlockCtr uint32 `mad:"960:32"`
	// PortFECUncorrectableBlockCtr counts blocks that could not be corrected.
	PortFECUncorrectableBlockCtr uint32 `mad:"992:32"`
	// PortFECCorrectedSymbolCtr counts symbols that were corrected.
	PortFECCorrectedSymbolCtr uint32 `mad:"1024:32"`
}

// Counters that agents may have beyond PortCounters. In a Set of any of them,
// CounterSelect selects the counters that take the values of the request.

// PortRcvErrorDetails counts received packets with errors, by cause.
//
//mad:attr class=Perf id=0x0015 methods=Get,Set size=16 section=16.1.4.1
//mad:source rdma-core libibmad/fields.c PortRcvErrorDetails fields
//mad:source python-rdma codegen/iba_16_1.xml PMPortRcvErrorDetails
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortRcvErrorDetails
type PortRcvErrorDetails struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortLocalPhysicalErrors counts packets with an error of the local link: CRC, delimiter.
	PortLocalPhysicalErrors uint16 `mad:"32:16"`
	// PortMalformedPacketErrors counts packets with a bad length, version or VL.
	PortMalformedPacketErrors uint16 `mad:"48:16"`
	// PortBufferOverrunErrors counts packets dropped because the buffer was full.
	PortBufferOverrunErrors uint16 `mad:"64:16"`
	// PortDLIDMappingErrors counts packets whose destination the switch does not know.
	PortDLIDMappingErrors uint16 `mad:"80:16"`
	// PortVLMappingErrors counts packets whose service level has no lane at the output port.
	PortVLMappingErrors uint16 `mad:"96:16"`
	// PortLoopingErrors counts packets whose output port is the port they came in through.
	PortLoopingErrors uint16 `mad:"112:16"`
}

// PortXmitDiscardDetails counts dropped outbound packets, by cause.
//
//mad:attr class=Perf id=0x0016 methods=Get,Set size=12 section=16.1.4.2
//mad:source rdma-core libibmad/fields.c PortXmitDiscardDetails fields
//mad:source python-rdma codegen/iba_16_1.xml PMPortXmitDiscardDetails
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortXmitDiscardDetails
type PortXmitDiscardDetails struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortInactiveDiscards counts packets dropped because the port was not active.
	PortInactiveDiscards uint16 `mad:"32:16"`
	// PortNeighborMTUDiscards counts packets that were too long for the neighbour.
	PortNeighborMTUDiscards uint16 `mad:"48:16"`
	// PortSwLifetimeLimitDiscards counts packets that were in the switch too long.
	PortSwLifetimeLimitDiscards uint16 `mad:"64:16"`
	// PortSwHOQLifetimeLimitDiscards counts packets that were at the head of their lane too long.
	PortSwHOQLifetimeLimitDiscards uint16 `mad:"80:16"`
}

// PortOpRcvCounters counts packets and data received with one operation code.
//
//mad:attr class=Perf id=0x0017 methods=Get,Set size=12 section=16.1.4.3
//mad:source rdma-core libibmad/fields.c PortOpRcvCounters fields
//mad:source python-rdma codegen/iba_16_1.xml PMPortOpRcvCounters
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortOpRcvCounters
type PortOpRcvCounters struct {
	// OpCode is the operation code.
	OpCode uint8 `mad:"0:8,hex"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortOpRcvPkts counts packets.
	PortOpRcvPkts uint32 `mad:"32:32"`
	// PortOpRcvData is the data, in units of 4 bytes.
	PortOpRcvData uint32 `mad:"64:32"`
}

// PortFlowCtlCounters counts flow control packets.
//
//mad:attr class=Perf id=0x0018 methods=Get,Set size=12 section=16.1.4.4
//mad:source rdma-core libibmad/fields.c PortFlowCtlCounters fields
//mad:source python-rdma codegen/iba_16_1.xml PMPortFlowCtlCounters
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortFlowCtlCounters
type PortFlowCtlCounters struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortXmitFlowPkts counts those sent.
	PortXmitFlowPkts uint32 `mad:"32:32"`
	// PortRcvFlowPkts counts those received.
	PortRcvFlowPkts uint32 `mad:"64:32"`
}

// PortVLOpPackets counts packets received with one operation code, on each lane.
//
//mad:attr class=Perf id=0x0019 methods=Get,Set size=36 section=16.1.4.5
//mad:source rdma-core libibmad/fields.c PortVLOpPackets fields
//mad:source python-rdma codegen/iba_16_1.xml PMPortVLOpPackets
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortVLOpPackets
type PortVLOpPackets struct {
	// OpCode is the operation code.
	OpCode uint8 `mad:"0:8,hex"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortVLOpPackets are the packets of each lane.
	PortVLOpPackets [16]uint16 `mad:"32:16"`
}

// PortVLOpData counts data received with one operation code, on each lane.
//
//mad:attr class=Perf id=0x001a methods=Get,Set size=68 section=16.1.4.6
//mad:source rdma-core libibmad/fields.c PortVLOpData fields
//mad:source python-rdma codegen/iba_16_1.xml PMPortVLOpData
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortVLOpData
type PortVLOpData struct {
	// OpCode is the operation code.
	OpCode uint8 `mad:"0:8,hex"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortVLOpData is the data of each lane, in units of 4 bytes.
	PortVLOpData [16]uint32 `mad:"32:32"`
}

// PortVLXmitFlowCtlUpdateErrors counts flow control packets that could not be
// sent in time, on each lane.
//
//mad:attr class=Perf id=0x001b methods=Get,Set size=8 section=16.1.4.7
//mad:source rdma-core libibmad/fields.c PortVLXmitFlowCtlUpdateErrors fields
//mad:source python-rdma codegen/iba_16_1.xml PMPortVLXmitFlowCtlUpdateErrors
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortVLXmitFlowCtlUpdateErrors
type PortVLXmitFlowCtlUpdateErrors struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortVLXmitFlowCtlUpdateErrors are the errors of each lane; they stop at 3.
	PortVLXmitFlowCtlUpdateErrors [16]uint8 `mad:"32:2"`
}

// PortVLXmitWaitCounters counts ticks during which there was data to send but
// no credit, on each lane.
//
//mad:attr class=Perf id=0x001c methods=Get,Set size=36 section=16.1.4.8
//mad:source rdma-core libibmad/fields.c PortVLXmitWaitCounters fields
//mad:source python-rdma codegen/iba_16_1.xml PMPortVLXmitWaitCounters
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortVLXmitWaitCounters
type PortVLXmitWaitCounters struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortVLXmitWait are the ticks of each lane.
	PortVLXmitWait [16]uint16 `mad:"32:16"`
}

// SwPortVLCongestion counts packets that met congestion at the output port of a
// switch, on each lane.
//
//mad:attr class=Perf id=0x0030 methods=Get,Set size=36 section=16.1.4.9
//mad:source rdma-core libibmad/fields.c SwPortVLCongestion fields
//mad:source python-rdma codegen/iba_16_1.xml PMSwPortVLCongestion
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h SwPortVLCongestion
type SwPortVLCongestion struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// SWPortVLCongestion are the packets of each lane.
	SWPortVLCongestion [16]uint16 `mad:"32:16"`
}

// PortXmitDataSL counts data sent, on each service level.
//
//mad:attr class=Perf id=0x0036 methods=Get,Set size=68 section=A13.6.5
//mad:source rdma-core libibmad/fields.c PortXmitDataSL fields
//mad:source opensm include/iba/ib_types.h ib_port_xmit_data_sl_t
//mad:source python-rdma codegen/iba_16_1.xml PMPortXmitDataSL
type PortXmitDataSL struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is service level n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortXmitDataSL is the data of each service level, in units of 4 bytes.
	PortXmitDataSL [16]uint32 `mad:"32:32"`
}

// PortRcvDataSL counts data received, on each service level.
//
//mad:attr class=Perf id=0x0037 methods=Get,Set size=68 section=A13.6.5
//mad:source rdma-core libibmad/fields.c PortRcvDataSL fields
//mad:source opensm include/iba/ib_types.h ib_port_rcv_data_sl_t
//mad:source python-rdma codegen/iba_16_1.xml PMPortRcvDataSL
type PortRcvDataSL struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// CounterSelect selects the counters of a Set: bit n is service level n.
	CounterSelect uint16 `mad:"16:16,hex,minor"`
	// PortRcvDataSL is the data of each service level, in units of 4 bytes.
	PortRcvDataSL [16]uint32 `mad:"32:32"`
}

// PortSamplesControl measures counters of a port during an interval.
//
//mad:attr class=Perf id=0x0010 methods=Get,Set size=80 section=16.1.3.2 modifier=mechanism:0:32
//mad:source rdma-core libibmad/fields.c PortSamplesControl fields
//mad:source opensm include/iba/ib_types.h ib_port_samples_control_t
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortSamplesControl
type PortSamplesControl struct {
	// OpCode is the operation code, for counters of one operation code.
	OpCode uint8 `mad:"0:8,hex"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8,minor"`
	// Tick is the length of a tick, as a code: 0 is 4 ns, each further code doubles it, 255 is a bit time.
	Tick uint8 `mad:"16:8,hex"`
	_    uint8 `mad:"24:5"`
	// CounterWidth is the width of the counters, as a code: 0 is 16 bits, each further code adds 4 bits.
	CounterWidth uint8 `mad:"29:3"`
	_            uint8 `mad:"32:2"`
	// CounterMask0 is what counter 0 can count: everything, some things or nothing.
	CounterMask0 uint8 `mad:"34:3,hex"`
	// CounterMasks1to9 are the same for counters 1 to 9, 3 bits each.
	CounterMasks1to9 uint32 `mad:"37:27,hex"`
	_                uint8  `mad:"64:1"`
	// CounterMasks10to14 are the same for counters 10 to 14, 3 bits each.
	CounterMasks10to14 uint16 `mad:"65:15,hex"`
	// SampleMechanisms is one less than the number of measurements that can run at a time.
	SampleMechanisms uint8 `mad:"80:8"`
	_                uint8 `mad:"88:6"`
	// SampleStatus is the progress of the measurement.
	SampleStatus SampleStatus `mad:"94:2"`
	// OptionMask are the things that can be counted, a bit each.
	OptionMask uint64 `mad:"96:64,hex"`
	// VendorMask are the vendor-specific things that can be counted, a bit each.
	VendorMask uint64 `mad:"160:64,hex"`
	// SampleStart is the time before the measurement, in ticks.
	SampleStart uint32 `mad:"224:32"`
	// SampleInterval is the length of the measurement, in ticks.
	SampleInterval uint32 `mad:"256:32"`
	// Tag is copied to the results.
	Tag uint16 `mad:"288:16,hex"`
	// CounterSelect is what each counter counts.
	CounterSelect [15]SampleSelect `mad:"304:16,hex,minor"`
	_             uint32           `mad:"544:32"`
	// SamplesOnlyOptionMask are the things that can be counted only in a measurement, a bit each.
	SamplesOnlyOptionMask uint64 `mad:"576:64,hex"`
}

// SampleStatus is the progress of a measurement (IBA 16.1.3.2).
//
//mad:enum
type SampleStatus uint8

const (
	SampleStatusDone     SampleStatus = 0
	SampleStatusNotBegun SampleStatus = 1
	SampleStatusRunning  SampleStatus = 2
)

// SampleSelect is what a counter counts (IBA 16.1.3.3; opensm
// include/iba/ib_types.h IB_CS_PORT_*).
//
//mad:enum
type SampleSelect uint16

const (
	SampleSelectNone         SampleSelect = 0
	SampleSelectPortXmitData SampleSelect = 1
	SampleSelectPortRcvData  SampleSelect = 2
	SampleSelectPortXmitPkts SampleSelect = 3
	SampleSelectPortRcvPkts  SampleSelect = 4
	SampleSelectPortXmitWait SampleSelect = 5
)

// PortSamplesResult are the results of a measurement.
//
//mad:attr class=Perf id=0x0011 methods=Get size=64 section=16.1.3.4 modifier=mechanism:0:32
//mad:source rdma-core libibmad/fields.c PortSamplesResult fields
//mad:source opensm include/iba/ib_types.h ib_port_samples_result_t
//mad:source python-rdma codegen/iba_16_1.xml PMPortSamplesRes
type PortSamplesResult struct {
	// Tag is that of PortSamplesControl.
	Tag uint16 `mad:"0:16,ro,hex"`
	_   uint16 `mad:"16:14"`
	// SampleStatus is the progress of the measurement.
	SampleStatus SampleStatus `mad:"30:2,ro"`
	// Counter are the counters, in the order of PortSamplesControl.CounterSelect.
	Counter [15]uint32 `mad:"32:32,ro"`
}

// PortSamplesResultExtended are the results of a measurement, with wider
// counters.
//
//mad:attr class=Perf id=0x001e methods=Get size=128 section=16.1.4.10 modifier=mechanism:0:32
//mad:source python-rdma codegen/iba_16_1.xml PMPortSamplesResExt
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortSamplesResultExtended
type PortSamplesResultExtended struct {
	// Tag is that of PortSamplesControl.
	Tag uint16 `mad:"0:16,ro,hex"`
	_   uint16 `mad:"16:14"`
	// SampleStatus is the progress of the measurement.
	SampleStatus SampleStatus `mad:"30:2,ro"`
	// ExtendedWidth is 1 if the counters have 48 bits, 2 if they have 64.
	ExtendedWidth uint8  `mad:"32:2,ro"`
	_             uint32 `mad:"34:30"`
	// Counter are the counters, in the order of PortSamplesControl.CounterSelect.
	Counter [15]uint64 `mad:"64:64,ro"`
}
