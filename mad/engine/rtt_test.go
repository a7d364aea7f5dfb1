package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	micro = time.Microsecond
	milli = time.Millisecond
)

// TestRTT: the estimate is that of RFC 6298.
func TestRTT(t *testing.T) {
	var got rttEstimate
	var list []rttEstimate
	for _, rtt := range []time.Duration{800 * micro, 1600 * micro, 0} {
		got.Add(rtt)
		list = append(list, got)
	}
	want := []rttEstimate{{800 * micro, 400 * micro}, {900 * micro, 500 * micro}, {787500 + 1, 600 * micro}}
	if diff := cmp.Diff(want, list, cmp.AllowUnexported(rttEstimate{}), cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < micro })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDelayOf states how an RTT is told from queueing, beside the base RTT.
func TestDelayOf(t *testing.T) {
	for _, test := range []struct {
		baseRTT, rtt time.Duration
		anew         bool
		want         queueDelay
		after        time.Duration
	}{
		{0, 30 * micro, false, baseDelay, 30 * micro},
		{30 * micro, 20 * micro, false, baseDelay, 20 * micro},
		{30 * micro, 80 * micro, false, baseDelay, 30 * micro},
		{30 * micro, 81 * micro, false, Loaded, 30 * micro},
		{30 * micro, 280 * micro, false, Loaded, 30 * micro},
		{30 * micro, 281 * micro, false, Queued, 30 * micro},
		{600 * micro, 851 * micro, false, baseDelay, 600 * micro},
		{30 * micro, 281 * micro, true, baseDelay, 281 * micro},
		{200 * micro, 300 * micro, false, baseDelay, 200 * micro},
		{200 * micro, 301 * micro, false, Loaded, 200 * micro},
		{10 * milli, 15 * milli, false, baseDelay, 10 * milli},
		{10 * milli, 15001 * micro, false, Queued, 10 * milli},
	} {
		baseRTT := test.baseRTT
		if got := queueDelayOf(test.rtt, test.anew, &baseRTT); got != test.want || baseRTT != test.after {
			t.Errorf("%v beside %v: %d, then %v; want %d, %v", test.rtt, test.baseRTT, got, baseRTT, test.want, test.after)
		}
	}
}
