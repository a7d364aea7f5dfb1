package fabric

import (
	"strings"
	"testing"

	"fabsh/mad"
)

// TestSubnet: what is kept is found again whoever is the subnet manager, where
// that can be.
func TestSubnet(t *testing.T) {
	for _, test := range []struct {
		s    Subnet
		want string
	}{
		{Subnet{Given: "rail-1", Prefix: 0xfe80000000000001, SM: 7}, "rail-1"},
		{Subnet{Prefix: 0xfe80000000000001, SM: 7}, "prefix-0xfe80000000000001"},
		{Subnet{Prefix: DefaultPrefix, SM: 7}, "sm-0x0000000000000007"},
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

// TestSameSubnet: a subnet is the recorded one if it has the prefix and half of the
// switches.
func TestSameSubnet(t *testing.T) {
	recorded := Subnet{Prefix: 1, SM: 7, Switches: []mad.GUID{10, 20, 30}}
	for _, test := range []struct {
		now  Subnet
		want bool
	}{
		{Subnet{Prefix: 1, SM: 8, Switches: []mad.GUID{10, 20, 30}}, true},
		{Subnet{Prefix: 1, Switches: []mad.GUID{20, 30, 40, 50}}, true},
		{Subnet{Prefix: 1, SM: 7, Switches: []mad.GUID{10}}, false},
		{Subnet{Prefix: 1, SM: 7}, false},
		{Subnet{Prefix: 2, SM: 7, Switches: []mad.GUID{10, 20, 30}}, false},
	} {
		if got := test.now.Is(recorded); got != test.want {
			t.Errorf("%v: %t, want %t", test.now, got, test.want)
		}
	}
	if got, want := recorded.String(), "prefix 0x0000000000000001, 3 switches from 0x000000000000000a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
