package records

import "testing"

// FuzzIdentifiers: no text panics, and what is read writes back the same.
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
