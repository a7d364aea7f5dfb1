package engine

import (
	"time"

	"fabsh/mad"
)

// Sizes of windows, in requests.
const (
	defaultWindow = 32
	// windowStart is the initial and the smallest window of a class: the number of
	// outstanding SMPs of OpenSM by default (max_wire_smps).
	windowStart = 4
	// windowSA is the window of subnet administration: a subnet manager answers
	// one query after the other, and their durations differ, so that the delay
	// does not show queues.
	windowSA = 4
	// windowDestination is the largest number of outstanding requests of one class
	// to one node: half of an agent's queue, so that the four of a subnet manager
	// fit beside ours. It begins with two, so that half of windowStart is left for
	// others if a node does not answer.
	windowDestination      = 4
	windowDestinationStart = 2
)

// A request without an answer within the RTO is presumed lost: it leaves the windows,
// so that any number of nodes that do not answer cost one retry ladder in all, and it
// is sent again if it changes nothing. But neither happens before these times: an RTT
// is hardly ever longer than the first.
const (
	minLeaveAfter = 3 * time.Millisecond
	minRTO        = 100 * time.Millisecond
)

// flow limits the outstanding requests, by windows and destinations. A call goes from
// its destination's queue (phaseHeld) to its class's (phaseReady), and is sent when
// all windows have room. Engine.mu guards it.
type flow struct {
	window   int // requests that may be outstanding, of all classes
	inFlight int // requests that are outstanding
	admitted uint64
	classes  [kinds]classFlow
	dests    []*destination
	spare    []*destination // forgotten, for reuse
	maxDests int
	bursts   uint64 // of answers that came: between two of them the reader waited
}

// classFlow is one kind of management classes: their share in the window.
type classFlow struct {
	window   congestionWindow // requests in flight
	losses   lossDetector     // of requests; how large window may become
	inFlight int
	ready    callList // calls to be sent
	again    callList // calls to be sent again

	rtt rttEstimate
	// baseRTT is by distance: hops of a directed route, each of which costs time
	// of a switch's agent, and, last, LIDs.
	baseRTT   [mad.MaxHops + 2]time.Duration
	histogram histogram

	perDestination congestionWindow // initial window of each destination
	dests          map[destKey]*destination
	last           *destination // the one found last, or nil
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

// init divides window among the classes.
func (f *flow) init(p policy, window int) {
	f.window = p.window(window)
	f.maxDests = maxDestinations
	for i := range f.classes {
		w := &f.classes[i]
		w.window, w.perDestination = p.congestionWindows(i, f.window)
		w.dests = map[destKey]*destination{}
	}
}

// fixWindows makes all windows as large as they may become, permanently.
func (f *flow) fixWindows() {
	for i := range f.classes {
		f.classes[i].window.Fix()
		f.classes[i].perDestination.Fix()
	}
}

// sample records the RTT of a request of c, sent at the given time.
func (f *flow) sample(c *Call, sent, now time.Duration) {
	d := c.s.dest
	w := d.class
	rtt := now - sent
	w.histogram.add(rtt)
	if isTable(&c.MAD) {
		return // the agent's work takes the time
	}
	w.rtt.Add(rtt)
	d.rtt.Add(rtt)
	resent := sent > c.s.firstSent && c.s.busy == 0
	delay := queueDelayOf(rtt, w.window.Probes(sent), &w.baseRTT[distance(c)])
	w.window.Answered(delay, f.bursts, sent, now)
	d.window.Answered(queueDelayOf(rtt, d.window.Probes(sent), &d.baseRTT), f.bursts, sent, now)
	w.losses.Add(c.s.period, delay, resent)
	switch w.losses.Judge(now) {
	case queueLoss:
		w.window.Limit()
	case randomLoss:
		w.window.Unlimit()
	case noLoss:
		w.window.Raise()
	}
}

// distance returns an index of classFlow.baseRTT.
func distance(c *Call) int {
	if mad.Class(c.MAD[mad.ClassOffset]) == mad.ClassSubnDirected {
		return int(min(c.MAD[mad.HopCountOffset], mad.MaxHops)) // raw MADs may have more
	}
	return mad.MaxHops + 1
}

// admit queues c for the window, or holds it while its destination is full.
func (f *flow) admit(c *Call) {
	d := c.s.dest
	if d.open >= d.window.Size() {
		d.window.MarkFull()
		c.s.phase = phaseHeld
		d.held.push(c)
		return
	}
	d.open++
	c.s.admitted = true
	f.admitted++
	c.s.order = f.admitted
	c.s.phase = phaseReady
	d.class.ready.push(c)
}

// discharge makes room for other calls at c's destination.
func (f *flow) discharge(c *Call) {
	if !c.s.admitted {
		return
	}
	c.s.admitted = false
	d := c.s.dest
	d.open--
	for d.held.head != nil && d.open < d.window.Size() {
		f.admit(d.held.pop())
	}
	if d.held.head != nil {
		d.window.MarkFull()
	}
}

// next returns the call to send, if the windows have room: of those to send again the
// one that waits longest, otherwise the one admitted first. opens reports whether
// there is a transaction ID for one that was not sent yet.
func (f *flow) next(opens bool) *Call {
	if f.inFlight >= f.window {
		return nil
	}
	var first *Call
	for i := range f.classes {
		w := &f.classes[i]
		c := w.again.head
		if c == nil && opens {
			c = w.ready.head
		}
		switch {
		case c == nil:
		case w.inFlight >= w.window.Size():
			w.window.MarkFull()
		case first == nil || c.s.order < first.s.order:
			first = c
		}
	}
	return first
}

// dequeue removes c from the queue of its phase.
func (f *flow) dequeue(c *Call) {
	switch c.s.phase {
	case phaseHeld:
		c.s.dest.held.remove(c)
	case phaseReady:
		c.s.dest.class.ready.remove(c)
	case phaseResend:
		c.s.dest.class.again.remove(c)
	}
}

// enter counts c, which is about to be sent, in the windows.
func (f *flow) enter(c *Call) {
	c.s.inWindow = true
	c.s.dest.class.inFlight++
	f.inFlight++
}

// leave makes room in the windows: c was answered, or is presumed lost.
func (f *flow) leave(c *Call) {
	if c.s.inWindow {
		c.s.inWindow = false
		c.s.dest.class.inFlight--
		f.inFlight--
	}
}

// presumeLost makes room in the windows, because no answer has come to c in time.
func (f *flow) presumeLost(c *Call, now time.Duration) {
	if c.s.inWindow {
		f.leave(c)
		c.s.dest.class.window.Unanswered(f.bursts, c.s.silentSince, now)
	}
}
