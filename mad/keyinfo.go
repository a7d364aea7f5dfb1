package mad

// The keys of NVIDIA's vendor classes: 0x0A (VS) and 0x0C, between nodes (N2N).

// VSKeyInfo is the key that protects class 0x0A.
//
//mad:attr class=Vendor0A id=0x000f name=KeyInfo methods=Get,Set size=14 section=vendor offset=32 needs=ClassPortInfo.CapabilityMask&0x0100 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_vend_key_info_t, ib_vs_mad_t, IB_VS_CAPMASK_VENDKEY_SUPPORTED
type VSKeyInfo struct {
	// VSKey is the key.
	VSKey uint64 `mad:"0:64,name=VS_Key,key,hex"`
	// ProtectBit is set if the key protects.
	ProtectBit bool   `mad:"64:1"`
	_          uint16 `mad:"65:15"`
	// LeasePeriod is the time in seconds after which ProtectBit returns to 0; 0 is never.
	LeasePeriod uint16 `mad:"80:16"`
	// Violations counts requests with a wrong key.
	Violations uint16 `mad:"96:16"`
}

// N2NKeyInfo is the key that protects the requests of a manager in class 0x0C.
//
//mad:attr class=Vendor0C id=0x000f name=KeyInfo methods=Get,Set size=16 section=vendor offset=32 needs=ClassPortInfo safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_n2n_key_info_t, ib_n2n_mad_t
type N2NKeyInfo struct {
	// N2NMgrKey is the key of managers.
	N2NMgrKey uint64 `mad:"0:64,key,hex"`
	// ProtectBit is set if the key protects.
	ProtectBit bool   `mad:"64:1"`
	_          uint16 `mad:"65:15"`
	// LeasePeriod is the time in seconds after which ProtectBit returns to 0; 0 is never.
	LeasePeriod uint16 `mad:"80:16"`
	// Violations counts requests of managers with a wrong key.
	Violations uint16 `mad:"96:16"`
	// NodeKeyViolations counts requests of nodes with a wrong key.
	NodeKeyViolations uint16 `mad:"112:16"`
}

// NeighborsInfo is the nodes behind 14 ports of a switch.
//
//mad:attr class=Vendor0C id=0x0010 methods=Get,Set size=224 section=vendor offset=32 needs=ClassPortInfo modifier=block:0:4 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_neighbors_info_t, N2N_NEIGHBORS_*
type NeighborsInfo struct {
	// Neighbor are the nodes behind the ports of the block.
	Neighbor [14]NeighborRecord `mad:"0:128"`
}

// NeighborRecord is the node behind a port.
//
//mad:header size=16 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_neighbor_record_t
type NeighborRecord struct {
	// NodeType is the type in its NodeInfo.
	NodeType NodeType `mad:"0:3"`
	_        uint16   `mad:"3:13"`
	// LID is the LID of the node.
	LID LID    `mad:"16:16"`
	_   uint32 `mad:"32:32"`
	// N2NKey is the key of the node.
	N2NKey uint64 `mad:"64:64,key,hex"`
}
