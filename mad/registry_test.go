package mad

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAttributes(t *testing.T) {
	var got []string
	for _, a := range Attributes() {
		got = append(got, fmt.Sprintf("%v %#04x %s %d", a.Class, a.ID, a.Name, a.Size))
		if Lookup(a.Class, a.ID) != a || LookupName(a.Class, a.Name) != a {
			t.Errorf("%s is not found", a.Name)
		}
		if a.Version != a.Class.Version() {
			t.Errorf("%s has version %d, its class %d", a.Name, a.Version, a.Class.Version())
		}
		if !a.Confirmed {
			t.Errorf("%s: layout unconfirmed", a.Name)
		}
		if a.Size > a.Class.DataSize() {
			t.Errorf("%s: %d bytes do not fit in a MAD", a.Name, a.Size)
		}
	}
	want := strings.Split(`Subn 0x0010 NodeDescription 64
Subn 0x0011 NodeInfo 40
Subn 0x0012 SwitchInfo 20
Subn 0x0014 GUIDInfo 64
Subn 0x0015 PortInfo 64
Subn 0x0016 P_KeyTable 64
Subn 0x0017 SLtoVLMappingTable 8
Subn 0x0018 VLArbitrationTable 64
Subn 0x0019 LinearForwardingTable 64
Subn 0x001b MulticastForwardingTable 64
Subn 0x0020 SMInfo 24
Subn 0xff90 MlnxExtPortInfo 64
SubnAdm 0x0001 ClassPortInfo 72
SubnAdm 0x0011 NodeRecord 108
SubnAdm 0x0012 PortInfoRecord 68
SubnAdm 0x0014 SwitchInfoRecord 24
SubnAdm 0x0015 LinearForwardingTableRecord 72
SubnAdm 0x0018 SMInfoRecord 28
SubnAdm 0x0020 LinkRecord 8
SubnAdm 0x0035 PathRecord 64
Perf 0x0001 ClassPortInfo 72
Perf 0x0012 PortCounters 44
Perf 0x001d PortCountersExtended 184`, "\n")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("attributes (-want +got):\n%s", d)
	}
}

func TestLookup(t *testing.T) {
	for _, test := range []struct {
		what      string
		got, want *Attribute
	}{
		{"directed", Lookup(ClassSubnDirected, 0x15), AttrPortInfo},
		{"directed, by name", LookupName(ClassSubnDirected, "PortInfo"), AttrPortInfo},
		{"unknown id", Lookup(ClassSubn, 0x7777), nil},
		{"unknown class", Lookup(ClassBM, 0x15), nil},
		{"by name", ByName("PathRecord"), AttrPathRecord},
		{"shared name", ByName("ClassPortInfo"), AttrSubnAdmClassPortInfo},
		{"shared name, by class", LookupName(ClassPerf, "ClassPortInfo"), AttrPerfClassPortInfo},
		{"wrong case", ByName("portinfo"), nil},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v", test.what, test.got)
		}
	}
}

func TestAttributesIsACopy(t *testing.T) {
	Attributes()[0] = nil
	if Attributes()[0] == nil {
		t.Error("a caller can change the registry")
	}
}

// TestComponents: the component masks are those of opensm
// include/iba/ib_types.h (IB_NR_COMPMASK_* and so on), by bit; "-" is reserved.
func TestComponents(t *testing.T) {
	for _, test := range []struct {
		a    *Attribute
		want string
	}{
		{AttrNodeRecord, `lid - base_version class_version node_type num_ports system_image_guid node_guid port_guid
			partition_cap device_id revision local_port_num vendor_id node_string`},
		{AttrPortInfoRecord, `endport_lid port_num options m_key gid_prefix lid master_sm_lid capability_mask diag_code
			m_key_lease_period local_port_num link_width_enabled link_width_supported link_width_active
			link_speed_supported port_state port_physical_state link_down_default_state m_key_protect_bits -
			lmc link_speed_active link_speed_enabled neighbor_mtu master_sm_sl vl_cap init_type vl_high_limit
			vl_arbitration_high_cap vl_arbitration_low_cap init_type_reply mtu_cap vl_stall_count hoq_life
			operational_vls partition_enforcement_inbound partition_enforcement_outbound filter_raw_inbound
			filter_raw_outbound m_key_violations p_key_violations q_key_violations guid_cap client_reregister
			multicast_p_key_trap_suppression_enabled subnet_time_out - resp_time_value local_phy_errors
			overrun_errors max_credit_hint - link_round_trip_latency capability_mask2 link_speed_ext_active
			link_speed_ext_supported - link_speed_ext_enabled`},
		{AttrSwitchInfoRecord, `lid - linear_fdb_cap random_fdb_cap multicast_fdb_cap linear_fdb_top default_port
			default_multicast_primary_port default_multicast_not_primary_port life_time_value port_state_change
			optimized_sl_to_vl_mapping_programming lids_per_port partition_enforcement_cap inbound_enforcement_cap
			outbound_enforcement_cap filter_raw_packet_inbound_cap filter_raw_packet_outbound_cap enhanced_port0
			- - multicast_fdb_top`},
		{AttrLinearForwardingTableRecord, `lid block_num - port_block`},
		{AttrSMInfoRecord, `lid - guid sm_key act_count priority sm_state`},
		{AttrLinkRecord, `from_lid from_port to_port to_lid`},
		{AttrPathRecord, `service_id service_id dgid sgid dlid slid raw_traffic - flow_label hop_limit tclass reversible
			numb_path p_key qos_class sl mtu_selector mtu rate_selector rate packet_life_time_selector
			packet_life_time preference`},
	} {
		var got []string
		for bit := range 64 {
			name := "-"
			for _, f := range test.a.Flat() {
				if f.Mask()>>bit&1 != 0 {
					name = f.Script
				}
			}
			got = append(got, name)
		}
		for len(got) > 0 && got[len(got)-1] == "-" {
			got = got[:len(got)-1]
		}
		if d := cmp.Diff(strings.Fields(test.want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.a.Name, d)
		}
	}
}

// TestScriptNames pins the names of the fields that scripts meet first.
func TestScriptNames(t *testing.T) {
	var got []string
	for _, f := range AttrSwitchInfo.Fields[:4] {
		got = append(got, f.Name+" "+f.Script)
	}
	got = append(got, AttrPortInfo.Fields[0].Name+" "+SnakeName(AttrPortInfo.Fields[0].Name))
	want := []string{
		"LinearFDBCap linear_fdb_cap", "RandomFDBCap random_fdb_cap", "MulticastFDBCap multicast_fdb_cap",
		"LinearFDBTop linear_fdb_top", "M_Key m_key",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
