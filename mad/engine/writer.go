package engine

import (
	"fmt"
	"time"

	"fabsh/mad"
)

// writer is what is to be sent beside first and further attempts of calls, and
// who sends. Engine.mu guards all but out, which belongs to whoever sends: the
// writer goroutine, or, while that is idle, the reader.
type writer struct {
	out      Datagram
	wake     chan struct{} // to the writer goroutine, when it is idle
	fastPath bool          // the reader may send; it never changes

	control    []control // RMPP ACKs and ABORTs
	replies    []reply   // to what others sent unasked
	segments   callList  // calls of whose requests there is more to be sent
	roundRobin int       // which of replies, segments and attempts was sent last

	idle      bool // nobody sends, and the writer goroutine waits for wake
	reading   bool // the reader is at work, and will send
	waited    bool // it has waited since the last datagram; it is its own
	hasUnsent bool // out was not taken at once; it is unsent's
	unsent    job

	sending   bool          // out is in the transport's hands
	sendBegan time.Duration // since then
	stalled   bool          // and for longer than stallAfter
}

// job is what writer.out holds: the call's attempt with that transaction ID, or
// something that no call waits for.
type job struct {
	isCall bool
	tid    uint32
}

// maxControl and maxReplies are queued at most. ACKs may be lost like all
// datagrams, and who gets no reply sends again.
const (
	maxControl = 4 * rmppWindow
	maxReplies = 64
)

func (w *writer) init() {
	w.wake = make(chan struct{}, 1)
	w.out.MAD = make([]byte, mad.Size)
}

// pending: there is something to be sent.
func (w *writer) pending() bool {
	return len(w.control) > 0 || len(w.replies) > 0 || w.segments.head != nil
}

// takeControl puts the next RMPP control segment in w.out.
func (w *writer) takeControl() {
	s := &w.control[0]
	w.out.Address, w.out.Timeout = s.to, 0
	w.out.MAD = append(w.out.MAD[:0], s.head[:]...)
	w.out.MAD = append(w.out.MAD, make([]byte, mad.Size-len(s.head))...)
	w.control = append(w.control[:0], w.control[1:]...)
}

// takeReply puts the next reply in w.out.
func (w *writer) takeReply() {
	r := &w.replies[0]
	w.out.Address, w.out.Timeout = r.to, 0
	w.out.MAD = append(w.out.MAD[:0], r.mad[:]...)
	w.replies = append(w.replies[:0], w.replies[1:]...)
}

// dropSegments ends the transfer of c's request: it has arrived, or another
// attempt begins, or the call ends.
func (w *writer) dropSegments(c *Call) {
	if c.s.phase == phaseSegments {
		w.segments.remove(c)
		c.s.phase = phaseSent
	}
	c.s.tx = nil
}

// writeLoop is the writer goroutine.
func (e *Engine) writeLoop() {
	for {
		j, ok := e.nextJob()
		if !ok || !e.sent(j, e.transport.Send(&e.writer.out)) {
			return
		}
	}
}

// sent takes in what the transport said of writer.out; false: it has failed.
func (e *Engine) sent(j job, err error) bool {
	out := &e.writer.out
	switch {
	case err != nil && !isSendError(err):
		e.fail(err)
		return false
	case j.isCall && err != nil:
		e.endSent(j.tid, err)
	case j.isCall && out.Timeout == 0 && !mad.IsSegment(out.MAD):
		e.endSent(j.tid, nil)
	}
	return true
}

// endSent ends the call which waits for nothing more: the transport refused its
// datagram, or no answer is expected.
func (e *Engine) endSent(tid uint32, err error) {
	var ended callList
	e.mu.Lock()
	if c := e.flow.slots.lookup(tid); c != nil {
		if err != nil {
			e.stats.Refused++
		}
		e.end(c, e.now(), err, &ended)
	}
	e.unlock()
	ended.complete()
}

// nextJob waits for something to send; false: the engine has ended.
func (e *Engine) nextJob() (job, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if j, ok := e.pick(); ok || e.life.err != nil {
			return j, ok
		}
		e.writer.idle = true
		e.mu.Unlock()
		<-e.writer.wake
		e.mu.Lock()
	}
}

// pick puts what is to be sent next in writer.out.
func (e *Engine) pick() (j job, ok bool) {
	w := &e.writer
	w.sending, w.stalled = false, false
	switch {
	case e.life.err != nil:
		return j, false
	case w.hasUnsent:
		w.hasUnsent = false
		w.sending, w.sendBegan = true, e.now()
		return w.unsent, true
	case len(w.control) > 0:
		w.takeControl()
		e.beginSend(e.now())
		return j, true
	}
	// In turns: neither a storm of Reports nor long requests nor many may
	// starve the others.
	for range 3 {
		switch w.roundRobin = (w.roundRobin + 1) % 3; w.roundRobin {
		case 0:
			if len(w.replies) > 0 {
				w.takeReply()
				e.beginSend(e.now())
				return j, true
			}
		case 1:
			if c := w.segments.pop(); c != nil {
				e.takeSegment(c)
				return job{true, c.s.tid}, true
			}
		case 2:
			if c := e.flow.next(); c != nil {
				e.takeAttempt(c)
				return job{true, c.s.tid}, true
			}
		}
	}
	return j, false
}

// beginSend notes that writer.out is about to go to the transport.
func (e *Engine) beginSend(now time.Duration) {
	e.stats.Sent++
	e.writer.sending, e.writer.sendBegan = true, now
	e.timers.wakeBy(now + e.stallAfter())
}

// watchWriter ends what waits to be sent when the transport has not taken
// a datagram for too long: nothing waits for ever.
func (e *Engine) watchWriter(now time.Duration, ended *callList) {
	w := &e.writer
	if !w.sending || w.stalled {
		return
	}
	deadline := w.sendBegan + e.stallAfter()
	if now < deadline {
		e.timers.armed = min(e.timers.armed, deadline)
		return
	}
	w.stalled = true
	e.endUnsent(now, e.stallError(), ended)
}

// stallAfter is how long a transport may take for a datagram: as long as a whole
// call may last, but a second, for a short timeout is about answers.
func (e *Engine) stallAfter() time.Duration {
	return max(e.options.Timeout*time.Duration(e.options.Retries+1), time.Second)
}

func (e *Engine) stallError() error {
	return fmt.Errorf("%w before it could be sent: the transport has taken nothing for %v; see whether the device or simulator is stuck", ErrTimeout, e.stallAfter())
}
