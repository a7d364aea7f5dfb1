package mad

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nvidiaGolden are bytes written by hand from NVIDIA's OpenSM header (iba/ib_types.h): each
// names the struct, and the accessors or masks that give the value. 00*N is N zero bytes.
var nvidiaGolden = []struct {
	a        *Attribute
	accessor string
	modifier uint32
	bytes    string
	want     map[string]uint64
}{
	// Capability n is bit n%32 of dword n/32, which is in network order.
	{AttrGeneralInfo, "ib_general_info_is_cap_enabled: cap_bit 0, 1, 9, 12; 44, 48; 67, 81", 4, "00001203 00011000 00020008",
		map[string]uint64{"cap_mask0": 1<<0 | 1<<1 | 1<<9 | 1<<12, "cap_mask1": 1<<(44-32) | 1<<(48-32), "cap_mask2": 1<<(67-64) | 1<<(81-64), "cap_mask3": 0}},
	{AttrExtendedPortInfo, "ib_mlnx_ext_port_info_t: resvd1[0] bits 7..4; state_change_enable 0x2; IB_EXT_PORT_INFO_BW_UTIL_ENABLE_MASK_HO 0x0400, BW_UTILIZATION_MASK_HO 0x03FF; MIN_BW_UTILIZATION_MASK 0x7F; NMX_ADMIN_STATE_MASK_HO 0x0E; IB_IS_SERVICE_PORT_BIT 0x80, MISSION_AS_FNM 0x40, QOS_CONFIG_VL_EN 0x20, ACCESS_TRUNK 0x10; IB_IS_SPECIAL_PORT_TYPE_BIT 0x80, MASK 0xF", 3,
		"b0 0000 02 0523 06 01 0000 45 01 000000 01 00 04 0200 00*24 a0 0000 82 00*4 1234 abcd", map[string]uint64{
			"ame": 1, "sharp_an_en": 0, "router_lid_en": 1, "port_recovered": 1, "state_change_enable": 2, "bw_util_en": 1, "bw_utilization": 0x123, "unhealthy_reason": 6,
			"link_speed_supported": 1, "min_bw_utilization": 0x45, "link_speed_enabled": 1, "link_speed_active": 1, "nmx_admin_state": 2, "capability_mask": 0x200,
			"is_fnm_port": 1, "mission_port_as_fnm": 0, "qos_config_vl_en": 1, "access_trunk": 0, "is_special_port": 1, "special_port_type": 2,
			"adaptive_timeout_sl_mask": 0x1234, "ooo_sl_mask": 0xabcd}},
	{AttrExtendedNodeInfo, "ib_mlnx_ext_node_info_t: IB_MENI_MULTIPLANE_ASYMMETRY_EN_MASK_HO 0x80, LINK_AUTO_RETRAIN_EN_MASK_HO 0x40", 0, "01 02 03 04 00*9 05 06 02 40 0000 04",
		map[string]uint64{"num_oob": 1, "num_pcie": 2, "sl2_vl_act": 3, "sl2_vl_cap": 4, "anycast_lid_top": 5, "anycast_lid_cap": 6, "node_type_extended": 2, "multiplane_asymmetry_en": 0, "link_auto_retrain_en": 1, "asic_max_planes": 4}},
	{AttrExtendedSwitchInfo, "ib_extended_switch_info_t: ISSU_APPROVE_MASK 0x20, ISSU_REQUEST_MASK 0x10, TP_CAP_MASK 0x8, TP_ENABLE_MASK 0x7; ADV_TP_*_CAP_BIT 0x8 0x4 0x2 0x1; *_MASK_HO 0x3FF", 0, "000000 1d 0a 00 0201 0302 0103 0000 0004",
		map[string]uint64{"issu_approve": 0, "issu_request": 1, "turbo_path_cap": 1, "turbo_path_en": 5, "req_delay_cap": 1, "set_trig_th_cap": 0, "rst_trig_th_cap": 1, "req_trig_window_cap": 0, "req_delay": 0x201, "set_trig_th": 0x302, "rst_trig_th": 0x103, "req_trig_window": 4}},
	{AttrChassisInfo, "ib_chassis_info_t.chassis_id after 4 bytes", 0, "00000000 4d54", nil},
	{AttrMlnxCableInfo, "linux mlx4/port.c struct mlx4_cable_info", 0, "51 02 0080 0000 0030", map[string]uint64{"bus_address": 0x51, "page": 2, "address": 128, "size": 48}},
	{AttrPrivateLFTInfo, "ib_plft_info_t, ib_plft_bank_entry_t", 0, "00 04 02 01 3001 1802",
		map[string]uint64{"num_plfts": 4, "mode_cap": 2, "active_mode": 1, "bank_size[0]": 0x30, "num_banks[0]": 1, "bank_size[1]": 0x18, "num_banks[1]": 2}},
	{AttrPrivateLFTDef, "ib_plft_def_element_t", 0, "00 60 00 00 81 30 00 18", map[string]uint64{"lid_space[0]": 96, "force_sub_group0_bank[1]": 0x81, "lid_space[1]": 48, "lid_offset[1]": 24}},
	{AttrPrivateLFTMap, "ib_plft_map_t: IB_PLFT_MAP_CONTROL_MAP_LFT_TOP_ENABLE 0x2, PORT_MASK_ENABLE 0x1; lft_top at byte 38", 2, "000000 02 00*31 06 0000 bfff",
		map[string]uint64{"lft_top_enable": 1, "port_mask_enable": 0, "lft_top": 0xbfff}},
	{AttrPortSLToPrivateLFTMap, "ib_port_sl_to_plft_map_t: port[4].plft_port_sl[16]", 0, "00*15 01 02", map[string]uint64{"plft_id[15]": 1, "plft_id[16]": 2}},
	{AttrAdaptiveRoutingInfo, "ib_ar_info_t: IB_AR_INFO_CAP_MASK_* 0x40 0x20 0x10 0x08 0x04 0x02; ib_ar_info_get_grp_tbl_cpy_sup (>>4), ib_ar_info_get_sub_grps_active (&0x0F); IB_AR_INFO_FEATURE_MASK_* 0x20 .. 0x01; ib_ar_info_get_string_width_cap (>>28), get_group_tbl_cap_ho (>>24), get_group_top_ho (>>12), get_group_cap_ho (&0xFFF); IB_AR_INFO_TRANSPORT_UD 1, DC 8; IB_AR_INFO_HBF_CAP_* 0x80 0x40 0x10 0x08, CAP_FEILDS_PFRN_SUPPORTED 0x02; IB_AR_INFO_HBF_EN_* 0x80 0x40, FEATURE_MASK_PFRN_ENABLED 0x10; 3 MSB of whbf_granularity", 0,
		"5c 21 12 2b 3400 1fff 00ff 02 31 000000 09 0000001e da 00 90 00 60 00 8001", map[string]uint64{
			"dyn_cap_calc_sup": 1, "by_transp_cap": 0, "by_sl_en": 1, "by_sl_cap": 1, "glb_groups": 1, "is4_mode": 0, "no_fallback": 0, "dir_num_sup": 0x21,
			"group_table_copy_sup": 1, "sub_grps_active": 2, "rn_xmit_enabled": 1, "fr_enabled": 0, "fr_sup": 1, "frn_sup": 0, "arn_sup": 1, "e": 1,
			"string_width_cap": 3, "group_table_cap": 4, "group_top": 0x001, "group_cap": 0xfff, "enable_by_sl_mask": 0xff, "sub_grps_sup": 2, "rn_version_cap": 3, "ar_version_cap": 1,
			"dis_dc": 1, "dis_uc": 0, "dis_rc": 0, "dis_ud": 1, "ageing_time": 30, "hbf_sup": 1, "whbf_sup": 1, "symmetric_hash_sup": 0, "dceth_hash_sup": 1, "bthdqp_hash_sup": 1, "by_vl_cap": 0, "pfrn_sup": 1,
			"hbf_en": 1, "whbf_en": 0, "by_vl_en": 0, "pfrn_en": 1, "whbf_granularity": 3, "enable_by_sl_mask_hbf": 0x8001}},
	{AttrAdaptiveRoutingGroupTable, "ib_ar_group_table_t", 0, "00*31 06 80", nil},
	{AttrAdaptiveRoutingLFT, "ib_ar_lft_entry_t: ib_ar_lft_entry_get_state (>>6), bits 0-3 of state_table; legacy_port; group_number", 0, "45 07 0102 80 09 0000 c0 0b 0fff",
		map[string]uint64{"lid_state[0]": 1, "table[0]": 5, "port[0]": 7, "group[0]": 0x102, "lid_state[1]": 2, "table[1]": 0, "port[1]": 9, "lid_state[2]": 3, "group[2]": 0xfff}},
	{AttrHBFConfig, "ib_hbf_config_t: ib_hbf_config_get_hbf_type (&0xF0), ib_hbf_config_get_seed_type (&0x3); seed after 8 bytes", 0, "11 00*7 12345678 0000000040f00c0f",
		map[string]uint64{"hash_type": 1, "seed_type": 1, "seed": 0x12345678, "fields_enable": 0x40f00c0f}},
	{AttrWeightedHBFConfig, "ib_ar_group_hbf_weight_t", 0, "00 01 02 03 00 04", map[string]uint64{"sg0_weight[0]": 1, "sg1_weight[0]": 2, "sg2_weight[0]": 3, "sg0_weight[1]": 4}},
	{AttrAdaptiveRoutingGroupTableCopy, "ib_ar_group_copy_entry_t: last_index, first_index (12 LSB)", 1, "0123 0045", map[string]uint64{"last_index[0]": 0x123, "first_index[0]": 0x45}},
	{AttrPFRNConfig, "ib_pfrn_config_t: IB_PFRN_CAPABILITY_POLICY_SUP 1; sl bits 7-4; policy 4 LSB", 0, "00000001 00000000 50 00 00 01 02d0 00b4",
		map[string]uint64{"policy_sup": 1, "sl": 5, "policy": 1, "mask_force_clear_timeout": 720, "mask_clear_timeout": 180}},
	{AttrRNGenStringTable, "ib_rn_gen_string_table_t", 0, "0102 0304", map[string]uint64{"string[0]": 0x102, "string[1]": 0x304}},
	{AttrRNRcvString, "ib_rn_rcv_string_entry_t", 0, "0102 03 02", map[string]uint64{"string2_string[0]": 0x102, "plft_id[0]": 3, "decision[0]": 2}},
	{AttrRNSubGroupDirectionTable, "ib_rn_sub_group_direction_table_t", 0, "01 02", map[string]uint64{"direction[0]": 1, "direction[1]": 2}},
	{AttrRNXmitPortMask, "ib_rn_xmit_port_mask_t", 0, "73", map[string]uint64{"port_pair[0]": 0x73}},
	{AttrRNGenBySubGroupPriority, "IB_RN_GEN_BY_SUB_GROUP_PRIORITY_GEN_ARN_MASK 0x1, GEN_FRN_MASK 0x2", 0, "00000001 00000002",
		map[string]uint64{"gen_arn[0]": 1, "gen_frn[0]": 0, "gen_arn[1]": 0, "gen_frn[1]": 1}},
	{AttrQoSConfigSL, "ib_bw_layout_get_rate_limit: BW_LAYOUT_BW_ALLOC_MASK 0xFFF00000, RATE_LIMIT_MASK 0x000FFFFF", 1, "06400123", map[string]uint64{"bandwidth_alloc[0]": 100, "rate_limit[0]": 0x123}},
	{AttrQoSConfigVL, "ib_vl_config_block_t: data_type bits 0, 3; IB_VL_CONFIG_DISABLE_HOQ_LIFE_MASK_HO 0x01", 0, "05 0009 01", map[string]uint64{"buffer_weight[0]": 5, "data_types[0]": 9, "disable_hoq_life[0]": 1}},
	{AttrProfilesConfig, "ib_profiles_config_get_profile: EVEN_PORT_MASK 0xF0, ODD_PORT_MASK 0x0F", 0, "12 f0", map[string]uint64{"profile[0]": 1, "profile[1]": 2, "profile[2]": 15, "profile[3]": 0}},
	{AttrCreditWatchdogConfig, "ib_credit_watchdog_config_t: EN_ERR_TRAP 0x80, EN_WARN_TRAP 0x40, EN_NORM_TRAP 0x20; ERR_THR_ACT 0x30, EN_THR 0x03; MAX_THRESHOLD 0x1F", 0, "00*8 a0 0000 23 000000 1f 000000 10 000000 05 000000 06 000000 07",
		map[string]uint64{"trap_err": 1, "trap_warn": 0, "trap_norm": 1, "err_action": 2, "en_thr": 3, "error_thr": 31, "warning_thr": 16, "normal_thr": 5, "time_window": 6, "sampling_rate": 7}},
	{AttrBERConfig, "ib_ber_config_t: mantissa 4 bits, exponent 8 bits", 0, "00*8 40 0000 11 0000 0508 0000 030a 0000 010c 00000064 000000 0a",
		map[string]uint64{"trap_err": 0, "trap_warn": 1, "trap_norm": 0, "err_action": 1, "en_thr": 1, "err_mantissa": 5, "err_exponent": 8, "warn_mantissa": 3, "warn_exponent": 10, "norm_mantissa": 1, "norm_exponent": 12, "time_window": 100, "sampling_rate": 10}},
	{AttrPortRecoveryPolicyConfig, "ib_port_recovery_policy_config_t", 0, "000f 0005 000000 64 0000 0bb8", map[string]uint64{"type_cap": 15, "type_en": 5, "draining_timeout": 100, "link_down_timeout": 3000}},
	{AttrVirtualizationInfo, "ib_virtualization_info_t: ENABLE_BIT 0x80, VCLIENT_REREGISTER_BIT 0x40, VPORT_STATE_CHANGE_BIT 0x20", 1, "0010 0003 a0 00 01 02",
		map[string]uint64{"vport_cap": 16, "vport_index_top": 3, "virtualization_enable": 1, "vclient_reregister": 0, "vport_state_change": 1, "virtualization_revision": 1, "cap_mask": 2}},
	{AttrVPortInfo, "ib_vport_info_t: STATE_MASK 0xF0, CLIENT_REREGISTER_SHIFT 3, LID_REQUIRED_SHIFT 2", 0, "44 08 0021 0001 0002 1234 0003 0002c90300000001 0002c90300000002",
		map[string]uint64{"vport_state": 4, "client_reregister": 0, "lid_required": 1, "guid_cap": 8, "cap_mask": 0x21, "p_key_violations": 1, "q_key_violations": 2, "lid": 0x1234, "lid_by_vport_index": 3, "port_guid": 0x0002c90300000001, "port_profile": 0x0002c90300000002}},
	{AttrVNodeInfo, "ib_vnode_info_t", 0, "0080 01 02 0002c90300000003", map[string]uint64{"partition_cap": 128, "local_port_num": 1, "num_ports": 2, "vnode_guid": 0x0002c90300000003}},
	{AttrVPortState, "IB_VPORT_STATE_EVEN_STATE_MASK 0xF0, ODD_STATE_MASK 0x0F", 0, "41 20", map[string]uint64{"vport_state[0]": 4, "vport_state[1]": 1, "vport_state[2]": 2, "vport_state[3]": 0}},
	{AttrRouterInfo, "ib_router_info_t: IS_PFRN_SUPPORTED 1<<0; IB_ROUTER_ATC 0x8000 .. ARLITC 0x800; get_pfrn_rtr_en 0x1; get_max_ar_group_id 0xFFF00000>>20; set_global_router_lid_start 0x000FFFFF", 0,
		"00000001 00000100 00000010 a800 02 08 04 00 0400 01 03 0700 12345678 0009abcd 00001000 00001fff", map[string]uint64{
			"pfrn_sup": 1, "next_hop_cap": 256, "next_hop_top": 16, "atc": 1, "nhtc": 0, "altc": 1, "rltc": 0, "arlitc": 1, "adj_subnets_top": 2, "adj_subnets_cap": 8, "cap_supported_subnets": 4,
			"ar_group_to_lid_cap": 0x400, "pfrn_rtr_en": 1, "adj_lid_info_top": 3, "router_lid_cap": 0x700, "max_ar_group_id": 0x123, "global_lid_start": 0x45678, "global_lid_end": 0x9abcd, "local_lid_start": 0x1000, "local_lid_end": 0x1fff}},
	{AttrNextHopTable, "rtr_next_hop_record_t", 0, "fe80000000000001 05 00 ffff", map[string]uint64{"subnet_prefix[0]": 0xfe80000000000001, "weight[0]": 5, "p_key[0]": 0xffff}},
	{AttrAdjSiteLocalSubnetsTable, "rtr_adj_site_local_subn_record_t", 0, "ffff 0001 8123 0009", map[string]uint64{"p_key[0]": 0xffff, "subnet_prefix_id[0]": 1, "pfrn_max_ar_group_id[0]": 0x8123, "master_sm_lid[0]": 9}},
	{AttrAdjSubnetsRouterLIDInfo, "ib_rtr_adj_subnets_lid_info_tbl_get_subnet_prefix (>>48), get_local_lid_start (>>28), get_local_lid_end (&0xFFFFF)", 0, "0102 12345 0 0 54321",
		map[string]uint64{"subnet_prefix_id[0]": 0x102, "local_lid_start[0]": 0x12345, "local_lid_end[0]": 0x54321}},
	{AttrRouterLIDTable, "ib_rtr_router_lid_tbl_block_t", 0, "80000001", map[string]uint64{"lid_bits[0]": 0x80000001}},
	{AttrARGroupToRouterLIDTable, "ib_rtr_ar_group_to_lid_tbl_block_t", 0, "0000 c001", map[string]uint64{"lid[1]": 0xc001}},
	{AttrSwitchPortStateTable, "IB_SPST_STATE_EVEN_STATE_MASK 0xF0, ODD_STATE_MASK 0x0F", 0, "41 50", map[string]uint64{"switch_port_state[0]": 4, "switch_port_state[1]": 1, "switch_port_state[2]": 5}},
	{AttrHierarchyInfo, "ib_hierarchy_info_t: ib_hierarchy_info_get_active_levels (0xF0>>4)", 0, "0002c90300000004 03 02 50 00 00000007", map[string]uint64{"template_guid": 0x0002c90300000004, "max_supported_index": 3, "max_active_index": 2, "active_levels": 5, "level[0]": 7}},
	{AttrEnhQoSArbiterInfo, "ib_enh_qos_arbiter_info_t: NUM_VLGROUPS_CAP 0xf0, SL_CAP 0x0f; RL_GRANULARITY_CAP 0xf0, ENABLED 0x0f; MIN_BW likewise", 0, "00001002 8f 00 41 52", map[string]uint64{"cap_mask": 0x1002, "num_vl_groups_cap": 8, "sl_cap": 15, "rl_gran_cap": 4, "rl_gran_en": 1, "min_bw_gran_cap": 5, "min_bw_gran_en": 2}},
	{AttrEnhPortVLArbiter, "ib_vl_groups_arbiter_config_t; IB_ENH_BW_PER_ELEMENT_SHARE_MASK 0xfff00000, LIMIT_MASK 0x000fffff; rate_limiter", 1, "81 000000 12345000 00*14 8000 00*28 06400005",
		map[string]uint64{"vl_group_mask": 0x81, "port_rate_limit": 0x12345, "vl_mask[7]": 0x8000, "share[7]": 100, "limit[7]": 5}},
	{AttrEnhPortVLArbiter, "ib_vl_arbiter_config_t; IB_VL_PORT_ARBITER_CONFIG_TYPE_MASK 0x40000000", 0x4000_0001, "7fff 0000 00a00007", map[string]uint64{"vl_mask": 0x7fff, "share[0]": 10, "limit[0]": 7}},
	{AttrEnhSLArbiter, "ib_enh_sl_arbiter_t", 0, "00100002", map[string]uint64{"share[0]": 1, "limit[0]": 2}},
	{AttrVSKeyInfo, "ib_vend_key_info_t: protect_bit bit 15", 0, "0102030405060708 8000 003c 0007", map[string]uint64{"vs_key": 0x0102030405060708, "protect_bit": 1, "lease_period": 60, "violations": 7}},
	{AttrN2NKeyInfo, "ib_n2n_key_info_t: protect_bit bit 15", 0, "0102030405060708 8000 003c 0007 0009", map[string]uint64{"n2n_mgr_key": 0x0102030405060708, "protect_bit": 1, "lease_period": 60, "violations": 7, "node_key_violations": 9}},
	{AttrNeighborsInfo, "ib_neighbor_record_t: N2N_NEIGHBORS_BLOCK_NODE_TYPE_SHIFT 5", 0, "40 00 1234 00000000 0102030405060708", map[string]uint64{"node_type[0]": 2, "lid[0]": 0x1234, "n2n_key[0]": 0x0102030405060708}},
	{AttrEnhancedCongestionInfo, "ib_cc_enh_info_t: IB_CC_ENH_INFO_VER0_MASK 0x80, VER1_MASK 0x40; capability bits 2, 5", 0, "40 00*7 0000000000000024", map[string]uint64{"ver0_sup": 0, "ver1_sup": 1, "cap_mask": 0x24}},
	{AttrCongestionSwitchGeneralSettings, "ib_cc_sw_general_settings_t: IB_CC_SW_SETTINGS_CC_ENABLE_MASK 0x01", 0, "01 00 03 18 00100000 000000 05", map[string]uint64{"en": 1, "aqs_weight": 3, "aqs_time": 24, "cap_total_buffer_size": 1 << 20, "cap_profile_step": 5}},
	{AttrCongestionPortProfileSettings, "ib_cc_port_profile_settings_t: MODE_SHIFT 7, GRANULARITY_SHIFT 6; PERCENT_MASK 0x7f000000, MAX_MASK 0x000fffff", 0, "40 00 ffff 00000064 32012345", map[string]uint64{"mode": 0, "granularity": 1, "vl_mask": 0xffff, "min[0]": 100, "percent[0]": 50, "max[0]": 0x12345}},
	{AttrCongestionSLMappingSettings, "ib_cc_sl_set_profile_num: shift (15-sl)*2", 0, "6c000003", map[string]uint64{"profile[0]": 1, "profile[1]": 2, "profile[2]": 3, "profile[3]": 0, "profile[15]": 3}},
	{AttrCongestionHCAGeneralSettings, "ib_cc_hca_general_settings_t: bits 7, 6, 5", 0, "a0", map[string]uint64{"en_notify": 1, "en_react": 0, "en_cc_per_plane": 1}},
	{AttrCongestionHCARPParameters, "ib_cc_hca_rp_parameters_t: TGT_RATE_SHIFT 15, AFTER_TIME_SHIFT 14", 0, "4000 0000 0001abcd 0007abcd 000000 1f 00061a80 0000 0005 0000 0032 000000 0b 000000 32 00000001 00000064 0000 03fb 0001ffff 00000004 0000 03ff", map[string]uint64{
		"clamp_tgt_rate": 0, "clamp_tgt_rate_after_time_inc": 1, "time_reset": 0x1abcd, "byte_reset": 0x7abcd, "threshold": 31, "max_rate": 400000, "ai_rate": 5, "hai_rate": 50, "gd": 11, "min_dec_fac": 50, "min_rate": 1,
		"rate_on_first_cnp": 100, "dcetcpg": 1019, "dcetcprtt": 0x1ffff, "rate_reduce_monitor_period": 4, "initial_alpha": 1023}},
	{AttrCongestionHCANPParameters, "ib_cc_hca_get_cnp_sl_mode (bit 0), ib_cc_hca_get_rtt_sl_mode (bit 1)", 0, "0000 0004 00 01 05 06", map[string]uint64{"min_time_between_cnps": 4, "rtt_resp_sl_mode": 0, "cnp_sl_mode": 1, "rtt_resp_sl": 5, "cnp_sl": 6}},
	{AttrCongestionHCAAlgoConfig, "ib_ppcc_hca_algo_config_t: enable_mask from bit 7 down; ib_ppcc_algo_info_t", 0, "a0 00 0000 0001 04 02 00*8 1234 05 06",
		map[string]uint64{"algo_en": 1, "algo_status": 0, "trace_en": 1, "counter_en": 0, "sl_mask": 1, "encap_len": 4, "encap_type": 2, "algo_id[0]": 0x1234, "major[0]": 5, "minor[0]": 6}},
	{AttrCongestionHCAConfigParams, "ib_ppcc_hca_config_param_t", 0, "00000000 0002 08 02 00*8 00000007 00000008", map[string]uint64{"sl_mask": 2, "encap_len": 8, "encap_type": 2, "param[0]": 7, "param[1]": 8}},
}

// handBytes returns the bytes of text, in which 00*N is N zero bytes.
func handBytes(t *testing.T, text string) []byte {
	t.Helper()
	var digits strings.Builder
	for _, w := range strings.Fields(text) {
		var n int
		if _, err := fmt.Sscanf(w, "00*%d", &n); err == nil {
			w = strings.Repeat("00", n)
		}
		digits.WriteString(w)
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return b
}

func checkFields(t *testing.T, what string, as *Attribute, data []byte, want map[string]uint64) {
	t.Helper()
	for name, want := range want {
		field, index := name, 0
		if f, i, ok := strings.Cut(strings.TrimSuffix(name, "]"), "["); ok {
			field = f
			fmt.Sscan(i, &index)
		}
		if f := as.Field(field); f == nil {
			t.Errorf("%s has no %s", what, field)
		} else if got := f.UintAt(data, index); got != want {
			t.Errorf("%s.%s is %#x, want %#x", what, name, got, want)
		}
	}
}

// TestNVIDIALayouts reads bytes written by hand from the header; each attribute that is
// decoded has some.
func TestNVIDIALayouts(t *testing.T) {
	checked := map[*Attribute]bool{}
	for _, tt := range nvidiaGolden {
		checked[tt.a] = true
		data := make([]byte, max(tt.a.Size, 16))
		copy(data, handBytes(t, tt.bytes))
		as := tt.a.Resolve(data, tt.modifier)
		checkFields(t, tt.a.Name+" ("+tt.accessor+")", as, data, tt.want)
		if tt.want == nil {
			continue
		}
		// All bits that are set are in fields: no field of the struct was forgotten.
		rest := append([]byte(nil), data...)
		for _, f := range as.Flat() {
			for i := range f.Count {
				for b := range f.Bits {
					at := f.Offset + i*f.Stride + b
					rest[at/8] &^= 0x80 >> (at % 8)
				}
			}
		}
		if strings.Trim(hex.EncodeToString(rest), "0") != "" {
			t.Errorf("%s: bits outside all fields: %x", tt.a.Name, rest)
		}
	}
	for _, a := range Attributes() {
		if strings.Contains(strings.Join(a.Sources, ";"), "opensm-mlnx") && !strings.Contains(strings.Join(a.Sources, ";"), "(the numbers alone)") && !checked[a] {
			t.Errorf("%s has no golden bytes", a.Name)
		}
	}
	masks := AttrAdaptiveRoutingGroupTable
	var groups AdaptiveRoutingGroupTable
	data := make([]byte, masks.Size)
	copy(data, handBytes(t, "00*31 06 80"))
	groups.Decode(data)
	// Port 1 and 2 are bits of the last byte; port 255 is the first bit (osm_advanced_routing.h).
	if groups.SubGroupA[31] != 6 || groups.SubGroupB[0] != 0x80 {
		t.Errorf("port masks %x", data)
	}
	var chassis ChassisInfo
	chassis.Decode(append(handBytes(t, "00000000 4d54 00*14"), 0))
	if string(chassis.ChassisID[:2]) != "MT" {
		t.Errorf("chassis %q", chassis.ChassisID)
	}
}

// TestModifiers checks which modifiers of NVIDIA's attributes are not public, and that only
// two are inferred: the block of the first table of AdaptiveRoutingLFT and of
// AdaptiveRoutingGroupTable.
func TestModifiers(t *testing.T) {
	got := map[string]string{}
	for _, a := range Attributes() {
		switch {
		case !a.IsAnnounced():
		case a.InferredModifier:
			got["inferred"] += a.Name + " "
		case a.UnknownModifier:
			got["unknown"] += a.Name + " "
		}
	}
	want := map[string]string{
		"inferred": "AdaptiveRoutingGroupTable AdaptiveRoutingLFT ",
		"unknown": "HBFConfig WeightedHBFConfig EndPortPlaneFilterConfig MlnxCableInfo ProfilesConfig RailFilterConfig VPortInfo VNodeInfo VPortState VNodeDescription VPortGUIDInfo VPortPKeyTable " +
			"RNGenStringTable RNRcvString RNSubGroupDirectionTable RNXmitPortMask PortRecoveryPolicyConfig CongestionHCAAlgoConfig CongestionHCAConfigParams ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// osm_enhanced_qos_mgr.h VPORT_QOS_CONFIG_SL_ATTR_MOD_HO is 1<<31.
	if diff := cmp.Diff([]ModifierPart{{"port", 0, 8}, {"vport", 31, 1}}, AttrQoSConfigSL.Modifier); diff != "" {
		t.Error(diff)
	}
}

// TestCapabilityNames compares names and numbers with the list in the header.
func TestCapabilityNames(t *testing.T) {
	for c, want := range map[Capability]string{0: "private_lft", 1: "ar", 2: "ar_rev1", 9: "extended_port_info", 12: "port_sl_to_private_lft", 13: "extended_node_info", 15: "virtualization",
		18: "sharp_aggregation_node", 24: "qos_config_sl_rate_limit", 25: "qos_config_sl_vport_rate_limit", 30: "global_out_of_order", 31: "unknown(31)", 44: "congestion_control", 45: "adaptive_timeout", 48: "router_lid", 49: "lft_split",
		51: "qos_config_vl", 52: "fast_recovery", 53: "credit_watchdog", 55: "nvl_reduction_management", 56: "rail_filter", 57: "nvl_hbf", 59: "contain_and_drain", 61: "ber", 63: "vl_buffer_weight", 64: "end_port_plane_filter",
		66: "bw_utilization", 67: "extended_switch_info", 68: "fabric_manager_info", 72: "chassis_info", 74: "issu", 76: "port_recovery_policy", 77: "nmx_admin_state", 81: "link_auto_retrain", 127: "unknown(127)", 200: "unknown(200)"} {
		if got := c.String(); got != want {
			t.Errorf("capability %d is %q, want %q", c, got, want)
		}
		data := make([]byte, 16)
		if c < 128 { // ib_general_info_is_cap_enabled
			data[4*(c/32)+3-c%32/8] = 1 << (c % 8)
		}
		var caps GeneralInfoCapabilities
		caps.Decode(data)
		if caps.Has(c) != (c < 128) || caps.Has((c+1)%128) {
			t.Errorf("capability %d: %x", c, data)
		}
	}
}
