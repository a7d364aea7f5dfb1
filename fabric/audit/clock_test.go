package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fabsh/mad"
)

// jumps are what a clock may do between two runs.
var jumps = []struct {
	what string
	by   time.Duration
}{{"an hour back", -time.Hour}, {"a day forward", 24 * time.Hour}, {"standing", 0}}

// TestClockAcks: an ack of a year stays in force when the clock is set back, and one of
// which the last day has passed does not.
func TestClockAcks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "acks")
	now := noon.Add(-11*time.Hour - 50*time.Minute) // just after midnight, where a year ends
	var last string
	for at := now; ; at = at.AddDate(0, 0, 1) { // the last day that is accepted
		if _, err := NewAck("link.width:fabric", "", at.Format(day), "me", "known", now); err != nil {
			break
		}
		last = at.Format(day)
	}
	if err := os.WriteFile(path, []byte("link.width:fabric "+last+" \"me\" \"known\"\nlink.down:fabric "+now.Format(day)+" \"me\" \"known\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	width, down := Finding{Check: "link.width", Subject: OfFabric()}, Finding{Check: "link.down", Subject: OfFabric()}
	for _, jump := range jumps {
		at := now.Add(jump.by)
		acks, bad := ReadAcks(path, at)
		if bad != nil {
			t.Errorf("%s: %v", jump.what, bad)
		}
		x := acks.index(nil, at)
		_, year := x.of(width.ids())
		_, today := x.of(down.ids())
		if !year || today != (jump.by <= 0) {
			t.Errorf("%s: in force for a year %t, until today %t", jump.what, year, today)
		}
	}
}

// TestClockHistory: no port is down for less than no time, and no finding is as of a time
// to come.
func TestClockHistory(t *testing.T) {
	up, down := pair(true, mad.PortStateActive), pair(false, 0)
	for _, jump := range jumps {
		st, now := openState(t, t.TempDir()), noon
		found := []Finding{{Check: "link.down", Subject: OfFabric()}}
		st.See(up, now)
		st.SetFindings(found, true, nil, now)
		now = now.Add(jump.by)
		list := st.History().Down(down, now)
		if len(list) != 1 || list[0].For != max(0, jump.by) {
			t.Errorf("%s: %v", jump.what, list)
		}
		st.See(down, now)
		st.SetFindings(found, true, nil, now)
		if found[0].Since.After(now) {
			t.Errorf("%s: found since %v, and it is %v", jump.what, found[0].Since, now)
		}
		now = now.Add(maxPastAge + time.Second) // since the clock was right
		st.See(down, now)
		if n := len(st.History().Down(down, now)); n != 0 {
			t.Errorf("%s: a port counts as in use for more than a week", jump.what)
		}
	}
}

// TestClockReads: of a read that is not after the one before no rate is known, and the
// runs behind it compare with it.
func TestClockReads(t *testing.T) {
	port := func(errors uint64) portSpec {
		return portSpec{key: PortKey{1, 1}, node: 1, info: full, values: map[string]uint64{"1.symbol_error_counter": errors}}
	}
	for _, jump := range jumps {
		st, now := openState(t, t.TempDir()), noon
		_, first := readOf(now, port(1))
		st.Add(first)
		now = now.Add(jump.by)
		_, second := readOf(now, port(2))
		if jump.by <= 0 {
			w := windowOf(first, second)
			if r := w.Rate(CounterIndex("symbol_error_counter")); r.Why == Known {
				t.Errorf("%s: %v", jump.what, r)
			}
		}
		st.Add(second)
		if err := st.Save(); err != nil {
			t.Fatal(err)
		}
		if st = openState(t, filepath.Dir(filepath.Dir(st.path))); st.Last() == nil || !st.Last().Began.Equal(now) {
			t.Fatalf("%s: the last read is %v", jump.what, st.Last())
		}
		_, third := readOf(now.Add(time.Hour), port(9))
		w := windowOf(st.Last(), third)
		if r := w.Rate(CounterIndex("symbol_error_counter")); r.Why != Known || r.Count != 7 || r.Window != time.Hour {
			t.Errorf("%s: then %+v", jump.what, r)
		}
	}
}

// FuzzStateDamage: a state of which bytes are flipped, cut or repeated is refused, or is
// what was written.
func FuzzStateDamage(f *testing.F) {
	st := &State{subnet: "rail-1", job: "counters"}
	st.Add(mixed(noon))
	st.Add(mixed(noon.Add(time.Hour)))
	st.Align(Moment{noon, "boot", time.Hour})
	st.See(pair(true, mad.PortStateActive), noon)
	st.SetFindings([]Finding{{Check: "a.b", Subject: link(1, 2, 3, 4)}}, true, nil, noon)
	whole, err := st.encode()
	if err != nil {
		f.Fatal(err)
	}
	for op := range byte(4) {
		f.Add(op, uint16(len(whole)/2), uint16(7))
		f.Add(op, uint16(3), uint16(1))
	}
	f.Fuzz(func(t *testing.T, op byte, at, n uint16) {
		data := bytes.Clone(whole)
		i := int(at) % len(data)
		j := min(len(data), i+1+int(n)%64)
		switch op % 4 {
		case 0:
			data[i] ^= 1 << (n % 8)
		case 1:
			data = data[:i]
		case 2:
			data = append(data[:i], data[j:]...)
		case 3:
			data = append(data[:j:j], whole[i:]...)
		}
		read := &State{subnet: "rail-1", job: "counters"}
		if read.decode(data) != nil {
			return
		}
		if again, err := read.encode(); err != nil || !bytes.Equal(again, whole) {
			t.Errorf("op %d at %d: another state was read (%v)", op%4, i, err)
		}
	})
}
