package engine

import (
	"math"
	"math/bits"
	"time"
)

// trips estimates round trips (RFC 6298, section 2).
type trips struct {
	mean, dev time.Duration // 0: none measured
}

func (t *trips) add(rtt time.Duration) {
	rtt = max(rtt, 1)
	if t.mean == 0 {
		t.mean, t.dev = rtt, rtt/2
		return
	}
	t.dev += ((rtt - t.mean).Abs() - t.dev) / 4
	t.mean += (rtt - t.mean) / 8
}

// most is what hardly any round trip exceeds.
func (t *trips) most() time.Duration { return t.mean + 4*t.dev }

// How much longer than the shortest a round trip may be, and still be near it
// or fair: half as long again, or what schedulers, interrupts, and agents at
// other work add. A management datagram takes an agent some 10 to 100 us, so
// a fair round trip has met a few. Over ibsim, half of 32 at once are back within
// 80 us, and nine in ten within 170.
const (
	nearSlack = 50 * time.Microsecond
	fairSlack = 250 * time.Microsecond
)

// length of a round trip, beside the shortest.
type length uint8

const (
	near length = iota
	fair
	far
	lengths
)

// compare says how long rtt is beside the shortest, *least, which it becomes
// if it is shorter, or if anew. 0: none yet.
func compare(rtt time.Duration, anew bool, least *time.Duration) length {
	if *least == 0 || rtt < *least || anew {
		*least = max(rtt, 1)
	}
	switch {
	case rtt <= *least+max(nearSlack, *least/2):
		return near
	case rtt <= *least+fairSlack:
		return fair
	}
	return far
}

// histogram counts durations: from 1 us on four buckets to each doubling, so
// that a quantile is at most a quarter too long. The last, from two hours on, is
// open.
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

// bucket of a duration: the position of the first set bit of its microseconds,
// and the two bits behind it.
func bucket(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	if us < 1<<bucketBits {
		return int(us)
	}
	shift := bits.Len64(us) - 1 - bucketBits
	return min((shift+1)<<bucketBits|int(us>>shift)&(1<<bucketBits-1), buckets-1)
}

// bucketEnd is the longest duration in bucket i, in whole microseconds.
func bucketEnd(i int) time.Duration {
	shift := max(i>>bucketBits-1, 0)
	us := i
	if i >= 1<<bucketBits {
		us = 1<<bucketBits | i&(1<<bucketBits-1)
	}
	return time.Duration((us+1)<<shift-1) * time.Microsecond
}

// quantile is what the share q of all durations do not exceed, as precisely as
// the buckets are.
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
