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

// TestTrips: the estimate is that of RFC 6298.
func TestTrips(t *testing.T) {
	var got trips
	var list []trips
	for _, rtt := range []time.Duration{800 * us, 1600 * us, 0} {
		got.add(rtt)
		list = append(list, got)
	}
	want := []trips{{800 * us, 400 * us}, {900 * us, 500 * us}, {787500 + 1, 600 * us}}
	if diff := cmp.Diff(want, list, cmp.AllowUnexported(trips{}), cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < us })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCompare states what is near the shortest round trip.
func TestCompare(t *testing.T) {
	for _, test := range []struct {
		least, rtt time.Duration
		anew       bool
		want       length
		after      time.Duration
	}{
		{0, 30 * us, false, near, 30 * us},
		{30 * us, 20 * us, false, near, 20 * us},
		{30 * us, 80 * us, false, near, 30 * us},
		{30 * us, 81 * us, false, fair, 30 * us},
		{30 * us, 280 * us, false, fair, 30 * us},
		{30 * us, 281 * us, false, far, 30 * us},
		{600 * us, 851 * us, false, near, 600 * us},
		{30 * us, 281 * us, true, near, 281 * us},
		{200 * us, 300 * us, false, near, 200 * us},
		{200 * us, 301 * us, false, fair, 200 * us},
		{10 * ms, 15 * ms, false, near, 10 * ms},
		{10 * ms, 15001 * us, false, far, 10 * ms},
	} {
		least := test.least
		if got := compare(test.rtt, test.anew, &least); got != test.want || least != test.after {
			t.Errorf("%v beside %v: %d, then %v; want %d, %v", test.rtt, test.least, got, least, test.want, test.after)
		}
	}
}

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
		if got := e.windows[kindSA].trips.mean; got != 11*ms {
			t.Errorf("round trips to the SA are %v in the mean, the table's was not to count", got)
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
