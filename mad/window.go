package mad

import "time"

// Limits of what may be outstanding.
const (
	defaultWindow = 32
	// windowSA: a subnet manager answers one query after the other, and
	// a large table keeps it busy for long.
	windowSA = 4
	// windowDestination is what one node of one class is asked at once.
	// Agents have a short queue and drop what exceeds it; eight hide the
	// round trip, and leave three quarters of the window to others when
	// a node is silent.
	windowDestination = 8
	// maxDestinations are remembered, if no more are in use: more than a
	// subnet has LIDs.
	maxDestinations = 1 << 16
)

// How long an answer may be out before it is presumed lost and leaves the
// window: the mean round trip and four deviations (RFC 6298), within limits.
// The call itself goes on waiting; only others need wait for it no longer,
// so that any number of silent nodes costs one retry ladder in all.
const (
	minLostAfter     = 100 * time.Millisecond
	initialLostAfter = 250 * time.Millisecond
)

// classWindow is the share of one kind of management class in the window.
type classWindow struct {
	limit      int // calls in flight
	perNode    int // calls admitted for one destination
	inFlight   int
	ready      callList
	mean, dev  time.Duration // of round trips
	sampled    bool
	destLookup map[destKey]*destination
}

// The kinds of classes.
const (
	kindSMP = iota
	kindSA
	kindGMP
	kinds
)

func kindOf(c Class) int {
	switch c.Family() {
	case ClassSubn:
		return kindSMP
	case ClassSubnAdm:
		return kindSA
	}
	return kindGMP
}

// lostAfter is when an attempt that was sent is presumed lost.
func (w *classWindow) lostAfter() time.Duration {
	if !w.sampled {
		return initialLostAfter
	}
	return max(minLostAfter, w.mean+4*w.dev)
}

// sample takes in a measured round trip (RFC 6298, 2.3).
func (w *classWindow) sample(rtt time.Duration) {
	if !w.sampled {
		w.mean, w.dev, w.sampled = rtt, rtt/2, true
		return
	}
	w.dev += ((rtt - w.mean).Abs() - w.dev) / 4
	w.mean += (rtt - w.mean) / 8
}

// destination is a node as one kind of class knows it. It admits a few calls
// at a time; the others wait here, out of the way of other destinations.
type destination struct {
	key  destKey
	kind *classWindow
	open int // admitted and not ended
	held callList
}

// destKey tells destinations apart: LID or directed route, or GID.
type destKey struct {
	lid   LID
	hops  uint8
	route [MaxHops]uint8
	gid   GID
}

func keyOf(c *Call) (k destKey) {
	k.lid = c.To.LID
	if Class(c.MAD[offClass]) == ClassSubnDirected {
		k.hops = c.MAD[offHopCount]
		copy(k.route[:k.hops], c.MAD[SMPInitialPathOffset+1:])
	}
	if c.To.HasGRH {
		k.gid = c.To.GID
	}
	return k
}

// destination finds or makes c's destination.
func (e *Engine) destination(c *Call) *destination {
	w := &e.windows[kindOf(Class(c.MAD[offClass]))]
	k := keyOf(c)
	d := w.destLookup[k]
	if d == nil {
		if len(e.dests) >= e.maxDests {
			e.forgetDestinations()
		}
		d = &destination{key: k, kind: w}
		w.destLookup[k] = d
		e.dests = append(e.dests, d)
	}
	return d
}

// forgetDestinations drops those nothing is asked of.
func (e *Engine) forgetDestinations() {
	used := e.dests[:0]
	for _, d := range e.dests {
		if d.open > 0 {
			used = append(used, d)
		} else {
			delete(d.kind.destLookup, d.key)
		}
	}
	clear(e.dests[len(used):])
	e.dests = used
	e.maxDests = max(e.maxDests, 2*len(used)) // so that this is done seldom
}

// discharge makes room for another call at d.
func (e *Engine) discharge(d *destination) {
	d.open--
	if c := d.held.pop(); c != nil {
		e.admit(c)
	}
}

// admit queues c for the window, or holds it while its destination is full.
func (e *Engine) admit(c *Call) {
	d := c.s.dest
	if d.open >= d.kind.perNode {
		c.s.phase = phaseHeld
		d.held.push(c)
		return
	}
	d.open++
	e.seq++
	c.s.seq = e.seq
	c.s.phase = phaseReady
	d.kind.ready.push(c)
}

// nextReady is the call admitted first of those the window has room for.
func (e *Engine) nextReady() *Call {
	if e.inFlight >= e.window || e.free.len() <= e.reserve {
		return nil
	}
	var first *Call
	for i := range e.windows {
		w := &e.windows[i]
		if c := w.ready.head; c != nil && w.inFlight < w.limit && (first == nil || c.s.seq < first.s.seq) {
			first = c
		}
	}
	return first
}

// enterWindow counts c, which is sent for the first time.
func (e *Engine) enterWindow(c *Call) {
	c.s.fresh = true
	c.s.dest.kind.inFlight++
	e.inFlight++
}

// leaveWindow makes room: c was answered, or is presumed lost.
func (e *Engine) leaveWindow(c *Call) {
	if c.s.fresh {
		c.s.fresh = false
		c.s.dest.kind.inFlight--
		e.inFlight--
	}
}
