package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fabsh/mad"
)

// TestErrors: what is worth a look is what the rates of all counters say.
func TestErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fields := []string{"0.local_link_integrity_errors", "0.symbol_error_counter", "1.symbol_error_counter", "1.port_rcv_errors", "1.port_xmit_discards", "2.port_looping_errors", "3.port_inactive_discards", "1.port_xmit_data", "0.port_xmit_wait"}
	spec := func() portSpec {
		s := portSpec{key: PortKey{1, 1}, node: 1, system: mad.GUID(1 + r.IntN(20)/19), info: full, values: map[string]uint64{}}
		if r.IntN(3) == 0 {
			s.info = old
		}
		for _, f := range fields {
			if r.IntN(3) == 0 {
				s.values[f] = r.Uint64N(40)
			}
		}
		s.values["0.local_link_integrity_errors"] = 14 + r.Uint64N(2)
		for attr := range 4 {
			switch r.IntN(12) {
			case 0:
				s.silent = append(s.silent, attr)
			case 1:
				s.refuse = append(s.refuse, attr)
			}
		}
		return s
	}
	seen := [3]int{}
	for range 3000 {
		was, first := readOf(noon, spec())
		is, second := readOf(noon.Add(time.Minute), spec())
		if r.IntN(20) == 0 {
			was[0] = PortRead{}
		}
		between := new(Comparison)
		between.AddPorts(second, first, is, was)
		w := between.Newest(is[0])
		var want [3][]int
		for i, c := range Counters() {
			switch x := w.Rate(i); {
			case x.Why == NoAnswer:
				want[2] = append(want[2], i)
			case c.Traffic:
			case !was[0].Known() && largest(is[0], i):
				want[1] = append(want[1], i)
			case x.Why == Saturated:
				want[1] = append(want[1], i)
			case x.Why == Known && x.Count > 0:
				want[0] = append(want[0], i)
			}
		}
		var got [3][]int
		got[0], got[1], got[2] = w.Errors()
		for i := range got {
			seen[i] += len(got[i])
		}
		if !slices.EqualFunc(want[:], got[:], func(a, b []int) bool { return slices.Equal(a, b) }) {
			t.Fatal(fmt.Sprint("got ", got, ", want ", want))
		}
	}
	if slices.Min(seen[:]) < 50 {
		t.Errorf("%v were seen", seen)
	}
}

// largest: a counter of p stands at its largest value.
func largest(p PortRead, counter int) bool {
	v, s := p.value(counter)
	return s != nil && v == s.field.Max()
}
