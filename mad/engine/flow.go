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
// is sent again if it changes nothing. But it does not leave the windows before
// minLeaveAfter, which an RTT hardly ever exceeds, and is not sent again before shortestRTO.
const minLeaveAfter = 3 * time.Millisecond

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
	last           *destination // the destination found last, or nil
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

// destination is a node for one kind of classes. It admits a few calls at a time;
// the others are held here, so that they do not delay other destinations.
type destination struct {
	key     destKey
	class   *classFlow
	window  congestionWindow // of admitted calls
	open    int              // admitted calls: neither answered nor sent a second time
	held    callList
	rtt     rttEstimate
	baseRTT time.Duration
	calls   int // that use it, from Start to the end
	place   int // in flow.dests
}

// rto returns the class's RTO, or d's own if that is longer; 0 if it is unknown.
func (d *destination) rto() time.Duration { return max(d.class.rtt.RTO(), d.rtt.RTO()) }

// destKey identifies a destination: LID or directed route, or GID.
type destKey struct {
	lid   mad.LID
	hops  uint8
	route [mad.MaxHops]uint8
	gid   mad.GID
}

func keyOf(c *Call) (k destKey) {
	k.lid = c.s.to.LID
	if mad.Class(c.MAD[mad.ClassOffset]) == mad.ClassSubnDirected {
		k.hops = min(c.MAD[mad.HopCountOffset], mad.MaxHops)
		copy(k.route[:k.hops], c.MAD[mad.SMPInitialPathOffset+1:])
	}
	if c.s.to.HasGRH {
		k.gid = c.s.to.GID
	}
	return k
}

// maxDestinations is the number of remembered destinations, unless more are in use:
// more than a subnet has LIDs.
const maxDestinations = 1 << 16

// destination returns c's destination, new or existing, until release.
func (f *flow) destination(c *Call) *destination {
	w := &f.classes[kindOf(mad.Class(c.MAD[mad.ClassOffset]))]
	k := keyOf(c)
	if w.last == nil || w.last.key != k { // most calls come in runs
		w.last = w.dests[k]
	}
	if w.last == nil {
		if len(f.dests) >= f.maxDests {
			f.forgetDestinations()
		}
		w.last = f.newDestination(w, k)
	}
	w.last.calls++
	return w.last
}

func (f *flow) newDestination(w *classFlow, k destKey) *destination {
	var d *destination
	if last := len(f.spare) - 1; last >= 0 {
		d, f.spare = f.spare[last], f.spare[:last]
	} else {
		d = new(destination)
	}
	*d = destination{key: k, class: w, window: w.perDestination, place: len(f.dests)}
	w.dests[k] = d
	f.dests = append(f.dests, d)
	return d
}

// release ends the use of d by a call. A destination that no call uses and that has
// learned nothing is not kept: a sweep sends once along each route.
func (f *flow) release(d *destination) {
	if d.calls--; d.calls > 0 || d.hasLearned() {
		return
	}
	f.forget(d)
	last := f.dests[len(f.dests)-1]
	last.place = d.place
	f.dests[d.place] = last
	f.dests[len(f.dests)-1] = nil
	f.dests = f.dests[:len(f.dests)-1]
	f.spare = append(f.spare, d)
}

// hasLearned reports whether d's window has another size than the window of a new
// destination, or its RTTs are longer than the RTTs of its class.
func (d *destination) hasLearned() bool {
	start := &d.class.perDestination
	return d.window.Differs(start) || d.rtt.RTO() > max(d.class.rtt.RTO(), minLeaveAfter)
}

// forget removes d from the known destinations.
func (f *flow) forget(d *destination) {
	delete(d.class.dests, d.key)
	if d.class.last == d {
		d.class.last = nil
	}
}

// forgetDestinations drops the destinations without calls.
func (f *flow) forgetDestinations() {
	used := f.dests[:0]
	for _, d := range f.dests {
		if d.calls > 0 {
			d.place = len(used)
			used = append(used, d)
		} else {
			f.forget(d)
		}
	}
	clear(f.dests[len(used):])
	f.dests = used
	f.maxDests = max(f.maxDests, 2*len(used)) // so that this is rare
}

// policy is the differences between a fabric and a recording: how many requests may
// be outstanding, when one is sent again, and when it is abandoned.
type policy interface {
	// window returns how many requests of all classes may be outstanding, if the
	// options and the transport allow it.
	window(allowed int) int
	// congestionWindows returns the initial windows of a kind of classes, and of
	// each of its destinations, if all classes together have window.
	congestionWindows(kind, window int) (class, destination congestionWindow)
	// setDeadlines sets, at the first attempt of c, the deadlines of the attempt
	// and of the call.
	setDeadlines(c *Call, now, rto time.Duration)
	// retriesBusy reports whether c, which was answered BUSY, is sent again.
	retriesBusy(c *Call, now time.Duration) bool
	// undelivered returns the consequence for c, whose latest attempt the
	// transport returned as d.
	undelivered(c *Call, d *Datagram, now time.Duration) loss
	// wholeRequests reports whether the transport accepts a request of many
	// segments as one datagram.
	wholeRequests() bool
}

// loss is the consequence of an attempt that was not delivered.
type loss uint8

const (
	lossIgnored loss = iota // a transfer has its own retries
	lossAwaited             // nothing is resent: the attempt lasts its full time
	lossBackOff             // it is resent after a pause
	lossResent              // it is resent at once
	lossFinal               // the call ends as timed out
)

// minTransferTime is the least time that a transfer that makes progress may last;
// Linux also has 40 s (mad_rmpp.c, start_rmpp).
const minTransferTime = 40 * time.Second

func policyFor(t Traits) policy {
	if t.Recorded {
		return recordedPolicy{}
	}
	return &livePolicy{transportRMPP: t.RMPP}
}

// livePolicy is the policy of a fabric: windows by delay, attempts by RTO and timeout.
type livePolicy struct {
	transportRMPP bool // Traits.RMPP
}

func (l *livePolicy) window(allowed int) int { return allowed }

func (l *livePolicy) congestionWindows(kind, window int) (class, destination congestionWindow) {
	if kind == kindSA {
		return newCongestionWindow(windowSA, windowSA, min(windowSA, window)), newCongestionWindow(windowSA, windowSA, windowSA)
	}
	return newCongestionWindow(windowStart, windowStart, window), newCongestionWindow(windowDestinationStart, 1, windowDestination)
}

func (l *livePolicy) setDeadlines(c *Call, now, rto time.Duration) {
	s := &c.s
	s.giveUp = now + s.totalTimeout()
	s.busyEnd = s.giveUp
	s.lastEnd = now + max(minTransferTime, 10*s.totalTimeout())
	switch {
	case c.Payload != nil && l.transportRMPP:
		s.wait = s.totalTimeout() // the kernel repeats segments
	case s.reads && s.retries > 0 && !isTable(&c.MAD):
		s.wait = rto
	default:
		s.wait = s.timeout
	}
}

func (l *livePolicy) retriesBusy(c *Call, now time.Duration) bool { return now < c.s.busyEnd }

func (l *livePolicy) undelivered(c *Call, _ *Datagram, _ time.Duration) loss {
	switch s := &c.s; {
	case s.rx != nil || s.tx != nil && s.tx.Begun():
		return lossIgnored // not the first segment
	case !s.reads:
		return lossAwaited // it may have been executed
	case s.retries == 0 || s.undelivered >= 2*(s.retries+1)-1: // about as many attempts as silence gets
		return lossFinal
	}
	return lossBackOff
}

func (l *livePolicy) wholeRequests() bool { return l.transportRMPP }

// recordedPolicy is the policy of a recording, which has the result of each attempt at once:
// Undelivered means to try again, or to stop. Too many requests harm no one, and there
// is nothing to wait for.
type recordedPolicy struct{}

// recordedTimeout is unlimited: a recording reports each loss.
const recordedTimeout = 24 * time.Hour

func (recordedPolicy) window(int) int { return numSlots }

func (recordedPolicy) congestionWindows(int, int) (class, destination congestionWindow) {
	unlimited := newCongestionWindow(numSlots, numSlots, numSlots)
	return unlimited, unlimited
}

func (recordedPolicy) setDeadlines(c *Call, now, _ time.Duration) {
	c.s.wait, c.s.giveUp, c.s.lastEnd = recordedTimeout, now+recordedTimeout, never
}

// retriesBusy returns false: if the requester tried again, the recording has the later
// answer.
func (recordedPolicy) retriesBusy(*Call, time.Duration) bool { return false }

// undelivered sends c again as often as was recorded; then d.Took is the time until
// the call was abandoned.
func (recordedPolicy) undelivered(c *Call, d *Datagram, now time.Duration) loss {
	if d.Took == 0 {
		return lossResent
	}
	c.s.started, c.s.firstSent, c.s.giveUp = now-d.Took, now-d.Took, now
	return lossFinal
}

// wholeRequests returns true: a recorded request is compared as a whole.
func (recordedPolicy) wholeRequests() bool { return true }
