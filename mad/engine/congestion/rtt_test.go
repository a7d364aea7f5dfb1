package congestion

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// TestRTT: the estimate is that of RFC 6298.
func TestRTT(t *testing.T) {
	var got RTT
	var list []RTT
	for _, rtt := range []time.Duration{800 * us, 1600 * us, 0} {
		got.Add(rtt)
		list = append(list, got)
	}
	want := []RTT{{800 * us, 400 * us}, {900 * us, 500 * us}, {787500 + 1, 600 * us}}
	if diff := cmp.Diff(want, list, cmp.AllowUnexported(RTT{}), cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < us })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDelayOf states how an RTT is told from queueing, beside the base RTT.
func TestDelayOf(t *testing.T) {
	for _, test := range []struct {
		baseRTT, rtt time.Duration
		anew         bool
		want         Delay
		after        time.Duration
	}{
		{0, 30 * us, false, Base, 30 * us},
		{30 * us, 20 * us, false, Base, 20 * us},
		{30 * us, 80 * us, false, Base, 30 * us},
		{30 * us, 81 * us, false, Loaded, 30 * us},
		{30 * us, 280 * us, false, Loaded, 30 * us},
		{30 * us, 281 * us, false, Queued, 30 * us},
		{600 * us, 851 * us, false, Base, 600 * us},
		{30 * us, 281 * us, true, Base, 281 * us},
		{200 * us, 300 * us, false, Base, 200 * us},
		{200 * us, 301 * us, false, Loaded, 200 * us},
		{10 * ms, 15 * ms, false, Base, 10 * ms},
		{10 * ms, 15001 * us, false, Queued, 10 * ms},
	} {
		baseRTT := test.baseRTT
		if got := DelayOf(test.rtt, test.anew, &baseRTT); got != test.want || baseRTT != test.after {
			t.Errorf("%v beside %v: %d, then %v; want %d, %v", test.rtt, test.baseRTT, got, baseRTT, test.want, test.after)
		}
	}
}
