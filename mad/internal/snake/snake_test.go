package snake

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestName(t *testing.T) {
	for spec, want := range map[string]string{
		"M_Key":                             "m_key",
		"M_KeyLeasePeriod":                  "m_key_lease_period",
		"MasterSMLID":                       "master_sm_lid",
		"MasterSMSL":                        "master_sm_sl",
		"LinearFDBTop":                      "linear_fdb_top",
		"LIDsPerPort":                       "lids_per_port",
		"OperationalVLs":                    "operational_vls",
		"VL15Dropped":                       "vl15_dropped",
		"QP1Dropped":                        "qp1_dropped",
		"SLtoVL":                            "sl_to_vl",
		"SLtoVLMappingTable":                "sl_to_vl_mapping_table",
		"OptimizedSLtoVLMappingProgramming": "optimized_sl_to_vl_mapping_programming",
		"SystemImageGUID":                   "system_image_guid",
		"CapabilityMask2":                   "capability_mask2",
		"LinkSpeedExtActive2":               "link_speed_ext_active2",
		"EnhancedPort0":                     "enhanced_port0",
		"GUIDBlock":                         "guid_block",
		"P_KeyBlock":                        "p_key_block",
		"RedirectQ_Key":                     "redirect_q_key",
		"SM_Key":                            "sm_key",
		"SMState":                           "sm_state",
		"HOQLife":                           "hoq_life",
		"VLCap":                             "vl_cap",
		"TClass":                            "tclass",
		"QoSClass":                          "qos_class",
		"DGID":                              "dgid",
		"LMC":                               "lmc",
		"NodeType":                          "node_type",
		"IsSM":                              "is_sm",
		"IsSMdisabled":                      "is_sm_disabled",
		"IsSystemImageGUIDsupported":        "is_system_image_guid_supported",
		"IsLEDInfoSupported":                "is_led_info_supported",
		"IsMKeyNVRAM":                       "is_m_key_nvram",
		"IsLinkWidth2xSupported":            "is_link_width2x_supported",
		"IsLinkSpeedHDRSupported":           "is_link_speed_hdr_supported",
		"IsDRNoticeSupported":               "is_dr_notice_supported",
		"4x":                                "4x",
		"12x":                               "12x",
		"2048":                              "2048",
		"LinkUp":                            "link_up",
		"CA":                                "ca",
		"":                                  "",
		"_":                                 "",
	} {
		if got := Name(spec); got != want {
			t.Errorf("Name(%q) = %q, want %q", spec, got, want)
		}
	}
}

// FuzzName: a name has the letters and digits of the component's, and begins and
// ends with one.
func FuzzName(f *testing.F) {
	f.Add("SLtoVLMappingTable")
	f.Fuzz(func(t *testing.T, spec string) {
		got := Name(spec)
		if !utf8.ValidString(spec) {
			return // its bytes are no letters
		}
		plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
		if plain(got) != plain(spec) || got != strings.Trim(got, "_") {
			t.Errorf("Name(%q) = %q", spec, got)
		}
	})
}
