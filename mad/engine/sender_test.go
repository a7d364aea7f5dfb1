package engine

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestStalled: a transport that takes nothing more makes no call wait for ever.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resume := make(chan bool)
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			if d.LID == 3 {
				<-resume
			}
			f.deliver(respond(d))
		}), Options{})
		defer mustClose(t, e)
		var calls []*Call
		for i := range 10 {
			calls = append(calls, getNodeInfo(mad.LID(i+1)))
		}
		do := func(want time.Duration) {
			t.Helper()
			begin := time.Now()
			for _, c := range calls {
				c.PutSMP(mad.MethodGet, 0x11, 0, nil)
			}
			e.Do(t.Context(), calls...)
			if time.Since(begin) != want {
				t.Errorf("ended after %v, want %v", time.Since(begin), want)
			}
		}
		do(3 * time.Second)
		want := "SubnGet(NodeInfo) to LID 10: timed out before it could be sent: the transport has accepted nothing for 3s; check whether the device or simulator is stuck"
		if calls[1].Err != nil || calls[9].Err == nil || calls[9].Err.Error() != want {
			t.Errorf("got  %v, %v\nwant nil, %s", calls[1].Err, calls[9].Err, want)
		}
		if s := e.Stats(); s.TimedOut != 8 || s.Answered != 2 {
			t.Errorf("%+v", s)
		}
		do(0) // still stalled
		if calls[0].Err == nil || !isTimeout(calls[0].Err) {
			t.Errorf("while stalled: %v", calls[0].Err)
		}
		resume <- true
		synctest.Wait()
		go func() { resume <- true }()
		do(0)
		for i, c := range calls {
			if c.Err != nil {
				t.Errorf("call %d after the stall: %v", i, c.Err)
			}
		}
		checkEmpty(t, e)
	})
}

// TestSlowWriter: while the writer is held up, calls that are to be sent again
// may be answered, cancelled, or answered BUSY.
func TestSlowWriter(t *testing.T) {
	for _, test := range []struct {
		name    string
		do      func(e *Engine, f *fakeTransport, c *Call, first Datagram) // at 1.2 s
		elapsed time.Duration
		sent    []time.Duration
		err     error
	}{
		{name: "nothing", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) {},
			elapsed: 1500 * ms, sent: []time.Duration{0, 1500 * ms}},
		{name: "answered", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) { f.deliver(respond(first)) },
			elapsed: 1200 * ms, sent: []time.Duration{0}},
		{name: "busy", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) {
			f.deliver(withStatus(respond(first), mad.StatusBusy))
		}, elapsed: 1500 * ms, sent: []time.Duration{0, 1500 * ms}},
		{name: "busy for longer", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) {
			for range 7 {
				f.deliver(withStatus(respond(first), mad.StatusBusy))
			}
		}, elapsed: 1840 * ms, sent: []time.Duration{0, 1840 * ms}},
		{name: "cancelled", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) { e.Cancel(c, io.EOF) },
			elapsed: 1200 * ms, sent: []time.Duration{0}, err: io.EOF},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var sent []time.Duration
				var first Datagram
				f := newFake(func(f *fakeTransport, d Datagram) {
					if d.LID == 2 {
						time.Sleep(1500 * ms) // virtual
						f.deliver(respond(d))
						return
					}
					f.mu.Lock()
					defer f.mu.Unlock()
					if sent = append(sent, time.Since(begin)); len(sent) > 1 {
						f.deliver(respond(d))
					}
					first = d
				})
				e := New(f, Options{})
				defer mustClose(t, e)
				c, slow := getNodeInfo(1), getNodeInfo(2)
				slow.Timeout, slow.Retries = 10*time.Second, -1
				time.AfterFunc(1200*ms, func() {
					f.mu.Lock()
					defer f.mu.Unlock()
					test.do(e, f, c, first)
				})
				e.Do(t.Context(), c, slow)
				if !errors.Is(c.Err, test.err) || c.Elapsed != test.elapsed {
					t.Errorf("%v after %v; want %v after %v", c.Err, c.Elapsed, test.err, test.elapsed)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				if diff := cmp.Diff(test.sent, sent); diff != "" {
					t.Errorf("sent at (-want +got):\n%s", diff)
				}
				checkEmpty(t, e)
			})
		})
	}
}

// TestSlowTransport: a transport that takes longer for a datagram than a call
// may wait for its answer is not stuck: all is sent.
func TestSlowTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			time.Sleep(50 * ms)
			f.deliver(respond(d))
		}), Options{Timeout: ms})
		defer mustClose(t, e)
		var calls []*Call
		for i := range mad.LID(100) {
			calls = append(calls, getNodeInfo(i+1))
		}
		e.Do(t.Context(), calls...)
		for i, c := range calls {
			if c.Attempts == 0 {
				t.Errorf("call %d was never sent: %v", i, c.Err)
			}
		}
	})
}

// TestFirstTurn: until the writer goroutine has started, and looked for something to send,
// the reader leaves sending to it. Otherwise both would use the same datagram.
func TestFirstTurn(t *testing.T) {
	var e Engine
	e.sender.init(&e.calls, &Options{}, nil, false)
	if e.sendFromReader(readerWaits) || e.sender.state != sendChoosing || e.sender.isNeeded() {
		t.Errorf("state %d, reader %d: the reader has chosen a datagram", e.sender.state, e.sender.reader)
	}
	e.life.err = ErrClosed
	if e.nextToWrite() {
		t.Error("an engine that has ended sends")
	}
}

// directFake is a fakeTransport by which the reader can send.
type directFake struct {
	*fakeTransport
	beforeWait func() (again bool)
	try        func(d *Datagram) (bool, error)
	sends      atomic.Int64 // by the writer
	tries      atomic.Int64 // by the reader, taken
}

func (f *directFake) BeforeWait(wait func() (again bool)) bool {
	f.beforeWait = wait
	return true
}

func (f *directFake) TrySend(d *Datagram) (bool, error) {
	if f.try != nil {
		if ok, err := f.try(d); !ok || err != nil {
			return false, err
		}
	}
	f.tries.Add(1)
	return true, f.fakeTransport.Send(d)
}

func (f *directFake) Send(d *Datagram) error {
	f.sends.Add(1)
	return f.fakeTransport.Send(d)
}

func (f *directFake) Recv(d *Datagram) error {
	for len(f.recv) == 0 && f.beforeWait() {
	}
	return f.fakeTransport.Recv(d)
}

// TestFastPath: the reader sends what answers make room for, the writer the rest:
// all, once each, in either's turn.
func TestFastPath(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		name   string
		try    func(lid mad.LID) (bool, error)
		direct bool // what answers make room for goes out by the reader
		failed int
	}{
		{"all is taken", func(mad.LID) (bool, error) { return true, nil }, true, 0},
		{"nothing is taken", func(mad.LID) (bool, error) { return false, nil }, false, 0},
		// Of the first 1000 it is up to the scheduler which are the reader's.
		{"some is refused", func(lid mad.LID) (bool, error) {
			if lid > 1000 && lid%10 == 0 {
				return false, &SendError{refused}
			}
			return true, nil
		}, true, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := map[mad.LID]int{}
				f := &directFake{fakeTransport: newFake(func(f *fakeTransport, d Datagram) {
					sent[d.LID]++
					time.AfterFunc(ms, func() { f.deliver(respond(d)) })
				})}
				f.try = func(d *Datagram) (bool, error) { return test.try(d.LID) }
				e := New(f, Options{})
				defer mustClose(t, e)
				calls := make([]*Call, 2000)
				for i := range calls {
					calls[i] = getNodeInfo(mad.LID(i + 1))
				}
				for _, c := range calls[:1000] {
					e.Do(t.Context(), c)
				}
				e.Do(t.Context(), calls[1000:]...)
				failed := 0
				for i, c := range calls {
					switch {
					case errors.Is(c.Err, refused):
						failed++
					case c.Err != nil || sent[mad.LID(i+1)] != 1:
						t.Fatalf("call %d: sent %d times: %v", i, sent[mad.LID(i+1)], c.Err)
					}
				}
				// Of 1000 calls one after the other each is the writer's, or
				// the reader's where it was not done yet; of 1000 at once the
				// first few are.
				writer, reader := int(f.sends.Load()), int(f.tries.Load())
				if failed != test.failed || writer+reader+failed != 2000 || (reader >= 1000-windowStart-failed) != test.direct {
					t.Errorf("%d sent by the writer, %d by the reader, %d refused", writer, reader, failed)
				}
				checkEmpty(t, e)
			})
		})
	}
}

// TestFastPathBroken: what breaks in the reader's hands ends the engine.
func TestFastPathBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		// Answered when the writer has sent what it may: the reader sends next.
		f := &directFake{fakeTransport: newFake(func(f *fakeTransport, d Datagram) {
			time.AfterFunc(ms, func() { f.deliver(respond(d)) })
		})}
		f.try = func(*Datagram) (bool, error) { return false, broken }
		e := New(f, Options{})
		var calls []*Call
		for i := range mad.LID(100) {
			calls = append(calls, getNodeInfo(i+1))
		}
		e.Do(t.Context(), calls...)
		if c := calls[99]; !errors.Is(c.Err, broken) {
			t.Errorf("the last call: %v, want %v", c.Err, broken)
		}
		mustClose(t, e)
	})
}
