package engine

import (
	"encoding/binary"
	"time"

	"fabsh/mad"
)

// job is what e.out holds: the call's attempt with that transaction ID, or
// something that no call waits for.
type job struct {
	isCall bool
	tid    uint32
}

// sendLoop is the writer goroutine.
func (e *Engine) sendLoop() {
	for {
		j, ok := e.nextJob()
		if !ok || !e.sent(j, e.t.Send(&e.out)) {
			return
		}
	}
}

// sent takes in what the transport said of e.out; false: it is broken.
func (e *Engine) sent(j job, err error) bool {
	switch {
	case err != nil && !isSendError(err):
		e.fail(err)
		return false
	case j.isCall && err != nil:
		e.handedOver(j.tid, err)
	case j.isCall && e.out.Timeout == 0 && !isSegment(e.out.MAD):
		e.handedOver(j.tid, nil)
	}
	return true
}

// nextJob waits for something to send; false: the engine has ended.
func (e *Engine) nextJob() (job, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if j, ok := e.pick(); ok || e.err != nil {
			return j, ok
		}
		e.idle = true
		e.mu.Unlock()
		<-e.wake
		e.mu.Lock()
	}
}

// pick puts what is to be sent next in e.out.
func (e *Engine) pick() (j job, ok bool) {
	e.sending, e.stalled = false, false
	d := &e.out
	switch {
	case e.err != nil:
		return j, false
	case e.held:
		e.held = false
		e.sending, e.sendBegan = true, e.now()
		return e.unsent, true
	case len(e.control) > 0:
		e.takeControl(d)
		return j, true
	}
	// In turns: neither a storm of Reports nor long requests nor many may
	// starve the others.
	for range 3 {
		switch e.turn = (e.turn + 1) % 3; e.turn {
		case 0:
			if len(e.replies) > 0 {
				e.takeReply(d)
				return j, true
			}
		case 1:
			if c := e.segments.pop(); c != nil {
				e.takeSegment(c, d)
				return job{true, c.s.tid}, true
			}
		case 2:
			if c := e.next(); c != nil {
				e.begin(c, d)
				return job{true, c.s.tid}, true
			}
		}
	}
	return j, false
}

// begin puts the next attempt of c, which the window lets through, in d.
func (e *Engine) begin(c *Call, d *Datagram) {
	w := c.s.dest.kind
	if c.s.phase == phaseResend {
		w.again.remove(c)
		e.stats.Retried++
	} else {
		w.ready.remove(c)
		e.openSlot(c)
	}
	e.enterWindow(c)
	e.take(c, d)
}

// recordedTimeout is for ever: a recording tells of each loss.
const recordedTimeout = 24 * time.Hour

// take puts the next attempt of c in d. It is a copy, for c may end, and its
// buffer go back to its owner, while the transport still reads d.
func (e *Engine) take(c *Call, d *Datagram) {
	now := e.now()
	c.s.phase = phaseSent
	c.s.tid = e.slots[c.s.tid%numSlots].tid(uint16(c.s.tid%numSlots), c.Attempts)
	usual := c.s.dest.usual()
	lostAfter := min(max(usual, minLostAfter), c.s.timeout)
	if c.Attempts == 0 {
		c.s.firstSent, c.s.due = now, now
		c.s.giveUp = now + c.s.patience()
		c.s.busyEnd = c.s.giveUp
		c.s.wait = c.s.timeout
		if c.s.reads && c.s.retries > 0 && !isTable(&c.MAD) {
			c.s.wait = lostAfter
		}
		if c.Payload != nil && e.traits.RMPP {
			c.s.wait = c.s.patience() // the kernel's attempts do
		}
		if e.traits.Recorded {
			c.s.wait, c.s.giveUp = recordedTimeout, now+recordedTimeout
		}
	}
	c.Attempts++
	c.s.silentSince = now
	c.s.excuse(now - c.s.due)
	c.s.due = now + c.s.wait
	if c.s.due+lostAfter > c.s.giveUp {
		c.s.due = c.s.giveUp // another attempt would come too late
	}
	leaveAfter := max(usual, minLeaveAfter)
	if usual == 0 && c.Attempts == 1 {
		leaveAfter = minLostAfter
	}
	e.setTimer(c, min(now+leaveAfter, c.s.due))

	d.Timeout = c.s.timeout
	switch {
	case !c.isAnswered():
		d.Timeout = 0
	case e.traits.RMPP && isTable(&c.MAD):
		// A kernel drops a table that is not whole by then, however many
		// segments it has; here it is welcome until the end.
		d.Timeout = c.s.giveUp - now
	}
	e.putHeader(c, d)
	if c.Payload != nil {
		e.takePayload(c, d, lostAfter)
	}
	e.beginSend(now)
}

// putHeader puts c's MAD in d, with what the engine adds to it.
func (e *Engine) putHeader(c *Call, d *Datagram) {
	d.Address = c.s.to
	d.MAD = append(d.MAD[:0], c.MAD[:]...)
	e.opt.Keys.put(d.MAD, c.Guard)
	binary.BigEndian.PutUint64(d.MAD[mad.TIDOffset:], uint64(c.s.tid))
}

// takeControl puts the next RMPP control segment in d.
func (e *Engine) takeControl(d *Datagram) {
	s := &e.control[0]
	d.Address = s.to
	d.Timeout = 0
	d.MAD = append(d.MAD[:0], s.head[:]...)
	d.MAD = append(d.MAD, make([]byte, mad.Size-len(s.head))...)
	e.control = append(e.control[:0], e.control[1:]...)
	e.beginSend(e.now())
}

// beginSend notes that the writer is about to enter the transport.
func (e *Engine) beginSend(now time.Duration) {
	e.stats.Sent++
	e.sending, e.sendBegan = true, now
	e.wakeTimer(now + e.stallAfter())
}

// handedOver ends the call which waits for nothing more: the transport refused
// its datagram, or no answer is expected.
func (e *Engine) handedOver(tid uint32, err error) {
	var ended callList
	e.mu.Lock()
	if c := e.lookup(tid); c != nil {
		if err != nil {
			e.stats.Refused++
		}
		e.end(c, e.now(), err, &ended)
	}
	e.unlock()
	ended.complete()
}
