package engine

import (
	"time"

	"fabsh/mad"
)

// callState is the engine's state in a call; the engine's lock guards it. All times
// are since the start of the engine.
type callState struct {
	phase       phase
	method      mad.Method // of the request: that of an answer to Set is GetResp
	to          Address    // Call.To, or the target of its redirections
	keyless     bool       // it gets no key
	reads       bool       // EffectRead
	inWindow    bool       // counts in the windows: sent, not answered, not presumed lost
	admitted    bool       // counts at the destination: neither answered nor sent a second time
	next, prev  *Call
	dest        *destination
	order       uint64 // of admission
	tid         uint32 // of the latest attempt
	undelivered int    // attempts that the transport returned
	busy        int    // BUSY answers
	timeout     time.Duration
	retries     int
	started     time.Duration
	firstSent   time.Duration
	period      uint8         // of losses, when it was first sent
	silentSince time.Duration // when the latest attempt was sent, or a part of its answer came
	wait        time.Duration // for an answer, until the next attempt
	due         time.Duration // when the next attempt is due
	giveUp      time.Duration // deadline: without an answer the call ends
	busyEnd     time.Duration // deadline: after BUSY it is not sent again
	lastEnd     time.Duration // deadline: even a transfer that makes progress ends; 0: not sent yet
	wake        time.Duration // when the timer checks the call
	timer       int           // place in the timer heap, from 1; 0: none
	tx          *rmppTransfer // of a request that is a Payload
	rx          *table        // an RMPP answer
}

// totalTimeout returns how long a call waits for an answer, all attempts together.
func (s *callState) totalTimeout() time.Duration { return s.timeout * time.Duration(s.retries+1) }

// extendDeadlines postpones the deadlines by d, which was our own delay: there was
// no room to send, or the machine was busy. So there are as many attempts as on an
// idle machine, and each has its full time.
func (s *callState) extendDeadlines(d time.Duration) {
	s.giveUp += d
	s.busyEnd += d
}

// tooLong reports whether a transfer is abandoned although segments and ACKs came.
func (s *callState) tooLong() bool { return s.lastEnd > 0 && s.giveUp >= s.lastEnd }

// phase is where a call is between Start and Complete.
type phase uint8

const (
	phaseIdle     phase = iota // not in the engine
	phaseHeld                  // waits until its destination has room
	phaseReady                 // waits until the window has room
	phaseSent                  // waits for the answer, or for an ACK
	phaseSegments              // waits for the writer to send more of it
	phaseResend                // waits for the writer to send it again
	phasePaused                // waits before it is sent again
)

// callList is a queue of calls, linked through their state.
type callList struct{ head, tail *Call }

func (l *callList) push(c *Call) {
	c.s.prev, c.s.next = l.tail, nil
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.s.next = c
	}
	l.tail = c
}

func (l *callList) remove(c *Call) {
	if c.s.prev == nil {
		l.head = c.s.next
	} else {
		c.s.prev.s.next = c.s.next
	}
	if c.s.next == nil {
		l.tail = c.s.prev
	} else {
		c.s.next.s.prev = c.s.prev
	}
	c.s.prev, c.s.next = nil, nil
}

func (l *callList) pop() *Call {
	c := l.head
	if c != nil {
		l.remove(c)
	}
	return c
}
