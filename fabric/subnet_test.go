package fabric

import (
	"strings"
	"testing"
)

// TestSubnet: what is kept is found again whoever is the subnet manager, where
// that can be.
func TestSubnet(t *testing.T) {
	for _, test := range []struct {
		s    Subnet
		want string
	}{
		{Subnet{"rail-1", 0xfe80000000000001, 7}, "rail-1"},
		{Subnet{"", 0xfe80000000000001, 7}, "prefix-0xfe80000000000001"},
		{Subnet{"", DefaultPrefix, 7}, "sm-0x0000000000000007"},
		{Subnet{}, "unknown"},
	} {
		if got := test.s.Key(); got != test.want {
			t.Errorf("%+v: %s, want %s", test.s, got, test.want)
		}
	}
	for _, bad := range []string{"", "..", "a/b", ".x", "a\n", strings.Repeat("x", 65)} {
		if CheckSubnetName(bad) == nil {
			t.Errorf("%q is taken for a name", bad)
		}
	}
}
