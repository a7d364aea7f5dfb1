package engine

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"fabsh/mad"
)

// fakeTransport has a peer that is a function, and lives in virtual time:
// all waiting is on channels.
type fakeTransport struct {
	Basic
	traits Traits
	port   Port
	// peer is called for each datagram sent, on the writer goroutine, and
	// answers, now or later, with deliver.
	peer func(f *fakeTransport, d Datagram)
	// sendErr, if not nil, may refuse a datagram.
	sendErr func(d *Datagram) error
	recv    chan Datagram
	closing chan struct{}
	mu      sync.Mutex // the peer's
	once    sync.Once
	broken  chan error // what Recv returns
	// refusal, if not nil, is what Accept says; accepted is how many
	// acceptances last.
	refusal  error
	accepted int
}

func newFake(peer func(f *fakeTransport, d Datagram)) *fakeTransport {
	return &fakeTransport{
		peer:    peer,
		port:    Port{LID: 1},
		recv:    make(chan Datagram, 1<<14),
		closing: make(chan struct{}),
		broken:  make(chan error, 1),
	}
}

func (f *fakeTransport) Send(d *Datagram) error {
	if f.sendErr != nil {
		if err := f.sendErr(d); err != nil {
			return err
		}
	}
	c := *d
	c.MAD = slices.Clone(d.MAD)
	f.peer(f, c)
	return nil
}

func (f *fakeTransport) Recv(d *Datagram) error {
	select {
	case r := <-f.recv:
		mad := append(d.MAD[:0], r.MAD...)
		*d = r
		d.MAD = mad
		return nil
	case err := <-f.broken:
		return err
	case <-f.closing:
		return ErrClosed
	}
}

func (f *fakeTransport) deliver(d Datagram) {
	select {
	case f.recv <- d:
	case <-f.closing:
	}
}

// after calls fn in a while, as time.AfterFunc does. A timer that is due at once
// may crash the race detector where others run in the same bubble
// (go.dev/issue/78156).
func after(wait time.Duration, fn func()) {
	if wait == 0 {
		go fn()
		return
	}
	time.AfterFunc(wait, fn)
}

func (f *fakeTransport) Accept(mad.Class, mad.Method) (stop func(), err error) {
	if f.refusal != nil {
		return nil, f.refusal
	}
	f.accepted++
	return func() { f.accepted-- }, nil
}

func (f *fakeTransport) Port() (Port, error) { return f.port, nil }
func (f *fakeTransport) Traits() Traits      { return f.traits }
func (f *fakeTransport) Close() error {
	f.once.Do(func() { close(f.closing) })
	return nil
}

// respond makes d the response to itself: the request's data, as an echo.
func respond(d Datagram) Datagram {
	d.MAD = slices.Clone(d.MAD)
	if d.MAD[mad.MethodOffset] == byte(mad.MethodSet) {
		d.MAD[mad.MethodOffset] = byte(mad.MethodGet) // answered by GetResp (IBA 13.4.5)
	}
	d.MAD[mad.MethodOffset] |= byte(mad.Response)
	binary.BigEndian.PutUint32(d.MAD[mad.TIDOffset:], 0xabcd0000) // some transports change the upper half
	return d
}

// withStatus is d with its status set.
func withStatus(d Datagram, s mad.Status) Datagram {
	binary.BigEndian.PutUint16(d.MAD[mad.StatusOffset:], uint16(s))
	return d
}

// getNodeInfo is a call for NodeInfo of a LID.
func getNodeInfo(lid mad.LID) *Call {
	c := new(Call)
	c.PutSMP(mad.MethodGet, 0x11, 0, nil)
	c.SetLID(lid)
	return c
}

// waiter counts completions per call.
type waiter struct {
	ended chan *Call
}

func (w waiter) Complete(c *Call) { w.ended <- c }

func mustClose(t testing.TB, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
