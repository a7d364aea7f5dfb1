package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// event is an unsolicited MAD of a class and method, with a number
// as transaction ID.
func event(c mad.Class, m mad.Method, n uint64) Datagram {
	var call Call
	call.put(c, m, attrNotice, 0, []byte{1, 2, 3})
	binary.BigEndian.PutUint64(call.MAD[mad.TIDOffset:], n)
	return Datagram{Address: Address{LID: 7, QP: 1, SL: 3, PKeyIndex: 2}, MAD: call.MAD[:]}
}

const attrNotice mad.AttributeID = 2

// mustListen is a listener for events of a class and method.
func mustListen(t *testing.T, e *Engine, c mad.Class, m mad.Method) *Listener {
	t.Helper()
	l, err := e.Listen(c, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pendingEvents returns all that l has received, without waiting.
func pendingEvents(l *Listener) (list []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	for {
		var d Datagram
		dropped, err := l.Next(ctx, &d)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return list
		case err != nil:
			return append(list, err.Error())
		case dropped > 0:
			list = append(list, fmt.Sprintf("%d dropped", dropped))
		default:
			h := mad.ParseHeader(d.MAD)
			list = append(list, fmt.Sprintf("%v %d from LID %d", h.Method.Name(h.Class, h.ClassVersion), h.TID, d.LID))
		}
	}
}

// TestListen: requests with a listener are delivered and answered, no others.
func TestListen(t *testing.T) {
	changed := func(d Datagram, offset int, v byte) Datagram {
		d.MAD[offset] = v
		return d
	}
	from := func(d Datagram, lid mad.LID) Datagram {
		d.LID = lid
		return d
	}
	report, trap := event(mad.ClassSubnAdm, mad.MethodReport, 9), event(mad.ClassSubn, mad.MethodTrap, 9)
	for _, test := range []struct {
		name   string
		c      mad.Class
		m      mad.Method
		write  bool
		d      Datagram
		want   []string
		answer mad.Method // 0: none
	}{
		{"report", mad.ClassSubnAdm, mad.MethodReport, false, report, []string{"Report 9 from LID 7"}, mad.MethodReportResp},
		{"report, nobody listens", mad.ClassPerf, mad.MethodReport, true, report, nil, 0},
		{"report, traps are listened to", mad.ClassSubnAdm, mad.MethodTrap, true, report, nil, 0},
		{"report of class version 1", mad.ClassSubnAdm, mad.MethodReport, true, changed(event(mad.ClassSubnAdm, mad.MethodReport, 9), mad.ClassVersionOffset, 1), nil, 0},
		{"report from nowhere", mad.ClassSubnAdm, mad.MethodReport, true, from(report, 0), []string{"Report 9 from LID 0"}, 0},
		{"trap", mad.ClassSubn, mad.MethodTrap, true, trap, []string{"Trap 9 from LID 7"}, mad.MethodTrapRepress},
		{"trap, read-only", mad.ClassSubn, mad.MethodTrap, false, trap, []string{"Trap 9 from LID 7"}, 0},
		{"trap of this node", mad.ClassSubn, mad.MethodTrap, true, from(trap, 0), []string{"Trap 9 from LID 0"}, 0},
		{"trap, no LID yet", mad.ClassSubn, mad.MethodTrap, true, from(trap, mad.PermissiveLID), []string{"Trap 9 from LID 65535"}, 0},
		{"directed trap", mad.ClassSubn, mad.MethodTrap, true, changed(event(mad.ClassSubn, mad.MethodTrap, 9), mad.ClassOffset, byte(mad.ClassSubnDirected)), []string{"Trap 9 from LID 7"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent []Datagram
				f := newFake(func(f *fakeTransport, d Datagram) { sent = append(sent, d) })
				e := New(f, Options{Write: test.write})
				defer mustClose(t, e)
				l := mustListen(t, e, test.c, test.m)
				f.deliver(test.d)
				synctest.Wait()
				if diff := cmp.Diff(test.want, pendingEvents(l)); diff != "" {
					t.Errorf("requests received (-want +got):\n%s", diff)
				}
				var want []Datagram
				if test.answer != 0 {
					a := test.d
					a.MAD = slices.Clone(a.MAD)
					a.MAD[mad.MethodOffset] = byte(test.answer)
					want = append(want, a)
				}
				if diff := cmp.Diff(want, sent); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
				if s := e.Stats().Counts; s.Unsolicited != 1 || s.Sent != uint64(len(want)) || s.Dropped != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestListenAgain: a Report that is sent again, for its answer was lost, is
// answered again and delivered once; later an equal one counts as new. Traps are delivered
// as they come.
func TestListenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		f := newFake(func(*fakeTransport, Datagram) { sent++ })
		e := New(f, Options{Write: true})
		defer mustClose(t, e)
		reports, traps := mustListen(t, e, mad.ClassSubnAdm, mad.MethodReport), mustListen(t, e, mad.ClassSubn, mad.MethodTrap)
		for _, wait := range []time.Duration{0, 800 * ms, 800 * ms, repeatWithin} {
			time.Sleep(wait) // virtual
			f.deliver(event(mad.ClassSubnAdm, mad.MethodReport, 5))
			f.deliver(event(mad.ClassSubn, mad.MethodTrap, 5))
		}
		f.deliver(event(mad.ClassSubnAdm, mad.MethodReport, 6))
		other := event(mad.ClassSubnAdm, mad.MethodReport, 6)
		other.LID = 8
		f.deliver(other)
		synctest.Wait()
		want := []string{"Report 5 from LID 7", "Report 5 from LID 7", "Report 6 from LID 7", "Report 6 from LID 8"}
		if diff := cmp.Diff(want, pendingEvents(reports)); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		if got := pendingEvents(traps); len(got) != 4 {
			t.Errorf("traps: %q", got)
		}
		if sent != 10 {
			t.Errorf("%d answers, want 10", sent)
		}
	})
}

// TestListenStorm: of what comes faster than it is taken the newest is dropped,
// and it is reported where, and how many.
func TestListenStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(func(*fakeTransport, Datagram) {})
		e := New(f, Options{})
		defer mustClose(t, e)
		l := mustListen(t, e, mad.ClassSubnAdm, mad.MethodReport)
		n := uint64(0)
		storm := func(count int) {
			for range count {
				n++
				f.deliver(event(mad.ClassSubnAdm, mad.MethodReport, n))
			}
			synctest.Wait()
		}
		storm(listenQueue + 70)
		var d Datagram
		for range 3 {
			l.Next(t.Context(), &d)
		}
		storm(5) // three of them find room
		got := pendingEvents(l)
		want := []string{"Report 1024 from LID 7", "70 dropped", "Report 1095 from LID 7", "Report 1096 from LID 7", "Report 1097 from LID 7", "2 dropped"}
		if len(got) != listenQueue-3+5 {
			t.Errorf("%d received", len(got))
		} else if diff := cmp.Diff(want, got[listenQueue-3-1:]); diff != "" {
			t.Errorf("the end (-want +got):\n%s", diff)
		}
		if s := e.Stats().Counts; s.Dropped != 72 || s.Unsolicited != n {
			t.Errorf("%+v", s)
		}
		storm(1)
		if diff := cmp.Diff([]string{"Report 1100 from LID 7"}, pendingEvents(l)); diff != "" {
			t.Errorf("afterwards (-want +got):\n%s", diff)
		}
	})
}

// TestListenStarvesNobody: in a storm of Reports that all want an answer, over
// a transport which hardly keeps up, calls go out and come back; and in a storm
// of calls Reports are answered.
func TestListenStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var replies atomic.Int64
		f := newFake(func(f *fakeTransport, d Datagram) {
			time.Sleep(ms) // each takes so long to send
			if mad.ParseHeader(d.MAD).Method.IsResponse() {
				replies.Add(1)
				return
			}
			f.deliver(respond(d))
		})
		e := New(f, Options{Retries: -1})
		defer mustClose(t, e)
		mustListen(t, e, mad.ClassSubnAdm, mad.MethodReport)
		stop := make(chan bool)
		var storm sync.WaitGroup
		storm.Go(func() {
			for n := uint64(1); ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond): // ten for each that can be answered
					f.deliver(event(mad.ClassSubnAdm, mad.MethodReport, n))
				}
			}
		})
		calls := make([]*Call, 200)
		for i := range calls {
			calls[i] = getNodeInfo(mad.LID(i + 1))
		}
		e.Do(t.Context(), calls...)
		close(stop)
		storm.Wait()
		for i, c := range calls {
			if c.Err != nil {
				t.Errorf("call %d: %v", i, c.Err)
			}
		}
		if n := replies.Load(); n < 150 || n > 500 {
			t.Errorf("%d Reports were answered beside 200 calls", n)
		}
	})
}

// TestListenEnds: Next ends with its context, its listener, and the transport;
// there is one listener of a kind; a refusal of the transport is returned.
func TestListenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(nil)
		e := New(f, Options{})
		defer mustClose(t, e)
		l := mustListen(t, e, mad.ClassSubnAdm, mad.MethodReport)
		if _, err := e.Listen(mad.ClassSubnAdm, mad.MethodReport, nil); err == nil || err.Error() != "Report of class SubnAdm already has a listener in this program" {
			t.Errorf("a second one: %v", err)
		}
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		next := func(ctx context.Context, l *Listener) {
			var d Datagram
			_, err := l.Next(ctx, &d)
			ended <- err
		}
		go next(ctx, l)
		synctest.Wait()
		cancel(cause)
		if err := <-ended; err != cause {
			t.Errorf("cancelled: %v", err)
		}
		go next(t.Context(), l)
		synctest.Wait()
		l.Close()
		if err := <-ended; err != ErrClosed {
			t.Errorf("closed: %v", err)
		}
		f.refusal = errors.New("taken")
		if _, err := e.Listen(mad.ClassSubnAdm, mad.MethodReport, nil); err != f.refusal {
			t.Errorf("refused: %v", err)
		}
		f.refusal = nil
		l = mustListen(t, e, mad.ClassSubnAdm, mad.MethodReport)
		go next(t.Context(), l)
		synctest.Wait()
		if f.accepted != 1 {
			t.Errorf("%d acceptances", f.accepted)
		}
		gone := errors.New("the device is gone")
		f.broken <- gone
		if err := <-ended; err != gone {
			t.Errorf("gone: %v", err)
		}
		if _, err := e.Listen(mad.ClassPerf, mad.MethodReport, nil); err != gone {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// An unsolicited MAD costs no allocation, with or without a listener.
func TestListenAllocates(t *testing.T) {
	e := New(newFake(func(*fakeTransport, Datagram) {}), Options{})
	defer mustClose(t, e)
	l := mustListen(t, e, mad.ClassSubnAdm, mad.MethodReport)
	d := event(mad.ClassSubnAdm, mad.MethodReport, 0)
	got := Datagram{MAD: make([]byte, mad.Size)}
	n := uint64(0)
	if allocs := testing.AllocsPerRun(1000, func() {
		n++
		binary.BigEndian.PutUint64(d.MAD[mad.TIDOffset:], n)
		e.mu.Lock()
		e.receiver.receive(&d, e.calls.timers.now())
		e.calls.outbox.replies = e.calls.outbox.replies[:0] // the writer copies them, as it does all
		e.unlock()
		l.Next(t.Context(), &got)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
