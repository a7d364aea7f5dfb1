package engine

import "time"

// rttEstimate keeps the mean and the deviation of round-trip times (RFC 6298,
// section 2: SRTT and RTTVAR).
type rttEstimate struct {
	mean, dev time.Duration // 0: none measured
}

// Add takes in a round-trip time.
func (e *rttEstimate) Add(rtt time.Duration) {
	rtt = max(rtt, 1)
	if e.mean == 0 {
		e.mean, e.dev = rtt, rtt/2
		return
	}
	e.dev += ((rtt - e.mean).Abs() - e.dev) / 4
	e.mean += (rtt - e.mean) / 8
}

// RTO returns the retransmission timeout, mean + 4 deviations (RFC 6298); 0 if no RTT
// was measured.
func (e *rttEstimate) RTO() time.Duration { return e.mean + 4*e.dev }

// queueDelay is the queueing that an RTT shows, compared with the base RTT.
type queueDelay uint8

const (
	baseDelay queueDelay = iota // no queueing: about the base RTT
	Loaded                      // schedulers, interrupts, an agent at other work
	Queued                      // a queue
	numDelays
)

// How much longer than the base RTT a base one may be, or half as long again,
// and how much longer a loaded one. A management datagram takes an agent some 10
// to 100 us, so a loaded RTT has met a few. Over ibsim, half of 32 at once are
// back within 80 us, and nine in ten within 170.
const (
	baseSlack   = 50 * time.Microsecond
	loadedSlack = 250 * time.Microsecond
)

// queueDelayOf compares rtt with the base RTT, *baseRTT, and replaces that if rtt is
// shorter, if again is set, or if it is 0 (unknown).
func queueDelayOf(rtt time.Duration, again bool, baseRTT *time.Duration) queueDelay {
	if *baseRTT == 0 || rtt < *baseRTT || again {
		*baseRTT = max(rtt, 1)
	}
	switch {
	case rtt <= *baseRTT+max(baseSlack, *baseRTT/2):
		return baseDelay
	case rtt <= *baseRTT+loadedSlack:
		return Loaded
	}
	return Queued
}
