package engine

import "fabsh/mad"

// The writer goroutine sends. But a switch of goroutines costs more than a datagram, and
// with few processors the writer uses that of the peer. So if the transport can send
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
