package mad

import (
	"encoding/binary"
	"time"
)

// sendLoop is the writer goroutine, the only one that sends.
func (e *Engine) sendLoop() {
	d := Datagram{MAD: make([]byte, Size)}
	for {
		isCall, tid := e.nextDatagram(&d)
		if tid < 0 {
			return
		}
		err := e.t.Send(&d)
		switch {
		case err != nil && !isSendError(err):
			e.fail(err)
			return
		case isCall && err != nil:
			e.handedOver(uint32(tid), err)
		case isCall && d.Timeout == 0 && !isSegment(d.MAD):
			e.handedOver(uint32(tid), nil)
		}
	}
}

// nextDatagram waits for something to send and puts it in d.
func (e *Engine) nextDatagram(d *Datagram) (isCall bool, tid int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sending, e.stalled = false, false
	for {
		if e.err != nil {
			return false, -1
		}
		if len(e.control) > 0 {
			e.takeControl(d)
			return false, 0
		}
		// In turns: neither a storm of Reports nor long requests nor many may
		// starve the others.
		for range 3 {
			switch e.turn = (e.turn + 1) % 3; e.turn {
			case 0:
				if len(e.replies) > 0 {
					e.takeReply(d)
					return false, 0
				}
			case 1:
				if c := e.segments.pop(); c != nil {
					e.takeSegment(c, d)
					return true, int64(c.s.tid)
				}
			case 2:
				if c := e.next(); c != nil {
					e.begin(c, d)
					return true, int64(c.s.tid)
				}
			}
		}
		e.idle = true
		e.mu.Unlock()
		<-e.wake
		e.mu.Lock()
	}
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
	case !answered(Method(c.MAD[offMethod])):
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
	binary.BigEndian.PutUint64(d.MAD[offTID:], uint64(c.s.tid))
}

// takeControl puts the next RMPP control segment in d.
func (e *Engine) takeControl(d *Datagram) {
	s := &e.control[0]
	d.Address = s.to
	d.Timeout = 0
	d.MAD = append(d.MAD[:0], s.head[:]...)
	d.MAD = append(d.MAD, make([]byte, Size-len(s.head))...)
	e.control = append(e.control[:0], e.control[1:]...)
	e.beginSend(e.now())
}

// beginSend notes that the writer is about to enter the transport.
func (e *Engine) beginSend(now time.Duration) {
	e.stats.Sent++
	e.sending, e.sendBegan = true, now
	e.wakeTimer(now + e.longest())
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

// answered: a request with method m is answered. The others are responses
// themselves, or say something and want nothing (IBA 13.4.5).
func answered(m Method) bool {
	return !m.IsResponse() && m != MethodSend && m != MethodTrap && m != MethodTrapRepress
}
