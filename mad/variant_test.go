package mad

import (
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
		if got := a.Resolve(notice(a, 128, 0), 0); got != a {
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

// FuzzVariants: whatever the bytes and the modifier, the variant is one of
// the attribute's, and is as long.
func FuzzVariants(f *testing.F) {
	f.Add([]byte{0x81, 0, 0, 1, 0, 128}, uint32(0))
	f.Add([]byte{}, ^uint32(0))
	f.Fuzz(func(t *testing.T, data []byte, modifier uint32) {
		for _, a := range Attributes() {
			as := a.Resolve(data, modifier)
			if as != a && as != a.WithVariant(as.Variant) || as.Size != a.Size {
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
