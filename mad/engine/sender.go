package engine

import (
	"encoding/binary"
	"fmt"
	"time"

	"fabsh/mad"
)

// sender chooses the next datagram, and keeps the state of sending. Engine.mu guards all
// but out and job, which belong to the sending goroutine: the writer, or, while that is
// idle, the reader.
type sender struct {
	out Datagram
	job job

	calls      *calls
	policy     policy
	tables     bool // Traits.RMPP: the transport reassembles tables
	stallAfter time.Duration
	wake       chan struct{} // to the writer goroutine, when it is idle
	fastPath   bool          // the reader may send; it never changes

	state  sendState
	began  time.Duration // sendInTransport: since then
	reader readerState
	turn   turn // the last one
}

// job is the content of sender.out: the call's attempt with that transaction ID, or a
// datagram without a call.
type job struct {
	isCall bool
	tid    uint32
}

// sendState is the state of sending.
type sendState uint8

const (
	sendIdle        sendState = iota // no goroutine sends: the writer waits for wake
	sendChoosing                     // the writer was woken, or a goroutine chooses the next datagram
	sendHandedOver                   // the transport did not accept out at once from the reader: the writer must send it
	sendInTransport                  // out is being sent by the transport
	sendStalled                      // the transport has had it for longer than stallAfter
)

// readerState is the state of the reader goroutine, with the fast path.
type readerState uint8

const (
	readerWaits readerState = iota // for a datagram: it has sent everything
	readerLooks                    // checks whether a datagram has come in the meantime
	readerWorks                    // on a datagram: it sends the consequences
)

// turn is a kind of datagrams that are sent in turns: neither a storm of Reports nor
// long requests nor many requests may starve the others.
type turn uint8

const (
	turnReplies turn = iota
	turnSegments
	turnAttempts
	turns
)

func (s *sender) init(calls *calls, o *Options, p policy, tables bool) {
	s.calls, s.policy, s.tables = calls, p, tables
	// As long as a whole call may last, but at least a second: a short timeout is for answers.
	s.stallAfter = max(o.Timeout*time.Duration(o.Retries+1), time.Second)
	s.wake = make(chan struct{}, 1)
	s.out.MAD = make([]byte, mad.Size)
	s.state = sendChoosing // the writer goroutine has yet to start: until then the reader may not send
}

// isNeeded reports whether there is something to send, and no goroutine is sending.
func (s *sender) isNeeded() bool {
	return s.state == sendIdle && s.reader != readerWorks && (s.calls.outbox.pending() || s.calls.next() != nil)
}

// next puts the next datagram in out, and reports whether there is one.
func (s *sender) next() bool {
	cs := s.calls
	if s.state == sendHandedOver {
		s.begin(cs.timers.now())
		return true
	}
	s.state = sendChoosing
	if len(cs.outbox.control) > 0 {
		s.put(&cs.outbox.control)
		return true
	}
	for range turns {
		switch s.turn = (s.turn + 1) % turns; s.turn {
		case turnReplies:
			if len(cs.outbox.replies) > 0 {
				s.put(&cs.outbox.replies)
				return true
			}
		case turnSegments:
			if c := cs.outbox.segments.pop(); c != nil {
				s.putSegment(c)
				return true
			}
		case turnAttempts:
			if c := cs.next(); c != nil {
				s.putAttempt(c)
				return true
			}
		}
	}
	return false
}

// put puts the first of queue, which is not empty, in out.
func (s *sender) put(queue *[]packet) {
	s.out.take(queue)
	s.job = job{}
	s.calls.counts.Sent++
	s.begin(s.calls.timers.now())
}

// begin records that out is about to go to the transport.
func (s *sender) begin(now time.Duration) {
	s.state, s.began = sendInTransport, now
	s.calls.timers.wakeBy(now + s.stallAfter)
}

// watch ends the calls that wait to be sent when the transport has not accepted a
// datagram for too long: no wait is unlimited.
func (s *sender) watch(now time.Duration) {
	if s.state != sendInTransport {
		return
	}
	deadline := s.began + s.stallAfter
	if now < deadline {
		s.calls.timers.armed = min(s.calls.timers.armed, deadline)
		return
	}
	s.state = sendStalled
	s.calls.endUnsent(now, s.stallError())
}

// stallError returns why nothing is sent in state sendStalled.
func (s *sender) stallError() error {
	return fmt.Errorf("%w before it could be sent: the transport has accepted nothing for %v; check whether the device or simulator is stuck", ErrTimeout, s.stallAfter)
}

// putAttempt puts the next attempt of c, which the window allows, in out. It is a
// copy, because c may end, and its buffer return to its owner, while the transport
// still reads the datagram.
func (s *sender) putAttempt(c *Call) {
	s.calls.open(c)
	now := s.calls.timers.now()
	measured := c.s.dest.rto()
	rto := min(max(measured, shortestRTO), c.s.timeout)
	if c.Attempts == 1 {
		c.s.firstSent, c.s.due = now, now
		c.s.period = c.s.dest.class.losses.Period()
		s.policy.setDeadlines(c, now, rto)
	}
	c.s.silentSince = now
	c.s.extendDeadlines(now - c.s.due)
	c.s.due = now + c.s.wait
	if c.s.due+rto > c.s.giveUp {
		c.s.due = c.s.giveUp // another attempt would be too late
	}
	leaveAfter := max(measured, minLeaveAfter)
	if measured == 0 && c.Attempts == 1 {
		leaveAfter = shortestRTO
	}
	s.calls.timers.set(c, min(now+leaveAfter, c.s.due))

	d := &s.out
	s.job = job{true, c.s.tid}
	d.Timeout = c.s.timeout
	switch {
	case !c.isAnswered():
		d.Timeout = 0
	case s.tables && isTable(&c.MAD):
		// A kernel drops a table that is incomplete by then, however many
		// segments it has; here it is accepted until the end.
		d.Timeout = c.s.giveUp - now
	}
	c.putHeader(d, s.calls.keys)
	if c.Payload != nil {
		s.putPayload(c, rto)
	}
	s.begin(now)
}

// putPayload puts c's request in out, which has the header: the whole request if the
// transport splits it, otherwise its first segment.
func (s *sender) putPayload(c *Call, rto time.Duration) {
	d := &s.out
	if s.policy.wholeRequests() {
		d.MAD = append(d.MAD[:mad.SADataOffset], c.Payload...)
		h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: mad.NoRespTime, RMPPFlags: mad.RMPPFlagsActive}
		h.Encode(d.MAD[mad.RMPPOffset:])
		return
	}
	t := newRMPPTransfer(len(c.Payload), rto)
	c.putSegment(t, d)
	if s.calls.outbox.noACK {
		return // the only segment
	}
	c.s.tx = t
	s.calls.await(c, c.s.silentSince, t.RTO())
}

// putSegment puts the next segment of c's request in out.
func (s *sender) putSegment(c *Call) {
	now := s.calls.timers.now()
	s.job = job{true, c.s.tid}
	c.putHeader(&s.out, s.calls.keys)
	c.putSegment(c.s.tx, &s.out)
	if c.s.tx.More() {
		s.calls.outbox.segments.push(c) // in turns with segments of other calls
	} else {
		c.s.phase = phaseSent
		s.calls.await(c, now, c.s.tx.RTO())
	}
	s.calls.counts.Sent++
	s.begin(now)
}

// putHeader puts c's MAD in d, with its transaction ID and its key.
func (c *Call) putHeader(d *Datagram, keys *Keys) {
	d.Address = c.s.to
	d.MAD = append(d.MAD[:0], c.MAD[:]...)
	if c.s.keyless {
		dropKey(d.MAD)
	} else {
		keys.put(d.MAD, c.Guard)
	}
	if !c.KeepTID || c.isAnswered() {
		binary.BigEndian.PutUint64(d.MAD[mad.TIDOffset:], uint64(c.s.tid))
	}
}

// putSegment puts the next segment of t, the transfer of c's request, in d, which has
// the header. The answer to all is the answer to the last.
func (c *Call) putSegment(t *rmppTransfer, d *Datagram) {
	d.Timeout = 0
	if last := t.Put(d.MAD, c.Payload); last {
		d.Timeout = c.s.timeout
	}
}

// backOff is the n-th pause, exponential: from 10 ms doubling up to most.
func backOff(n int, most time.Duration) time.Duration {
	return min(most, 10*time.Millisecond<<min(n, 20))
}

// outbox is the datagrams to send beside the attempts of calls. Engine.mu guards it.
type outbox struct {
	noACK    bool     // Traits.NoACK: control must not be sent
	control  []packet // RMPP ACKs and ABORTs, of which the headers count
	replies  []packet // to requests of others
	segments callList // calls with more segments of their requests to send
}

// packet is a datagram that no call waits for.
type packet struct {
	to  Address
	mad [mad.Size]byte
}

// maxControl and maxReplies limit the queues. ACKs may be lost like all datagrams, and
// a sender without a reply sends again.
const (
	maxControl = 4 * rmppWindow
	maxReplies = 64
)

// pending reports whether there is something to send.
func (o *outbox) pending() bool {
	return len(o.control) > 0 || len(o.replies) > 0 || o.segments.head != nil
}

// acknowledge sends the sender an ACK, with the last segment that it may send.
func (o *outbox) acknowledge(t *table) { o.answer(t.Head(), t.from, rmppACK(t.Acknowledge())) }

// answer queues a control segment with header h that answers segment m.
func (o *outbox) answer(m []byte, to Address, h mad.RMPPHeader) { o.add(m, to, h, true) }

// add queues a control segment with the headers of m and RMPP header h, if there is room
// and ACKs may be sent.
func (o *outbox) add(m []byte, to Address, h mad.RMPPHeader, answers bool) {
	if o.noACK || len(o.control) >= maxControl {
		return
	}
	o.control = append(o.control, packet{to: to})
	head := (*[mad.SADataOffset]byte)(o.control[len(o.control)-1].mad[:])
	putRMPPControl(head, m, h, answers)
}

// reply queues the answer to d by a method, if there is room and a path back. It is d
// with another method (opensm, osm_resp.c, resp_make_resp_smp; Linux's ib_mad.c keeps
// its transaction ID).
func (o *outbox) reply(d *Datagram, m mad.Method) {
	if len(o.replies) >= maxReplies || d.LID == 0 || d.LID == mad.PermissiveLID {
		return
	}
	r := packet{to: d.Address}
	copy(r.mad[:], d.MAD)
	r.mad[mad.MethodOffset] = byte(m)
	binary.BigEndian.PutUint16(r.mad[mad.StatusOffset:], 0)
	o.replies = append(o.replies, r)
}

// take puts the first of queue, which is not empty, in d.
func (d *Datagram) take(queue *[]packet) {
	p := &(*queue)[0]
	d.Address, d.Timeout = p.to, 0
	d.MAD = append(d.MAD[:0], p.mad[:]...)
	*queue = append((*queue)[:0], (*queue)[1:]...)
}

// dropSegments ends the transfer of c's request: it has arrived, another attempt
// begins, or the call ends.
func (o *outbox) dropSegments(c *Call) {
	o.stopSegments(c)
	c.s.tx = nil
}

// stopSegments stops sending segments of c's request.
func (o *outbox) stopSegments(c *Call) {
	if c.s.phase == phaseSegments {
		o.segments.remove(c)
		c.s.phase = phaseSent
	}
}

// The writer goroutine sends. But a switch of goroutines costs more than a datagram, and
// with few processors the writer uses the peer's processor. So if the transport can send
// without waiting, the reader itself sends the requests that answers made room for: when
// no more datagrams have come, or after readerBatch datagrams.

// readerBatch is the number of datagrams after which the reader sends although more
// have come: so the peer has work meanwhile.
const readerBatch = 32

// writeLoop is the writer goroutine.
func (e *Engine) writeLoop() {
	for e.nextToWrite() && e.sent(e.transport.Send(&e.sender.out)) {
	}
}

// nextToWrite waits for something to send; it returns false when the engine has ended.
func (e *Engine) nextToWrite() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.life.err == nil {
		if e.sender.next() {
			return true
		}
		e.sender.state = sendIdle
		e.mu.Unlock()
		<-e.sender.wake
		e.mu.Lock()
	}
	return false
}

// beforeWait sends pending datagrams, because the reader is about to wait; again reports
// whether the reader must try once more.
func (e *Engine) beforeWait() (again bool) { return e.sendFromReader(readerWaits) }

// sendFromReader sends all pending datagrams, unless the writer is sending, and reports
// whether it has sent something. The reader calls it; then is its state if nothing was
// sent.
func (e *Engine) sendFromReader(then readerState) (any bool) {
	s := &e.sender
	e.mu.Lock()
	s.reader = readerLooks
	if s.state != sendIdle {
		s.reader = then
		e.mu.Unlock()
		return false
	}
	for e.life.err == nil {
		if !s.next() {
			s.state = sendIdle
			if !any {
				s.reader = then
			}
			e.mu.Unlock()
			return any
		}
		e.mu.Unlock()
		taken, err := e.transport.TrySend(&s.out)
		handsOver := err == nil && !taken
		if !handsOver {
			if !e.sent(err) {
				s.wake <- struct{}{} // the writer has to end
				return any
			}
			any = true
		}
		e.mu.Lock()
		if handsOver {
			s.state = sendHandedOver
			break
		}
	}
	if !any {
		s.reader = then
	}
	e.mu.Unlock()
	s.wake <- struct{}{} // the writer has to send, or to end
	return any
}

// sent handles the transport's result for sender.out; it returns false on failure.
func (e *Engine) sent(err error) bool {
	s := &e.sender
	switch {
	case err != nil && !isSendError(err):
		e.fail(err)
		return false
	case s.job.isCall && (err != nil || s.out.Timeout == 0 && !mad.IsSegment(s.out.MAD)):
		e.endSent(s.job.tid, err)
	}
	return true
}

// endSent ends a call that waits for nothing: the transport refused its datagram, or no
// answer is expected.
func (e *Engine) endSent(tid uint32, err error) {
	cs := &e.calls
	e.mu.Lock()
	if c := cs.slots.lookup(tid); c != nil {
		if err != nil {
			cs.counts.Refused++
		}
		cs.end(c, cs.timers.now(), err)
	}
	e.unlock()
}
