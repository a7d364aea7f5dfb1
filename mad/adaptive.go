package mad

// Adaptive routing (AR) and hash-based forwarding (HBF) of NVIDIA's and Mellanox' switches.

// AdaptiveRoutingInfo is what a switch supports of adaptive routing, and what is enabled.
//
// Where E is set, the AdaptiveRoutingLFT forwards packets, and the LinearForwardingTable
// may be out of date.
//
//mad:attr class=Subn id=0xff20 methods=Get,Set size=63 section=vendor capability=ar|ar_rev1 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ar_info_t, IB_AR_INFO_*
type AdaptiveRoutingInfo struct {
	_ uint8 `mad:"0:1"`
	// DynCapCalcSup is set if the switch can compute its capabilities for a configuration.
	DynCapCalcSup bool `mad:"1:1,ro"`
	// ByTranspCap is set if the fields DisUD to DisDC are valid.
	ByTranspCap bool `mad:"2:1,ro"`
	// BySLEn is set if only the service levels of EnableBySLMask are routed adaptively.
	BySLEn bool `mad:"3:1"`
	// BySLCap is set if BySLEn is supported.
	BySLCap bool `mad:"4:1,ro"`
	// GlbGroups is set if the groups are global; its meaning is not public.
	GlbGroups bool `mad:"5:1,name=GlbGroups"`
	// IS4Mode is set in the mode of InfiniScale IV; its meaning is not public.
	IS4Mode bool `mad:"6:1,name=IS4Mode"`
	// NoFallback is the flag of that name; its meaning is not public.
	NoFallback bool `mad:"7:1"`
	// DirNumSup is the number of directions of routing notifications.
	DirNumSup uint8 `mad:"8:8,ro"`
	// GroupTableCopySup is not 0 if AdaptiveRoutingGroupTableCopy is supported.
	GroupTableCopySup uint8 `mad:"16:4,ro"`
	// SubGrpsActive is the number of sub-groups in use in each group.
	SubGrpsActive uint8 `mad:"20:4"`
	_             uint8 `mad:"24:2"`
	// RNXmitEnabled is set if routing notifications are sent.
	RNXmitEnabled bool `mad:"26:1"`
	// FREnabled is set if fast recovery is on: another port of the group replaces one that is down.
	FREnabled bool `mad:"27:1"`
	// FRSup is set if fast recovery is supported.
	FRSup bool `mad:"28:1,ro"`
	// FRNSup is set if fault notifications are supported.
	FRNSup bool `mad:"29:1,ro"`
	// ARNSup is set if notifications of adaptive routing are supported.
	ARNSup bool `mad:"30:1,ro"`
	// E is set if adaptive routing is on.
	E bool `mad:"31:1,also=enabled"`
	// StringWidthCap is the width of the strings of notifications.
	StringWidthCap uint8 `mad:"32:4,ro"`
	// GroupTableCap is the capability of the group table of that name; its meaning is not public.
	GroupTableCap uint8 `mad:"36:4,ro"`
	// GroupTop is the last group in use.
	GroupTop uint16 `mad:"40:12"`
	// GroupCap is the largest number of groups.
	GroupCap uint16 `mad:"52:12,ro"`
	// EnableBySLMask are the service levels that are routed adaptively, a bit each, if BySLEn is set.
	EnableBySLMask uint16 `mad:"64:16,hex"`
	// SubGrpsSup is the number of sub-groups that are supported, primary and secondary.
	SubGrpsSup uint8 `mad:"80:8,ro"`
	// RNVersionCap is the latest version of routing notifications that is supported.
	RNVersionCap uint8 `mad:"88:4,ro"`
	// ARVersionCap is the latest version of adaptive routing that is supported.
	ARVersionCap uint8  `mad:"92:4,ro"`
	_            uint32 `mad:"96:28"`
	// DisDC is set if packets of the DC transport are not routed adaptively.
	DisDC bool `mad:"124:1,name=DisDC"`
	// DisUC is set if those of the UC transport are not.
	DisUC bool `mad:"125:1,name=DisUC"`
	// DisRC is set if those of the RC transport are not.
	DisRC bool `mad:"126:1,name=DisRC"`
	// DisUD is set if those of the UD transport are not.
	DisUD bool `mad:"127:1,name=DisUD"`
	// AgeingTime is the time in microseconds after which a flow in the bounded state may take another port.
	AgeingTime uint32 `mad:"128:32"`
	// HBFSup is set if hash-based forwarding is supported.
	HBFSup bool `mad:"160:1,ro"`
	// WHBFSup is set if weighted hash-based forwarding is supported.
	WHBFSup bool `mad:"161:1,ro"`
	// SymmetricHashSup is set if symmetric hashes are supported.
	SymmetricHashSup bool `mad:"162:1,ro"`
	// DCETHHashSup is set if hashes of the DCETH header are supported.
	DCETHHashSup bool `mad:"163:1,ro,name=DCETHHashSup"`
	// BTHDQPHashSup is set if hashes of the destination queue pair are supported.
	BTHDQPHashSup bool `mad:"164:1,ro,name=BTHDQPHashSup"`
	// ByVLCap is set if ByVLEn is supported; another macro of the source calls it support of NVLink's HBF.
	ByVLCap bool `mad:"165:1,ro"`
	// PFRNSup is set if pFRN is supported: switches notify their neighbours of faults by packets.
	PFRNSup bool   `mad:"166:1,ro,name=pFRNSup"`
	_       uint16 `mad:"167:9"`
	// HBFEn is set if hash-based forwarding is on.
	HBFEn bool `mad:"176:1"`
	// WHBFEn is set if weighted hash-based forwarding is on.
	WHBFEn bool `mad:"177:1"`
	// ByVLEn is set if adaptive routing depends on the virtual lane.
	ByVLEn bool `mad:"178:1"`
	// PFRNEn is set if pFRN is on.
	PFRNEn bool   `mad:"179:1,name=pFRNEn"`
	_      uint16 `mad:"180:12"`
	// WHBFGranularity is the granularity of the weights; the source gives no unit.
	WHBFGranularity uint8  `mad:"192:3"`
	_               uint16 `mad:"195:13"`
	// EnableBySLMaskHBF are the service levels with hash-based forwarding, a bit each.
	EnableBySLMaskHBF uint16    `mad:"208:16,hex,name=EnableBySLMaskHBF"`
	_                 [35]uint8 `mad:"224:8"`
}

// AdaptiveRoutingGroupTable is two sub-groups of ports. A group has SubGrpsActive of them:
// sub-group s of group g is entry g*SubGrpsActive+s of the table.
//
//mad:attr class=Subn id=0xff21 methods=Get,Set size=64 section=vendor modifier=block:0:16 inferred capability=ar|ar_rev1 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ar_group_table_t
type AdaptiveRoutingGroupTable struct {
	// SubGroupA are the ports of entry 2*block; port p is bit p%8 of byte 31-p/8.
	SubGroupA [32]byte `mad:"0:256,bytes"`
	// SubGroupB are the ports of entry 2*block+1.
	SubGroupB [32]byte `mad:"256:256,bytes"`
}

// AdaptiveRoutingLFT is a block of 16 LIDs of the table that forwards packets adaptively.
//
//mad:attr class=Subn id=0xff23 methods=Get,Set size=64 section=vendor modifier=block:0:16 inferred capability=ar|ar_rev1 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ar_lft_t, IB_AR_LFT_BLOCK_SIZE
type AdaptiveRoutingLFT struct {
	// Entry are the LIDs 16*block to 16*block+15.
	Entry [16]AdaptiveRoutingEntry `mad:"0:32"`
}

// AdaptiveRoutingEntry is the way to a LID.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ar_lft_entry_t, IB_AR_LID_STATE_*
type AdaptiveRoutingEntry struct {
	// State is how the port is chosen.
	State ARState `mad:"0:2,name=LIDState"`
	_     uint8   `mad:"2:2"`
	// Table is the number of the table; its meaning is not public.
	Table uint8 `mad:"4:4"`
	// Port is the port of packets that are not routed adaptively.
	Port uint8 `mad:"8:8"`
	// Group is the group of ports of the others.
	Group uint16 `mad:"16:16"`
}

// ARState is how a switch chooses the port to a LID (opensm-mlnx include/iba/ib_types.h
// IB_AR_LID_STATE_*; HBF: include/opensm/osm_advanced_routing.h).
//
//mad:enum
type ARState uint8

const (
	ARStateBounded ARState = 0 // "bounded", a flow keeps its port until AgeingTime passes without a packet
	ARStateFree    ARState = 1 // "free", for each packet
	ARStateStatic  ARState = 2 // "static", always the same port
	ARStateHBF     ARState = 3 // "hbf", by a hash of the headers
)

// HBFConfig is how a switch computes the hash of hash-based forwarding.
//
//mad:attr class=Subn id=0xff24 methods=Get,Set size=54 section=vendor modifier=unknown capability=ar|ar_rev1 needs=AdaptiveRoutingInfo.HBFSup safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_hbf_config_t
type HBFConfig struct {
	// HashType is the function: 0 is CRC, 1 XOR.
	HashType HBFHashType `mad:"0:4"`
	_        uint8       `mad:"4:2"`
	// SeedType is 0 for the seed below, 1 for a random one.
	SeedType HBFSeedType `mad:"6:2"`
	_        [7]uint8    `mad:"8:8"`
	// Seed is the seed of the hash.
	Seed uint32 `mad:"64:32,hex"`
	// FieldsEnable are the fields of the headers in the hash, a bit each.
	FieldsEnable uint64    `mad:"96:64,hex"`
	_            [34]uint8 `mad:"160:8"`
}

// HBFHashType is the function of hash-based forwarding (opensm-mlnx
// include/opensm/osm_subnet.h hbf_hash_type).
//
//mad:enum
type HBFHashType uint8

const (
	HBFHashTypeCRC HBFHashType = 0
	HBFHashTypeXOR HBFHashType = 1
)

// HBFSeedType is where the seed of hash-based forwarding comes from (opensm-mlnx
// include/iba/ib_types.h ib_hbf_config_t).
//
//mad:enum
type HBFSeedType uint8

const (
	HBFSeedTypeConfigured HBFSeedType = 0
	HBFSeedTypeRandom     HBFSeedType = 1
)

// WeightedHBFConfig is the weights of the sub-groups in hash-based forwarding, of a block
// of 16 groups.
//
//mad:attr class=Subn id=0xff25 methods=Get,Set size=64 section=vendor modifier=unknown capability=ar|ar_rev1 needs=AdaptiveRoutingInfo.WHBFSup safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_whbf_config_t, WHBF_BLOCK_SIZE
type WeightedHBFConfig struct {
	// Group are the groups of the block.
	Group [16]HBFWeights `mad:"0:32"`
}

// HBFWeights are the weights of the sub-groups of a group.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ar_group_hbf_weight_t
type HBFWeights struct {
	_ uint8 `mad:"0:8"`
	// SG0Weight is the weight of sub-group 0.
	SG0Weight uint8 `mad:"8:8,name=SG0_Weight"`
	// SG1Weight is the weight of sub-group 1.
	SG1Weight uint8 `mad:"16:8,name=SG1_Weight"`
	// SG2Weight is the weight of sub-group 2.
	SG2Weight uint8 `mad:"24:8,name=SG2_Weight"`
}

// AdaptiveRoutingGroupTableCopy copies a group to ranges of groups.
//
//mad:attr class=Subn id=0xffbd methods=Set size=64 section=vendor modifier=group:0:12 capability=ar|ar_rev1 needs=AdaptiveRoutingInfo.GroupTableCopySup unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ar_group_copy_t, OSM_AR_GROUP_COPY_ATTR_MOD_SRC_GROUP_MASK
type AdaptiveRoutingGroupTableCopy struct {
	// Range are the ranges that become equal to the group.
	Range [16]ARGroupRange `mad:"0:32"`
}

// ARGroupRange is a range of groups.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_ar_group_copy_entry_t (whose comments have the two the other way round)
type ARGroupRange struct {
	_ uint8 `mad:"0:4"`
	// LastIndex is the last group.
	LastIndex uint16 `mad:"4:12"`
	_         uint8  `mad:"16:4"`
	// FirstIndex is the first group.
	FirstIndex uint16 `mad:"20:12"`
}
