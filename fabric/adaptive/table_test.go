package adaptive

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

func TestPorts(t *testing.T) {
	s := PortSet(1, 2, 3, 7, 64, 254, 255)
	mask := s.Mask()
	want := "c000" + strings.Repeat("00", 21) + "01" + strings.Repeat("00", 7) + "8e"
	if got := hex.EncodeToString(mask[:]); got != want {
		t.Errorf("mask %s, want %s", got, want)
	}
	if back := PortsOfMask(mask); back != s {
		t.Errorf("back from the mask: %v, want %v", back, s)
	}
	if got, want := s.String(), "1-3,7,64,254-255"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got := slices.Collect(s.All()); !slices.Equal(got, []uint8{1, 2, 3, 7, 64, 254, 255}) {
		t.Errorf("ports %v", got)
	}
	s.Remove(254)
	if s.Len() != 6 || s.Has(254) || !s.Has(255) || s.First() != 1 || s.Empty() || !(Ports{}).Empty() || (Ports{}).String() != "" {
		t.Errorf("after a removal: %v", s)
	}
}

func TestGroups(t *testing.T) {
	g := NewGroups(1)
	a, _ := g.Place(PortSet(1, 2))
	b, _ := g.Place(PortSet(1, 3))
	again, _ := g.Place(PortSet(1, 2))
	if a != 0 || b != 1 || again != 0 || g.Len() != 2 {
		t.Errorf("groups %d %d %d of %d, want 0 1 0 of 2", a, b, again, g.Len())
	}
	for _, err := range []error{g.Set(MaxGroups, 0, Ports{}), g.Set(0, 1, Ports{}), g.Set(-1, 0, Ports{})} {
		if err == nil {
			t.Error("a group or sub-group out of range: no error")
		}
	}
	c := g.Clone()
	c.Set(0, 0, PortSet(9))
	if g.Ports(0, 0) != PortSet(1, 2) || c.Ports(0, 0) != PortSet(9) {
		t.Error("a clone changes with its original")
	}
}
