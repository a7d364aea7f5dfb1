package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
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
