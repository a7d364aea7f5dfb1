package engine

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"time"

	"fabsh/mad"
)

// Call is one request and its answer. The caller owns it, buffer included,
// and lends it to the engine from Start until Complete; it may then be used
// again. A Call is usually embedded in what the caller keeps about it:
//
//	type portCall struct {
//		engine.Call
//		port *port
//	}
//	func (c *portCall) Complete(*engine.Call) { ... c.Err, c.Data() ... }
type Call struct {
	To Address
	// Guard is whose M_Key an SMP takes along, of those that the engine has.
	Guard Guard
	// MAD is the request, written by PutSMP, PutPerf, PutSA or by hand; the
	// engine chooses the transaction ID. After an answer it holds the
	// response (of a table, the first segment).
	MAD [mad.Size]byte
	// Payload is the data of a request to subnet administration that may be
	// longer than one MAD, as GetMulti's: it goes by RMPP, with the header in
	// MAD, whose own data does not count. Nil: MAD is all.
	Payload []byte
	// Table is the data of an answer to GetTable and its like, all segments
	// joined, without headers: never nil after such an answer, nil after
	// others. A short one lies in MAD.
	Table []byte
	// Timeout and Retries of this call; 0 means the engine's, negative
	// Retries none.
	Timeout time.Duration
	Retries int
	// Notify is told when the call has ended, on one of the engine's
	// goroutines or on the one that calls Cancel or Close. It must not
	// block; it may Start calls. Nil: nobody is told.
	Notify Completer
	// Err is nil when MAD holds a response with status 0; otherwise an *Error.
	Err error
	// Attempts is how many times the request was sent.
	Attempts int
	// Elapsed is from Start to the end.
	Elapsed time.Duration

	s callState
}

// Completer is told that a call has ended.
type Completer interface{ Complete(*Call) }

// CompleterFunc makes a Completer of a function.
type CompleterFunc func(*Call)

// Complete calls f.
func (f CompleterFunc) Complete(c *Call) { f(c) }

// Header is the base header of the request or response in c.
func (c *Call) Header() mad.Header { return mad.ParseHeader(c.MAD[:]) }

func (c *Call) isAnswered() bool { h := c.Header(); return h.IsAnswered() }

// Data is the attribute in c's MAD.
func (c *Call) Data() []byte { return c.MAD[mad.Class(c.MAD[mad.ClassOffset]).DataOffset():] }

// Records iterates over the records of an SA answer, each at least size bytes
// long: one after Get, any number after GetTable. The error is c.Err, or says
// why the answer is not a whole number of records.
func (c *Call) Records(size int) (iter.Seq[[]byte], error) {
	switch {
	case c.Err != nil:
		return nil, c.Err
	case c.Table == nil:
		return slices.Values([][]byte{c.Data()[:min(size, len(c.Data()))]}), nil
	case len(c.Table) == 0:
		return func(func([]byte) bool) {}, nil
	}
	// AttributeOffset is the distance of records in units of 8 bytes; the
	// last record may come without its padding (IBA 15.2.1.1).
	step := 8 * int(binary.BigEndian.Uint16(c.MAD[mad.SAAttrOffsetOffset:]))
	if step < max(size, 1) {
		return nil, newError(c, fmt.Errorf("malformed table: records %d bytes apart, but at least %d bytes long", step, size))
	}
	if rest := len(c.Table) % step; rest != 0 && rest < size {
		return nil, newError(c, fmt.Errorf("malformed table: %d bytes are no whole number of records %d bytes apart", len(c.Table), step))
	}
	return slices.Chunk(c.Table, step), nil
}

// callState is what the engine keeps in a lent call; its lock guards it.
type callState struct {
	phase       phase
	method      mad.Method // of the request: that of an answer to Set is GetResp
	to          Address    // Call.To, or where redirections lead from there
	reads       bool       // EffectRead
	fresh       bool       // counts in the window: sent, not answered, not presumed lost
	open        bool       // counts at the destination: admitted, not answered, not sent a second time
	next, prev  *Call
	dest        *destination
	seq         uint64 // order of admission
	tid         uint32 // of the latest attempt
	undelivered int    // attempts the transport gave back
	busy        int    // BUSY answers
	timeout     time.Duration
	retries     int
	started     time.Duration // all times are since the engine's epoch
	firstSent   time.Duration
	silentSince time.Duration // the latest attempt was sent, or a part of its answer came
	wait        time.Duration // for an answer, until the next attempt
	due         time.Duration // when the next attempt is to be sent
	giveUp      time.Duration // when the call has waited for an answer long enough
	busyEnd     time.Duration // when it is no longer sent again for BUSY
	wake        time.Duration // when the timer is to look at the call
	timer       int           // place in the timer heap, from 1; 0: none
	tx          *transfer     // of a request that is a Payload
	rx          *assembly     // of an RMPP answer
}

// patience is how long a call goes without an answer.
func (s *callState) patience() time.Duration { return s.timeout * time.Duration(s.retries+1) }

// excuse puts the end off by d, which we took: there was no room to send, or
// the machine had other things to do. So there are as many attempts as on an
// idle machine, and each has its time.
func (s *callState) excuse(d time.Duration) {
	s.giveUp += d
	s.busyEnd += d
}

type phase uint8

const (
	phaseIdle     phase = iota // not the engine's
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
