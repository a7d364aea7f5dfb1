package adaptive

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fabsh/mad"
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

func TestEncode(t *testing.T) {
	want := "01" + "03" + "0007" + "0001" + "0c" + "00" + // version, flags, SLs, transports UC and UD, no text
		"04" + strings.Repeat("00", 32) + "0001" + strings.Repeat("00", 14) + "0002" + strings.Repeat("00", 14) +
		"01" + "02" + "02" + strings.Repeat("00", 31) + "06" + strings.Repeat("00", 31) + "08" + "02" + "00000102" + // groups 0 and 1
		"03" + "01" + "08" + "ff010405" + "02ff0009" + "0102" + "0104" + "0105" + "0106" + "0107" + "0202" + "0109" +
		"01" + "03" + "ff03ff" + "0102" + "0104" + "0102" + "00"
	b := example().Append(nil)
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("encoding\n%s, want\n%s", got, want)
	}
	s, rest, err := Decode(append(b, 7, 7))
	if err != nil || !bytes.Equal(rest, []byte{7, 7}) {
		t.Fatalf("%v, rest %v", err, rest)
	}
	same := example()
	same.Tables[0].Groups.at = nil
	if !reflect.DeepEqual(s, same) {
		t.Errorf("decoded\n%+v, want\n%+v", s, same)
	}
	for n := range b {
		if _, _, err := Decode(b[:n]); err == nil {
			t.Errorf("the first %d bytes are accepted", n)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 { // damaged bytes: no panic, and what is accepted is encoded again
		bad := slices.Clone(b)
		for range 1 + random.IntN(3) {
			bad[random.IntN(len(bad))] = byte(random.Uint32())
		}
		checkDecode(t, bad)
	}
}

// checkDecode checks that what b has, if anything, is stable under encoding.
func checkDecode(t *testing.T, b []byte) {
	s, _, err := Decode(b)
	if err != nil {
		return
	}
	once := s.Append(nil)
	again, rest, err := Decode(once)
	if err != nil || len(rest) > 0 || !bytes.Equal(again.Append(nil), once) {
		t.Fatalf("%x\nis encoded as %x: %v", b, once, err)
	}
	for in := range 5 {
		for lid := range mad.LID(10) {
			p := Packet{In: uint8(in), SL: uint8(in), LID: lid}
			if a, b := ways(s.Choose(p, nil)), ways(again.Choose(p, nil)); a != b {
				t.Fatalf("%+v: %s, then %s", p, a, b)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(example().Append(nil))
	f.Add((&Switch{Unknown: "no answer"}).Append(nil))
	f.Fuzz(checkDecode)
}

func TestDescribe(t *testing.T) {
	other := example()
	other.SLs, other.Static, other.FastRecovery = AllSLs, 0, true
	other.Tables[0].Groups.Set(2, 0, PortSet(9))
	for _, x := range []struct {
		list []*Switch
		want string
	}{
		{nil, ""},
		{[]*Switch{nil, {}}, ""},
		{[]*Switch{example(), nil}, "on at 1 of 2 switches; SLs 0-2; not UC, UD; groups of 3 ports; hash-based forwarding at 1"},
		{[]*Switch{example(), other, {Unknown: "no answer"}}, "on at 2 of 3 switches; different SLs; different transports; groups of 1 to 3 ports; hash-based forwarding at 2; fast recovery at 1; unknown at 1"},
	} {
		if got := Describe(x.list); got != x.want {
			t.Errorf("got  %s\nwant %s", got, x.want)
		}
	}
	if got := SLs(0).String(); got != "none" {
		t.Errorf("no SLs: %s", got)
	}
}
