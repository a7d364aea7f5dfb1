// Package congestion decides how many requests may be outstanding, by the timing of
// their answers.
//
//	window.go  the congestion window: slow start, AIMD
//	losses.go  random loss, or a short queue
//	rtt.go     round-trip times: RTO, delay
//
// Its values have no calls and no clock: the caller passes both, and guards the values.
// The terms are those of transport protocols: RTT is a round-trip time; the base
// RTT is the shortest one, without queueing; RTO, the retransmission timeout, is
// mean + 4 deviations of the RTT (RFC 6298); AIMD is additive increase,
// multiplicative decrease.

package engine

import "time"

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
// window does not raise it. The ceiling is what Losses allow (Losses).
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
	b, l, q := w.answers[baseDelay], w.answers[Loaded], w.answers[Queued]
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
