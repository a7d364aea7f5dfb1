package engine

import (
	"time"

	"fabsh/mad"
	"fabsh/mad/engine/congestion"
)

// Sizes of windows, in requests.
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
	// once: half of what an agent's queue may hold, so that a subnet
	// manager's four fit beside ours. It begins with two, so that half of
	// windowStart is left to others when a node is silent.
	windowDestination      = 4
	windowDestinationStart = 2
)

// What is not answered within the RTO is presumed lost: the request leaves the
// windows, so that any number of silent nodes costs one retry ladder in all, and
// is sent again if it changes nothing. But neither before these: an RTT is hardly
// ever longer than the first.
const (
	minLeaveAfter = 3 * time.Millisecond
	minRTO        = 100 * time.Millisecond
)

// flow is what may be outstanding: the windows and the destinations. A call goes from its destination's queue (phaseHeld) to its class's
// (phaseReady), and is sent when all windows have room. Engine.mu guards it.
type flow struct {
	window   int // requests that may be outstanding, of all classes
	inFlight int // that are
	admitted uint64
	classes  [kinds]classFlow
	dests    []*destination
	spare    []*destination // forgotten, to be used again
	maxDests int
	bursts   uint64 // of answers that came: between two of them the reader waited
}

// classFlow is one kind of management classes: their share in the window.
type classFlow struct {
	window   congestion.Window // requests in flight
	losses   congestion.Losses // of requests; how large window may become
	inFlight int
	ready    callList // calls to be sent
	again    callList // calls to be sent again

	rtt congestion.RTT
	// baseRTT is by distance: hops of a directed route, each of which takes a
	// switch's agent its time, and, last, LIDs.
	baseRTT   [mad.MaxHops + 2]time.Duration
	histogram histogram

	perDestination congestion.Window // what each destination begins with
	dests          map[destKey]*destination
	last           *destination // the one found last; nil: none
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

// fixWindows makes all windows as large as they may become, for good.
func (f *flow) fixWindows() {
	for i := range f.classes {
		f.classes[i].window.Fix()
		f.classes[i].perDestination.Fix()
	}
}

// sample takes in the RTT of a request of c, sent at the given time.
func (f *flow) sample(c *Call, sent, now time.Duration) {
	d := c.s.dest
	w := d.class
	rtt := now - sent
	w.histogram.add(rtt)
	if isTable(&c.MAD) {
		return // it is the agent's work that takes its time
	}
	w.rtt.Add(rtt)
	d.rtt.Add(rtt)
	resent := sent > c.s.firstSent && c.s.busy == 0
	delay := congestion.DelayOf(rtt, w.window.Probes(sent), &w.baseRTT[distance(c)])
	w.window.Answered(delay, f.bursts, sent, now)
	d.window.Answered(congestion.DelayOf(rtt, d.window.Probes(sent), &d.baseRTT), f.bursts, sent, now)
	w.losses.Add(c.s.period, delay, resent)
	switch w.losses.Judge(now) {
	case congestion.QueueLoss:
		w.window.Limit()
	case congestion.RandomLoss:
		w.window.Unlimit()
	case congestion.NoLoss:
		w.window.Raise()
	}
}

// distance is an index of classFlow.baseRTT.
func distance(c *Call) int {
	if mad.Class(c.MAD[mad.ClassOffset]) == mad.ClassSubnDirected {
		return int(c.MAD[mad.HopCountOffset])
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

// next is the call to be sent, if the windows have room: of those to be sent
// again that which waits longest, or that admitted first. opens: there is a
// transaction ID for one that was not sent yet.
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

// dequeue takes c out of the queue that its phase says.
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

// enter counts c in the windows: it is about to be sent.
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

// presumeLost makes room in the windows, for no answer has come to c in time.
func (f *flow) presumeLost(c *Call, now time.Duration) {
	if c.s.inWindow {
		f.leave(c)
		c.s.dest.class.window.Unanswered(f.bursts, c.s.silentSince, now)
	}
}
