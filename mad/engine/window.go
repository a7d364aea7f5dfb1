package engine

import (
	"math"
	"time"
)

// Congestion control decides how many requests may be outstanding, by the timing of their
// answers. congestionWindow, lossDetector and rttEstimate have no calls and no clock: the
// caller passes both, and guards the values.
//
// The terms come from transport protocols: RTT is a round-trip time; the base RTT is the
// shortest one, without queueing; RTO, the retransmission timeout, is mean + 4 deviations
// of the RTT (RFC 6298); AIMD is additive increase, multiplicative decrease.

// congestionWindow is how many requests may be outstanding at once: of a class of management,
// or to one destination. It depends on delay, not on loss. The management lane (VL15)
// has no flow control: if requests come faster than a switch or an agent answers, its
// short queue drops what does not fit, including the subnet manager's own requests. A
// queue shows in the RTT before it is full.
//
// A round is as many answers as the window's size, all to requests sent since
// the size last changed. Slow start: below the threshold a round without a queue
// doubles the size. From there on AIMD: a round without a queue adds one, and one
// that met a queue halves the size, which the threshold is then, so that all who
// share a bottleneck come to share it evenly. A round that did not use all of the
// window does not raise it. The ceiling is what losses allow (lossDetector).
//
// A missing answer is not a sign of congestion: a dead node has no queue.
//
// A late starter measures its base RTT with others' queueing in it. So every
// probeEvery a round is of one request only, which measures the base RTT again.
// After that comes slow start, not a burst.
type congestionWindow struct {
	size, min, max int
	threshold      int // slow start ends there
	ceiling        int // of size; at most max

	began   time.Duration  // of the round
	answers [numDelays]int // in it
	silent  int            // requests without an answer
	bursts  uint64         // of answers, before the round
	full    bool           // all of the window was used
	probing bool           // it is of one request
	probed  time.Duration  // when the latest probe was
}

// probeEvery is the interval between new measurements of the base RTT.
const probeEvery = 2 * time.Second

// newCongestionWindow returns a window that begins with start requests, and keeps between least
// and most; most counts where they disagree.
func newCongestionWindow(start, least, most int) congestionWindow {
	return congestionWindow{size: min(start, most), min: min(least, most), max: most, threshold: most, ceiling: most}
}

// Size returns how many requests may be outstanding.
func (w *congestionWindow) Size() int { return w.size }

// Ceiling returns what the size may become, as far as losses allow.
func (w *congestionWindow) Ceiling() int { return w.ceiling }

// MarkFull records that all of the window was used in this round.
func (w *congestionWindow) MarkFull() { w.full = true }

// Differs reports whether w has learned something since it was a copy of start.
func (w *congestionWindow) Differs(start *congestionWindow) bool {
	return w.size != start.size || w.threshold != start.threshold
}

// Fix makes w as large as it may become, permanently.
func (w *congestionWindow) Fix() { *w = newCongestionWindow(w.max, w.max, w.max) }

// Probes reports whether a request sent at the given time was the only one outstanding.
func (w *congestionWindow) Probes(sent time.Duration) bool { return w.probing && sent >= w.began }

// Answered records the answer to a request sent at the given time; bursts is how many
// bursts of answers have come, including this one.
func (w *congestionWindow) Answered(d queueDelay, bursts uint64, sent, now time.Duration) {
	if sent >= w.began {
		w.answers[d]++
		w.endRound(bursts, now)
	}
}

// Unanswered records that a request sent at the given time got no answer.
func (w *congestionWindow) Unanswered(bursts uint64, sent, now time.Duration) {
	if sent >= w.began {
		w.silent++
		w.endRound(bursts, now)
	}
}

// endRound ends the round when it is complete.
func (w *congestionWindow) endRound(bursts uint64, now time.Duration) {
	b, l, q := w.answers[baseDelay], w.answers[loadedDelay], w.answers[queuedDelay]
	if b+l+q+w.silent < w.size {
		return
	}
	// Three quarters of the answers must show the queue. A slow agent is one of
	// many, and a burst is slow except for its head. And a queue delivers one
	// answer after the other: many answers in a burst or two, without a wait
	// between, mean processors that take turns.
	queue := 3*(b+l) < q && (bursts-w.bursts > 2 || w.size <= 2)
	switch {
	case w.min == w.max: // nothing to be decided
	case w.probing:
		w.size, w.probing = w.min, false
	case queue: // multiplicative decrease
		w.size = max(w.min, w.size/2)
		w.threshold = w.size
	case !w.full:
	case w.size < w.threshold: // slow start
		w.size = min(2*w.size, w.threshold, w.ceiling)
	default: // additive increase
		w.size = min(w.size+1, w.ceiling)
	}
	if w.probed == 0 {
		w.probed = now
	} else if now-w.probed >= probeEvery && w.min < w.max {
		w.probing, w.probed = true, now
		if w.size >= w.threshold {
			w.threshold = w.size
		}
		w.size = 1
	}
	w.began, w.bursts, w.answers, w.silent, w.full = now, bursts, [numDelays]int{}, 0, false
}

// Limit halves the size, which the ceiling is then.
func (w *congestionWindow) Limit() {
	if w.probing {
		w.ceiling = max(w.min, w.threshold/2)
	} else {
		w.size = max(w.min, w.size/2)
		w.ceiling = w.size
	}
	w.threshold = w.ceiling
}

// Raise lets the size become larger by one.
func (w *congestionWindow) Raise() { w.ceiling = min(w.ceiling+1, w.max) }

// Unlimit lets the size become as large as it may: there was no reason to limit it.
func (w *congestionWindow) Unlimit() { w.threshold, w.ceiling = w.max, w.max }

// lossDetector distinguishes the losses of a queue too short to show in the RTT from random
// loss: a smaller window reduces the first, but not the second.
//
// Requests are counted by the period in which they were first sent. A loss is known
// an RTO later, when another attempt is answered. If RTTs are long and losses exceed
// the known random loss, the window is halved, on trial: when the first period of the
// trial is complete, its loss is compared with the loss of the period before.
type lossDetector struct {
	periods [lossPeriods]lossCount
	period  uint8 // its number; it is periods[period%lossPeriods]
	began   time.Duration
	onTrial bool
	trial   uint8         // its first period
	random  lossCount     // the random loss found by a trial
	found   time.Duration // when
}

// shortestRTO is the least time after which a request is presumed lost and sent again.
const shortestRTO = 100 * time.Millisecond

// All is known of a period when two more are over: shortestRTO, after which most lost
// requests are sent again, and some time for the answer.
const (
	lossPeriods = 4
	lossPeriod  = shortestRTO * 9 / 16
)

// lossVerdict is what follows from the recent losses.
type lossVerdict uint8

const (
	lossUndecided lossVerdict = iota // no change
	noLoss                           // the window may become larger, by one
	queueLoss                        // the window has to be halved, on trial
	randomLoss                       // the trial found no queue
)

// Add counts a request that was first sent in the period given: d is the delay of the
// answer; lost: another attempt was answered.
func (l *lossDetector) Add(period uint8, d queueDelay, lost bool) {
	if l.period-period < lossPeriods {
		l.periods[period%lossPeriods].add(d, lost)
	}
}

// Period returns the number of the current period.
func (l *lossDetector) Period() uint8 { return l.period }

// Judge ends the period if it is over, and returns the verdict.
func (l *lossDetector) Judge(now time.Duration) lossVerdict {
	if now-l.began < lossPeriod {
		return lossUndecided
	}
	if now-l.found >= probeEvery {
		l.random = lossCount{} // it may change
	}
	verdict := l.verdict()
	l.period++
	l.began = now
	l.periods[l.period%lossPeriods] = lossCount{}
	switch verdict {
	case queueLoss:
		l.onTrial, l.trial = true, l.period
	case randomLoss:
		l.found = now
	}
	return verdict
}

func (l *lossDetector) verdict() lossVerdict {
	if l.onTrial {
		if l.period-l.trial < 2 {
			return lossUndecided
		}
		l.onTrial = false
		return l.compare(&l.periods[(l.trial-1)%lossPeriods], &l.periods[l.trial%lossPeriods])
	}
	var late lossCount
	for _, n := range l.periods {
		late.base += n.base
		late.arrived += n.arrived
		late.lost += n.lost
	}
	switch {
	case late.isLoaded() && late.exceeds(&l.random):
		return queueLoss
	case l.period%4 == 0: // not sooner than losses are known
		return noLoss
	}
	return lossUndecided
}

// compare compares the period before the trial with the first period of the trial.
func (l *lossDetector) compare(before, during *lossCount) lossVerdict {
	switch {
	case during.lost == 0:
	case before.exceeds(during), during.exceeds(before): // of a queue that others use too there may be more
		return queueLoss
	case during.lost >= 8: // fewer are too few to decide
		l.random = *during
		return randomLoss
	}
	return lossUndecided
}

// lossCount is what became of the first attempts of requests.
type lossCount struct {
	arrived, lost uint32
	base          uint32 // of arrived: with a base RTT
}

func (n *lossCount) add(d queueDelay, lost bool) {
	if lost {
		n.lost++
		return
	}
	n.arrived++
	if d == baseDelay {
		n.base++
	}
}

// isLoaded reports whether half of the RTTs are longer than the base RTT.
func (n *lossCount) isLoaded() bool { return 2*n.base < n.arrived }

// exceeds reports whether the odds of a loss are higher than the odds in m, by more than
// chance (two standard deviations). Odds, not probabilities: a queue that is
// much too short loses nearly all, whatever the window.
func (n *lossCount) exceeds(m *lossCount) bool {
	expected := float64(n.arrived) * float64(m.lost) / float64(m.arrived+1)
	return float64(n.lost) > 1.4*expected+2*math.Sqrt(expected)
}

// rttEstimate keeps the mean and the deviation of round-trip times (RFC 6298,
// section 2: SRTT and RTTVAR).
type rttEstimate struct {
	mean, dev time.Duration // 0: none measured
}

// Add includes a round-trip time in the estimate.
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
	baseDelay   queueDelay = iota // no queueing: about the base RTT
	loadedDelay                   // schedulers, interrupts, an agent at other work
	queuedDelay                   // a queue
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
		return loadedDelay
	}
	return queuedDelay
}
