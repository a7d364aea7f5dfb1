package engine

import (
	"runtime"
	"testing"

	"fabsh/mad"
)

// echoTransport answers at once: what is sent waits in a ring for Recv.
type echoTransport struct {
	Basic
	ring    chan echoed
	closing chan struct{}
}

type echoed struct {
	from mad.LID
	mad  [mad.Size]byte
}

func (t *echoTransport) Send(d *Datagram) error {
	m := echoed{from: d.LID}
	copy(m.mad[:], d.MAD)
	m.mad[mad.MethodOffset] |= byte(mad.Response)
	t.ring <- m
	return nil
}

func (t *echoTransport) Recv(d *Datagram) error {
	select {
	case m := <-t.ring:
		d.LID, d.MAD = m.from, append(d.MAD[:0], m.mad[:]...)
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
	most *int // goroutines, ever
	done chan struct{}
}

func (a *again) Complete(c *Call) {
	if *a.left--; *a.left%100 == 0 {
		*a.most = max(*a.most, runtime.NumGoroutine())
	}
	switch {
	case c.Err != nil:
		panic(c.Err)
	case *a.left >= 32:
		c.MAD[mad.MethodOffset] = byte(mad.MethodGet)
		a.e.Start(c)
	case *a.left == 0:
		close(a.done)
	}
}

// echo asks n questions of an echo, 32 at a time, and returns how many
// goroutines there were at most.
func echo(n int, begin func()) (most int) {
	e := New(&echoTransport{ring: make(chan echoed, 64), closing: make(chan struct{})}, Options{})
	defer e.Close()
	left := max(n, 32)
	done := make(chan struct{})
	var calls [32]again
	for i := range calls {
		calls[i] = again{e: e, left: &left, most: &most, done: done}
		calls[i].PutSMP(mad.MethodGet, 0x11, 0, nil)
		calls[i].SetLID(mad.LID(i + 1))
		calls[i].Notify = &calls[i]
	}
	begin()
	for i := range calls {
		e.Start(&calls[i].Call)
	}
	<-done
	return most
}

func BenchmarkEngineEcho(b *testing.B) {
	b.ReportAllocs()
	echo(b.N, b.ResetTimer)
}

// TestCost: a call costs no allocation and no goroutine.
func TestCost(t *testing.T) {
	const calls = 100000
	var before, after runtime.MemStats
	goroutines := 0
	most := echo(calls, func() {
		runtime.ReadMemStats(&before)
		goroutines = runtime.NumGoroutine()
	})
	runtime.ReadMemStats(&after)
	// Destinations, and what the runtime itself needs now and then.
	if n := after.Mallocs - before.Mallocs; n > calls/100 {
		t.Errorf("%d allocations for %d calls", n, calls)
	}
	if most > goroutines {
		t.Errorf("%d goroutines, %d before the first call", most, goroutines)
	}
}
