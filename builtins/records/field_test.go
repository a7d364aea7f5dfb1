package records

import (
	"testing"
)

// FuzzIdentifiers: no text panics, and what is read is written unchanged.
func FuzzIdentifiers(f *testing.F) {
	for _, s := range []string{"0x0002c903001234ab", "0002:c903:0012:34ab", "fe80::1", "::", "0x", "", "-1", "日本"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if g, ok := GUIDText(s); ok {
			if again, ok := GUIDText(g.String()); !ok || again != g {
				t.Errorf("%q: %v, again %v", s, g, again)
			}
		}
	})
}

func TestMaskKeys(t *testing.T) {
	for code, want := range map[string]string{
		`smp_set("PortInfo", p, m_key=0x1234)`:                        `smp_set("PortInfo", p, m_key=...)`,
		`smp_set("PortInfo", p, m_key = "0x12", lid=3)`:               `smp_set("PortInfo", p, m_key = ..., lid=3)`,
		`x = {"m_key": 0x1234, 'sm_key' : k}`:                         `x = {"m_key": ..., 'sm_key' : ...}`,
		`r.m_key == "set"`:                                            `r.m_key == "set"`,
		`r.replace(m_key_lease_period=3, m_key_protect_bits=1)`:       `r.replace(m_key_lease_period=3, m_key_protect_bits=1)`,
		`sa_gettable("PathRecord", p_key=0xffff)`:                     `sa_gettable("PathRecord", p_key=0xffff)`,
		`mad_set("CongestionKeyInfo", 3, cc_key=1); f(vs_key=2, x=3)`: `mad_set("CongestionKeyInfo", 3, cc_key=...); f(vs_key=..., x=3)`,
		"m_key=": "m_key=",
	} {
		if got := MaskKeys(code); got != want {
			t.Errorf("%s:\n got %s\nwant %s", code, got, want)
		}
	}
}
