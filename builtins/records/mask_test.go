package records

import "testing"

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
