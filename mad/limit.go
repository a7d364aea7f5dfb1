package mad

import "time"

// limit is how many requests may be out at once: of a class of management, or
// to one destination. It goes by delay, not by loss. The management lane (VL15)
// has no flow control: where a switch or an agent is asked faster than it
// answers, its short queue drops what does not fit, the subnet manager's own
// requests too. A queue shows in the round trips before it is full.
//
// A round is as many answers as the limit, all to requests sent since it was
// last changed. After a round whose round trips were near their minimum the
// limit is doubled; once it has met a queue, it is halved, and from then on
// grows by one a round, so that all who share a bottleneck come to share it
// evenly. A round that did not use all of the limit does not raise it.
//
// Silence says nothing: a dead node has no queue.
type limit struct {
	n, least, most int

	began  time.Duration // of the round
	near   int           // its answers
	far    int
	silent int
	full   bool // the limit was reached
	met    bool // a queue, ever
	// lowest: n is least, and even so the answers are far, since then.
	lowest time.Duration
}

// staleAfter is how long the least there can be has to be too much until the
// minimum is measured anew: the queue is not ours, the way has become longer.
const staleAfter = 10 * time.Second

func newLimit(start, least, most int) limit {
	return limit{n: min(start, most), least: min(least, most), most: most, lowest: never}
}

// answer takes in the answer to a request sent at the given time. stale: the
// minimum that near goes by is to be measured anew.
func (l *limit) answer(near bool, sent, now time.Duration) (stale bool) {
	if sent < l.began {
		return false
	}
	if near {
		l.near++
	} else {
		l.far++
	}
	return l.turn(now)
}

// silence takes in that a request sent at the given time got no answer.
func (l *limit) silence(sent, now time.Duration) {
	if sent >= l.began {
		l.silent++
		l.turn(now)
	}
}

// turn ends the round when it is complete.
func (l *limit) turn(now time.Duration) (stale bool) {
	if l.near+l.far+l.silent < l.n {
		return false
	}
	// Of a queue that all have to pass, all tell. A slow agent is one of many,
	// and a burst is slow but for its head.
	queue := 3*l.near < l.far
	switch {
	case queue && l.n == l.least:
		l.lowest = min(l.lowest, now)
		stale = now-l.lowest >= staleAfter
	case queue:
		l.n = max(l.least, l.n/2)
		l.met = true
	case l.full && l.met:
		l.n++
	case l.full:
		l.n *= 2
	}
	if !queue || stale {
		l.lowest = never
	}
	l.n = min(l.n, l.most)
	l.began, l.near, l.far, l.silent, l.full = now, 0, 0, 0, false
	return stale
}
