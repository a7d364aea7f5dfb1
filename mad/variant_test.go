package mad

import (
	"fmt"
	"slices"
	"testing"
)

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

// FuzzHeader: a header that was read is written the same, but for what is
// reserved and the bits of directed routes.
func FuzzHeader(f *testing.F) {
	f.Add(request(ClassSubn, MethodGet, AttrNodeInfo.ID, 1, nil))
	f.Add(directed(request(ClassSubn, MethodGet, AttrNodeInfo.ID, 1, nil), 0, 1))
	f.Fuzz(func(t *testing.T, m []byte) {
		if len(m) < HeaderSize {
			return
		}
		h := ParseHeader(m)
		again := make([]byte, HeaderSize)
		h.Put(again)
		if got := ParseHeader(again); got != h {
			t.Fatalf("%+v becomes %+v", h, got)
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

// TestEvent: what a notice reports, in words.
func TestEvent(t *testing.T) {
	for _, tt := range []struct {
		class Class
		n     Notice
		want  string
	}{
		{ClassSubn, Notice{IsGeneric: true, TrapNumber: 128}, "trap 128 (link state changed)"},
		{ClassSubnDirected, Notice{IsGeneric: true, TrapNumber: 256}, "trap 256 (bad M_Key)"},
		{ClassSubnAdm, Notice{IsGeneric: true, TrapNumber: 64}, "trap 64 (port in service)"},
		{ClassBM, Notice{IsGeneric: true, TrapNumber: 259}, "trap 259 (bad B_Key)"},
		{ClassCongestion, Notice{IsGeneric: true}, "trap 0 (bad CC_Key)"},
		{ClassSubn, Notice{IsGeneric: true, TrapNumber: 999}, "trap 999"},
		{ClassSubn, Notice{IsGeneric: true, Type: NoticeTypeEmpty}, ""},
		{ClassSubn, Notice{ProducerType: 0x2c9, TrapNumber: 66}, "trap of vendor 0x0002c9, device 0x0042"},
	} {
		if got := tt.n.Event(tt.class); got != tt.want {
			t.Errorf("%v %d: %q, want %q", tt.class, tt.n.TrapNumber, got, tt.want)
		}
	}
}
