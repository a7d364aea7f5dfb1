package adaptive

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/mad"
)

// example has two private LFTs; LIDs 1 to 6 have the states in order, of group 1; LID 7
// group 2, which is not set.
func example() *Switch {
	g := NewGroups(2)
	g.Set(1, 0, PortSet(1, 2))
	g.Set(1, 1, PortSet(3))
	first := NewTable(7, g)
	for lid, e := range map[mad.LID]Entry{
		1: {Bounded, 1, 1},
		2: {Free, 4, 1},
		3: {Static, 5, 1},
		4: {HBF, 2, 1},
		5: {Static, mad.NoPort, 0},
		6: {Static, 0, 0},
		7: {Free, 9, 2},
	} {
		first.Set(lid, e)
	}
	second := NewTable(2, g)
	second.Set(1, Entry{Bounded, 3, 1})
	private := make([][16]uint8, 4)
	private[2][1] = 1
	private[3][1] = 2
	return &Switch{Enabled: true, SLs: 0x0007, Static: TransportSet(UD, UC), HBF: true, HBFSLs: 0x0001, Private: private, Tables: []*Table{first, second, nil}}
}

// ways describes a choice.
func ways(c Choice) string {
	var list []string
	for _, w := range []struct {
		name string
		is   bool
	}{{"adaptive", c.Adaptive}, {"hashed", c.Hashed}, {"direct", c.Direct}, {"recovers", c.Recovers}} {
		if w.is {
			list = append(list, w.name)
		}
	}
	var groups []string
	for _, s := range c.SubGroups {
		groups = append(groups, s.String())
	}
	return fmt.Sprintf("%d %s [%s] %s: %s", c.PLFT, c.State, strings.Join(groups, "|"), strings.Join(list, " "), c.Ports)
}

func TestChoose(t *testing.T) {
	plain := func(s *Switch) {}
	recovers := func(s *Switch) { s.FastRecovery = true }
	allAdapt := func(s *Switch) { s.Static = 0 }
	for _, x := range []struct {
		set    func(s *Switch)
		packet Packet
		down   []uint8
		want   string
	}{
		{plain, Packet{LID: 1}, nil, "0 bounded [1-2|3] adaptive hashed: 1-3"},
		{plain, Packet{LID: 2}, nil, "0 free [1-2|3] adaptive hashed: 1-3"},
		{plain, Packet{LID: 2, SL: 1}, nil, "0 free [1-2|3] adaptive direct: 1-4"},
		{plain, Packet{LID: 2, SL: 1, Transport: RC}, nil, "0 free [1-2|3] adaptive: 1-3"},
		{plain, Packet{LID: 2, SL: 1, Transport: UD}, nil, "0 free [] direct: 4"},
		{plain, Packet{LID: 2, SL: 0, Transport: UD}, nil, "0 free [1-2|3] hashed: 1-3"},
		{plain, Packet{LID: 2, SL: 3}, nil, "0 free [] direct: 4"},
		{plain, Packet{LID: 3}, nil, "0 static [] direct: 5"},
		{plain, Packet{LID: 4}, nil, "0 hbf [1-2|3] hashed: 1-3"},
		{plain, Packet{LID: 4, SL: 1}, nil, "0 hbf [] direct: 2"},
		{plain, Packet{LID: 5}, nil, "0 static [] direct: "},
		{plain, Packet{LID: 6}, nil, "0 static [] direct: 0"},
		{plain, Packet{LID: 7, SL: 1}, nil, "0 free [] adaptive direct: 9"},
		{plain, Packet{LID: 8}, nil, "0 static [] direct: "},
		// Links that are down: load never chooses them, hashes do.
		{plain, Packet{LID: 2, SL: 1, Transport: RC}, []uint8{1}, "0 free [1-2|3] adaptive: 2-3"},
		{plain, Packet{LID: 2, SL: 1, Transport: RC}, []uint8{1, 2, 3}, "0 free [1-2|3] adaptive: "},
		{plain, Packet{LID: 4}, []uint8{1}, "0 hbf [1-2|3] hashed: 1-3"},
		{plain, Packet{LID: 2, SL: 3}, []uint8{4}, "0 free [] direct: 4"},
		// Fast recovery: other ports of the group.
		{recovers, Packet{LID: 4}, []uint8{1}, "0 hbf [1-2|3] hashed recovers: 2-3"},
		{recovers, Packet{LID: 2, SL: 3}, nil, "0 free [1-2|3] direct recovers: 1-4"},
		{recovers, Packet{LID: 2, SL: 3}, []uint8{4, 3}, "0 free [1-2|3] direct recovers: 1-2"},
		{recovers, Packet{LID: 2, SL: 3}, []uint8{1, 2, 3, 4}, "0 free [] direct: 4"},
		{recovers, Packet{LID: 3}, nil, "0 static [] direct: 5"},
		{recovers, Packet{LID: 3}, []uint8{5}, "0 static [1-2|3] direct recovers: 1-3"},
		{recovers, Packet{LID: 5}, nil, "0 static [] direct: "},
		// All transports adapt: the static port is never taken.
		{allAdapt, Packet{LID: 2, SL: 1}, nil, "0 free [1-2|3] adaptive: 1-3"},
		{allAdapt, Packet{LID: 7}, nil, "0 free [] adaptive: "},
		// The private LFT by port and SL.
		{plain, Packet{LID: 1, SL: 1, In: 2, Transport: UC}, nil, "1 bounded [] direct: 3"},
		{plain, Packet{LID: 3, SL: 1, In: 2}, nil, "1 static [] direct: "},
		{plain, Packet{LID: 1, SL: 1, In: 3}, nil, "2 static [] direct: "},
		{plain, Packet{LID: 1, SL: 2, In: 3, Transport: RC}, nil, "0 bounded [1-2|3] adaptive: 1-3"},
		{plain, Packet{LID: 1, SL: 2, In: 9, Transport: RC}, nil, "0 bounded [1-2|3] adaptive: 1-3"},
	} {
		s := example()
		x.set(s)
		got := ways(s.Choose(x.packet, func(p uint8) bool { return slices.Contains(x.down, p) }))
		if got != x.want {
			t.Errorf("%+v, down %v: %s, want %s", x.packet, x.down, got, x.want)
		}
	}
	if got, want := ways(Single(3)), "0 static [] direct: 3"; got != want {
		t.Errorf("Single: %s, want %s", got, want)
	}
}
