package engine

import (
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
