package mad

import (
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// registerBytes are digits, a register's size of them.
func registerBytes(t *testing.T, a *Attribute, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, a.Size)
	copy(data, b)
	return data
}

// TestRegisterBytes compares fields with bytes laid out by hand from the cited
// sources: offset of the word, lowest bit, number of bits. Around each field the
// bits are the other way round.
func TestRegisterBytes(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("00", n) }
	for _, tt := range []struct {
		a     *Attribute
		bytes string
		want  map[string]float64
	}{
		// mlxsw reg.h: sensor_index 0x00,0,12; slot_index 0x00,16,4; temperature 0x04,0,16; ...
		{LayoutMTMP, "00050 fff 0000 0170 8000 0200 4000 0348 0000 02f8 00000000 61736963 00000000", map[string]float64{
			"slot_index": 5, "sensor_index": 0xfff, "temperature": 46, "mte": 1, "mtr": 0, "max_temperature": 64, "tee": 1, "temperature_threshold_hi": 105, "temperature_threshold_lo": 95,
		}},
		{LayoutMTMP, "fff0f000 ffffffff 7fff0001 3fffffff ffff8000", map[string]float64{
			"slot_index": 0, "sensor_index": 0, "temperature": -0.125, "mte": 0, "mtr": 1, "max_temperature": 0.125, "tee": 0, "temperature_threshold_hi": -0.125, "temperature_threshold_lo": -4096,
		}},
		// mlx5_ifc.h: reserved 0x19, sensor_count 0x7, reserved 0x20, sensor_map 0x40
		{LayoutMTCAP, "0000007f 00000000 80000000 00000000", map[string]float64{"sensor_count": 127, "sensor_map": 1 << 63}},
		{LayoutMTCAP, "ffffff80 ffffffff 00000000 00000000", map[string]float64{"sensor_count": 0, "sensor_map": 0}},
		// mlxsw reg.h: pwm_frequency 0x00,0,7; tacho_active 0x04,16,10; pwm_active 0x04,0,5
		{LayoutMFCR, "0000007f 03ff001f", map[string]float64{"pwm_frequency": 127, "tacho_active": 1023, "pwm_active": 31}},
		{LayoutMFCR, "ffffff80 fc00ffe0", map[string]float64{"pwm_frequency": 0, "tacho_active": 0, "pwm_active": 0}},
		// mlxsw reg.h: tacho 0x00,24,4; rpm 0x04,0,16
		{LayoutMFSM, "0f000000 0000ffff", map[string]float64{"tacho": 15, "rpm": 65535}},
		{LayoutMFSM, "f0ffffff ffff0000", map[string]float64{"tacho": 0, "rpm": 0}},
		// mlxsw reg.h: hw_info_device_hw_revision 0x0,16,16; fw_info_extended_major 0x44 ... sub_minor 0x4C
		{LayoutMGIR, "00a1 d2f2" + zeros(24) + "00000e10 00010203 00000007" + zeros(24) + "00000000 0000001f 000007dc 00000400" + zeros(16) + "00040506", map[string]float64{
			"hw_revision": 0xa1, "device_id": 0xd2f2, "uptime": 3600, "fw_major": 1, "fw_minor": 2, "fw_sub_minor": 3, "fw_build_id": 7, "ext_fw_major": 31, "ext_fw_minor": 2012, "ext_fw_sub_minor": 1024,
			"sw_major": 4, "sw_minor": 5, "sw_sub_minor": 6,
		}},
		// mlxsw reg.h: l 0x00,31; module 0x00,16,8; status 0x00,0,8; i2c_device_address 0x04,24,8;
		// page_number 0x04,16,8; device_address 0x04,0,16; bank_number 0x08,16,8; size 0x08,0,16
		{LayoutMCIA, "80ff f0ff ff00 ffff 0000 ffff", map[string]float64{
			"l": 1, "module": 255, "slot_index": 15, "module_status": 255, "i2c_device_address": 255, "page_number": 0, "device_address": 65535, "bank_number": 0, "size": 65535,
		}},
		{LayoutMCIA, "7f00 0f00 00ff 0000 ffff 0000", map[string]float64{
			"l": 0, "module": 0, "slot_index": 0, "module_status": 0, "i2c_device_address": 0, "page_number": 255, "device_address": 0, "bank_number": 255, "size": 0,
		}},
		// mlx5_ifc.h (freebsd): swid 8, local_port 8, pnat 2, reserved 8, grp 6; clr 1, reserved 0x1c, prio_tc 3
		{LayoutPPCNT, "00ff 7f16 8000 0000", map[string]float64{"swid": 0, "local_port": 255, "pnat": 1, "lp_msb": 3, "grp": 0x16, "clr": 1, "prio_tc": 0}},
		{LayoutPPCNT, "ff00 80 e9 7fff ffff", map[string]float64{"swid": 255, "local_port": 0, "pnat": 2, "lp_msb": 0, "grp": 0x29, "clr": 0, "prio_tc": 31}},
		// mlx5_ifc.h (freebsd): reserved 8, local_port 8, pnat 2, reserved 0x2e-..., page_select 8
		{LayoutPDDR, "00ff 7000 00000001 0000ffff 0000040b", map[string]float64{"local_port": 255, "pnat": 1, "lp_msb": 3, "page_select": 1, "group_opcode": 65535, "status_opcode": 1035}},
		{LayoutPDDR, "ff00 8fff ffffff01 ffff0000 ffff0000", map[string]float64{"local_port": 0, "pnat": 2, "lp_msb": 0, "page_select": 1, "group_opcode": 0, "status_opcode": 0}},
		// mstflint register_access_table.adb pddr_link_down_info_page_ext: 0x0.0 4, 0x4.0 8, 0x8.0 8
		{LayoutPDDR, "00000000 00000006 00000002 00000017 00000014", map[string]float64{"down_blame": 2, "local_reason_opcode": 0x17, "remote_reason_opcode": 0x14}},
		// mlx5_ifc.h pplm_reg: fec_mode_active 24 bits at 0x68
		{LayoutPPLM, "00050000 00000000 00000000 ff000080", map[string]float64{"local_port": 5, "fec_mode_active": 0x80}},
	} {
		data := registerBytes(t, tt.a, tt.bytes)
		as := tt.a.Resolve(data, 0)
		for name, want := range tt.want {
			if f := as.Field(name); f == nil {
				t.Errorf("%s has no %s", tt.a.Name, name)
			} else if got := f.Number(data, 0); got != want {
				t.Errorf("%s.%s of %s is %v, want %v", tt.a.Name, name, tt.bytes, got, want)
			} else if code, ok := f.Code(got); !ok || code != f.Uint(data) {
				t.Errorf("%s.%s: %v is written as %#x, %v", tt.a.Name, name, got, code, ok)
			}
		}
	}
}

// TestEEPROMBytes: where values stand in modules, by the offsets of ethtool.
func TestEEPROMBytes(t *testing.T) {
	for _, tt := range []struct {
		a     *Attribute
		field string
		at    int
		value string
		want  float64
	}{
		{LayoutSFF8636, "temperature", 0x16, "1a80", 26.5},
		{LayoutSFF8636, "temperature", 0x16, "ff80", -0.5},
		{LayoutSFF8636, "voltage", 0x1a, "80e8", 3.3},
		{LayoutSFF8636, "rx_power", 0x22, "2710", 1000},
		{LayoutSFF8636, "tx_bias", 0x2a, "0dac", 7},
		{LayoutSFF8636, "tx_power", 0x32, "ffff", 6553.5},
		{LayoutSFF8636, "temperature_alarms", 6, "8f", 8},
		{LayoutSFF8636, "rx_power_alarms", 9, "4f", 4},
		{LayoutSFF8636, "length_assembly", 0x92, "05", 5},
		{LayoutCMIS, "temperature", 0x0e, "1a80", 26.5},
		{LayoutCMIS, "voltage", 0x10, "80e8", 3.3},
		{LayoutCMIS, "temperature_alarms", 9, "f1", 1},
		{LayoutCMIS, "voltage_alarms", 9, "1f", 1},
		{LayoutCMIS, "flat_mem", 2, "80", 1},
		{LayoutCMIS, "module_state", 3, "f7", 3},
		{LayoutCMIS, "length_multiplier", 0xca, "bf", 2},
		{LayoutCMIS, "length_value", 0xca, "c5", 5},
		{LayoutCMIS, "max_power", 0xc9, "41", 16.25},
		{LayoutCMIS, "tx_power_low_alarm", 0x100 + 0x8c - 0x80, "04", 4},
		{LayoutCMIS, "rx_power_low_alarm", 0x100 + 0x96 - 0x80, "80", 128},
		{LayoutCMIS, "tx_power", 0x100 + 0x9a - 0x80, "2710", 1000},
		{LayoutCMIS, "tx_bias", 0x100 + 0xaa - 0x80, "0dac", 7},
		{LayoutCMIS, "rx_power", 0x100 + 0xba - 0x80, "0001", 0.1},
	} {
		data := make([]byte, tt.a.Size)
		value, _ := hex.DecodeString(tt.value)
		copy(data[tt.at:], value)
		if got := tt.a.Field(tt.field).Number(data, 0); got != tt.want {
			t.Errorf("%s.%s with %s at %#x is %v, want %v", tt.a.Name, tt.field, tt.value, tt.at, got, tt.want)
		}
	}
	texts := make([]byte, LayoutSFF8636.Size)
	copy(texts[148:], "NVIDIA          ")
	copy(texts[168:], "MFA1A00-E003    ")
	copy(texts[196:], "MT2012FT01234   ")
	copy(texts[212:], "200312  ")
	for field, want := range map[string]string{"vendor_name": "NVIDIA          ", "vendor_pn": "MFA1A00-E003    ", "vendor_sn": "MT2012FT01234   ", "date_code": "200312  "} {
		if got := LayoutSFF8636.Field(field).Text(texts); got != want {
			t.Errorf("SFF8636.%s is %q, want %q", field, got, want)
		}
		if got := LayoutCMIS.Field(field).Text(make([]byte, LayoutCMIS.Size)); got != "" {
			t.Errorf("CMIS.%s is %q", field, got)
		}
	}
}

// registerMAD is a request with the content of an attribute of registers.
func registerMAD(a *Attribute, class Class, m Method, modifier uint32, content string) []byte {
	mad := make([]byte, Size)
	(&Header{Class: class, ClassVersion: 1, Method: m, Attribute: a.ID, Modifier: modifier}).Put(mad)
	if class == ClassSubnDirected {
		SetRoute(mad, DirectedRoute{0, 1})
	}
	b, err := hex.DecodeString(strings.ReplaceAll(content, " ", ""))
	if err != nil {
		panic(err)
	}
	copy(mad[a.Offset():], b)
	return mad
}

// TestRegisterGate: only a query of a register that is known is a read, by its
// method and by the operation in its content. What would write or clear is refused.
func TestRegisterGate(t *testing.T) {
	const (
		query = "0804 0000 900a 0101 00000000 00000000 1809 0000"
		key   = "0000000000000000"
	)
	replace := func(s, old, new string) string { return strings.Replace(s, old, new, 1) }
	smp := AttrMlnxAccessRegister
	for _, tt := range []struct {
		what   string
		m      []byte
		effect Effect
		writes bool
	}{
		{"a query by SMP", registerMAD(smp, ClassSubn, MethodGet, 0, query), EffectRead, false},
		{"the same along a route", registerMAD(smp, ClassSubnDirected, MethodGet, 0, query), EffectRead, false},
		{"a Set that queries", registerMAD(smp, ClassSubn, MethodSet, 0, query), EffectFabric, false},
		{"a Get that writes", registerMAD(smp, ClassSubn, MethodGet, 0, replace(query, "0101", "0201")), EffectFabric, true},
		{"the same along a route", registerMAD(smp, ClassSubnDirected, MethodGet, 0, replace(query, "0101", "0201")), EffectFabric, true},
		{"a Set that writes", registerMAD(smp, ClassSubn, MethodSet, 0, replace(query, "0101", "0201")), EffectFabric, true},
		{"a Get with method 0", registerMAD(smp, ClassSubn, MethodGet, 0, replace(query, "0101", "0001")), EffectFabric, true},
		{"a Get with method 3", registerMAD(smp, ClassSubn, MethodGet, 0, replace(query, "0101", "0301")), EffectFabric, true},
		{"a Get with method 0x7f", registerMAD(smp, ClassSubn, MethodGet, 0, replace(query, "0101", "7f01")), EffectFabric, true},
		{"a Get with the bit of answers", registerMAD(smp, ClassSubn, MethodGet, 0, replace(query, "0101", "8101")), EffectFabric, true},
		{"a Get of another operation class", registerMAD(smp, ClassSubn, MethodGet, 0, replace(query, "0101", "0102")), EffectFabric, false},
		{"a Get without the register's head", registerMAD(smp, ClassSubn, MethodGet, 0, replace(query, "1809", "0000")), EffectFabric, false},
		{"a Get of a register unknown", registerMAD(smp, ClassSubn, MethodGet, 0, replace(query, "900a", "9052")), EffectFabric, true},
		{"a Get of a register that forgets", registerMAD(smp, ClassSubn, MethodGet, 0, query+"00000000 00000000 40000000"), EffectFabric, true},
		{"a Send of a query", registerMAD(smp, ClassSubn, MethodSend, 0, query), EffectFabric, false},
		{"the same in the vendor's class", registerMAD(AttrAccessRegisterLong, ClassVendor0A, MethodGet, 0, key+query), EffectRead, false},
		{"a write there", registerMAD(AttrAccessRegisterLong, ClassVendor0A, MethodGet, 0, key+replace(query, "0101", "0201")), EffectFabric, true},
		{"a query by GMP", registerMAD(AttrAccessRegister, ClassVendor0A, MethodGet, 0x5008, key+"00000000 0001 4016"), EffectRead, false},
		{"one that clears", registerMAD(AttrAccessRegister, ClassVendor0A, MethodGet, 0x5008, key+"00000000 0001 4016 80000000"), EffectFabric, true},
		{"one that locks", registerMAD(AttrAccessRegister, ClassVendor0A, MethodGet, 0x9014, key+"00000000 80000000"), EffectFabric, true},
		{"one of a register unknown", registerMAD(AttrAccessRegister, ClassVendor0A, MethodGet, 0x9052, key), EffectFabric, true},
		{"one of a number too long", registerMAD(AttrAccessRegister, ClassVendor0A, MethodGet, 0x1_9020, key), EffectFabric, true},
		{"a Set by GMP", registerMAD(AttrAccessRegister, ClassVendor0A, MethodSet, 0x5008, key+"00000000 0001 4016"), EffectFabric, true},
		{"a Send by GMP", registerMAD(AttrAccessRegister, ClassVendor0A, MethodSend, 0x5008, key+"00000000 0001 4016"), EffectFabric, true},
		{"GeneralInfo by SMP", registerMAD(AttrGeneralInfo, ClassSubn, MethodGet, 0, ""), EffectRead, false},
		{"configuration space", registerMAD(AttrMlnxConfigSpace, ClassSubn, MethodGet, 0, ""), EffectFabric, false},
		{"configuration space, written", registerMAD(AttrMlnxConfigSpace, ClassSubn, MethodSet, 0, ""), EffectFabric, true},
		{"the same by GMP", registerMAD(AttrVendor0AConfigSpace, ClassVendor0A, MethodSet, 0, ""), EffectFabric, true},
		{"another attribute", registerMAD(AttrNodeInfo, ClassSubn, MethodGet, 0, replace(query, "0101", "0201")), EffectRead, false},
	} {
		if got := EffectOfMAD(tt.m); got != tt.effect {
			t.Errorf("%s: effect %v, want %v", tt.what, got, tt.effect)
		}
		if got := WritesRegister(tt.m); got != tt.writes {
			t.Errorf("%s: writes: %v, want %v", tt.what, got, tt.writes)
		}
	}
	odd := registerMAD(smp, ClassSubn, MethodGet, 0, replace(query, "0101", "0201"))
	for at := range HeaderSize {
		for _, flip := range []byte{0x01, 0x80} {
			m := append([]byte(nil), odd...)
			m[at] ^= flip
			if EffectOfMAD(m) != EffectFabric && ParseHeader(m).Attribute == smp.ID {
				t.Errorf("a write with byte %d of the header changed passes for a read", at)
			}
		}
	}
}

// FuzzRegister: whatever a datagram holds, what passes for a query of a register
// has nothing set that clears; and no answer is more than was asked for.
func FuzzRegister(f *testing.F) {
	f.Add(registerMAD(AttrMlnxAccessRegister, ClassSubn, MethodGet, 0, "0804 0000 900a 0101 00000000 00000000 1809 0000"), uint16(0x900a))
	f.Add(registerMAD(AttrAccessRegister, ClassVendor0A, MethodGet, 0x5031, ""), uint16(0x5031))
	f.Fuzz(func(t *testing.T, b []byte, id uint16) {
		m := make([]byte, Size)
		copy(m, b)
		if registerUseOf(m) == registerQuery && WritesRegister(m) {
			t.Fatal("it reads and writes")
		}
		if EffectOfMAD(m) == EffectRead && WritesRegister(m) {
			t.Fatalf("%x passes for a read, and writes", m[:100])
		}
		Dissect(m)
		a := LookupRegister(id)
		if a == nil {
			return
		}
		content, _, _ := RegisterContent(m, a)
		if len(content) > a.Size {
			t.Fatalf("%d bytes of %s", len(content), a.Name)
		}
		as := a.Resolve(content, 0)
		for i := range as.Flat() {
			as.Flat()[i].Number(content, 0)
		}
	})
}

//go:embed testdata/registers.txt
var registerFacts string

// TestRegisterFields: a field of a register is where mstflint has it, on both sides of
// its range: all its bits and no other are set where it is, and the other way round.
func TestRegisterFields(t *testing.T) {
	layouts := map[string]*Attribute{}
	for a := range codecs {
		layouts[a.Name] = a
	}
	tested := map[string]int{}
	for line := range strings.Lines(registerFacts) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var at, low, bits int
		where, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := fmt.Sscanf(number, "0x%x.%d %d", &at, &low, &bits); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		register, name, _ := strings.Cut(where, ".")
		a := layouts[register]
		if a == nil {
			t.Errorf("there is no %s", register)
			continue
		}
		f := fieldNamed(a, name)
		if f == nil {
			t.Errorf("%s has no %s", register, name)
			continue
		}
		tested[register]++
		want := make([]byte, a.Size)
		if bits == 64 {
			binary.BigEndian.PutUint64(want[at:], 1<<64-1)
		} else {
			binary.BigEndian.PutUint32(want[at:], uint32((1<<bits-1)<<low))
		}
		for _, fill := range []byte{0, 0xff} {
			data := make([]byte, a.Size)
			for i := range data {
				data[i] = fill
				want[i] ^= fill
			}
			f.SetUint(data, map[byte]uint64{0: 1<<f.Bits - 1, 0xff: 0}[fill])
			if string(data) != string(want) {
				t.Errorf("%s in %#x: %x, want %x", where, fill, data, want)
			}
			for i := range want {
				want[i] ^= fill
			}
		}
	}
	for _, a := range Registers() {
		if a.Field("local_port") == nil && tested[a.Name] == 0 && a.Name != "MSPS" && a.Name != "MSGI" { // these hold texts and bytes alone
			t.Errorf("%s: no field is compared", a.Name)
		}
	}
}

// fieldNamed is a field by its name in the Go structure.
func fieldNamed(a *Attribute, name string) *Field {
	for i := range a.Fields {
		if a.Fields[i].Name == name || strings.EqualFold(strings.ReplaceAll(a.Fields[i].Script, "_", ""), name) {
			return &a.Fields[i]
		}
	}
	return nil
}
