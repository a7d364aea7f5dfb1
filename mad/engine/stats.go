package engine

import (
	"math"
	"math/bits"
	"time"
)

// Stats are the counts of an engine since its start.
type Stats struct {
	Counts
	SMP ClassStats // subnet management
	SA  ClassStats // subnet administration
	GMP ClassStats // performance management and all others
}

// Counts are of all classes.
type Counts struct {
	Sent        uint64 // datagrams passed to the transport, including retries, RMPP ACKs and ReportResps
	Answered    uint64 // calls that got a response, whatever its status
	Retried     uint64 // requests sent again
	TimedOut    uint64 // calls that ended without an answer
	Late        uint64 // responses to calls that had timed out or been cancelled
	Duplicate   uint64 // further responses to calls that had been answered
	Foreign     uint64 // responses without a request of ours, or from another address; forged Reports and traps
	Busy        uint64 // responses with status BUSY
	Undelivered uint64 // requests that the transport returned
	Unsolicited uint64 // requests of others: traps, Reports
	Dropped     uint64 // of those, dropped because they came faster than they were read
	Refused     uint64 // calls not sent: read-only, or refused by the transport
	Cancelled   uint64 // calls ended by Cancel after they had been sent
}

// ClassStats are of one kind of management class.
type ClassStats struct {
	Window int // the congestion window: requests that may be outstanding, now
	// RoundTrips measured, and their quantiles: half of them, 90 % and 99 % took at
	// most this long. The buckets of the histogram make that up to a quarter too
	// long.
	RoundTrips    uint64
	P50, P90, P99 time.Duration
	Max           time.Duration
}

// Stats returns the counts so far.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := e.calls.counts
	e.listeners.addTo(&counts)
	classes := &e.calls.flow.classes
	return Stats{counts, classes[kindSMP].stats(), classes[kindSA].stats(), classes[kindGMP].stats()}
}

func (w *classFlow) stats() ClassStats {
	h := &w.histogram
	return ClassStats{
		Window:     w.window.Size(),
		RoundTrips: h.n,
		P50:        h.quantile(0.5),
		P90:        h.quantile(0.9),
		P99:        h.quantile(0.99),
		Max:        h.max,
	}
}

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
