package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRTTEstimator: the estimate is that of RFC 6298.
func TestRTTEstimator(t *testing.T) {
	var got rttEstimator
	var list []rttEstimator
	for _, rtt := range []time.Duration{800 * us, 1600 * us, 0} {
		got.add(rtt)
		list = append(list, got)
	}
	want := []rttEstimator{{800 * us, 400 * us}, {900 * us, 500 * us}, {787500 + 1, 600 * us}}
	if diff := cmp.Diff(want, list, cmp.AllowUnexported(rttEstimator{}), cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < us })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDelayOf states how an RTT is told from queueing, beside the base RTT.
func TestDelayOf(t *testing.T) {
	for _, test := range []struct {
		baseRTT, rtt time.Duration
		anew         bool
		want         delay
		after        time.Duration
	}{
		{0, 30 * us, false, base, 30 * us},
		{30 * us, 20 * us, false, base, 20 * us},
		{30 * us, 80 * us, false, base, 30 * us},
		{30 * us, 81 * us, false, loaded, 30 * us},
		{30 * us, 280 * us, false, loaded, 30 * us},
		{30 * us, 281 * us, false, queued, 30 * us},
		{600 * us, 851 * us, false, base, 600 * us},
		{30 * us, 281 * us, true, base, 281 * us},
		{200 * us, 300 * us, false, base, 200 * us},
		{200 * us, 301 * us, false, loaded, 200 * us},
		{10 * ms, 15 * ms, false, base, 10 * ms},
		{10 * ms, 15001 * us, false, queued, 10 * ms},
	} {
		baseRTT := test.baseRTT
		if got := delayOf(test.rtt, test.anew, &baseRTT); got != test.want || baseRTT != test.after {
			t.Errorf("%v beside %v: %d, then %v; want %d, %v", test.rtt, test.baseRTT, got, baseRTT, test.want, test.after)
		}
	}
}
