package engine

import (
	"errors"
	"io"
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
// may be answered, cancelled, or told to wait.
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
