package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestMatching: an answer counts only where transaction ID, class and
// attribute are those asked for, and only once.
func TestMatching(t *testing.T) {
	change := func(offset int, bits byte) func(d Datagram) []Datagram {
		return func(d Datagram) []Datagram {
			d = respond(d)
			d.MAD[offset] ^= bits
			return []Datagram{d}
		}
	}
	timedOut := Counts{Sent: 1, TimedOut: 1}
	for _, test := range []struct {
		name    string
		answers func(d Datagram) []Datagram
		want    func(s *Counts)
		ok      bool
	}{
		{"upper half of the transaction ID", change(mad.TIDOffset, 0xff), func(s *Counts) {}, true},
		{"other use of the slot, earlier", change(mad.TIDOffset+4, 0x00), func(s *Counts) {}, true},
		{"use to come", change(mad.TIDOffset+5, 0xff), func(s *Counts) { s.Foreign = 1 }, false},
		{"other slot", change(mad.TIDOffset+7, 0x40), func(s *Counts) { s.Foreign = 1 }, false},
		{"directed for LID-routed", change(mad.ClassOffset, 0x80), func(s *Counts) { s.Foreign = 1 }, false},
		{"attribute", change(mad.AttributeOffset+1, 0x01), func(s *Counts) { s.Foreign = 1 }, false},
		{"request", change(mad.MethodOffset, byte(mad.Response)), func(s *Counts) { s.Unsolicited = 1 }, false},
		{"short", func(d Datagram) []Datagram {
			d = respond(d)
			d.MAD = d.MAD[:mad.HeaderSize-1]
			return []Datagram{d}
		}, func(s *Counts) { s.Foreign = 1 }, false},
		{"nothing", func(d Datagram) []Datagram { return []Datagram{{}} }, func(s *Counts) { s.Foreign = 1 }, false},
		{"twice", func(d Datagram) []Datagram { return []Datagram{respond(d), respond(d)} },
			func(s *Counts) { s.Duplicate = 1 }, true},
		{"foreign, then right", func(d Datagram) []Datagram {
			f := respond(d)
			f.MAD[mad.ClassOffset] = byte(mad.ClassPerf)
			return []Datagram{f, respond(d)}
		}, func(s *Counts) { s.Foreign = 1 }, true},
		{"undelivered of nobody", func(d Datagram) []Datagram {
			u := d
			u.MAD = slices.Clone(d.MAD[:mad.HeaderSize])
			u.MAD[mad.TIDOffset+7]++
			u.Undelivered = true
			return []Datagram{u, respond(d)}
		}, func(s *Counts) { s.Undelivered = 1 }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(newFake(func(f *fakeTransport, d Datagram) {
					for _, a := range test.answers(d) {
						f.deliver(a)
					}
				}), Options{Retries: -1})
				defer mustClose(t, e)
				c := getNodeInfo(5)
				e.Do(t.Context(), c)
				synctest.Wait()
				want := timedOut
				if test.ok {
					want = Counts{Sent: 1, Answered: 1}
				}
				test.want(&want)
				if diff := cmp.Diff(want, e.Stats().Counts); diff != "" {
					t.Errorf("stats (-want +got):\n%s", diff)
				}
				if test.ok != (c.Err == nil) {
					t.Errorf("error %v", c.Err)
				}
			})
		})
	}
}

// TestLate: what comes after the end is counted as what it is.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			time.AfterFunc(5*time.Second, func() { f.deliver(respond(d)) })
		}), Options{})
		defer mustClose(t, e)
		e.Do(t.Context(), getNodeInfo(5))
		time.Sleep(10 * time.Second) // virtual
		want := Counts{Sent: 6, Retried: 5, TimedOut: 1, Late: 6}
		if diff := cmp.Diff(want, e.Stats().Counts); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// TestFreshBuffer: nothing of an earlier answer goes out with a call's next
// request, and nothing of a long answer stays behind a short one.
func TestFreshBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent [][]byte
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			sent = append(sent, slices.Clone(d.MAD))
			d = respond(d)
			for i := mad.HeaderSize; i < mad.Size; i++ {
				d.MAD[i] = 0xff
			}
			d.MAD = d.MAD[:len(d.MAD)-100*(len(sent)-1)]
			f.deliver(d)
		}), Options{})
		defer mustClose(t, e)
		var c Call
		for range 2 {
			c.PutSMP(mad.MethodGet, 0x11, 7, []byte{1, 2})
			c.SetLID(4)
			c.MAD[200] = 9
			e.Do(t.Context(), &c)
		}
		want := slices.Repeat([]byte{0}, mad.Size)
		copy(want, []byte{1, 1, 1, 1})
		want[mad.AttributeOffset+1], want[mad.ModifierOffset+3] = 0x11, 7
		want[mad.SMPDataOffset], want[mad.SMPDataOffset+1], want[200] = 1, 2, 9
		for i, got := range sent {
			clear(got[mad.TIDOffset : mad.TIDOffset+8])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request %d (-want +got):\n%s", i, diff)
			}
		}
		if got := fmt.Sprint(c.MAD[155], c.MAD[156], c.MAD[200]); got != "255 0 0" {
			t.Errorf("around the end of a short answer: %s", got)
		}
	})
}

// TestHopCount: an answer to a raw MAD counts whatever hop count that has.
func TestHopCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) { f.deliver(respond(d)) }), Options{Write: true})
		defer mustClose(t, e)
		for _, hops := range []byte{0, mad.MaxHops, mad.MaxHops + 1, 255} {
			var c Call
			c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			c.SetRoute(mad.DirectedRoute{0})
			c.MAD[mad.HopCountOffset] = hops
			if e.Do(t.Context(), &c); c.Err != nil {
				t.Errorf("%d hops: %v", hops, c.Err)
			}
		}
	})
}

// FuzzReceive: no datagram makes the engine panic, and a call ends at most once.
func FuzzReceive(f *testing.F) {
	request := getTable(1)
	for _, s := range segmentsOf(Datagram{MAD: request.MAD[:]}, make([]byte, 500), 8) {
		f.Add(s.MAD, uint8(0))
	}
	f.Add(request.MAD[:30], uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, flags uint8) {
		sent := make(chan uint32, 1000)
		fake := newFake(func(f *fakeTransport, d Datagram) {
			if !isControl(d.MAD) {
				sent <- binary.BigEndian.Uint32(d.MAD[mad.TIDOffset+4:])
			}
		})
		fake.traits.RMPP = flags&1 != 0
		e := New(fake, Options{Retries: -1})
		ends := 0
		c := getTable(1)
		c.Notify = CompleterFunc(func(*Call) { ends++ })
		e.Start(c)
		tid := <-sent
		for len(stream) > 0 {
			n := min(len(stream), mad.Size+int(flags&2)*100)
			m := slices.Clone(stream[:n])
			stream = stream[n:]
			if n >= mad.TIDOffset+8 && flags&4 == 0 {
				binary.BigEndian.PutUint32(m[mad.TIDOffset+4:], tid)
			}
			e.mu.Lock()
			e.receiver.receive(&Datagram{MAD: m, Undelivered: flags&8 != 0, Cut: flags&16 != 0}, e.calls.timers.now())
			e.unlock()
		}
		mustClose(t, e)
		if ends != 1 {
			t.Fatalf("ended %d times", ends)
		}
		checkEmpty(t, e)
	})
}
