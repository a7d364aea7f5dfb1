package mad

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the lists in testdata")

// TestAttributes pins the list of attributes: names and numbers are what
// scripts and other programs know them by.
func TestAttributes(t *testing.T) {
	var list strings.Builder
	for _, a := range Attributes() {
		fmt.Fprintf(&list, "%v %d %#04x %s %d", a.Class, a.Version, a.ID, strings.Join(append([]string{a.Name}, a.Aliases...), "="), a.Size)
		for _, v := range a.Variants {
			fmt.Fprintf(&list, " %s", v.Name)
		}
		if !a.Confirmed {
			list.WriteString(" unconfirmed")
		}
		list.WriteString("\n")
		if found := LookupVersion(a.Class, a.Version, a.ID); found == nil || (found == a) == a.Older {
			t.Errorf("%s is not found by number", a.Name)
		}
		if found := LookupName(a.Class, a.Name); found != a && found != Lookup(a.Class, a.ID) {
			t.Errorf("%s is not found by name", a.Name)
		}
		for _, name := range a.Aliases {
			if LookupName(a.Class, name) != a || ByName(name) != a {
				t.Errorf("%s is not found", name)
			}
		}
		if a.Version != a.Class.Version() && (a.Class != ClassSubnAdm || a.Version != 1 || len(a.Methods) > 0) {
			t.Errorf("%s has version %d, its class %d", a.Name, a.Version, a.Class.Version())
		}
		h := Header{Class: a.Class, ClassVersion: a.Version}
		if room := h.DataOffset() + h.DataSize() - a.Offset(); a.Size > room {
			t.Errorf("%s: %d bytes do not fit in a MAD", a.Name, a.Size)
		}
	}
	golden(t, "testdata/attributes.txt", list.String())
}

// golden compares got with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
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
		{"unknown in its class", Lookup(ClassBM, 0x15), nil},
		{"unknown class", Lookup(0x20, 0x15), nil},
		{"older name", LookupName(ClassSubnAdm, "SwitchRecord"), AttrSwitchInfoRecord},
		{"older name alone", ByName("InformRecord"), AttrInformInfoRecord},
		{"of version 1 only", Lookup(ClassSubnAdm, 0x34), AttrSubnAdm1RangeRecord},
		{"of both versions", Lookup(ClassSubnAdm, 2), AttrSubnAdmNotice},
		{"of both versions, version 1", LookupVersion(ClassSubnAdm, 1, 2), AttrSubnAdm1Notice},
		{"of both versions, by name", LookupName(ClassSubnAdm, "Notice"), AttrSubnAdmNotice},
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

// TestComponents: the component masks equal the masks of opensm
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
		{AttrSLtoVLMappingTableRecord, `lid input_port_num output_port_num -` + strings.Repeat(" sl_to_vl", 16)},
		{AttrRandomForwardingTableRecord, `lid block_num - port`},
		{AttrMulticastForwardingTableRecord, `lid position - block_num - port_mask_block`},
		{AttrGUIDInfoRecord, `lid block_num - -` + strings.Repeat(" guid_block", 8)},
		{AttrPKeyTableRecord, `lid block_num port_num - p_key_block`},
		{AttrVLArbitrationTableRecord, `lid output_port_num block_num`},
		{AttrInformInfoRecord, `subscriber_gid enum - gid lid_range_begin lid_range_end - is_generic subscribe type trap_number
			qpn - resp_time_value - producer_type`},
		{AttrServiceRecord, `service_id service_gid service_p_key - service_lease service_key service_name` +
			strings.Repeat(" service_data8", 16) + strings.Repeat(" service_data16", 8) +
			strings.Repeat(" service_data32", 4) + strings.Repeat(" service_data64", 2)},
		{AttrMCMemberRecord, `mgid port_gid q_key mlid mtu_selector mtu tclass p_key rate_selector rate packet_life_time_selector
			packet_life_time sl flow_label hop_limit scope join_state proxy_join`},
		{AttrTraceRecord, `gid_prefix id_generation - node_type node_id chassis_id entry_port_id exit_port_id entry_port exit_port`},
		{AttrMultiPathRecord, `raw_traffic - flow_label hop_limit tclass reversible numb_path p_key qos_class sl mtu_selector mtu
			rate_selector rate packet_life_time_selector packet_life_time service_id8_msb independence_selector - sgid_count dgid_count
			service_id56_lsb sdgid`},
		{AttrServiceAssociationRecord, `service_key service_name`},
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

// TestVariants: what DataDetails and their like are, by what decides.
func TestVariants(t *testing.T) {
	// notice is the generic notice of a trap, or a vendor's.
	notice := func(a *Attribute, trap uint64, generic uint64) []byte {
		data := make([]byte, a.Size)
		a.Field("is_generic").SetUint(data, generic)
		a.Field("trap_number").SetUint(data, trap)
		return data
	}
	for _, a := range []*Attribute{AttrSubnNotice, AttrSubnAdmNotice} {
		want := map[uint64]string{
			64: "gid", 65: "gid", 66: "gid", 67: "gid", 128: "switch", 129: "port", 130: "port", 131: "port",
			144: "local_change", 145: "system_image", 256: "bad_m_key", 257: "bad_key", 258: "bad_key", 259: "switch_bad_p_key",
		}
		for trap := range uint64(300) {
			if got := a.Resolve(notice(a, trap, 1), 0).Variant; got != want[trap] {
				t.Errorf("%v trap %d is %q, want %q", a.Class, trap, got, want[trap])
			}
		}
		if got := a.Resolve(notice(a, 128, 0), 0); got.Variant != "" {
			t.Errorf("%v: a vendor's notice passes for %s", a.Class, got.Variant)
		}
	}
	old := map[uint64]string{64: "port_service", 65: "port_service", 128: "switch", 129: "port", 130: "port", 131: "port", 256: "bad_m_key", 257: "bad_key", 258: "bad_key"}
	for trap := range uint64(300) {
		if got := AttrSubnAdm1Notice.Resolve(notice(AttrSubnAdm1Notice, trap, 1), 0).Variant; got != old[trap] {
			t.Errorf("version 1, trap %d is %q, want %q", trap, got, old[trap])
		}
	}
	for _, tt := range []struct {
		a        *Attribute
		field    string
		value    uint64
		modifier uint32
		want     string
	}{
		{AttrBMNotice, "trap_number", 259, 0, "bad_b_key"},
		{AttrCCNotice, "trap_number", 0, 0, "bad_cc_key"},
		{AttrCCNotice, "trap_number", 1, 0, ""},
		{AttrCongestionLog, "log_type", 1, 0, "switch"},
		{AttrCongestionLog, "log_type", 2, 0, "ca"},
		{AttrCongestionLog, "log_type", 3, 0, ""},
	} {
		data := make([]byte, tt.a.Size)
		if f := tt.a.Field("is_generic"); f != nil {
			f.SetUint(data, 1)
		}
		tt.a.Field(tt.field).SetUint(data, tt.value)
		if got := tt.a.Resolve(data, tt.modifier).Variant; got != tt.want {
			t.Errorf("%v %s, %s %d: %q, want %q", tt.a.Class, tt.a.Name, tt.field, tt.value, got, tt.want)
		}
	}
}

// TestWithVariant: a variant by name, its fields in place of the raw bytes, keys still
// keys, and no way to a variant of another attribute.
func TestWithVariant(t *testing.T) {
	n := 0
	for _, a := range Attributes() {
		for _, v := range a.Variants {
			n++
			as := a.WithVariant(v.Name)
			f := a.Field(v.Field)
			if as == nil || as == a || as.Variant != v.Name || as.Size != a.Size {
				t.Fatalf("%v %s as %s: %+v", a.Class, a.Name, v.Name, as)
			}
			if f.Bits*f.Count < 8*v.Layout.Size {
				t.Errorf("%s: %s has no room in %s", a.Name, v.Name, v.Field)
			}
			for _, in := range v.Layout.Flat() {
				got := as.Field(in.Script)
				if got == nil || got.Offset != f.Offset+in.Offset || got.Key != in.Key {
					t.Errorf("%s as %s: %s is %+v", a.Name, v.Name, in.Script, got)
				}
			}
		}
		if a.WithVariant("none") != nil {
			t.Errorf("%s has a variant called none", a.Name)
		}
	}
	if n < 20 {
		t.Errorf("only %d variants were looked at", n)
	}
}

// FuzzVariants: whatever the bytes and the modifier, the variant is one of the
// attribute's, or its layout of vendors, and is as long.
func FuzzVariants(f *testing.F) {
	f.Add([]byte{0x81, 0, 0, 1, 0, 128}, uint32(0))
	f.Add([]byte{}, ^uint32(0))
	f.Fuzz(func(t *testing.T, data []byte, modifier uint32) {
		for _, a := range Attributes() {
			as := a.Resolve(data, modifier)
			known := as == a || as.Variant == "" && as == a.derived().vendor || as.Variant != "" && a.WithVariant(as.Variant) != nil
			if !known || as.Size != a.Size {
				t.Fatalf("%s becomes %s", a.Name, as.Variant)
			}
		}
	})
}

// TestVendors: where IsGeneric is 0, two fields are numbers of a vendor, with names of
// their own; the other names still find them.
func TestVendors(t *testing.T) {
	for _, tt := range []struct {
		a       *Attribute
		generic int // its place, in bytes
	}{
		{AttrSubnNotice, 0}, {AttrSubnAdmNotice, 0}, {AttrBMNotice, 0}, {AttrInformInfo, 22}, {AttrInformInfoRecord, 24 + 22},
	} {
		data := make([]byte, tt.a.Size)
		tt.a.Field("vendor_id").SetUint(data, 0x2c9)
		tt.a.Field("device_id").SetUint(data, 66)
		names := func(a *Attribute) (list []string) {
			for _, f := range a.Flat() {
				if f.Name == "ProducerType" || f.Name == "TrapNumber" || f.Name == "VendorID" || f.Name == "DeviceID" {
					list = append(list, f.Name)
				}
			}
			slices.Sort(list)
			return list
		}
		vendors := tt.a.Resolve(data, 0)
		data[tt.generic] = 0x80
		generic := tt.a.Resolve(data, 0)
		if got := fmt.Sprint(names(vendors), names(generic)); got != "[DeviceID VendorID] [ProducerType TrapNumber]" {
			t.Errorf("%v %s: %s", tt.a.Class, tt.a.Name, got)
		}
		for _, a := range []*Attribute{vendors, generic} {
			for name, want := range map[string]uint64{"vendor_id": 0x2c9, "producer_type": 0x2c9, "node_type": 0x2c9, "device_id": 66, "trap_number": 66} {
				f := a.Field(name)
				if f == nil || f.Uint(data) != want {
					t.Errorf("%v %s.%s: %+v, want %d", tt.a.Class, tt.a.Name, name, f, want)
				}
			}
			if f := a.Field("vendor_id"); f.Words != nil || f.Type != FieldTypeUint {
				t.Errorf("%v %s.vendor_id is no number: %+v", tt.a.Class, tt.a.Name, f)
			}
		}
	}
}

// TestPortService: the notices of traps 64 and 65 in an SMP have a LID where later ones
// have six reserved bytes before a GID.
func TestPortService(t *testing.T) {
	whole := make([]byte, AttrSubnAdmNotice.Size)
	(&Notice{IsGeneric: true, TrapNumber: 65, DataDetails: [54]byte{0x12, 0x34, 7}}).Encode(whole)
	a := AttrSubnNotice.Resolve(whole[:64], 0)
	if a.Variant != "port_service" || a.Field("lid_addr").Uint(whole) != 0x1234 || a.Field("port_no").Uint(whole) != 7 {
		t.Errorf("%s", a.Variant)
	}
	whole[10], whole[11] = 0, 0
	if a := AttrSubnNotice.Resolve(whole[:64], 0); a.Variant != "gid" {
		t.Errorf("a GID is %s", a.Variant)
	}
	whole[10] = 1
	if a := AttrSubnAdmNotice.Resolve(whole, 0); a.Variant != "gid" {
		t.Errorf("a Report is %s", a.Variant)
	}
}
