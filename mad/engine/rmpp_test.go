package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestTable fetches tables of all sizes around segment and window ends.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	sizes := []int{0, 8, 192, 200, 208, 400, 12792, 12800, 12808, 13000, 25800, 1 << 20}
	for _, noACK := range []bool{false, true} {
		for _, size := range sizes {
			synctest.Test(t, func(t *testing.T) {
				want := randomTable(r, size)
				f, senders := agent(func(Datagram) []byte { return want }, (*fakeTransport).deliver)
				if noACK {
					f.traits.NoACK = true
					f.peer = func(f *fakeTransport, d Datagram) {
						for _, s := range segmentsOf(d, want, 8) {
							f.deliver(s)
						}
					}
				}
				e := New(f, Options{})
				defer mustClose(t, e)
				c := getTable(1)
				e.Do(t.Context(), c)
				synctest.Wait()
				if c.Err != nil || c.Table == nil || !bytes.Equal(c.Table, want) || c.Elapsed != 0 {
					t.Errorf("size %d: %v after %v, %d bytes", size, c.Err, c.Elapsed, len(c.Table))
				}
				if n := min(size, mad.SegmentData); !bytes.Equal(c.Data()[:n], want[:n]) {
					t.Errorf("size %d: MAD does not hold the first segment", size)
				}
				segments := max(1, (size+mad.SegmentData-1)/mad.SegmentData)
				acks := 2 + (segments-2)/rmppWindow // of the first, of each window, of the last
				if segments == 1 {
					acks = 1
				}
				if noACK {
					acks = 0
				}
				if s := e.Stats(); s.Sent != uint64(1+acks) || s.Answered != 1 {
					t.Errorf("size %d: %+v, want %d ACKs", size, s, acks)
				}
				for _, s := range senders {
					if s.ended != "complete" {
						t.Errorf("size %d: the sender: %s", size, s.ended)
					}
				}
				records, err := c.Records(8)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(slices.Collect(records)); n != size/8 {
					t.Errorf("size %d: %d records", size, n)
				}
			})
		}
	}
}

// TestTableFaults: over a network that loses, doubles, delays and reorders,
// in both directions, tables come whole.
func TestTableFaults(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			tables := map[mad.LID][]byte{}
			for lid := range mad.LID(8) {
				tables[lid+1] = randomTable(r, r.IntN(40000)/8*8)
			}
			f, senders := agent(func(d Datagram) []byte { return tables[d.LID] }, func(f *fakeTransport, d Datagram) {
				if r.IntN(10) == 0 {
					return
				}
				for range 1 + r.IntN(20)/19 {
					after(time.Duration(r.IntN(5))*ms, func() { f.deliver(d) })
				}
			})
			peer := f.peer
			f.peer = func(f *fakeTransport, d Datagram) {
				f.mu.Lock()
				lost := r.IntN(10) == 0
				f.mu.Unlock()
				if !lost {
					peer(f, d)
				}
			}
			e := New(f, Options{Retries: 20})
			defer mustClose(t, e)
			var calls []*Call
			for lid := range mad.LID(8) {
				calls = append(calls, getTable(lid+1))
			}
			e.Do(t.Context(), calls...)
			for _, c := range calls {
				if c.Err != nil || !bytes.Equal(c.Table, tables[c.To.LID]) {
					t.Errorf("seed %d, LID %d: %v, %d bytes of %d", seed, c.To.LID, c.Err, len(c.Table), len(tables[c.To.LID]))
				}
			}
			time.Sleep(time.Minute) // virtual: each sender must come to an end
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, s := range senders {
				// What is too much was abandoned, or aborted by us.
				if s.ended != "complete" && s.ended != "aborted 118" && s.ended != "aborted 127" {
					t.Errorf("seed %d: sender: %s", seed, s.ended)
				}
			}
			checkEmpty(t, e)
		})
	}
}

// TestTableProgress: as long as segments come, a transfer may last; when they
// stop, what is missing is asked for, and then it is over.
func TestTableProgress(t *testing.T) {
	for _, test := range []struct {
		name    string
		traits  Traits
		gap     time.Duration
		send    int // segments of 10
		elapsed time.Duration
		acks    []string
		err     error
	}{
		{"slow", Traits{}, 900 * ms, 10, 9 * 900 * ms, []string{"0s 1/65", "8.1s 10/65"}, nil},
		{"stops", Traits{}, 900 * ms, 3, 1800*ms + 3*time.Second,
			[]string{"0s 1/65", "2.8s 3/65", "3.8s 3/65", "4.8s abort"}, ErrTimeout},
		// Nothing can be asked for: the whole request is sent again.
		{"stops, no ACKs", Traits{NoACK: true}, 900 * ms, 3, 1800*ms + time.Second + 1800*ms + time.Second + 1800*ms + time.Second, nil, ErrTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var acks []string
				want := randomTable(rand.New(rand.NewPCG(5, 0)), 2000)
				f := newFake(func(f *fakeTransport, d Datagram) {
					at := time.Since(begin)
					switch {
					case !isControl(d.MAD):
						for i, s := range segmentsOf(d, want, 8)[:test.send] {
							after(time.Duration(i)*test.gap, func() { f.deliver(s) })
						}
					case rmppTypeOf(d.MAD) == mad.RMPPTypeAbort:
						acks = append(acks, fmt.Sprint(at, " abort"))
					default:
						acks = append(acks, fmt.Sprintf("%v %d/%d", at, binary.BigEndian.Uint32(d.MAD[mad.SegmentNumberOffset:]), binary.BigEndian.Uint32(d.MAD[mad.NewWindowLastOffset:])))
					}
				})
				f.traits = test.traits
				e := New(f, Options{})
				defer mustClose(t, e)
				c := getTable(1)
				e.Do(t.Context(), c)
				synctest.Wait()
				if !errors.Is(c.Err, test.err) || c.Elapsed != test.elapsed || test.err != nil && !isTimeout(c.Err) {
					t.Errorf("%v after %v; want %v after %v", c.Err, c.Elapsed, test.err, test.elapsed)
				}
				if diff := cmp.Diff(test.acks, acks); diff != "" {
					t.Errorf("ACKs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestTwoTables: the answers to two attempts are never mixed.
func TestTwoTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempt := byte(0)
		f := newFake(func(f *fakeTransport, d Datagram) {
			if isControl(d.MAD) {
				return
			}
			attempt++
			// The segments of the first come from 1000 ms on, every 20 ms;
			// those of the second from 1010 ms on, every 5 ms.
			first, step := 1000, 20
			if attempt > 1 {
				first, step = 110, 5
			}
			for i, s := range segmentsOf(d, bytes.Repeat([]byte{attempt}, 1000), 8) {
				after(time.Duration(first+step*i)*ms, func() { f.deliver(s) })
			}
		})
		e := New(f, Options{})
		defer mustClose(t, e)
		c := getTable(1)
		c.Timeout = 900 * ms
		e.Do(t.Context(), c)
		if c.Err != nil || !bytes.Equal(c.Table, bytes.Repeat([]byte{1}, 1000)) {
			t.Errorf("%v, table % x", c.Err, c.Table)
		}
	})
}

// TestStraySegments: senders whose call is over are told so, once their
// segments come.
func TestStraySegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var control []string
		var segments []Datagram
		f := newFake(func(f *fakeTransport, d Datagram) {
			if isControl(d.MAD) {
				control = append(control, fmt.Sprintf("%#02x type %d status %d, %d/%d", d.MAD[mad.MethodOffset], d.MAD[mad.RMPPTypeOffset], d.MAD[mad.RMPPStatusOffset],
					binary.BigEndian.Uint32(d.MAD[mad.SegmentNumberOffset:]), binary.BigEndian.Uint32(d.MAD[mad.NewWindowLastOffset:])))
				return
			}
			segments = segmentsOf(d, make([]byte, 600), 8)
			if d.LID == 1 {
				for _, s := range segments {
					f.deliver(s)
				}
			}
		})
		e := New(f, Options{Retries: -1})
		defer mustClose(t, e)
		e.Do(t.Context(), getTable(1))
		synctest.Wait()
		control = nil
		f.deliver(segments[2]) // our last ACK was lost
		synctest.Wait()
		e.Do(t.Context(), getTable(2)) // times out
		f.deliver(segments[0])
		synctest.Wait()
		want := []string{"0x12 type 2 status 0, 3/67", "0x12 type 4 status 118, 0/0"}
		if diff := cmp.Diff(want, control); diff != "" {
			t.Errorf("control segments (-want +got):\n%s", diff)
		}
		if s := e.Stats(); s.Duplicate != 1 || s.Late != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestACKBounced: ibsim gives ACKs back; that is no loss of the request.
func TestACKBounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(func(f *fakeTransport, d Datagram) {
			if isControl(d.MAD) {
				d.Undelivered = true
				f.deliver(d)
				return
			}
			for i, s := range segmentsOf(d, make([]byte, 600), 8) {
				after(time.Duration(i)*100*ms, func() { f.deliver(s) })
			}
		})
		e := New(f, Options{Retries: -1})
		defer mustClose(t, e)
		c := getTable(1)
		e.Do(t.Context(), c)
		if c.Err != nil || c.Elapsed != 200*ms {
			t.Errorf("%v after %v", c.Err, c.Elapsed)
		}
	})
}

// TestEndlessTable: of an answer without end as much is taken as the call allows,
// whoever puts it together; its sender is told to stop.
func TestEndlessTable(t *testing.T) {
	for _, kernel := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, _ := agent(func(Datagram) []byte { return make([]byte, 1<<16) }, (*fakeTransport).deliver)
			if kernel {
				f.traits.RMPP = true
				f.peer = func(f *fakeTransport, d Datagram) {
					r := respond(d)
					r.MAD = append(r.MAD[:mad.SADataOffset], make([]byte, 1<<16)...)
					f.deliver(r)
				}
			}
			e := New(f, Options{})
			defer mustClose(t, e)
			for _, test := range []struct {
				most int
				want string
			}{
				{0, "<nil>"},
				{1 << 16, "<nil>"},
				{1 << 15, "SubnAdmGetTable(NodeRecord) to LID 1: the table is longer than 32768 bytes; request less at once"},
			} {
				c := getTable(1)
				c.MaxTable = test.most
				e.Do(t.Context(), c)
				if got := fmt.Sprint(c.Err); got != test.want {
					t.Errorf("kernel %v, at most %d: %s", kernel, test.most, got)
				}
			}
			synctest.Wait()
		})
	}
}
