package state

import (
	"math"
	"slices"
	"testing"
	"time"

	"fabsh/mad"
)

// TestFaultRates: the rates of faults are as in the options.
func TestFaultRates(t *testing.T) {
	f := NewFaults(nil, FaultSettings{Loss: 0.05, Dup: 0.1, Busy: 0.2, Delay: time.Second, Jitter: time.Second, Seed: 7}).NewModel()
	const n = 20000
	var p [mad.Size]byte
	var lost, twice, busy, jitter float64
	for i := range n {
		p[100], p[101] = byte(i/4), byte(i/4>>8) // each content four times
		got := f.Draw(0, 0, &p, i%2 == 0)
		if got.Lost {
			lost++
		}
		if got.Duplicate {
			twice++
		}
		if got.Busy {
			busy++
		}
		jitter += got.Delay.Seconds() - 1
	}
	for name, d := range map[string]float64{"lost": lost/n - 0.05, "twice": twice/n - 0.1, "busy": busy/n - 0.2, "jitter": jitter/n - 0.5} {
		if math.Abs(d) > 0.02 {
			t.Errorf("%s: off by %.3f", name, d)
		}
	}
}

// TestLongestDelay: two durations whose sum overflows are not a short delay.
func TestLongestDelay(t *testing.T) {
	f := NewFaults(nil, FaultSettings{Delay: math.MaxInt64, Jitter: math.MaxInt64}).NewModel()
	for range 9 {
		if got := f.Draw(0, 0, &[mad.Size]byte{}, false).Delay; got != math.MaxInt64 {
			t.Errorf("a delay of %v", got)
		}
	}
}

// TestFaultsDependOn: faults depend on the seed, the content, the direction and
// how often the MAD was sent, not on the transaction ID.
func TestFaultsDependOn(t *testing.T) {
	lost := func(seed int64, change func(r *testRequest), before int, back bool) []bool {
		f := NewFaults(nil, FaultSettings{Loss: 0.5, Seed: seed}).NewModel()
		var list []bool
		for i := range 64 {
			r := testRequest{}
			r.mad[200] = byte(i)
			change(&r)
			for range before {
				f.Draw(r.lid, 0, &r.mad, back)
			}
			list = append(list, f.Draw(r.lid, 0, &r.mad, back).Lost)
		}
		return list
	}
	none := func(*testRequest) {}
	base := lost(1, none, 0, false)
	for name, test := range map[string]struct {
		list []bool
		same bool
	}{
		"again":              {lost(1, none, 0, false), true},
		"another TID":        {lost(1, func(r *testRequest) { copy(r.mad[8:16], "differs!") }, 0, false), true},
		"another seed":       {lost(2, none, 0, false), false},
		"the second time":    {lost(1, none, 1, false), false},
		"on the way back":    {lost(1, none, 0, true), false},
		"to another LID":     {lost(1, func(r *testRequest) { r.lid = 3 }, 0, false), false},
		"another byte of it": {lost(1, func(r *testRequest) { r.mad[255] = 1 }, 0, false), false},
		"its first byte":     {lost(1, func(r *testRequest) { r.mad[0] = 1 }, 0, false), false},
	} {
		if got := slices.Equal(base, test.list); got != test.same {
			t.Errorf("%s: same faults: %v", name, got)
		}
	}
}

// testRequest is a request that faults depend on.
type testRequest struct {
	lid mad.LID
	mad [mad.Size]byte
}
