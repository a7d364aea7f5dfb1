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

// Private forwarding tables (pLFTs) of NVIDIA's and Mellanox' switches: the input port and
// the service level of a packet select the table that forwards it.

// PrivateLFTInfo is what a switch supports of private forwarding tables.
//
//mad:attr class=Subn id=0xff10 methods=Get,Set size=18 section=vendor capability=private_lft safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_info_t
type PrivateLFTInfo struct {
	_ uint8 `mad:"0:8"`
	// NumPLFTs is the number of tables in all banks; 0 means 36.
	NumPLFTs uint8 `mad:"8:8,ro"`
	// ModeCap is the number of modes that the switch supports.
	ModeCap uint8 `mad:"16:8,ro"`
	// ActiveMode is the mode in use, from 1 on; 0 means that private tables are off.
	ActiveMode uint8 `mad:"24:8"`
	// Mode are the modes from 1 on.
	Mode [7]PrivateLFTMode `mad:"32:16,ro"`
}

// PrivateLFTMode is a mode of private forwarding tables: the number and size of the banks.
//
//mad:header size=2 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_bank_entry_t
type PrivateLFTMode struct {
	// BankSize is the largest size of a bank, in units of 1024 LIDs.
	BankSize uint8 `mad:"0:8,ro"`
	// NumBanks is the number of independent banks.
	NumBanks uint8 `mad:"8:8,ro"`
}

// PrivateLFTDef is the place of 16 private forwarding tables in their banks.
//
//mad:attr class=Subn id=0xff11 methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=private_lft safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_def_t, IB_PLFT_DEF_BLOCK_SIZE
type PrivateLFTDef struct {
	// Table are the tables 16*block to 16*block+15.
	Table [16]PrivateLFTPlace `mad:"0:32"`
}

// PrivateLFTPlace is the place of a private forwarding table.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_def_element_t
type PrivateLFTPlace struct {
	// ForceSubGroup0Bank is a flag (force sub-group 0) and the index of the bank; the source does not divide the byte.
	ForceSubGroup0Bank uint8 `mad:"0:8,hex"`
	// LIDSpace is the size of the table, from 1 to 96, in units of 512 LIDs.
	LIDSpace uint8 `mad:"8:8"`
	_        uint8 `mad:"16:8"`
	// LIDOffset is the begin of the table in the bank, in units of 512 LIDs.
	LIDOffset uint8 `mad:"24:8"`
}

// PrivateLFTMap is the ports that share a private forwarding table, and its last LID.
//
//mad:attr class=Subn id=0xff12 methods=Get,Set size=64 section=vendor modifier=plft:0:32 capability=private_lft safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_plft_map_t, IB_PLFT_MAP_CONTROL_MAP_*
type PrivateLFTMap struct {
	_ uint32 `mad:"0:30"`
	// LFTTopEnable is set if LFTTop is valid.
	LFTTopEnable bool `mad:"30:1"`
	// PortMaskEnable is set if PortGroupMask is valid.
	PortMaskEnable bool `mad:"31:1"`
	// PortGroupMask are the ports that use the table; port p is bit p%8 of byte 31-p/8.
	PortGroupMask [32]byte `mad:"32:256,bytes"`
	_             uint16   `mad:"288:16"`
	// LFTTop is the last LID of the table.
	LFTTop LID       `mad:"304:16"`
	_      [24]uint8 `mad:"320:8"`
}

// PortSLToPrivateLFTMap is the private forwarding table of each port and service level, of
// a block of 4 ports.
//
//mad:attr class=Subn id=0xff14 methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=port_sl_to_private_lft safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_port_sl_to_plft_map_t, IB_PORT_SL_TO_PLFT_MAP_BLOCK_SIZE
type PortSLToPrivateLFTMap struct {
	// PLFTID are the tables: element 16*i+SL is that of packets with this SL that enter through port 4*block+i.
	PLFTID [64]uint8 `mad:"0:8"`
}

// Notifications of routing between NVIDIA's switches: strings (RN) or packets (pFRN).

// PFRNConfig is how a switch notifies its neighbours of faults by packets.
//
//mad:attr class=Subn id=0xff61 name=pFRNConfig methods=Get,Set size=60 section=vendor capability=ar|ar_rev1 needs=AdaptiveRoutingInfo.PFRNSup safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_pfrn_config_t, IB_PFRN_*
type PFRNConfig struct {
	_ uint32 `mad:"0:31"`
	// PolicySup is set if Policy is supported.
	PolicySup bool   `mad:"31:1,ro"`
	_         uint32 `mad:"32:32"`
	// SL is the service level of the packets.
	SL uint8  `mad:"64:4"`
	_  uint32 `mad:"68:24"`
	// Policy is which faults are reported.
	Policy PFRNPolicy `mad:"92:4"`
	// MaskForceClearTimeout is the time in seconds from the last clearing of the mask of ports to the next.
	MaskForceClearTimeout uint16 `mad:"96:16"`
	// MaskClearTimeout is the time in seconds from the last packet to the clearing of the mask.
	MaskClearTimeout uint16     `mad:"112:16"`
	_                [11]uint32 `mad:"128:32"`
}

// PFRNPolicy is which faults a switch reports by packets (opensm-mlnx
// include/iba/ib_types.h IB_PFRN_POLICY_*).
//
//mad:enum
type PFRNPolicy uint8

const (
	PFRNPolicyTree      PFRNPolicy = 0 // "tree", those of sub-group 0
	PFRNPolicyDragonfly PFRNPolicy = 1 // "dragonfly", those of the sub-groups 0 and 1
)

// RNGenStringTable is the strings that a switch sends for 32 directions.
//
//mad:attr class=Subn id=0xffb8 methods=Get,Set size=64 section=vendor modifier=unknown capability=ar|ar_rev1 needs=AdaptiveRoutingInfo.ARNSup|AdaptiveRoutingInfo.FRNSup safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rn_gen_string_table_t
type RNGenStringTable struct {
	// String are the strings of the directions of the block.
	String [32]uint16 `mad:"0:16,hex"`
}

// RNRcvString is what a switch does with 16 strings that it receives.
//
//mad:attr class=Subn id=0xffb9 methods=Get,Set size=64 section=vendor modifier=unknown capability=ar|ar_rev1 needs=AdaptiveRoutingInfo.ARNSup|AdaptiveRoutingInfo.FRNSup safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rn_rcv_string_table_t
type RNRcvString struct {
	// Entry are the strings of the block.
	Entry [16]RNRcvEntry `mad:"0:32"`
}

// RNRcvEntry is what a switch does with a string.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rn_rcv_string_entry_t
type RNRcvEntry struct {
	// String2String is the string that replaces it if the decision is pass_on.
	String2String uint16 `mad:"0:16,hex,name=String2String"`
	// PLFTID is the private forwarding table to use, unless the decision is discard.
	PLFTID uint8 `mad:"16:8"`
	// Decision is what is done.
	Decision RNDecision `mad:"24:8"`
}

// RNDecision is what a switch does with a notification (opensm-mlnx
// include/iba/ib_types.h ib_rn_rcv_string_entry_t).
//
//mad:enum
type RNDecision uint8

const (
	RNDecisionDiscard       RNDecision = 0
	RNDecisionConsumeARN    RNDecision = 1 // "consume_arn"
	RNDecisionConsumeARNFRN RNDecision = 2 // "consume_arn_frn"
	RNDecisionPassOn        RNDecision = 3
)

// RNSubGroupDirectionTable is the directions of 64 sub-groups.
//
//mad:attr class=Subn id=0xffba methods=Get,Set size=64 section=vendor modifier=unknown capability=ar|ar_rev1 needs=AdaptiveRoutingInfo.ARNSup|AdaptiveRoutingInfo.FRNSup safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rn_sub_group_direction_table_t
type RNSubGroupDirectionTable struct {
	// Direction are the directions of the sub-groups of the block.
	Direction [64]uint8 `mad:"0:8"`
}

// RNXmitPortMask is the notifications that may be sent through 128 ports.
//
//mad:attr class=Subn id=0xffbc methods=Get,Set size=64 section=vendor modifier=unknown capability=ar|ar_rev1 needs=AdaptiveRoutingInfo.ARNSup|AdaptiveRoutingInfo.FRNSup safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rn_xmit_port_mask_t, IB_RN_XMIT_PORT_MASK_* (it does not say which half of a byte is the even port)
type RNXmitPortMask struct {
	// PortPair are pairs of ports; each half of a byte is a mask: 1 is ARN, 2 FRN, 4 passes strings on.
	PortPair [64]uint8 `mad:"0:8,hex"`
}

// RNGenBySubGroupPriority is the notifications that a switch generates by the priority of
// the sub-group.
//
//mad:attr class=Subn id=0xffbe methods=Get,Set size=64 section=vendor capability=ar|ar_rev1 needs=AdaptiveRoutingInfo.ARNSup|AdaptiveRoutingInfo.FRNSup safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rn_gen_by_sub_group_priority_t, IB_RN_GEN_BY_SUB_GROUP_PRIORITY_*
type RNGenBySubGroupPriority struct {
	// Priority are the priorities from 0 on.
	Priority [16]RNGenPriority `mad:"0:32"`
}

// RNGenPriority is the notifications for a priority.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h IB_RN_GEN_BY_SUB_GROUP_PRIORITY_*
type RNGenPriority struct {
	_ uint32 `mad:"0:30"`
	// GenFRN is set if fault notifications are generated.
	GenFRN bool `mad:"30:1"`
	// GenARN is set if notifications of adaptive routing are generated.
	GenARN bool `mad:"31:1"`
}

// Routers of NVIDIA.

// RouterInfo is what a router supports, the sizes of its tables and its ranges of LIDs (FLIDs).
//
//mad:attr class=Subn id=0xffd0 methods=Get,Set size=40 section=vendor onlyrouters safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_router_info_t, IB_ROUTER_*
type RouterInfo struct {
	_ uint32 `mad:"0:31"`
	// PFRNSup is set if pFRN is supported.
	PFRNSup bool `mad:"31:1,ro,name=pFRNSup"`
	// NextHopCap is the number of entries of NextHopTable.
	NextHopCap uint32 `mad:"32:32,ro"`
	// NextHopTop is the number of entries in use.
	NextHopTop uint32 `mad:"64:32,ro"`
	// ATC is set if AdjSiteLocalSubnetsTable has changed.
	ATC bool `mad:"96:1"`
	// NHTC is set if NextHopTable has changed.
	NHTC bool `mad:"97:1"`
	// ALTC is set if the information on adjacent subnets has changed.
	ALTC bool `mad:"98:1"`
	// RLTC is set if RouterLIDTable has changed.
	RLTC bool `mad:"99:1"`
	// ARLITC is set if AdjSubnetsRouterLIDInfo has changed.
	ARLITC bool   `mad:"100:1"`
	_      uint16 `mad:"101:11"`
	// AdjSubnetsTop is the number of entries of AdjSiteLocalSubnetsTable in use.
	AdjSubnetsTop uint8 `mad:"112:8,ro"`
	// AdjSubnetsCap is its size.
	AdjSubnetsCap uint8 `mad:"120:8,ro"`
	// CapSupportedSubnets is the number of subnets that are supported.
	CapSupportedSubnets uint8 `mad:"128:8,ro"`
	_                   uint8 `mad:"136:8"`
	// ARGroupToLIDCap is the size of ARGroupToRouterLIDTable.
	ARGroupToLIDCap uint16 `mad:"144:16,ro,name=ARGroupToLIDCap"`
	_               uint8  `mad:"160:7"`
	// PFRNRtrEn is set if the router passes pFRN on.
	PFRNRtrEn bool `mad:"167:1,name=pFRNRtrEn"`
	// AdjLIDInfoTop is the number of entries of AdjSubnetsRouterLIDInfo in use.
	AdjLIDInfoTop uint8 `mad:"168:8"`
	// RouterLIDCap is the number of FLIDs that are supported.
	RouterLIDCap uint16 `mad:"176:16,ro"`
	// MaxARGroupID is the largest group of adaptive routing.
	MaxARGroupID uint16 `mad:"192:12,name=MaxARGroupID"`
	// GlobalLIDStart is the first FLID of all subnets.
	GlobalLIDStart uint32 `mad:"204:20"`
	_              uint16 `mad:"224:12"`
	// GlobalLIDEnd is the last.
	GlobalLIDEnd uint32 `mad:"236:20"`
	_            uint16 `mad:"256:12"`
	// LocalLIDStart is the first FLID of this subnet.
	LocalLIDStart uint32 `mad:"268:20"`
	_             uint16 `mad:"288:12"`
	// LocalLIDEnd is the last.
	LocalLIDEnd uint32 `mad:"300:20"`
}

// NextHopTable is the subnets that a router leads to, 4 at a time.
//
//mad:attr class=Subn id=0xffd1 methods=Get size=64 section=vendor modifier=block:0:32 onlyrouters safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_next_hop_table_block_t
type NextHopTable struct {
	// Record are the entries 4*block to 4*block+3.
	Record [4]NextHop `mad:"0:128,ro"`
}

// NextHop is a subnet that a router leads to.
//
//mad:header size=16 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h rtr_next_hop_record_t
type NextHop struct {
	// SubnetPrefix is the prefix of the subnet.
	SubnetPrefix uint64 `mad:"0:64,ro,hex"`
	// Weight is the weight of the way.
	Weight uint8 `mad:"64:8,ro"`
	_      uint8 `mad:"72:8"`
	// PKey is the partition.
	PKey uint16 `mad:"80:16,ro,name=P_Key,hex"`
	_    uint32 `mad:"96:32"`
}

// AdjSiteLocalSubnetsTable is the subnets that a router is in, 8 at a time.
//
//mad:attr class=Subn id=0xffd2 methods=Get size=64 section=vendor modifier=block:0:32 onlyrouters safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_adj_table_block_t
type AdjSiteLocalSubnetsTable struct {
	// Record are the entries 8*block to 8*block+7.
	Record [8]AdjSubnet `mad:"0:64,ro"`
}

// AdjSubnet is a subnet that a router is in.
//
//mad:header size=8 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h rtr_adj_site_local_subn_record_t
type AdjSubnet struct {
	// PKey is the partition.
	PKey uint16 `mad:"0:16,ro,name=P_Key,hex"`
	// SubnetPrefixID is the end of the prefix of the subnet.
	SubnetPrefixID uint16 `mad:"16:16,ro,hex"`
	// PFRNMaxARGroupID is whether pFRN is enabled, and the largest group of adaptive routing; the source does not divide it.
	PFRNMaxARGroupID uint16 `mad:"32:16,ro,name=pFRNMaxARGroupID,hex"`
	// MasterSMLID is the LID of the subnet manager.
	MasterSMLID LID `mad:"48:16,ro"`
}

// AdjSubnetsRouterLIDInfo is the FLIDs of adjacent subnets, 8 at a time.
//
//mad:attr class=Subn id=0xffd5 methods=Get,Set size=64 section=vendor modifier=block:0:32 onlyrouters capability=router_lid safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_adj_subnets_lid_info_block_t, ib_rtr_adj_subnets_lid_info_tbl_get_*
type AdjSubnetsRouterLIDInfo struct {
	// Record are the entries 8*block to 8*block+7.
	Record [8]AdjSubnetLIDs `mad:"0:64"`
}

// AdjSubnetLIDs is the FLIDs of an adjacent subnet.
//
//mad:header size=8 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_adj_subnets_lid_info_tbl_get_subnet_prefix, ib_rtr_adj_subnets_lid_info_tbl_get_local_lid_start, ib_rtr_adj_subnets_lid_info_tbl_get_local_lid_end
type AdjSubnetLIDs struct {
	// SubnetPrefixID is the end of the prefix of the subnet.
	SubnetPrefixID uint16 `mad:"0:16,hex"`
	// LocalLIDStart is the first FLID.
	LocalLIDStart uint32 `mad:"16:20"`
	_             uint8  `mad:"36:8"`
	// LocalLIDEnd is the last.
	LocalLIDEnd uint32 `mad:"44:20"`
}

// RouterLIDTable is the FLIDs that are enabled, 512 at a time.
//
//mad:attr class=Subn id=0xffd6 methods=Get,Set size=64 section=vendor modifier=block:0:32 onlyrouters capability=router_lid safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_router_lid_tbl_block_t (it does not state the order of the bits)
type RouterLIDTable struct {
	// LIDBits are 32 FLIDs each, a bit each.
	LIDBits [16]uint32 `mad:"0:32,hex"`
}

// ARGroupToRouterLIDTable is the FLIDs of 32 groups of adaptive routing.
//
//mad:attr class=Subn id=0xffd7 methods=Get,Set size=64 section=vendor modifier=block:0:32 onlyrouters capability=router_lid safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_ar_group_to_lid_tbl_block_t
type ARGroupToRouterLIDTable struct {
	// LID are the FLIDs of the groups 32*block to 32*block+31.
	LID [32]LID `mad:"0:16"`
}
