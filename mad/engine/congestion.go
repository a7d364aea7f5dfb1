package engine

import "time"

// congestionWindow is how many requests may be outstanding at once: of a class
// of management, or to one destination. It goes by delay, not by loss. The
// management lane (VL15) has no flow control: where a switch or an agent is asked
// faster than it answers, its short queue drops what does not fit, the subnet
// manager's own requests too. A queue shows in the RTT before it is full.
//
// A round is as many answers as the window's size, all to requests sent since
// the size last changed. Slow start: after a round without a queue the size is
// doubled. Once a round has met a queue, AIMD: the size is halved, and then
// grows by one a round, so that all who share a bottleneck come to share it
// evenly. A round that did not use all of the window does not raise it.
//
// Silence is no sign of congestion: a dead node has no queue. But an answer to a
// second attempt says that the first was lost. Where delays are loaded only, it
// tells of a queue too short to show; from then on half the size is the ceiling,
// which grows by one a probe. Where they are queued, the queue shows by itself.
//
// A late starter measures its base RTT with others' queueing in it. So every
// probeEvery a round is of one request only, which measures the base RTT anew.
type congestionWindow struct {
	size, min, max int
	ceiling        int // of size; at most max

	began    time.Duration  // of the round
	answers  [numDelays]int // in it
	resent   int            // answers to attempts after the first
	silent   int            // requests without an answer
	full     bool           // all of the window was used
	additive bool           // slow start is over: a queue was met
	resume   int            // size after the probe; 0: no probe
	probed   time.Duration  // when the latest probe was
}

// probeEvery is how often the base RTT is measured anew.
const probeEvery = 2 * time.Second

func newCongestionWindow(start, least, most int) congestionWindow {
	return congestionWindow{size: min(start, most), min: min(least, most), max: most, ceiling: most}
}

// probes: a request sent at the given time was the only one outstanding.
func (w *congestionWindow) probes(sent time.Duration) bool { return w.resume > 0 && sent >= w.began }

// answered takes in the answer to a request sent at the given time; resent: it
// was not the first attempt.
func (w *congestionWindow) answered(d delay, resent bool, sent, now time.Duration) {
	if resent {
		w.resent++
	}
	if sent >= w.began {
		w.answers[d]++
		w.endRound(now)
	}
}

// unanswered takes in that a request sent at the given time got no answer.
func (w *congestionWindow) unanswered(sent, now time.Duration) {
	if sent >= w.began {
		w.silent++
		w.endRound(now)
	}
}

// endRound ends the round when it is complete.
func (w *congestionWindow) endRound(now time.Duration) {
	b, l, q := w.answers[base], w.answers[loaded], w.answers[queued]
	if b+l+q+w.silent < w.size {
		return
	}
	// Three quarters of the answers have to tell of the queue. A slow agent is
	// one of many, and a burst is slow but for its head.
	long := 3*(b+l) < q
	short := w.resent > 0 && 3*b < l+q
	switch {
	case w.min == w.max: // nothing to be decided
	case w.resume > 0:
		w.size, w.resume = w.resume, 0
	case long || short: // multiplicative decrease
		w.size = max(w.min, w.size/2)
		w.additive = true
		if !long {
			w.ceiling = w.size
		}
	case w.full && w.additive: // additive increase
		w.size = min(w.size+1, w.ceiling)
	case w.full: // slow start
		w.size = min(2*w.size, w.ceiling)
	}
	if w.probed == 0 {
		w.probed = now
	} else if now-w.probed >= probeEvery && w.min < w.max {
		w.resume, w.size, w.probed = w.size, 1, now
		w.ceiling = min(w.ceiling+1, w.max)
	}
	w.began, w.answers, w.resent, w.silent, w.full = now, [numDelays]int{}, 0, 0, false
}
