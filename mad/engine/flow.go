package engine

import (
	"fabsh/mad"
)

import "time"

// Limits of what may be outstanding.
const (
	defaultWindow = 32
	// windowStart is what a class begins with, and what it keeps whatever
	// happens: as many as OpenSM has out by default (max_wire_smps).
	windowStart = 4
	// windowSA is all that subnet administration gets: a subnet manager
	// answers one query after the other, and each takes as long as it takes,
	// so that delay says nothing of queues.
	windowSA = 4
	// windowDestination is the most that one node of one class is asked at
	// once. Agents have a short queue; eight hide the round trip, and leave
	// three quarters of the window to others when a node is silent. It begins
	// with two, for half of windowStart is to be left too.
	windowDestination      = 8
	windowDestinationStart = 2
)

// What takes longer than round trips hardly ever take is presumed lost: the
// request leaves the window, so that any number of silent nodes costs one retry
// ladder in all, and is sent again if it changes nothing. But not before these.
const (
	minLeaveAfter = 10 * time.Millisecond
	minLostAfter  = 100 * time.Millisecond
)

// classWindow is the share of one kind of management class in the window.
type classWindow struct {
	limit    limit // calls in flight
	inFlight int
	ready    callList // calls to be sent
	again    callList // calls to be sent again
	perNode  limit    // what a destination begins with

	trips trips
	// least has the shortest round trip by distance: hops of a directed
	// route, each of which takes a switch's agent its time, and, last, LIDs.
	least     [mad.MaxHops + 2]time.Duration
	histogram histogram

	destLookup map[destKey]*destination
}

// The kinds of classes.
const (
	kindSMP = iota
	kindSA
	kindGMP
	kinds
)

func kindOf(c mad.Class) int {
	switch c.Family() {
	case mad.ClassSubn:
		return kindSMP
	case mad.ClassSubnAdm:
		return kindSA
	}
	return kindGMP
}

// setWindows divides the window into those of the classes. A recording has
// nobody whom too many requests could harm.
func (e *Engine) setWindows() {
	if e.traits.Recorded {
		e.window = numSlots
	}
	for i := range e.windows {
		w := classWindow{
			limit:      newLimit(windowStart, windowStart, e.window),
			perNode:    newLimit(windowDestinationStart, 1, windowDestination),
			destLookup: map[destKey]*destination{},
		}
		if i == kindSA {
			w.limit = newLimit(windowSA, windowSA, min(windowSA, e.window))
			w.perNode = newLimit(windowSA, windowSA, windowSA)
		}
		if e.traits.Recorded {
			w.limit = newLimit(numSlots, numSlots, numSlots)
			w.perNode = w.limit
		}
		e.windows[i] = w
	}
}

// usual is what round trips to d hardly ever exceed: those of all destinations,
// or d's own if it is slower. 0: not known yet.
func (d *destination) usual() time.Duration { return max(d.kind.trips.most(), d.trips.most()) }

// sample takes in the round trip of a request of c, sent at the given time.
func (e *Engine) sample(c *Call, sent, now time.Duration) {
	d := c.s.dest
	w := d.kind
	rtt := now - sent
	w.histogram.add(rtt)
	if isTable(&c.MAD) {
		return // it is the agent's work that takes its time
	}
	w.trips.add(rtt)
	d.trips.add(rtt)
	again := sent > c.s.firstSent && c.s.busy == 0
	w.limit.answer(compare(rtt, w.limit.probes(sent), &w.least[distance(c)]), again, sent, now)
	d.limit.answer(compare(rtt, d.limit.probes(sent), &d.least), again, sent, now)
}

// distance is an index of classWindow.least.
func distance(c *Call) int {
	if mad.Class(c.MAD[mad.ClassOffset]) == mad.ClassSubnDirected {
		return int(c.MAD[mad.HopCountOffset])
	}
	return mad.MaxHops + 1
}

// admit queues c for the window, or holds it while its destination is full.
func (e *Engine) admit(c *Call) {
	d := c.s.dest
	if d.open >= d.limit.n {
		d.limit.full = true
		c.s.phase = phaseHeld
		d.held.push(c)
		return
	}
	d.open++
	c.s.open = true
	e.seq++
	c.s.seq = e.seq
	c.s.phase = phaseReady
	d.kind.ready.push(c)
}

// discharge makes room for other calls at c's destination.
func (e *Engine) discharge(c *Call) {
	if !c.s.open {
		return
	}
	c.s.open = false
	d := c.s.dest
	d.open--
	for d.held.head != nil && d.open < d.limit.n {
		e.admit(d.held.pop())
	}
	d.limit.full = d.limit.full || d.held.head != nil
}

// next is the call to be sent, if the window has room: of those to be sent
// again that which waits longest, or that admitted first.
func (e *Engine) next() *Call {
	if e.inFlight >= e.window {
		return nil
	}
	var first *Call
	for i := range e.windows {
		w := &e.windows[i]
		c := w.again.head
		if c == nil && e.free.len() > e.reserve {
			c = w.ready.head
		}
		switch {
		case c == nil:
		case w.inFlight >= w.limit.n:
			w.limit.full = true
		case first == nil || c.s.seq < first.s.seq:
			first = c
		}
	}
	return first
}

// enterWindow counts c, which is about to be sent.
func (e *Engine) enterWindow(c *Call) {
	c.s.fresh = true
	c.s.dest.kind.inFlight++
	e.inFlight++
}

// leaveWindow makes room for another destination: c was answered, or is
// presumed lost.
func (e *Engine) leaveWindow(c *Call) {
	if c.s.fresh {
		c.s.fresh = false
		c.s.dest.kind.inFlight--
		e.inFlight--
	}
}

// presumeLost makes room, for no answer has come to c in time.
func (e *Engine) presumeLost(c *Call, now time.Duration) {
	if c.s.fresh {
		e.leaveWindow(c)
		d := c.s.dest
		d.kind.limit.silence(c.s.silentSince, now)
	}
}
