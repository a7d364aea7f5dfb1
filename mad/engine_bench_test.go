package mad

import (
	"testing"
)

// echoTransport answers at once: what is sent waits in a ring for Recv.
type echoTransport struct {
	ring    chan [Size]byte
	closing chan struct{}
}

func (t *echoTransport) Send(d *Datagram) error {
	var m [Size]byte
	copy(m[:], d.MAD)
	m[offMethod] |= byte(Response)
	t.ring <- m
	return nil
}

func (t *echoTransport) Recv(d *Datagram) error {
	select {
	case m := <-t.ring:
		d.MAD = append(d.MAD[:0], m[:]...)
		return nil
	case <-t.closing:
		return ErrClosed
	}
}

func (t *echoTransport) Port() (Port, error) { return Port{}, nil }
func (t *echoTransport) Traits() Traits      { return Traits{} }
func (t *echoTransport) Close() error        { close(t.closing); return nil }

// again starts its call again until b.N have been made.
type again struct {
	Call
	e    *Engine
	left *int // of the reader goroutine
	done chan struct{}
}

func (a *again) Complete(c *Call) {
	*a.left--
	switch {
	case c.Err != nil:
		panic(c.Err)
	case *a.left >= 32:
		c.MAD[offMethod] = byte(MethodGet)
		a.e.Start(c)
	case *a.left == 0:
		close(a.done)
	}
}

func BenchmarkEngineEcho(b *testing.B) {
	e := NewEngine(&echoTransport{make(chan [Size]byte, 64), make(chan struct{})}, Options{})
	defer e.Close()
	left := max(b.N, 32)
	done := make(chan struct{})
	var calls [32]again
	for i := range calls {
		calls[i] = again{e: e, left: &left, done: done}
		calls[i].PutSMP(MethodGet, 0x11, 0, nil)
		calls[i].SetLID(LID(i + 1))
		calls[i].Notify = &calls[i]
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range calls {
		e.Start(&calls[i].Call)
	}
	<-done
}
