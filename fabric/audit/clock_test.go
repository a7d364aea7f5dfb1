package audit

import (
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
		now = now.Add(PastAge + time.Second) // since the clock was right
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

// TestClockRates: whatever the clock does between two runs and in them, rates are over the
// time since boot; after another boot over the clock's time, unless that is not positive.
func TestClockRates(t *testing.T) {
	const passed = 10 * time.Minute
	port := func(errors uint64) portSpec {
		return portSpec{key: PortKey{1, 1}, node: 1, info: full, values: map[string]uint64{"1.symbol_error_counter": errors}}
	}
	counter := CounterIndex("symbol_error_counter")
	window := func(st *State, r *Read) Rate {
		w := windowOf(st.Last(), r)
		return w.Rate(counter)
	}
	for _, jump := range append(jumps, struct {
		what string
		by   time.Duration
	}{"standing still", -passed}) {
		for _, x := range []struct {
			what   string
			before Moment
			after  Moment
			want   time.Duration
		}{
			{"the same boot", Moment{noon, "a", time.Hour}, Moment{Boot: "a", Uptime: time.Hour + passed}, passed},
			{"another boot", Moment{noon, "a", time.Hour}, Moment{Boot: "b", Uptime: time.Minute}, passed + jump.by},
			{"an older state", Moment{}, Moment{Boot: "a", Uptime: time.Hour + passed}, passed + jump.by},
			{"an image restored", Moment{noon, "a", time.Hour}, Moment{Boot: "a", Uptime: time.Minute}, passed + jump.by},
		} {
			st := openState(t, t.TempDir())
			st.Align(x.before)
			_, old := readOf(noon.Add(-time.Hour), port(1))
			_, first := readOf(noon, port(2))
			st.Add(old)
			st.Add(first)
			st.See(pair(true, mad.PortStateActive), noon)
			st.SetFindings([]Finding{{Check: "link.down", Subject: OfFabric()}}, true, nil, noon)
			if err := st.Save(); err != nil {
				t.Fatal(err)
			}
			st.Read()
			x.after.Time = noon.Add(passed + jump.by)
			st.Align(x.after)
			st.Align(x.after) // again changes nothing
			_, second := readOf(x.after.Time, port(9))
			r := window(st, second)
			if x.want <= 0 && r.Why != TooShort || x.want > 0 && (r.Why != Known || r.Count != 7 || r.Window != x.want) {
				t.Errorf("%s, %s: %+v, want a window of %v", jump.what, x.what, r, x.want)
			}
			if x.want != passed {
				continue
			}
			down := st.History().Down(pair(false, 0), x.after.Time)
			if len(down) != 1 || down[0].For != passed {
				t.Errorf("%s, %s: down %v", jump.what, x.what, down)
			}
			found := []Finding{{Check: "link.down", Subject: OfFabric()}}
			st.SetFindings(found, true, nil, x.after.Time)
			if age := x.after.Time.Sub(found[0].Since); age != passed {
				t.Errorf("%s, %s: found %v ago", jump.what, x.what, age)
			}
			// The clock is right again, later in the same boot.
			st.Add(second)
			if len(st.Reads()) != 3 {
				t.Errorf("%s, %s: %d reads", jump.what, x.what, len(st.Reads()))
			}
			x.after.Time, x.after.Uptime = noon.Add(2*passed), x.after.Uptime+passed
			st.Align(x.after)
			_, third := readOf(x.after.Time, port(10))
			if r := window(st, third); r.Why != Known || r.Count != 1 || r.Window != passed {
				t.Errorf("%s, %s, then right again: %+v", jump.what, x.what, r)
			}
		}
	}
}
