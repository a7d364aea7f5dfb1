package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestClassStats: round trips are counted where they belong.
func TestClassStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			n++
			time.AfterFunc(time.Duration(n)*ms, func() { f.deliver(respond(d)) })
		}), Options{Window: 3})
		defer mustClose(t, e)
		for range 10 {
			e.Do(t.Context(), getNodeInfo(1))
		}
		sa, table, perf := new(Call), getTable(1), new(Call)
		sa.PutSA(mad.MethodGet, 0x11, 0, 0, nil)
		perf.PutPerf(mad.MethodGet, 0x12, 0, nil)
		for _, c := range []*Call{sa, table, perf} {
			c.SetLID(1)
			e.Do(t.Context(), c)
		}
		if got := e.calls.flow.classes[kindSA].rtt.RTO(); got != 33*ms { // 11 ms + 4 * 5.5 ms
			t.Errorf("the RTO of the SA is %v, the table's round trip was not to count", got)
		}
		want := Stats{
			Counts: Counts{Sent: 13, Answered: 13},
			SMP:    ClassStats{Window: 3, RoundTrips: 10, P50: 5119 * us, P90: 10 * ms, P99: 10 * ms, Max: 10 * ms},
			SA:     ClassStats{Window: 3, RoundTrips: 2, P50: 12 * ms, P90: 12 * ms, P99: 12 * ms, Max: 12 * ms},
			GMP:    ClassStats{Window: 3, RoundTrips: 1, P50: 13 * ms, P90: 13 * ms, P99: 13 * ms, Max: 13 * ms},
		}
		if diff := cmp.Diff(want, e.Stats()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
