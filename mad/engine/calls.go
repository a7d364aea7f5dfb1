package engine

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// callState is the engine's state in a call; the engine's lock guards it. All times
// are since the start of the engine.
type callState struct {
	phase       phase
	method      mad.Method // of the request: an answer to Set has method GetResp
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
	fragments   *fragments    // an answer of class version 1 of subnet administration
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

// A transaction ID's low 32 bits identify the open call that an answer belongs to.
// Only they come back unchanged: ib_umad replaces the upper 32 bits, ibsim the upper
// 16. From the top: 16 bits that change with each use of the slot, 4 bits of the
// attempt, 12 bits of the slot. Each attempt has its own ID, because ib_umad refuses
// an ID that is still in use, and because an answer must show its attempt: otherwise
// its RTT could not be measured (RFC 6298, section 3).
const (
	slotBits    = 12
	attemptBits = 4
	numSlots    = 1 << slotBits
	attemptMask = (1<<attemptBits - 1) << slotBits
)

// slot is a place for an open call.
type slot struct {
	call *Call
	use  uint16 // counts the calls that had the slot, from a random number on
	had  uint16 // how many calls had it, up to half of the range of use
	// answered is set if the last call that left got an answer.
	answered bool
}

func (s *slot) tid(i uint16, attempt int) uint32 {
	return uint32(s.use)<<(slotBits+attemptBits) | uint32(attempt)<<slotBits&attemptMask | uint32(i)
}

// CallOf returns the part that the transaction IDs of all attempts of a call of an
// engine, and of their answers, have in common.
func CallOf(tid uint64) uint32 { return uint32(tid) &^ attemptMask }

// slotQueue holds the free slots; the one free longest is used next, so that
// an ID comes again after 2^28 calls only.
type slotQueue struct {
	ring       [numSlots]uint16
	head, tail uint32
}

func (q *slotQueue) len() int        { return int(q.tail - q.head) }
func (q *slotQueue) push(i uint16)   { q.ring[q.tail%numSlots] = i; q.tail++ }
func (q *slotQueue) pop() (i uint16) { i = q.ring[q.head%numSlots]; q.head++; return i }

// slots are the places of open calls; at most capacity are used, the limit of the
// transport.
type slots struct {
	table    [numSlots]slot
	free     slotQueue
	capacity int
}

// init takes the first IDs from random: a stranger who knows how many calls there
// were must not know which ID is next.
func (s *slots) init(capacity int, random *rand.Rand) {
	s.capacity = capacity
	first := random.IntN(numSlots)
	for i := range numSlots {
		s.table[i].use = uint16(random.Uint32())
		s.free.push(uint16((first + i) % numSlots))
	}
}

// newSecretRand returns a random generator with a secret seed.
func newSecretRand() *rand.Rand {
	var seed [32]byte
	cryptorand.Read(seed[:]) // it never fails
	return rand.New(rand.NewChaCha8(seed))
}

// hasRoom reports whether another call can be opened.
func (s *slots) hasRoom() bool { return s.free.len() > numSlots-s.capacity }

// open assigns a slot to c.
func (s *slots) open(c *Call) {
	i := s.free.pop()
	sl := &s.table[i]
	sl.call = c
	sl.use++
	sl.had = min(sl.had+1, 1<<15)
	c.s.tid = sl.tid(i, 0)
}

// setAttempt gives c, which has a slot, the transaction ID of an attempt.
func (s *slots) setAttempt(c *Call, attempt int) {
	i := uint16(c.s.tid % numSlots)
	c.s.tid = s.table[i].tid(i, attempt)
}

// close takes c's slot from it.
func (s *slots) close(c *Call, answered bool) {
	i := uint16(c.s.tid % numSlots)
	s.table[i].call = nil
	s.table[i].answered = answered
	s.free.push(i)
}

// lookup finds the open call that tid belongs to, whatever the attempt.
func (s *slots) lookup(tid uint32) *Call {
	c := s.table[tid%numSlots].call
	if c == nil || (c.s.tid^tid)&^attemptMask != 0 {
		return nil
	}
	return c
}

// past reports whether a transaction ID of no open call belonged to a call, and whether
// that was the latest of its slot and got an answer.
func (s *slots) past(tid uint32) (known, answered bool) {
	sl := &s.table[tid%numSlots]
	behind := sl.use - uint16(tid>>(slotBits+attemptBits))
	return behind < sl.had, behind < sl.had && behind == 0 && sl.answered
}

// never is later than all times.
const never = time.Duration(math.MaxInt64)

// timers are the calls by the time when the timer goroutine checks them. Engine.mu
// guards heap and armed.
type timers struct {
	epoch time.Time // all times are since then
	heap  timerHeap
	armed time.Duration // when the timer goroutine will wake
	rearm chan struct{} // to the timer goroutine: armed was brought forward
}

func (t *timers) init() {
	t.epoch = time.Now()
	t.armed = never
	t.rearm = make(chan struct{}, 1)
}

// set makes the timer goroutine check c at the given time.
func (t *timers) set(c *Call, at time.Duration) {
	t.heap.set(c, at)
	t.wakeBy(at)
}

// now returns the time since the start of the engine: monotonic, and cheap to compare.
func (t *timers) now() time.Duration { return time.Since(t.epoch) }

func (t *timers) remove(c *Call) { t.heap.remove(c) }

// first returns the call that is due first, or nil.
func (t *timers) first() *Call {
	if len(t.heap) == 0 {
		return nil
	}
	return t.heap[0]
}

// wakeBy makes sure that the timer goroutine wakes at the given time or before.
func (t *timers) wakeBy(at time.Duration) {
	if at < t.armed {
		t.armed = at
		select {
		case t.rearm <- struct{}{}:
		default: // already signalled
		}
	}
}

// timerHeap is ordered by wake, the earliest first.
type timerHeap []*Call

// set makes at the time when c is checked.
func (h *timerHeap) set(c *Call, at time.Duration) {
	c.s.wake = at
	if c.s.timer == 0 {
		*h = append(*h, c)
		c.s.timer = len(*h)
		h.up(len(*h) - 1)
		return
	}
	i := c.s.timer - 1
	h.up(i)
	h.down(c.s.timer - 1)
}

func (h *timerHeap) remove(c *Call) {
	if c.s.timer == 0 {
		return
	}
	i, last := c.s.timer-1, len(*h)-1
	c.s.timer = 0
	moved := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		(*h)[i] = moved
		moved.s.timer = i + 1
		h.up(i)
		h.down(moved.s.timer - 1)
	}
}

func (h timerHeap) up(i int) {
	c := h[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].s.wake <= c.s.wake {
			break
		}
		h[i] = h[parent]
		h[i].s.timer = i + 1
		i = parent
	}
	h[i] = c
	c.s.timer = i + 1
}

func (h timerHeap) down(i int) {
	c := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].s.wake < h[child].s.wake {
			child++
		}
		if c.s.wake <= h[child].s.wake {
			break
		}
		h[i] = h[child]
		h[i].s.timer = i + 1
		i = child
	}
	h[i] = c
	c.s.timer = i + 1
}

// timeLoop is the timer goroutine.
func (e *Engine) timeLoop() {
	cs := &e.calls
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-cs.timers.rearm:
		case <-e.life.stop:
			return
		}
		e.mu.Lock()
		now := cs.timers.now()
		c := cs.timers.first()
		behind := c != nil && c.s.wake <= now && e.transport.Behind()
		for ; c != nil && c.s.wake <= now; c = cs.timers.first() {
			if behind {
				cs.postpone(c, now)
			} else {
				cs.expire(c, now)
			}
		}
		cs.timers.armed = never
		if c != nil {
			cs.timers.armed = c.s.wake
		}
		e.sender.watch(now)
		timer.Reset(cs.timers.armed - now)
		e.unlock()
	}
}

// behindFor is how long calls are postponed while the transport is behind.
const behindFor = 100 * time.Millisecond

// postpone puts all that is due of c off, since the transport is behind.
func (cs *calls) postpone(c *Call, now time.Duration) {
	d := now - c.s.wake + behindFor
	c.s.extendDeadlines(d)
	c.s.due += d
	cs.timers.set(c, c.s.wake+d)
}

// expire handles c, which is due.
func (cs *calls) expire(c *Call, now time.Duration) {
	wake := c.s.wake
	late := now - wake
	switch {
	case wake >= c.s.giveUp:
		cs.timedOut(c, now)
		return
	case c.s.phase == phaseResend, c.s.phase == phaseSegments:
		cs.timers.set(c, c.s.giveUp)
		return
	}
	c.s.extendDeadlines(late)
	switch {
	case c.s.phase == phasePaused:
		cs.resend(c, now)
	case wake < c.s.due:
		c.s.due += late
		cs.flow.presumeLost(c, now)
		cs.timers.set(c, c.s.due)
	case c.s.rx != nil && !cs.outbox.noACK:
		// The sender still has the missing segments: request them again.
		cs.outbox.acknowledge(c.s.rx)
		cs.await(c, now, c.s.timeout)
	case c.s.tx != nil && !c.s.tx.Done():
		cs.flow.presumeLost(c, now)
		cs.flow.discharge(c)
		c.s.tx.GoBack(c.s.timeout)
		cs.sendMore(c)
	default:
		cs.flow.presumeLost(c, now)
		cs.flow.discharge(c)
		c.s.wait = min(2*c.s.wait, c.s.timeout)
		cs.resend(c, now)
	}
}

// timedOut ends c, which got no answer, or an incomplete one.
func (cs *calls) timedOut(c *Call, now time.Duration) {
	err := ErrTimeout
	var long string
	if c.s.tooLong() {
		long = fmt.Sprintf(" after %v", now-c.s.firstSent)
	}
	switch t := c.s.tx; {
	case c.s.rx != nil:
		err = fmt.Errorf("table incomplete%s, segment %d: %w", long, c.s.rx.Next(), ErrTimeout)
	case t != nil && !t.Done():
		acked, segments := t.Acked()
		err = fmt.Errorf("request incomplete%s, no ACK of segment %d of %d: %w", long, acked+1, segments, ErrTimeout)
	}
	d := Datagram{Address: c.s.to, MAD: slices.Clone(c.MAD[:])}
	binary.BigEndian.PutUint64(d.MAD[mad.TIDOffset:], uint64(c.s.tid))
	cs.gaveUp(&d)
	cs.end(c, now, err)
}
