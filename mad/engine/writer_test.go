package engine

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/mad"
)

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
