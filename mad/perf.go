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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0: SymbolErrorCounter to VL15Dropped, then data and packets.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	CounterSelect2 uint8 `mad:"144:8,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set, PortXmitData to PortMulticastRcvPkts from bit 0.
	CounterSelect uint16 `mad:"16:16,hex"`
	// CounterSelect2 selects the counters of a Set, SymbolErrorCounter to QP1Dropped from bit 0.
	CounterSelect2 uint32 `mad:"32:32,hex"`
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
