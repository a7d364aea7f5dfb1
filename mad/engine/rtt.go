package engine

import "time"

// rttEstimator keeps the mean and the deviation of round-trip times (RFC 6298,
// section 2: SRTT and RTTVAR).
type rttEstimator struct {
	mean, dev time.Duration // 0: none measured
}

func (e *rttEstimator) add(rtt time.Duration) {
	rtt = max(rtt, 1)
	if e.mean == 0 {
		e.mean, e.dev = rtt, rtt/2
		return
	}
	e.dev += ((rtt - e.mean).Abs() - e.dev) / 4
	e.mean += (rtt - e.mean) / 8
}

// rto is the retransmission timeout: mean + 4 deviations (RFC 6298); 0: no RTT
// was measured.
func (e *rttEstimator) rto() time.Duration { return e.mean + 4*e.dev }

// delay is what an RTT beside the base RTT says of queueing.
type delay uint8

const (
	base   delay = iota // no queueing: about the base RTT
	loaded              // schedulers, interrupts, an agent at other work
	queued              // a queue
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

// delayOf says what rtt is beside the base RTT, *baseRTT, which it becomes if it
// is shorter, or if anew. 0: none yet.
func delayOf(rtt time.Duration, anew bool, baseRTT *time.Duration) delay {
	if *baseRTT == 0 || rtt < *baseRTT || anew {
		*baseRTT = max(rtt, 1)
	}
	switch {
	case rtt <= *baseRTT+max(baseSlack, *baseRTT/2):
		return base
	case rtt <= *baseRTT+loadedSlack:
		return loaded
	}
	return queued
}
