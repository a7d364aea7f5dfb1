package mad

// Counters whose layout is in rdma-core only (libibmad/fields.c, used by
// perfquery); the first four bytes are as in all counters.

// PortRcvConCtrl counts congestion notifications received.
//
//mad:attr class=Perf id=0x0031 methods=Get,Set size=12 section=A10.5 unconfirmed
//mad:source rdma-core libibmad/fields.c PortRcvConCtrl fields
type PortRcvConCtrl struct {
	_ uint8 `mad:"0:8"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is service level n.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is service level n.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set, in wire order from bit 0.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	PortSelect uint8 `mad:"8:8"`
	// CounterSelect selects the counters of a Set: bit n is lane n.
	CounterSelect uint16 `mad:"16:16,hex"`
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
	CounterSelect uint64 `mad:"64:64,hex"`
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
