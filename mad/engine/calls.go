package engine

import (
	"errors"
	"time"

	"fabsh/mad"
)

// calls are the open calls, from Start to the end: what each waits for, and its
// transitions between phases. Engine.mu guards it. Calls that end are in ended until
// the lock is released, and are completed then.
type calls struct {
	slots     slots  // transaction IDs
	flow      flow   // what may be outstanding
	timers    timers // what falls due
	outbox    outbox // datagrams to send beside attempts
	counts    Counts
	ended     callList
	keys      *Keys
	redirects *redirects
	gaveUp    func(*Datagram) // of the transport
}

// next returns the call to send, if the windows have room, or nil.
func (cs *calls) next() *Call { return cs.flow.next(cs.slots.hasRoom()) }

// open counts an attempt of c, which the windows allow, and gives it its transaction
// ID.
func (cs *calls) open(c *Call) {
	if c.s.phase == phaseResend {
		cs.counts.Retried++
	} else {
		cs.slots.open(c)
	}
	cs.counts.Sent++
	cs.flow.dequeue(c)
	cs.flow.enter(c)
	c.s.phase = phaseSent
	cs.slots.setAttempt(c, c.Attempts)
	c.Attempts++
}

// resend queues c for another attempt. Its deadlines continue, so that a transport
// that accepts nothing cannot delay the end.
func (cs *calls) resend(c *Call, now time.Duration) {
	c.s.rx = nil
	cs.outbox.dropSegments(c)
	c.s.due = now
	c.s.phase = phaseResend
	c.s.dest.class.again.push(c)
	cs.timers.set(c, c.s.giveUp)
}

// pause sends c again after a pause.
func (cs *calls) pause(c *Call, until time.Duration) {
	cs.flow.leave(c)
	cs.outbox.dropSegments(c)
	cs.flow.dequeue(c)
	c.s.phase = phasePaused
	cs.timers.set(c, until)
}

// sendMore queues c to send the segments of its request that its receiver accepts.
func (cs *calls) sendMore(c *Call) {
	if c.s.phase == phaseSent {
		c.s.phase = phaseSegments
		cs.outbox.segments.push(c)
	}
	cs.timers.set(c, c.s.giveUp)
}

// await sets the time that c waits for an ACK or a segment.
func (cs *calls) await(c *Call, now, wait time.Duration) {
	c.s.due = min(now+wait, c.s.giveUp)
	cs.timers.set(c, c.s.due)
}

// end removes c from the state of the engine.
func (cs *calls) end(c *Call, now time.Duration, err error) {
	wasSent := c.s.phase != phaseHeld && c.s.phase != phaseReady
	cs.flow.dequeue(c)
	if wasSent {
		cs.abortTransfer(c, err)
		cs.outbox.dropSegments(c)
		cs.flow.leave(c)
		cs.timers.remove(c)
		cs.slots.close(c, err == nil)
	}
	cs.flow.discharge(c)
	cs.flow.release(c.s.dest)
	if err != nil && errors.Is(err, ErrTimeout) {
		cs.counts.TimedOut++
		cs.redirects.forget(c)
	}
	c.Elapsed = now - c.s.started
	c.Err = newError(c, err)
	c.s = callState{}
	cs.ended.push(c)
}

// abortTransfer sends the other end an ABORT of the transfer of c's request or
// answer, because c ends with err.
func (cs *calls) abortTransfer(c *Call, err error) {
	if err == nil || c.s.rx == nil && c.s.tx == nil {
		return
	}
	var theirs *peerError
	if errors.As(err, &theirs) {
		return
	}
	var ours *abortError
	status, timeout := mad.RMPPStatusUnspecified, errors.Is(err, ErrTimeout)
	switch {
	case errors.As(err, &ours):
		status = ours.Status
	case timeout && c.s.rx == nil && !c.s.tooLong():
		status = mad.RMPPStatusTooManyRetries
	case timeout:
		status = mad.RMPPStatusTotalTimeTooLong
	}
	switch {
	case c.s.rx != nil:
		cs.outbox.answer(c.s.rx.Head(), c.s.rx.from, rmppAbort(status))
	case !c.s.tx.Done():
		var d Datagram
		c.putHeader(&d, cs.keys)
		d.MAD[mad.RMPPFlagsOffset] = mad.NoRespTime << 3
		cs.outbox.add(d.MAD, c.s.to, rmppAbort(status), false)
	}
}

// endAll ends all calls.
func (cs *calls) endAll(now time.Duration, err error) {
	for i := range cs.slots.table {
		if c := cs.slots.table[i].call; c != nil {
			cs.end(c, now, err)
		}
	}
	cs.endUnsent(now, err)
}

// endUnsent ends all calls that were never sent.
func (cs *calls) endUnsent(now time.Duration, err error) {
	for _, d := range cs.flow.dests {
		for d.held.head != nil {
			cs.end(d.held.head, now, err)
		}
	}
	for i := range cs.flow.classes {
		for cs.flow.classes[i].ready.head != nil {
			cs.end(cs.flow.classes[i].ready.head, now, err)
		}
	}
}

// takeEnded returns the calls that have ended, to be completed without the lock.
func (cs *calls) takeEnded() callList {
	ended := cs.ended
	cs.ended = callList{}
	return ended
}

// complete notifies the owners of all calls in l, and empties it.
func (l *callList) complete() {
	for c := l.pop(); c != nil; c = l.pop() {
		c.complete()
	}
}

func (c *Call) complete() {
	if answered := c.answered; answered != nil {
		c.answered = nil
		if err := answered(c); err != nil {
			c.Err = c.failure(err)
		}
	}
	if c.Notify != nil {
		c.Notify.Complete(c)
	}
}
