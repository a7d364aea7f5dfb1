package engine

// A change of goroutines costs more than a datagram, and where processors are
// few, the writer takes that of the peer. So where the transport can send
// without waiting, what answers made room for is sent by the reader itself:
// once nothing more has come, or after a few.

// promptBatch is after how many datagrams the reader sends, though more have
// come: the peer has something to do meanwhile.
const promptBatch = 32

// sendPromptly sends all there is to send, unless the writer is about it. The
// reader calls it. any: it has sent something.
func (e *Engine) sendPromptly() (any bool) {
	e.mu.Lock()
	e.reading = false
	if !e.idle {
		e.mu.Unlock()
		return false
	}
	e.idle = false // the writer's part is ours
	for {
		j, ok := e.pick()
		if !ok && e.err == nil {
			e.idle = true
			e.mu.Unlock()
			return any
		}
		e.mu.Unlock()
		if !ok { // the writer has to end
			break
		}
		sent, err := e.t.TrySend(&e.out)
		if err == nil && !sent {
			e.mu.Lock()
			e.unsent, e.held = j, true
			e.mu.Unlock()
			break
		}
		if !e.sent(j, err) {
			break
		}
		any = true
		e.mu.Lock()
	}
	e.wake <- struct{}{}
	return any
}
