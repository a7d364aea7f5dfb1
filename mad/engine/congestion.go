package engine

import "time"

// congestionWindow is how many requests may be outstanding at once: of a class
// of management, or to one destination. It goes by delay, not by loss. The
// management lane (VL15) has no flow control: where a switch or an agent is asked
// faster than it answers, its short queue drops what does not fit, the subnet
// manager's own requests too. A queue shows in the RTT before it is full.
//
// A round is as many answers as the window's size, all to requests sent since
// the size last changed. Slow start: below the threshold a round without a queue
// doubles the size. From there on AIMD: a round without a queue adds one, and one
// that met a queue halves the size, which the threshold is then, so that all who
// share a bottleneck come to share it evenly. A round that did not use all of the
// window does not raise it. The ceiling is what losses allow (losses).
//
// Silence is no sign of congestion: a dead node has no queue.
//
// A late starter measures its base RTT with others' queueing in it. So every
// probeEvery a round is of one request only, which measures the base RTT anew.
// After that comes slow start, not a burst.
type congestionWindow struct {
	size, min, max int
	threshold      int // slow start ends there
	ceiling        int // of size; at most max

	began   time.Duration  // of the round
	answers [numDelays]int // in it
	silent  int            // requests without an answer
	heaps   uint64         // of answers, before it
	full    bool           // all of the window was used
	probing bool           // it is of one request
	probed  time.Duration  // when the latest probe was
}

// probeEvery is how often the base RTT is measured anew.
const probeEvery = 2 * time.Second

func newCongestionWindow(start, least, most int) congestionWindow {
	return congestionWindow{size: min(start, most), min: min(least, most), max: most, threshold: most, ceiling: most}
}

// fix makes w as large as it may become, for good.
func (w *congestionWindow) fix() { *w = newCongestionWindow(w.max, w.max, w.max) }

// probes: a request sent at the given time was the only one outstanding.
func (w *congestionWindow) probes(sent time.Duration) bool { return w.probing && sent >= w.began }

// answered takes in the answer to a request sent at the given time. So many heaps
// of answers have come, this one's included.
func (w *congestionWindow) answered(d delay, heaps uint64, sent, now time.Duration) {
	if sent >= w.began {
		w.answers[d]++
		w.endRound(heaps, now)
	}
}

// unanswered takes in that a request sent at the given time got no answer.
func (w *congestionWindow) unanswered(heaps uint64, sent, now time.Duration) {
	if sent >= w.began {
		w.silent++
		w.endRound(heaps, now)
	}
}

// endRound ends the round when it is complete.
func (w *congestionWindow) endRound(heaps uint64, now time.Duration) {
	b, l, q := w.answers[base], w.answers[loaded], w.answers[queued]
	if b+l+q+w.silent < w.size {
		return
	}
	// Three quarters of the answers have to tell of the queue. A slow agent is
	// one of many, and a burst is slow but for its head. And a queue gives one
	// answer after the other: where many come in a heap or two, without a wait
	// between, it is processors that take turns.
	queue := 3*(b+l) < q && (heaps-w.heaps > 2 || w.size <= 2)
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
	w.began, w.heaps, w.answers, w.silent, w.full = now, heaps, [numDelays]int{}, 0, false
}

// limit halves the size, which the ceiling is then.
func (w *congestionWindow) limit() {
	if w.probing {
		w.ceiling = max(w.min, w.threshold/2)
	} else {
		w.size = max(w.min, w.size/2)
		w.ceiling = w.size
	}
	w.threshold = w.ceiling
}

// raise lets the size become larger by one.
func (w *congestionWindow) raise() { w.ceiling = min(w.ceiling+1, w.max) }

// unlimit: there was no reason to limit the size.
func (w *congestionWindow) unlimit() { w.threshold, w.ceiling = w.max, w.max }
