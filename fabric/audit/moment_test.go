package audit

import (
	"testing"
	"time"

	"fabsh/mad"
)

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

// TestStateBefore: a state of the previous version, which has no time since boot, is read.
func TestStateBefore(t *testing.T) {
	var w stateWriter
	w.uint(countersVersion())
	w.text("rail-1")
	w.text("counters")
	w.uint(1)
	w.read(mixed(noon))
	w.uint(0)
	w.history(&History{})
	w.agents(&Agents{})
	data := packed(t, append(w.b, 'E'))
	copy(data, stateMagic+stateBefore)
	st := &State{subnet: "rail-1", job: "counters"}
	if err := st.decode(data); err != nil || st.at != (Moment{}) || len(st.reads) != 1 || !st.Last().Began.Equal(noon) {
		t.Errorf("%v: %+v", err, st)
	}
}
