package trial

import (
	"strings"

	"fabsh/mad"
)

// labels are the names of libibmad for fields (rdma-core libibmad/fields.c).
var labels = map[*mad.Attribute]map[string]string{
	mad.AttrNodeInfo: {
		"BaseVers": "base_version", "ClassVers": "class_version", "NodeType": "node_type", "NumPorts": "num_ports", "SystemGuid": "system_image_guid",
		"Guid": "node_guid", "PartCap": "partition_cap", "DevId": "device_id", "Revision": "revision", "VendorId": "vendor_id",
	},
	mad.AttrNodeDescription: {"Node Description": "node_string"},
	mad.AttrPortInfo: {
		"GidPrefix": "gid_prefix", "Lid": "lid", "SMLid": "master_sm_lid", "CapMask": "capability_mask", "DiagCode": "diag_code",
		"LinkWidthEnabled": "link_width_enabled", "LinkWidthSupported": "link_width_supported", "LinkWidthActive": "link_width_active",
		"LinkSpeedSupported": "link_speed_supported", "LinkState": "port_state", "PhysLinkState": "port_physical_state", "LinkDownDefState": "link_down_default_state",
		"ProtectBits": "m_key_protect_bits", "LMC": "lmc", "LinkSpeedActive": "link_speed_active", "LinkSpeedEnabled": "link_speed_enabled",
		"NeighborMTU": "neighbor_mtu", "SMSL": "master_sm_sl", "VLCap": "vl_cap", "InitType": "init_type", "VLHighLimit": "vl_high_limit",
		"VLArbHighCap": "vl_arbitration_high_cap", "VLArbLowCap": "vl_arbitration_low_cap", "InitReply": "init_type_reply", "MtuCap": "mtu_cap",
		"VLStallCount": "vl_stall_count", "HoqLife": "hoq_life", "OperVLs": "operational_vls", "PartEnforceInb": "partition_enforcement_inbound",
		"PartEnforceOutb": "partition_enforcement_outbound", "FilterRawInb": "filter_raw_inbound", "FilterRawOutb": "filter_raw_outbound",
		"GuidCap": "guid_cap", "ClientReregister": "client_reregister", "McastPkeyTrapSuppressionEnabled": "multicast_p_key_trap_suppression_enabled",
		"SubnetTimeout": "subnet_time_out", "RespTimeVal": "resp_time_value", "LocalPhysErr": "local_phy_errors", "OverrunErr": "overrun_errors",
		"MaxCreditHint": "max_credit_hint", "RoundTrip": "link_round_trip_latency", "CapabilityMask2": "capability_mask2",
		"LinkSpeedExtActive": "link_speed_ext_active", "LinkSpeedExtSupported": "link_speed_ext_supported", "LinkSpeedExtEnabled": "link_speed_ext_enabled",
	},
	mad.AttrSwitchInfo: {
		"LinearFdbCap": "linear_fdb_cap", "RandomFdbCap": "random_fdb_cap", "McastFdbCap": "multicast_fdb_cap", "LinearFdbTop": "linear_fdb_top",
		"DefPort": "default_port", "DefMcastPrimPort": "default_multicast_primary_port", "DefMcastNotPrimPort": "default_multicast_not_primary_port",
		"LifeTime": "life_time_value", "OptSLtoVLMapping": "optimized_sl_to_vl_mapping_programming", "LidsPerPort": "lids_per_port",
		"PartEnforceCap": "partition_enforcement_cap", "InboundPartEnf": "inbound_enforcement_cap", "OutboundPartEnf": "outbound_enforcement_cap",
		"FilterRawInbound": "filter_raw_packet_inbound_cap", "FilterRawOutbound": "filter_raw_packet_outbound_cap", "EnhancedPort0": "enhanced_port0",
		"MulticastFDBTop": "multicast_fdb_top",
	},
	mad.LayoutMGIR: {"FW Version": "", "PSID": "psid"},
}

// maxLabels bounds the fields of an output.
const maxLabels = 1000

// Fields returns the fields of attribute a in the output of smpquery (or, of the register
// MGIR, of mstflint query) by their names in scripts. It ignores other lines.
func Fields(a *mad.Attribute, output string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(output) {
		label, value, ok := strings.Cut(strings.TrimRight(line, "\n"), ":")
		if a != mad.AttrNodeDescription && a != mad.LayoutMGIR {
			value = strings.TrimLeft(value, ".")
		} else {
			value = strings.TrimSpace(strings.TrimLeft(value, "."))
		}
		name, known := labels[a][label]
		switch {
		case !ok || !known || len(fields) > maxLabels:
		case label == "FW Version":
			for i, part := range strings.SplitN(value, ".", 3) {
				fields[[]string{"ext_fw_major", "ext_fw_minor", "ext_fw_sub_minor"}[i]] = decimal(part)
			}
		default:
			fields[name] = spelling(value)
		}
	}
	return fields
}

// decimal is a number without leading zeros, which would make it octal.
func decimal(s string) string {
	if t := strings.TrimLeft(s, "0"); t != "" {
		return t
	}
	return "0"
}

// spellings are the words of libibmad (libibmad/dump.c) that differ from those here.
var spellings = map[string]string{
	"Channel Adapter": "ca", "2.5 Gbps": "sdr", "5.0 Gbps": "ddr", "10.0 Gbps": "qdr", "14.0625 Gbps": "fdr", "25.78125 Gbps": "edr",
	"53.125 Gbps": "hdr", "106.25 Gbps": "ndr", "No Extended Speed": "none", "Extended speed": "extended", "Initialize": "initialize",
	"VL0": "vl0", "VL0-1": "vl0_1", "VL0-3": "vl0_3", "VL0-7": "vl0_7", "VL0-14": "vl0_14",
}

// spelling returns the words of a value in the spelling here, with "+" between several.
func spelling(value string) string {
	words := strings.Split(value, " or ")
	for i, w := range words {
		if s, ok := spellings[w]; ok {
			words[i] = s
		}
	}
	return strings.Join(words, "+")
}
