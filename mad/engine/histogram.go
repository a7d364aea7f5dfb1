package engine

import (
	"math"
	"math/bits"
	"time"
)

// histogram counts durations: from 1 us on in four buckets for each doubling, so
// that a quantile is at most a quarter too long. The last bucket, from two hours on,
// is open.
type histogram struct {
	n   uint64
	max time.Duration
	at  [buckets]uint64
}

const (
	bucketBits = 2
	buckets    = 32 << bucketBits
)

func (h *histogram) add(d time.Duration) {
	h.n++
	h.max = max(h.max, d)
	h.at[bucket(d)]++
}

// bucket returns the bucket of a duration: the position of the first set bit of its
// microseconds, and the two bits after it.
func bucket(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	if us < 1<<bucketBits {
		return int(us)
	}
	shift := bits.Len64(us) - 1 - bucketBits
	return min((shift+1)<<bucketBits|int(us>>shift)&(1<<bucketBits-1), buckets-1)
}

// bucketEnd returns the longest duration in bucket i, in whole microseconds.
func bucketEnd(i int) time.Duration {
	shift := max(i>>bucketBits-1, 0)
	us := i
	if i >= 1<<bucketBits {
		us = 1<<bucketBits | i&(1<<bucketBits-1)
	}
	return time.Duration((us+1)<<shift-1) * time.Microsecond
}

// quantile returns the duration that the share q of all durations do not exceed, with
// the precision of the buckets.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(max(0, math.Ceil(q*float64(h.n))-1))
	for i, n := range h.at {
		if rank < n {
			return min(bucketEnd(i), h.max)
		}
		rank -= n
	}
	return h.max
}
