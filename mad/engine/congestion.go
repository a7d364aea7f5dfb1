package engine

import "time"

// limit is how many requests may be out at once: of a class of management, or
// to one destination. It goes by delay, not by loss. The management lane (VL15)
// has no flow control: where a switch or an agent is asked faster than it
// answers, its short queue drops what does not fit, the subnet manager's own
// requests too. A queue shows in the round trips before it is full.
//
// A round is as many answers as the limit, all to requests sent since it was
// last changed. After a round without a queue the limit is doubled; once it
// has met one, it is halved, and from then on grows by one a round, so that
// all who share a bottleneck come to share it evenly. A round that did not use
// all of the limit does not raise it.
//
// Silence says nothing: a dead node has no queue. But an answer to a second
// attempt says that the first was lost. Where round trips are fair only, it tells
// of a queue too short to show; from then on the limit may grow past its half
// by one a probe only. Where they are far, the queue shows by itself.
//
// Who comes late takes the queue of others for the way. So every now and then
// a round is of one request only, which shows how short a round trip is today.
type limit struct {
	n, least, most int
	top            int // until experience allows more

	began  time.Duration // of the round
	trips  [lengths]int  // its answers
	lost   int           // answers to attempts after the first
	silent int           // no answers
	full   bool          // the limit was reached
	met    bool          // a queue, ever
	before int           // n, before the round of one; 0: in no such round
	probed time.Duration // when that was
}

// probeEvery is how often the shortest round trip is measured anew.
const probeEvery = 2 * time.Second

func newLimit(start, least, most int) limit {
	return limit{n: min(start, most), least: min(least, most), most: most, top: most}
}

// probes: a request sent at the given time was the only one out.
func (l *limit) probes(sent time.Duration) bool { return l.before > 0 && sent >= l.began }

// answer takes in the answer to a request sent at the given time; again: it
// was not the first attempt.
func (l *limit) answer(long length, again bool, sent, now time.Duration) {
	if again {
		l.lost++
	}
	if sent >= l.began {
		l.trips[long]++
		l.turn(now)
	}
}

// silence takes in that a request sent at the given time got no answer.
func (l *limit) silence(sent, now time.Duration) {
	if sent >= l.began {
		l.silent++
		l.turn(now)
	}
}

// turn ends the round when it is complete.
func (l *limit) turn(now time.Duration) {
	n, f, r := l.trips[near], l.trips[fair], l.trips[far]
	if n+f+r+l.silent < l.n {
		return
	}
	// Three quarters of the answers have to tell of the queue. A slow agent is
	// one of many, and a burst is slow but for its head.
	far := 3*(n+f) < r
	queue := far || l.lost > 0 && 3*n < f+r
	switch {
	case l.least == l.most: // nothing to be decided
	case l.before > 0:
		l.n, l.before = l.before, 0
	case queue:
		l.n = max(l.least, l.n/2)
		l.met = true
		if !far {
			l.top = l.n
		}
	case l.full && l.met:
		l.n = min(l.n+1, l.top)
	case l.full:
		l.n = min(2*l.n, l.top)
	}
	if l.probed == 0 {
		l.probed = now
	} else if now-l.probed >= probeEvery && l.least < l.most {
		l.before, l.n, l.probed = l.n, 1, now
		l.top = min(l.top+1, l.most)
	}
	l.began, l.trips, l.lost, l.silent, l.full = now, [lengths]int{}, 0, 0, false
}
