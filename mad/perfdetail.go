package mad

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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is service level n.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is service level n.
	CounterSelect uint16 `mad:"16:16,hex"`
	// PortRcvDataSL is the data of each service level, in units of 4 bytes.
	PortRcvDataSL [16]uint32 `mad:"32:32"`
}
