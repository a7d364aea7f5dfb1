//go:build linux

package builtins

import "strings"

// The fields that smpquery shows, and ours.

var nodeInfoColumns = []column{
	{"BaseVers", "base_version", plainly},
	{"ClassVers", "class_version", plainly},
	{"NodeType", "node_type", word(nodeTypeWords)},
	{"NumPorts", "num_ports", plainly},
	{"SystemGuid", "system_image_guid", plainly},
	{"Guid", "node_guid", plainly},
	{"PortGuid", "port_guid", plainly},
	{"PartCap", "partition_cap", plainly},
	{"DevId", "device_id", asHex(4)},
	{"Revision", "revision", asHex(8)},
	{"LocalPort", "local_port_num", plainly},
	{"VendorId", "vendor_id", asHex(6)},
}

var nodeDescriptionColumns = []column{
	{"Node Description", "node_string", mangled},
}

// mangled is what smpquery leaves of a name: bytes that are not ASCII become
// blanks, the last of 64 is cut off.
func mangled(a attributes, field string) string {
	var b strings.Builder
	name := a.text(field)
	for i := range min(len(name), 63) {
		if c := name[i]; c < ' ' || c > '~' {
			b.WriteByte(' ')
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

var switchInfoColumns = []column{
	{"LinearFdbCap", "linear_fdb_cap", plainly},
	{"RandomFdbCap", "random_fdb_cap", plainly},
	{"McastFdbCap", "multicast_fdb_cap", plainly},
	{"LinearFdbTop", "linear_fdb_top", plainly},
	{"DefPort", "default_port", plainly},
	{"DefMcastPrimPort", "default_multicast_primary_port", plainly},
	{"DefMcastNotPrimPort", "default_multicast_not_primary_port", plainly},
	{"LifeTime", "life_time_value", plainly},
	{"StateChange", "port_state_change", plainly},
	{"OptSLtoVLMapping", "optimized_sl_to_vl_mapping_programming", plainly},
	{"LidsPerPort", "lids_per_port", plainly},
	{"PartEnforceCap", "partition_enforcement_cap", plainly},
	{"InboundPartEnf", "inbound_enforcement_cap", plainly},
	{"OutboundPartEnf", "outbound_enforcement_cap", plainly},
	{"FilterRawInbound", "filter_raw_packet_inbound_cap", plainly},
	{"FilterRawOutbound", "filter_raw_packet_outbound_cap", plainly},
	{"EnhancedPort0", "enhanced_port0", plainly},
	{"MulticastFDBTop", "multicast_fdb_top", asHex(4)},
}

var portInfoColumns = []column{
	{"Mkey", "m_key", word(map[string]string{"none": "<not displayed>", "hidden": "<not displayed>"})},
	{"GidPrefix", "gid_prefix", asHex(16)},
	{"Lid", "lid", plainly},
	{"SMLid", "master_sm_lid", plainly},
	{"CapMask", "capability_mask", maskAndWords(capabilityWords)},
	{"DiagCode", "diag_code", asHex(4)},
	{"MkeyLeasePeriod", "m_key_lease_period", plainly},
	{"LocalPort", "local_port_num", plainly},
	{"LinkWidthEnabled", "link_width_enabled", wordsOr("0", widthWords)},
	{"LinkWidthSupported", "link_width_supported", wordsOr("0", widthWords)},
	{"LinkWidthActive", "link_width_active", word(widthWords)},
	{"LinkSpeedSupported", "link_speed_supported", wordsOr("0", speedWords)},
	{"LinkState", "port_state", word(stateWords)},
	{"PhysLinkState", "port_physical_state", word(physicalWords)},
	{"LinkDownDefState", "link_down_default_state", word(physicalWords)},
	{"ProtectBits", "m_key_protect_bits", plainly},
	{"LMC", "lmc", plainly},
	{"LinkSpeedActive", "link_speed_active", word(speedWords)},
	{"LinkSpeedEnabled", "link_speed_enabled", wordsOr("0", speedWords)},
	{"NeighborMTU", "neighbor_mtu", plainly},
	{"SMSL", "master_sm_sl", plainly},
	{"VLCap", "vl_cap", word(lanesWords)},
	{"InitType", "init_type", asHex(2)},
	{"VLHighLimit", "vl_high_limit", plainly},
	{"VLArbHighCap", "vl_arbitration_high_cap", plainly},
	{"VLArbLowCap", "vl_arbitration_low_cap", plainly},
	{"InitReply", "init_type_reply", asHex(2)},
	{"MtuCap", "mtu_cap", plainly},
	{"VLStallCount", "vl_stall_count", plainly},
	{"HoqLife", "hoq_life", plainly},
	{"OperVLs", "operational_vls", word(lanesWords)},
	{"PartEnforceInb", "partition_enforcement_inbound", plainly},
	{"PartEnforceOutb", "partition_enforcement_outbound", plainly},
	{"FilterRawInb", "filter_raw_inbound", plainly},
	{"FilterRawOutb", "filter_raw_outbound", plainly},
	{"MkeyViolations", "m_key_violations", plainly},
	{"PkeyViolations", "p_key_violations", plainly},
	{"QkeyViolations", "q_key_violations", plainly},
	{"GuidCap", "guid_cap", plainly},
	{"ClientReregister", "client_reregister", plainly},
	{"McastPkeyTrapSuppressionEnabled", "multicast_p_key_trap_suppression_enabled", plainly},
	{"SubnetTimeout", "subnet_time_out", plainly},
	{"RespTimeVal", "resp_time_value", plainly},
	{"LocalPhysErr", "local_phy_errors", plainly},
	{"OverrunErr", "overrun_errors", plainly},
	{"MaxCreditHint", "max_credit_hint", plainly},
	{"RoundTrip", "link_round_trip_latency", plainly},
	{"CapabilityMask2", "capability_mask2", maskAndWords(capability2Words)},
	{"LinkSpeedExtActive", "link_speed_ext_active", word(speedExtWords)},
	{"LinkSpeedExtSupported", "link_speed_ext_supported", wordsOr("0", speedExtWords)},
	{"LinkSpeedExtEnabled", "link_speed_ext_enabled", wordsOr("0", speedExtWords)},
	// Speeds from XDR on are younger than the tool.
	{"", "link_speed_ext_active2", nil},
	{"", "link_speed_ext_supported2", nil},
	{"", "link_speed_ext_enabled2", nil},
}

// Our words, and those of the tools for the same.
var (
	nodeTypeWords = map[string]string{"ca": "Channel Adapter", "switch": "Switch", "router": "Router"}
	widthWords    = map[string]string{"1x": "1X", "2x": "2X", "4x": "4X", "8x": "8X", "12x": "12X"}
	speedWords    = map[string]string{"sdr": "2.5 Gbps", "ddr": "5.0 Gbps", "qdr": "10.0 Gbps"}
	speedExtWords = map[string]string{"none": "No Extended Speed", "fdr": "14.0625 Gbps", "edr": "25.78125 Gbps", "hdr": "53.125 Gbps"}
	lanesWords    = map[string]string{"none": "None", "vl0": "VL0", "vl0_1": "VL0-1", "vl0_3": "VL0-3", "vl0_7": "VL0-7", "vl0_14": "VL0-14"}
	stateWords    = map[string]string{"down": "Down", "init": "Initialize", "armed": "Armed", "active": "Active"}
	physicalWords = map[string]string{"sleep": "Sleep", "polling": "Polling", "disabled": "Disabled", "link_up": "LinkUp"}

	capabilityWords = map[string]string{
		"is_sm":                               "IsSM",
		"is_trap_supported":                   "IsTrapSupported",
		"is_sl_mapping_supported":             "IsSLMappingSupported",
		"is_extended_speeds_supported":        "IsExtendedSpeedsSupported",
		"is_capability_mask2_supported":       "IsCapabilityMask2Supported",
		"is_vendor_class_supported":           "IsVendorClassSupported",
		"is_capability_mask_notice_supported": "IsCapabilityMaskNoticeSupported",
	}
	capability2Words = map[string]string{
		"is_link_width2x_supported":   "IsLinkWidth2xSupported",
		"is_link_speed_hdr_supported": "IsLinkSpeedHDRSupported",
	}
)
