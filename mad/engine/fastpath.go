package engine

// A change of goroutines costs more than a datagram, and where processors are
// few, the writer takes that of the peer. So where the transport can send
// without waiting, what answers made room for is sent by the reader itself: once
// nothing more has come, or after readerBatch datagrams.

// readerBatch is after how many datagrams the reader sends, though more have
// come: the peer has something to do meanwhile.
const readerBatch = 32

// beforeWait sends what there is, for the reader is about to wait; again: it is to
// look once more.
func (e *Engine) beforeWait() (again bool) {
	again = e.sendFromReader()
	e.writer.waited = !again
	return again
}

// sendFromReader sends all there is to send, unless the writer is about it. The
// reader calls it. any: it has sent something.
func (e *Engine) sendFromReader() (any bool) {
	w := &e.writer
	e.mu.Lock()
	w.reading = false
	if !w.idle {
		e.mu.Unlock()
		return false
	}
	w.idle = false // we send in the writer's stead
	for {
		j, ok := e.pick()
		if !ok && e.life.err == nil {
			w.idle = true
			e.mu.Unlock()
			return any
		}
		e.mu.Unlock()
		if !ok { // the writer has to end
			break
		}
		taken, err := e.transport.TrySend(&w.out)
		if err == nil && !taken {
			e.mu.Lock()
			w.unsent, w.hasUnsent = j, true
			e.mu.Unlock()
			break
		}
		if !e.sent(j, err) {
			break
		}
		any = true
		e.mu.Lock()
	}
	w.wake <- struct{}{}
	return any
}
