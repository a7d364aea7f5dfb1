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

// TestSameSubnet: a subnet is the recorded one if it has the prefix, as far as that is known,
// and half of the switches, or no others.
func TestSameSubnet(t *testing.T) {
	recorded := Subnet{Prefix: 1, SM: 7, Switches: []mad.GUID{10, 20, 30}}
	for _, test := range []struct {
		now  Subnet
		want bool
	}{
		{Subnet{Prefix: 1, SM: 8, Switches: []mad.GUID{10, 20, 30}}, true},
		{Subnet{Prefix: 1, Switches: []mad.GUID{20, 30, 40, 50}}, true},
		{Subnet{Prefix: 1, SM: 7, Switches: []mad.GUID{10}}, true}, // an outage
		{Subnet{Prefix: 1, SM: 7}, true},
		{Subnet{Prefix: 1, SM: 7, Switches: []mad.GUID{10, 40}}, false},
		{Subnet{Prefix: 1, SM: 7, Switches: []mad.GUID{40}}, false},
		{Subnet{Switches: []mad.GUID{10, 20, 30}}, true}, // a text dump
		{Subnet{Switches: []mad.GUID{10, 40}}, false},
		{Subnet{Prefix: 2, SM: 7, Switches: []mad.GUID{10, 20, 30}}, false},
	} {
		if got := test.now.Is(recorded); got != test.want {
			t.Errorf("%v: %t, want %t", test.now, got, test.want)
		}
	}
	if now := (Subnet{Switches: []mad.GUID{10, 20, 30}}); !recorded.Is(now) {
		t.Error("a text dump was recorded: the subnet is refused")
	}
	if one := (Subnet{Prefix: 1, Switches: []mad.GUID{10}}); one.HasHalf(recorded) {
		t.Error("1 of 3 switches is taken for half")
	}
	if got, want := recorded.String(), "prefix 0x0000000000000001, 3 switches from 0x000000000000000a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
