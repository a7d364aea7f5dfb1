//go:build linux

package run

import (
	"encoding/binary"
	"slices"
	"time"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// wait notes a MAD that was written with a timeout: without an answer it is sent again,
// and at last comes back. The kernel waits for an answer to responses too, if they are
// written so; and for the ACKs of all transfers. The port's lock is held.
func (f *deviceFile) wait(s *sent) {
	after := s.timeout
	if s.count > 0 {
		after = s.firstWait()
	}
	if after == 0 {
		return
	}
	s.left = s.retries
	f.sent[s.key] = append(f.sent[s.key], s)
	s.timer = time.AfterFunc(after, func() { f.expire(s) })
}

// expire sends a MAD again, or returns it.
func (f *deviceFile) expire(s *sent) {
	p := f.port
	p.mu.Lock()
	if !slices.Contains(f.sent[s.key], s) { // it was answered meanwhile
		p.mu.Unlock()
		return
	}
	if s.left > 0 && (s.count == 0 || s.acked < s.count) {
		s.left--
		messages := []sim.Message{s.message}
		if s.count > 0 {
			s.last = s.acked
			messages = s.nextWindow()
			s.timer.Reset(s.firstWait())
		} else {
			s.timer.Reset(s.timeout)
		}
		p.mu.Unlock()
		for i := range messages {
			p.send(&messages[i])
		}
		return
	}
	defer p.mu.Unlock()
	f.settle(s)
	f.bounce(s.agent, s.head, s.message.MAD[:])
}

// bounce puts a MAD into the queue that nothing has answered.
func (f *deviceFile) bounce(a *agent, head, m []byte) {
	head = append(slices.Clone(head), m[:mad.HeaderSize]...)
	binary.NativeEndian.PutUint32(head[offID:], a.id)
	binary.NativeEndian.PutUint32(head[offStatus:], statusTimeout)
	f.push(entry{bytes: head, returned: true})
}

// lose has a write come back after its timeout, if its agent is still there.
func (f *deviceFile) lose(b []byte) {
	if len(b) < f.header+leastMAD {
		return
	}
	head, m := slices.Clone(b[:f.header]), slices.Clone(b[f.header:][:mad.HeaderSize])
	id := binary.NativeEndian.Uint32(head[offID:])
	if id >= maxAgents || f.agents[id] == nil {
		return
	}
	a, timeout, retries := f.agents[id], binary.NativeEndian.Uint32(head[offTimeout:]), binary.NativeEndian.Uint32(head[offRetries:])
	if timeout == 0 {
		return
	}
	time.AfterFunc(time.Duration(timeout)*time.Millisecond*time.Duration(1+uint64(retries)), func() {
		f.port.mu.Lock()
		defer f.port.mu.Unlock()
		if f.agents[id] == a {
			f.bounce(a, head, m)
		}
	})
}

// settle forgets a MAD that waited.
func (f *deviceFile) settle(s *sent) {
	s.timer.Stop()
	list := f.sent[s.key]
	if list = slices.DeleteFunc(list, func(other *sent) bool { return other == s }); len(list) == 0 {
		delete(f.sent, s.key)
	} else {
		f.sent[s.key] = list
	}
}
