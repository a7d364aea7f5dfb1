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
			// segments of the second from 1010 ms on, every 5 ms.
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

// TestStraySegments: senders whose call is over are informed, once their
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
// whoever puts it together; its sender gets an ABORT.
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

// maxTestTable is how long a table may be, in bytes.
const maxTestTable = 64 << 20

// TestAssembly: what each segment leads to.
func TestAssembly(t *testing.T) {
	type step struct {
		n              uint32
		last           bool
		progress, ack  bool
		acked, granted uint32
	}
	for name, steps := range map[string][]step{
		"first again, our ACK was lost": {{1, false, true, true, 1, 65}, {1, false, false, true, 1, 65}},
		"second again, not yet acknowledged": {
			{1, false, true, true, 1, 65}, {2, false, true, false, 1, 65}, {2, false, false, false, 1, 65}},
		"out of order": {
			{1, false, true, true, 1, 65}, {4, true, true, false, 1, 65}, {4, true, false, false, 1, 65},
			{3, false, true, false, 1, 65}, {2, false, true, true, 4, 65}},
		"too far ahead": {{1, false, true, true, 1, 65}, {66, false, false, false, 1, 65}, {65, false, true, false, 1, 65}},
	} {
		t.Run(name, func(t *testing.T) {
			m := make([]byte, mad.Size)
			m[mad.RMPPVersionOffset], m[mad.RMPPTypeOffset] = 1, byte(mad.RMPPTypeData)
			a := newRMPPAssembly(m, maxTestTable)
			for i, want := range steps {
				m[mad.RMPPFlagsOffset] = byte(mad.RMPPFlagsActive)
				if want.n == 1 {
					m[mad.RMPPFlagsOffset] |= byte(mad.RMPPFlagsFirst)
				}
				if want.last {
					m[mad.RMPPFlagsOffset] |= byte(mad.RMPPFlagsLast)
				}
				binary.BigEndian.PutUint32(m[mad.SegmentNumberOffset:], want.n)
				binary.BigEndian.PutUint32(m[mad.PayloadLengthOffset:], 220)
				got := step{n: want.n, last: want.last}
				var err error
				if got.progress, got.ack, err = a.Add(m); err != nil {
					t.Fatal(err)
				}
				if got.ack {
					a.Acknowledge()
				}
				got.acked, got.granted = a.acked, a.granted
				if got != want {
					t.Errorf("step %d: got %+v, want %+v", i, got, want)
				}
			}
		})
	}
	m := make([]byte, mad.Size)
	m[mad.RMPPVersionOffset], m[mad.RMPPTypeOffset], m[mad.RMPPFlagsOffset] = 1, byte(mad.RMPPTypeData), byte(mad.RMPPFlagsActive)
	a := newRMPPAssembly(m, maxTestTable)
	a.next = maxTestTable/mad.SegmentData + 2
	binary.BigEndian.PutUint32(m[mad.SegmentNumberOffset:], a.next)
	if _, _, err := a.Add(m); err == nil || err.Error() != "the table is longer than 67108864 bytes; request less at once" {
		t.Errorf("endless table: %v", err)
	}
}

// FuzzAssembly: whatever segments come, there is no panic, memory grows only
// with what came, and a table that is complete is what its segments held.
func FuzzAssembly(f *testing.F) {
	f.Add([]byte{1, 3, 100, 2, 1, 0, 3, 5, 220})
	f.Add([]byte{1, 7, 20})
	f.Add([]byte{2, 1, 0, 1, 3, 0, 2, 1, 0, 3, 5, 30})
	f.Fuzz(func(t *testing.T, script []byte) {
		m := make([]byte, mad.Size)
		a := newRMPPAssembly(m, maxTestTable)
		held := map[uint32]byte{}
		came := 0
		for i := 0; i+3 <= len(script) && !a.Done(); i += 3 {
			// Three bytes a segment: number, flags, payload length.
			n := uint32(int8(script[i]))
			m[mad.RMPPVersionOffset], m[mad.RMPPTypeOffset], m[mad.RMPPFlagsOffset] = 1, byte(mad.RMPPTypeData), script[i+1]
			m[mad.RMPPStatusOffset] = script[i+1] >> 7
			binary.BigEndian.PutUint32(m[mad.SegmentNumberOffset:], n)
			binary.BigEndian.PutUint32(m[mad.PayloadLengthOffset:], uint32(int8(script[i+2]))+20)
			for j := range mad.SegmentData {
				m[mad.SADataOffset+j] = byte(i)
			}
			before := a.next
			progress, _, err := a.Add(m)
			if err != nil {
				return
			}
			if progress {
				if _, twice := held[n]; twice {
					t.Fatalf("segment %d taken twice", n)
				}
				held[n] = byte(i)
				came++
			}
			if a.next < before {
				t.Fatal("went back")
			}
		}
		if cap(a.data) > 2*(came+rmppWindow)*mad.SegmentData {
			t.Fatalf("%d bytes held for %d segments", cap(a.data), came)
		}
		if !a.Done() {
			return
		}
		table := a.Table()
		if n := uint32((len(table) + mad.SegmentData - 1) / mad.SegmentData); n > a.last || n+1 < a.last {
			t.Fatalf("%d bytes of %d segments", len(table), a.last)
		}
		for i, b := range table {
			if b != held[uint32(i/mad.SegmentData+1)] {
				t.Fatalf("byte %d is not of its segment", i)
			}
		}
	})
}

// segmentsOf is the response to request with the given table, as an SA sends
// it: header fields as in Linux (mad_rmpp.c, send_next_seg).
func segmentsOf(request Datagram, table []byte, record int) []Datagram {
	n := max(1, (len(table)+mad.SegmentData-1)/mad.SegmentData)
	list := make([]Datagram, n)
	for i := range list {
		d := respond(request)
		binary.BigEndian.PutUint16(d.MAD[mad.SAAttrOffsetOffset:], uint16((record+7)/8))
		part := table[i*mad.SegmentData : min(len(table), (i+1)*mad.SegmentData)]
		clear(d.MAD[mad.SADataOffset:])
		copy(d.MAD[mad.SADataOffset:], part)
		flags, length := byte(mad.RMPPFlagsActive), 0
		if i == 0 {
			flags |= byte(mad.RMPPFlagsFirst)
			length = len(table) + n*mad.SegmentHeader
		}
		if i == n-1 {
			flags |= byte(mad.RMPPFlagsLast)
			length = len(part) + mad.SegmentHeader
		}
		d.MAD[mad.RMPPVersionOffset], d.MAD[mad.RMPPTypeOffset], d.MAD[mad.RMPPFlagsOffset] = 1, byte(mad.RMPPTypeData), 0x1f<<3|flags
		binary.BigEndian.PutUint32(d.MAD[mad.SegmentNumberOffset:], uint32(i+1))
		binary.BigEndian.PutUint32(d.MAD[mad.PayloadLengthOffset:], uint32(length))
		list[i] = d
	}
	return list
}

// isControl: m is an ACK, STOP or ABORT.
func isControl(m []byte) bool { return mad.IsSegment(m) && rmppTypeOf(m) != mad.RMPPTypeData }

func getTable(lid mad.LID) *Call {
	c := new(Call)
	c.PutSA(mad.MethodGetTable, 0x11, 0, 0, nil)
	c.SetLID(lid)
	return c
}

func randomTable(r *rand.Rand, n int) []byte {
	table := make([]byte, n)
	for i := range table {
		table[i] = byte(r.Uint32())
	}
	return table
}

// tableSender is an SA's side of RMPP: it sends what the window allows, and what
// was not acknowledged again after 200 ms, three times.
type tableSender struct {
	f        *fakeTransport
	send     func(Datagram) // maybe with faults
	segments []Datagram
	sent     int // highest sent, from 1
	acked    int
	window   int // highest allowed
	tries    int
	timer    *time.Timer
	ended    string
}

func (s *tableSender) start() {
	s.window = 1
	s.timer = time.AfterFunc(time.Hour, s.expired)
	s.advance()
}

func (s *tableSender) advance() {
	for s.sent < min(s.window, len(s.segments)) {
		s.send(s.segments[s.sent])
		s.sent++
	}
	s.timer.Reset(200 * ms)
}

func (s *tableSender) expired() {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.ended != "" {
		return
	}
	if s.tries++; s.tries > 20 {
		s.ended = "too many retries"
		return
	}
	s.sent = s.acked
	s.advance()
}

func (s *tableSender) control(m []byte) {
	segment := int(binary.BigEndian.Uint32(m[mad.SegmentNumberOffset:]))
	window := int(binary.BigEndian.Uint32(m[mad.NewWindowLastOffset:]))
	switch {
	case s.ended != "":
	case rmppTypeOf(m) == mad.RMPPTypeAbort:
		s.ended = fmt.Sprintf("aborted %d", m[mad.RMPPStatusOffset])
	case rmppTypeOf(m) != mad.RMPPTypeACK || m[mad.RMPPVersionOffset] != 1 || rmppHeaderOf(m).RMPPFlags != mad.RMPPFlagsActive || m[mad.RMPPStatusOffset] != 0:
		s.ended = fmt.Sprintf("bad control segment % x", m[mad.RMPPOffset:mad.SADataOffset])
	case window < segment:
		s.ended = "new window too small"
	case segment > s.window || segment > len(s.segments):
		s.ended = "segment number too big"
	case window < s.window || segment < s.acked: // an old ACK
		return
	default:
		if segment > s.acked {
			s.tries = 0
		}
		s.acked, s.window = segment, window
		s.sent = max(s.sent, s.acked)
		if s.acked == len(s.segments) {
			s.ended = "complete"
			return
		}
		s.advance()
		return
	}
	s.timer.Stop()
}

// agent is an SA over a faulty network.
func agent(table func(d Datagram) []byte, fault func(f *fakeTransport, d Datagram)) (*fakeTransport, map[uint64]*tableSender) {
	senders := map[uint64]*tableSender{}
	f := newFake(func(f *fakeTransport, d Datagram) {
		f.mu.Lock()
		defer f.mu.Unlock()
		tid := binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:])
		if mad.IsSegment(d.MAD) {
			// An ACK carries the ID of our response, upper half and all.
			if s := senders[tid&0xffffffff]; s != nil && tid>>32 == 0xabcd0000 && mad.Method(d.MAD[mad.MethodOffset]) == mad.MethodGetTable {
				s.control(d.MAD)
			}
			return
		}
		s := &tableSender{f: f, segments: segmentsOf(d, table(d), 8), send: func(d Datagram) { fault(f, d) }}
		senders[tid] = s
		s.start()
	})
	return f, senders
}
