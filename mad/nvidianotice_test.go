package mad

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// TestNVIDIANotices reads the details of notices written by hand from the header; each
// notice that has details has some.
func TestNVIDIANotices(t *testing.T) {
	const (
		guid1 = "0002c90300000001"
		guid2 = "0002c90300000002"
		guid3 = "0002c90300000003"
		gid1  = "fe80000000000000 " + guid1
		gid2  = "fe80000000000000 " + guid2
		path  = "00 01 02 00*21 "
	)
	checked := map[string]bool{}
	for _, tt := range []struct {
		number   uint16
		accessor string
		details  string
		variant  string
		want     map[string]uint64
	}{
		{0, "ntc_vskey", "0009 02 00 000f 00000003 00000001 1122334455667788 " + gid1, "class_key", map[string]uint64{"slid": 9, "method": 2, "attribute_id": 15, "attribute_modifier": 3, "qp": 1, "key": 0x1122334455667788}},
		{1144, "ntc_1144: local_changes 7b reserved, 1b; change_flags 10b reserved, 6b", "0000 0009 fe 01 0020 ffc8 0000 0003", "vport_change", map[string]uint64{"lid_addr": 9, "other_local_changes": 1, "cap_mask": 0x20, "change_flags": 8, "vport_index": 3}},
		{1146, "ntc_1146", "0000 0009", "vport_state", map[string]uint64{"lid_addr": 9}},
		{1257, "ntc_1257: 4b sl, 4b reserved, 24b qp1", "0000 0009 000a 00008001 50000123 00000456 " + gid1 + gid2 + "0004", "vport_key", map[string]uint64{"lid_addr1": 9, "lid_addr2": 10, "packet_key": 0x8001, "sl": 5, "qp1": 0x123, "qp2": 0x456, "vport_index": 4}},
		{1258, "ntc_1258", "0000 0009 000a 12345678", "vport_key", map[string]uint64{"packet_key": 0x12345678}},
		{1300, "ntc_1300", "0009 0035 02 00 " + gid1 + guid2 + "1122334455667788", "sa_key", map[string]uint64{"slid": 9, "attribute_id": 0x35, "method": 2, "port_guid": 0x0002c90300000002, "sa_key": 0x1122334455667788}},
		{1301, "ntc_1301", "0009 0035 02 00 " + gid1 + guid2, "spoofed_sgid", map[string]uint64{"slid": 9, "port_guid": 0x0002c90300000002}},
		{1302, "ntc_1302", "00*6 " + gid1 + guid2, "sa_rate_limit", map[string]uint64{"port_guid": 0x0002c90300000002}},
		{1304, "ntc_1303_1305", "00*6 " + gid1 + guid1 + guid2 + guid3, "sa_limit", map[string]uint64{"port_guid": 0x0002c90300000001, "target_guid": 0x0002c90300000002, "phys_target_guid": 0x0002c90300000003}},
		{1306, "ntc_1306_1307: dr_trunc_hop bit 8, bit 7, bits 5-0", "0000 0009 00000000 " + guid1 + "000000 82 " + path, "sm_guid", map[string]uint64{"lid_addr": 9, "sm_guid": 0x0002c90300000001, "dr_notice": 1, "dr_path_truncated": 0, "dr_hop_count": 2}},
		{1308, "ntc_1308", "0000 0009 0015 00 81 " + guid1 + "000000 43 " + path + "1122334455667788", "m_key", map[string]uint64{"lid_addr": 9, "attribute_id": 0x15, "method": 0x81, "port_guid": 0x0002c90300000001, "dr_notice": 0, "dr_path_truncated": 1, "dr_hop_count": 3, "m_key": 0x1122334455667788}},
		{1309, "ntc_1309", "0000 0009 00000000 " + guid1 + "000000 82 " + path + "1122334455667788", "sm_key", map[string]uint64{"port_guid": 0x0002c90300000001, "sm_key": 0x1122334455667788}},
		{1310, "ntc_1310", "0000 " + guid1 + guid2 + guid3 + "04 05", "duplicate_node_guid", map[string]uint64{"node_guid": 0x0002c90300000001, "peer_guid1": 0x0002c90300000002, "peer_guid2": 0x0002c90300000003, "peer_port1": 4, "peer_port2": 5}},
		{1311, "ntc_1311", "0000 " + guid1 + guid2 + guid3 + "04 05 0006 0007", "duplicate_port_guid", map[string]uint64{"port_guid": 0x0002c90300000001, "node_guid1": 0x0002c90300000002, "node_guid2": 0x0002c90300000003, "port1": 4, "port2": 5, "vport_index1": 6, "vport_index2": 7}},
		{1312, "ntc_1312", "0000 " + guid1 + guid2 + "00 03", "reboot", map[string]uint64{"port_guid": 0x0002c90300000001, "node_guid": 0x0002c90300000002, "port_num": 3}},
		{1313, "ntc_1313", "03 02 00001000 00001fff 00001100 000011ff", "router_lid_range", map[string]uint64{"syndrome": 3, "comp_ratio": 2, "global_start": 0x1000, "global_end": 0x1fff, "local_start": 0x1100, "local_end": 0x11ff}},
		{1314, "ntc_1314", "00 05 02 01 0007 0000 0001 00000001 00000002 00000003 00000004 00000005 00000006 00000007 00000008 00000009", "fast_recovery", map[string]uint64{
			"port_num": 5, "trigger": 2, "threshold_type": 1, "fields_select": 7, "counter_overflow": 1, "num_errors": 1, "num_warnings": 2, "num_normals": 3, "min_value": 4, "max_value": 5, "consecutive_normal": 6, "last_value[0]": 7, "last_value[2]": 9}},
		{1315, "ntc_1315", "01", "topology_file", map[string]uint64{"error_type": 1}},
		{1316, "ntc_1316", guid1 + guid2 + guid3 + "01 02 02 03 01", "topology_link", map[string]uint64{"node_guid": 0x0002c90300000001, "neighbor_guid": 0x0002c90300000002, "expected_guid": 0x0002c90300000003, "port_num": 1, "neighbor_port": 2, "neighbor_type": 2, "expected_port": 3, "expected_type": 1}},
		{1317, "ntc_1317", "0009 00*4 00*31 02", "contain_and_drain", map[string]uint64{"lid_addr": 9}},
		{1318, "ntc_1318: get_reason 0x0F; 8b hop_count, 24b qp2", "0077 0009 000a 0000 00 03 00000123 02000456 0000 0001 0002", "unauthorized_packets", map[string]uint64{"data_valid": 0x77, "lid_addr1": 9, "lid_addr2": 10, "reason": 3, "qp1": 0x123, "hop_count": 2, "qp2": 0x456, "path[1]": 1, "path[2]": 2}},
		{1319, "ntc_1319", "00 03", "issu_state", map[string]uint64{"issu_state": 3}},
		{1320, "ntc_1320", "01 00 00*31 06", "port_recovered", map[string]uint64{"block_id": 1}},
		{1321, "ntc_1321", "0000 " + guid1 + guid2 + "0003 0004", "link_flap", map[string]uint64{"node_guid1": 0x0002c90300000001, "node_guid2": 0x0002c90300000002, "port1": 3, "port2": 4}},
		{1322, "ntc_1322", "", "nvidia", nil},
		{1600, "ntc_1600", "0009 000f 02 0a " + gid1 + guid2 + "1122334455667788", "reported_key", map[string]uint64{"slid": 9, "attribute_id": 15, "method": 2, "mgmt_class": 10, "port_guid": 0x0002c90300000002, "key": 0x1122334455667788}},
		{1601, "ntc_1601", "0000000000000005 " + guid1 + "0000000000000006 " + guid2 + "0007 08", "tenant", map[string]uint64{"physical_group_id": 5, "physical_guid": 0x0002c90300000001, "virtual_group_id": 6, "virtual_guid": 0x0002c90300000002, "vport_index": 7, "tenant_notice_type": 8}},
		{1605, "ntc_1605", guid1, "routing_action", map[string]uint64{"guid": 0x0002c90300000001}},
		{1609, "ntc_1609", guid1 + "02", "issu_isolation", map[string]uint64{"guid": 0x0002c90300000001, "issu_state": 2}},
	} {
		for _, a := range []*Attribute{AttrSubnNotice, AttrSubnAdmNotice, AttrVendor0ANotice} {
			// is_generic 0, type 1; vendor; device; issuer; count; details; number at 496.
			data := make([]byte, a.Size)
			copy(data, handBytes(t, "01 0002c9 d2f2 0011 0000"))
			copy(data[10:], handBytes(t, tt.details))
			copy(data[496/8:], []byte{byte(tt.number >> 8), byte(tt.number)})
			as := a.Resolve(data, 0)
			what := fmt.Sprintf("%v notice %d (%s)", a.Class, tt.number, tt.accessor)
			checkFields(t, what, as, data, tt.want)
			checkFields(t, what, as, data, map[string]uint64{"notice_number": uint64(tt.number), "vendor_id": 0x2c9, "device_id": 0xd2f2, "issuer_lid": 0x11})
			layout := as.Field("data_details").Struct
			if layout == nil || tt.variant != "nvidia" && layout.Variant != tt.variant {
				t.Errorf("%s: variant %v", what, layout)
			} else {
				checked[layout.Variant] = true
			}
			m := make([]byte, Size)
			h := Header{Class: a.Class, ClassVersion: a.Version, Method: MethodTrap, Attribute: a.ID}
			if a.Class == ClassSubnAdm {
				h.Method = MethodReport
			}
			h.Put(m)
			copy(m[a.OffsetIn(a.Version):], data)
			MaskKeys(m)
			if secret, _ := hex.DecodeString("1122334455667788"); bytes.Contains(m, secret) {
				t.Errorf("%s: MaskKeys leaves the key", what)
			}
		}
	}
	for _, v := range LayoutNVIDIANotice.Variants {
		if !checked[v.Name] {
			t.Errorf("variant %s has no golden bytes", v.Name)
		}
	}
	// A notice of another vendor has no layout.
	data := make([]byte, AttrSubnNotice.Size)
	copy(data, handBytes(t, "01 001175 d2f2"))
	if f := AttrSubnNotice.Resolve(data, 0).Field("data_details"); f.Type != FieldTypeBytes {
		t.Error("a notice of another vendor is decoded")
	}
	if !strings.Contains(NVIDIANoticeNumberReboot.String(), "reboot") {
		t.Error(NVIDIANoticeNumberReboot)
	}
}
