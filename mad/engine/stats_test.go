package engine

import (
	"math/rand/v2"
	"slices"
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

// TestBuckets: buckets follow each other without gap or overlap, and are never
// wider than a quarter of what is in them.
func TestBuckets(t *testing.T) {
	for i := range buckets - 1 {
		end := bucketEnd(i)
		if bucket(end) != i || bucket(end+999) != i || bucket(end+us) != i+1 {
			t.Fatalf("bucket %d ends at %v, but %v is in %d and %v in %d", i, end, end, bucket(end), end+us, bucket(end+us))
		}
		if begin := bucketEnd(i-1) + us; i > 0 && (end-begin)*4 > begin {
			t.Errorf("bucket %d is from %v to %v", i, begin, end)
		}
	}
	for d, want := range map[time.Duration]int{-1: 0, 0: 0, 999: 0, us: 1, time.Hour: bucket(time.Hour + time.Minute), 1 << 62: buckets - 1} {
		if got := bucket(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}

// TestQuantiles compares with the exact quantiles.
func TestQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, n := range []int{1, 2, 3, 10, 1000} {
		var h histogram
		var all []time.Duration
		for range n {
			d := time.Duration(r.ExpFloat64() * float64(ms))
			all = append(all, d)
			h.add(d)
		}
		slices.Sort(all)
		for _, q := range []float64{0.5, 0.9, 0.99} {
			exact := all[(n*int(q*100)+99)/100-1]
			if got := h.quantile(q); got < exact-us || got > exact+exact/4+us {
				t.Errorf("%d: quantile %v is %v, exactly %v", n, q, got, exact)
			}
		}
	}
	var none histogram
	if got := none.quantile(0.99); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
