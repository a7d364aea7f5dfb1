package mad

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
// Silence says nothing: a dead node has no queue. Only where round trips are
// no longer near the shortest, a loss on the way to a node that lives says that
// the queue was shorter than what counts as fair.
//
// Who comes late takes the queue of others for the way. So every now and then
// a round is of one request only, which shows how short a round trip is today.
type limit struct {
	n, least, most int

	began  time.Duration // of the round
	trips  [lengths]int  // its answers
	lost   int           // by nodes that live
	silent int           // others
	full   bool          // the limit was reached
	met    bool          // a queue, ever
	before int           // n, before the round of one; 0: in no such round
	probed time.Duration // when that was
}

// probeEvery is how often the shortest round trip is measured anew.
const probeEvery = 2 * time.Second

func newLimit(start, least, most int) limit {
	return limit{n: min(start, most), least: min(least, most), most: most}
}

// probes: a request sent at the given time was the only one out.
func (l *limit) probes(sent time.Duration) bool { return l.before > 0 && sent >= l.began }

// answer takes in the answer to a request sent at the given time.
func (l *limit) answer(long length, sent, now time.Duration) {
	if sent >= l.began {
		l.trips[long]++
		l.turn(now)
	}
}

// silence takes in that a request sent at the given time got no answer, from
// a node that lives or from one of which that is not known.
func (l *limit) silence(lives bool, sent, now time.Duration) {
	switch {
	case sent < l.began:
		return
	case lives:
		l.lost++
	default:
		l.silent++
	}
	l.turn(now)
}

// turn ends the round when it is complete.
func (l *limit) turn(now time.Duration) {
	if l.trips[near]+l.trips[fair]+l.trips[far]+l.lost+l.silent < l.n {
		return
	}
	switch {
	case l.least == l.most: // nothing to be decided
	case l.before > 0:
		l.n, l.before = l.before, 0
	case l.queue():
		l.n = max(l.least, l.n/2)
		l.met = true
	case l.full && l.met:
		l.n = min(l.n+1, l.most)
	case l.full:
		l.n = min(2*l.n, l.most)
	}
	if l.probed == 0 {
		l.probed = now
	} else if now-l.probed >= probeEvery && l.least < l.most {
		l.before, l.n, l.probed = l.n, 1, now
	}
	l.began, l.trips, l.lost, l.silent, l.full = now, [lengths]int{}, 0, 0, false
}

// queue: three quarters of the round's answers say so. A slow agent is one of
// many, and a burst is slow but for its head.
func (l *limit) queue() bool {
	n, f, r := l.trips[near], l.trips[fair], l.trips[far]
	return 3*(n+f) < r || l.lost > 0 && 3*n < f+r
}
