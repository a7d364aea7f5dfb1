package mad

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
