package mad

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// TestVendorLayouts reads bytes written by hand from the sources that the layouts
// name: each piece is a member of the struct there.
func TestVendorLayouts(t *testing.T) {
	const key = "0000000000000000 "
	hardware := func(device string) string { // is3_hw_info_t, is3_fw_info_t
		return key + "0001" + device + strings.Repeat("00", 24) + "00000e10" + // hw_revision, device_id, uptime
			"00 02 09 08 00000005 06 17 2008 0000 1743 " + hex.EncodeToString([]byte("MT_0D80110009\x00\x00\x00")) + " 00000007 "
	}
	extended := "0000001f 0000000e 000003ec" + strings.Repeat("00", 16) // is4_fw_ext_info_t
	software := "00 03 04 05"                                           // is3_sw_info_t
	for _, tt := range []struct {
		a        *Attribute
		modifier uint32
		bytes    string
		variant  string
		want     map[string]uint64
	}{
		{AttrVSGeneralInfo, 0, hardware("b924") + software, "is3", map[string]uint64{
			"device_id": 0xb924, "uptime": 3600, "fw_major": 2, "fw_minor": 9, "fw_sub_minor": 8, "fw_build_id": 5, "fw_month": 6, "fw_day": 0x17,
			"fw_year": 0x2008, "fw_hour": 0x1743, "ini_file_version": 7, "sw_major": 3, "sw_minor": 4, "sw_sub_minor": 5,
		}},
		{AttrVSGeneralInfo, 0, hardware("d2f2") + extended + software, "is4", map[string]uint64{ // Quantum-2
			"device_id": 0xd2f2, "fw_major": 2, "ext_fw_major": 31, "ext_fw_minor": 14, "ext_fw_sub_minor": 1004, "sw_major": 3, "sw_minor": 4, "sw_sub_minor": 5,
		}},
		{AttrMlnxPrivateLFTMap, 1 << 16, "13 14 00 30 15 00 00 18", "", map[string]uint64{ // ib_vs_plft_map_t
			"ib_port[0]": 19, "shared_plft_port[0]": 20, "size[0]": 48, "ib_port[1]": 21, "size[1]": 24, "size[2]": 0,
		}},
		{AttrMlnxConfigSpace, 0x0010_0040, key + "00000001 00000002", "words", map[string]uint64{"words[0]": 1, "words[1]": 2}},
		{AttrMlnxConfigSpace, 0x0081_0000, key + "00100040 00000002 000000ff", "records", map[string]uint64{"address[0]": 0x100040, "word[0]": 2, "mask[0]": 0xff}},
		{AttrMlnxAccessRegister, 0, "0804 8300 9020 8201 00000000 00000009 1805 0000 11223344", "", map[string]uint64{ // mreg_send_raw
			"operation_type": 1, "operation_len": 4, "operation_dr": 1, "register_status": 3, "register_id": 0x9020, "operation_response": 1,
			"register_method": 2, "operation_class": 1, "operation_tid": 9, "register_type": 3, "register_len": 5,
		}},
		{AttrAccessRegisterLong, 0, key + "0804 0000 9020 0101 00000000 00000000 1821 0000", "mgir", map[string]uint64{ // cls_a_query_via
			"register_id": 0x9020, "register_method": 1, "register_len": 33,
		}},
		{AttrAccessRegister, 0x9020, key + "0002 0000 01", "", map[string]uint64{"block_num": 2}}, // mib_send_gmp_access_reg_mad
		{AttrExtPortAccess, 2, key + "00000010 00000056 00000080", "i2c", map[string]uint64{"size": 16, "device_select": 0x56, "offset": 128}},
		{AttrExtPortAccess, 3, key, "i2c", nil},
		{AttrExtPortAccess, 4, key + "00000010", "", nil},
		{AttrVendor0AFlashReadSector, 0, key + "00000040 00010000", "", map[string]uint64{"size": 64, "offset": 0x10000}}, // ib_vs_flash_t
		{AttrCounterGroupInfo, 12, key + "000000 02 000000ff 0000010f", "", map[string]uint64{"num_of_counter_groups": 2, "group_mask[0]": 0xff, "group_mask[1]": 0x10f}},
		{AttrConfigCounterGroup, 12, key + "00000000 00000002 00000008", "", map[string]uint64{"group_select_0": 2, "group_select_1": 8}},
		{AttrPortInfoExtendedRecord, 0, "0007 03 80 00000001 0002", "", map[string]uint64{"lid": 7, "port_num": 3, "options": 0x80, "capability_mask": 1, "fec_mode_active": 2}},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(tt.bytes, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, tt.a.Size)
		copy(data, b)
		as := tt.a.Resolve(data, tt.modifier)
		if as.Variant != tt.variant {
			t.Errorf("%s is of variant %q, want %q", tt.a.Name, as.Variant, tt.variant)
		}
		for name, want := range tt.want {
			field, index := name, 0
			fmt.Sscanf(strings.ReplaceAll(name, "[", " "), "%s %d", &field, &index)
			if f := as.Field(field); f == nil {
				t.Errorf("%s has no %s", tt.a.Name, field)
			} else if got := f.UintAt(data, index); got != want {
				t.Errorf("%s.%s is %#x, want %#x", tt.a.Name, name, got, want)
			}
		}
	}
}

// TestRegistersAreNotRead: a Get of a register may write it, for the method that
// counts is in the data; and all else of these devices is unknown territory.
func TestRegistersAreNotRead(t *testing.T) {
	for _, a := range []*Attribute{AttrMlnxAccessRegister, AttrAccessRegisterLong, AttrAccessRegister, AttrVendor0AFlashOpen, AttrExtPortAccess, AttrMlnxPrivateLFTMap} {
		if got := a.Effect(MethodGet); got != EffectFabric {
			t.Errorf("Get of %s has the effect %v", a.Name, got)
		}
	}
}
