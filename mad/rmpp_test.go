package mad

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
)

// segmentsOf is the response to request with the given table, as an SA sends
// it: header fields as in Linux (mad_rmpp.c, send_next_seg).
func segmentsOf(request Datagram, table []byte, record int) []Datagram {
	n := max(1, (len(table)+segmentData-1)/segmentData)
	list := make([]Datagram, n)
	for i := range list {
		d := respond(request)
		binary.BigEndian.PutUint16(d.MAD[SAAttrOffsetOffset:], uint16((record+7)/8))
		part := table[i*segmentData : min(len(table), (i+1)*segmentData)]
		clear(d.MAD[SADataOffset:])
		copy(d.MAD[SADataOffset:], part)
		flags, length := byte(rmppActive), 0
		if i == 0 {
			flags |= rmppFirst
			length = len(table) + n*rmppClassHeader
		}
		if i == n-1 {
			flags |= rmppLast
			length = len(part) + rmppClassHeader
		}
		d.MAD[offRMPPVersion], d.MAD[offRMPPType], d.MAD[offRMPPFlags] = 1, rmppData, 0x1f<<3|flags
		binary.BigEndian.PutUint32(d.MAD[offSegment:], uint32(i+1))
		binary.BigEndian.PutUint32(d.MAD[offPayloadLength:], uint32(length))
		list[i] = d
	}
	return list
}

// isControl: m is an ACK, STOP or ABORT.
func isControl(m []byte) bool { return isSegment(m) && m[offRMPPType] != rmppData }

func getTable(lid LID) *Call {
	c := new(Call)
	c.PutSA(MethodGetTable, 0x11, 0, 0, nil)
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

// sender is an SA's side of RMPP: it sends what the window allows, and what
// was not acknowledged again after 200 ms, three times.
type sender struct {
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

func (s *sender) start() {
	s.window = 1
	s.timer = time.AfterFunc(time.Hour, s.expired)
	s.advance()
}

func (s *sender) advance() {
	for s.sent < min(s.window, len(s.segments)) {
		s.send(s.segments[s.sent])
		s.sent++
	}
	s.timer.Reset(200 * ms)
}

func (s *sender) expired() {
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

func (s *sender) control(m []byte) {
	segment := int(binary.BigEndian.Uint32(m[offSegment:]))
	window := int(binary.BigEndian.Uint32(m[offNewWindowLast:]))
	switch {
	case s.ended != "":
	case m[offRMPPType] == rmppAbort:
		s.ended = fmt.Sprintf("aborted %d", m[offRMPPStatus])
	case m[offRMPPType] != rmppACK || m[offRMPPVersion] != 1 || m[offRMPPFlags]&7 != rmppActive || m[offRMPPStatus] != 0:
		s.ended = fmt.Sprintf("bad control segment % x", m[RMPPOffset:SADataOffset])
	case window < segment:
		s.ended = "new window too small"
	case segment > s.window || segment > len(s.segments):
		s.ended = "segment number too big"
	case window < s.window || segment < s.acked: // an old ACK
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
func agent(table func(d Datagram) []byte, fault func(f *fakeTransport, d Datagram)) (*fakeTransport, map[uint64]*sender) {
	senders := map[uint64]*sender{}
	f := newFake(func(f *fakeTransport, d Datagram) {
		f.mu.Lock()
		defer f.mu.Unlock()
		tid := binary.BigEndian.Uint64(d.MAD[offTID:])
		if isSegment(d.MAD) {
			// An ACK carries the ID of our response, upper half and all.
			if s := senders[tid&0xffffffff]; s != nil && tid>>32 == 0xabcd0000 && Method(d.MAD[offMethod]) == MethodGetTable {
				s.control(d.MAD)
			}
			return
		}
		s := &sender{f: f, segments: segmentsOf(d, table(d), 8), send: func(d Datagram) { fault(f, d) }}
		senders[tid] = s
		s.start()
	})
	return f, senders
}

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
				e := NewEngine(f, Options{})
				defer mustClose(t, e)
				c := getTable(1)
				e.Do(t.Context(), c)
				synctest.Wait()
				if c.Err != nil || c.Table == nil || !bytes.Equal(c.Table, want) || c.Elapsed != 0 {
					t.Errorf("size %d: %v after %v, %d bytes", size, c.Err, c.Elapsed, len(c.Table))
				}
				if n := min(size, segmentData); !bytes.Equal(c.Data()[:n], want[:n]) {
					t.Errorf("size %d: MAD does not hold the first segment", size)
				}
				segments := max(1, (size+segmentData-1)/segmentData)
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
			tables := map[LID][]byte{}
			for lid := range LID(8) {
				tables[lid+1] = randomTable(r, r.IntN(40000)/8*8)
			}
			f, senders := agent(func(d Datagram) []byte { return tables[d.LID] }, func(f *fakeTransport, d Datagram) {
				if r.IntN(10) == 0 {
					return
				}
				for range 1 + r.IntN(20)/19 {
					time.AfterFunc(time.Duration(r.IntN(5))*ms, func() { f.deliver(d) })
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
			e := NewEngine(f, Options{Retries: 20})
			defer mustClose(t, e)
			var calls []*Call
			for lid := range LID(8) {
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

// TestTableErrors: whatever is wrong with a table, the call ends with an
// error that says so, and never with fewer records.
func TestTableErrors(t *testing.T) {
	const timedOut = ": timed out after 1 attempt"
	put32 := func(m []byte, at int, v uint32) { binary.BigEndian.PutUint32(m[at:], v) }
	for _, test := range []struct {
		name   string
		size   int
		traits Traits
		change func(s []Datagram) []Datagram
		err    string
		abort  byte // status of the ABORT we send; 0: none
	}{
		{name: "aborted", size: 1000, change: func(s []Datagram) []Datagram {
			s[2].MAD[offRMPPType], s[2].MAD[offRMPPStatus] = rmppAbort, 126
			return s[:3]
		}, err: "the sender aborted the table: RMPP status 126, too many retries"},
		{name: "stopped", size: 1000, change: func(s []Datagram) []Datagram {
			s[0].MAD[offRMPPType], s[0].MAD[offRMPPStatus] = rmppStop, 1
			return s[:1]
		}, err: "the sender stopped the table: RMPP status 1, resources exhausted"},
		{name: "unknown status", size: 1000, change: func(s []Datagram) []Datagram {
			s[0].MAD[offRMPPType], s[0].MAD[offRMPPStatus] = rmppAbort, 77
			return s[:1]
		}, err: "the sender aborted the table: RMPP status 77, unknown"},
		{name: "end missing", size: 1000, change: func(s []Datagram) []Datagram { return s[:3] },
			err: "table incomplete, segment 4" + timedOut, abort: rmppTooLong},
		{name: "middle missing", size: 1000, change: func(s []Datagram) []Datagram { return append(s[:2], s[3:]...) },
			err: "table incomplete, segment 3" + timedOut, abort: rmppTooLong},
		{name: "first missing", size: 1000, change: func(s []Datagram) []Datagram { return s[1:] },
			err: "table incomplete, segment 1" + timedOut, abort: rmppTooLong},
		{name: "last too early", size: 1000, change: func(s []Datagram) []Datagram {
			s[2].MAD[offRMPPFlags] |= rmppLast
			put32(s[2].MAD, offPayloadLength, 220)
			return s[:3]
		}, err: "malformed table: 660 bytes at most have come, of 1100 that the first segment announced", abort: rmppBadLength},
		{name: "more after the last", size: 1000, change: func(s []Datagram) []Datagram {
			s[2].MAD[offRMPPFlags] |= rmppLast
			put32(s[2].MAD, offPayloadLength, 220)
			return []Datagram{s[0], s[1], s[3], s[2]}
		}, err: "malformed table: segment 3 is the last, but there are later ones", abort: rmppBadLength},
		{name: "beyond the last", size: 1000, change: func(s []Datagram) []Datagram {
			s[3].MAD[offRMPPFlags] |= rmppLast
			put32(s[3].MAD, offPayloadLength, 220)
			return []Datagram{s[0], s[3], s[4]}
		}, err: "malformed table: segment 5, but the last was 4", abort: rmppBadLength},
		{name: "last segment of 201 bytes", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[4].MAD, offPayloadLength, 221)
			return s
		}, err: "malformed table: last segment with payload length 221", abort: rmppBadLength},
		{name: "last segment of -1 bytes", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[4].MAD, offPayloadLength, 19)
			return s
		}, err: "malformed table: last segment with payload length 19", abort: rmppBadLength},
		{name: "announces 4 GB", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[0].MAD, offPayloadLength, 0xffffffff)
			return s
		}, err: "malformed table: 1100 bytes at most have come, of 4294967295 that the first segment announced", abort: rmppBadLength},
		{name: "announces nothing", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[0].MAD, offPayloadLength, 0)
			return s
		}},
		{name: "announces data alone", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[0].MAD, offPayloadLength, 1000)
			return s
		}},
		{name: "segment 0", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[1].MAD, offSegment, 0)
			return s
		}, err: "malformed table: segment number 0 does not go with the flag of the first segment", abort: rmppBadFirst},
		{name: "two first segments", size: 1000, change: func(s []Datagram) []Datagram {
			s[1].MAD[offRMPPFlags] |= rmppFirst
			return s
		}, err: "malformed table: segment number 2 does not go with the flag of the first segment", abort: rmppBadFirst},
		{name: "segment far ahead", size: 1000, change: func(s []Datagram) []Datagram {
			put32(s[1].MAD, offSegment, 0xffffffff)
			return s
		}, err: "table incomplete, segment 2" + timedOut, abort: rmppTooLong},
		{name: "version 2", size: 1000, change: func(s []Datagram) []Datagram {
			s[0].MAD[offRMPPVersion] = 2
			return s
		}, err: "malformed table: RMPP version 2", abort: 125},
		{name: "status of a segment", size: 1000, change: func(s []Datagram) []Datagram {
			s[0].MAD[offRMPPStatus] = 1
			return s
		}, err: "malformed table: segment 1 has RMPP status 1", abort: 124},
		{name: "reversed", size: 1000, change: func(s []Datagram) []Datagram {
			slices.Reverse(s)
			return s
		}},
		{name: "cut segment", size: 400, change: func(s []Datagram) []Datagram {
			s[1].Cut = true
			return s
		}, err: "table cut by the transport", abort: rmppUnspecified},
		{name: "cut in a middle segment", size: 600, change: func(s []Datagram) []Datagram {
			s[1].Cut = true
			return s
		}, err: "table cut by the transport", abort: rmppUnspecified},
		{name: "no records", size: 0, change: func(s []Datagram) []Datagram {
			return []Datagram{withStatus(s[0], StatusNoRecords)}
		}, err: "no records (status 0x0300)"},
		{name: "whole, not segmented, short", size: 100, change: func(s []Datagram) []Datagram {
			clear(s[0].MAD[RMPPOffset : RMPPOffset+12])
			s[0].MAD = s[0].MAD[:SADataOffset+100]
			return s
		}},
		{name: "not segmented, of unknown length", size: 100, change: func(s []Datagram) []Datagram {
			clear(s[0].MAD[RMPPOffset : RMPPOffset+12])
			return s
		}, err: "table cut by the transport: it does not say how long it is"},
		{name: "not segmented, cut", size: 1000, change: func(s []Datagram) []Datagram {
			clear(s[0].MAD[RMPPOffset : RMPPOffset+12])
			s[0].MAD[offRMPPFlags] = rmppActive // OpenSM on ibsim's client library
			s[0].Cut = true
			return s[:1]
		}, err: "table cut by the transport"},
		{name: "put together by the kernel", size: 1000, traits: Traits{RMPP: true}, change: func(s []Datagram) []Datagram {
			for _, next := range s[1:] {
				s[0].MAD = append(s[0].MAD, next.MAD[SADataOffset:]...)
			}
			return s[:1]
		}},
		{name: "one segment by the kernel", size: 104, traits: Traits{RMPP: true}, change: func(s []Datagram) []Datagram { return s }},
		{name: "one segment by the kernel, bad length", size: 0, traits: Traits{RMPP: true}, change: func(s []Datagram) []Datagram {
			put32(s[0].MAD, offPayloadLength, 3)
			return s
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want := randomTable(rand.New(rand.NewPCG(4, 0)), test.size)
				var aborts, first []byte
				f := newFake(func(f *fakeTransport, d Datagram) {
					if isControl(d.MAD) {
						if d.MAD[offRMPPType] == rmppAbort {
							aborts = append(aborts, d.MAD[offRMPPStatus])
						}
						return
					}
					segments := segmentsOf(d, want, 4)
					first = segments[0].MAD
					for _, s := range test.change(segments) {
						f.deliver(s)
					}
				})
				f.traits = test.traits
				e := NewEngine(f, Options{Retries: -1})
				defer mustClose(t, e)
				c := getTable(1)
				e.Do(t.Context(), c)
				synctest.Wait()
				if test.err == "" {
					if c.Err != nil || c.Table == nil || !bytes.Equal(c.Table, want) {
						t.Errorf("%v, %d bytes of %d", c.Err, len(c.Table), len(want))
					}
					if !bytes.HasPrefix(first, c.MAD[:min(len(first), Size)]) {
						t.Error("MAD is not the first segment")
					}
				} else if c.Err == nil || c.Err.Error() != "SubnAdmGetTable(NodeRecord) to LID 1: "+test.err {
					t.Errorf("error\n got %v\nwant SubnAdmGetTable(NodeRecord) to LID 1: %s", c.Err, test.err)
				} else if c.Table != nil {
					t.Errorf("%d bytes beside an error", len(c.Table))
				}
				wantAborts := []byte(nil)
				if test.abort != 0 {
					wantAborts = []byte{test.abort}
				}
				if len(aborts) > 0 && test.abort != 0 { // later segments may call for more
					aborts = aborts[:1]
				}
				if diff := cmp.Diff(wantAborts, aborts); diff != "" {
					t.Errorf("ABORTs sent (-want +got):\n%s", diff)
				}
				checkEmpty(t, e)
			})
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
							time.AfterFunc(time.Duration(i)*test.gap, func() { f.deliver(s) })
						}
					case d.MAD[offRMPPType] == rmppAbort:
						acks = append(acks, fmt.Sprint(at, " abort"))
					default:
						acks = append(acks, fmt.Sprintf("%v %d/%d", at, binary.BigEndian.Uint32(d.MAD[offSegment:]), binary.BigEndian.Uint32(d.MAD[offNewWindowLast:])))
					}
				})
				f.traits = test.traits
				e := NewEngine(f, Options{})
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
				time.AfterFunc(time.Duration(first+step*i)*ms, func() { f.deliver(s) })
			}
		})
		e := NewEngine(f, Options{})
		defer mustClose(t, e)
		c := getTable(1)
		c.Timeout = 900 * ms
		e.Do(t.Context(), c)
		if c.Err != nil || !bytes.Equal(c.Table, bytes.Repeat([]byte{1}, 1000)) {
			t.Errorf("%v, table % x", c.Err, c.Table)
		}
	})
}

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
			m := make([]byte, Size)
			m[offRMPPVersion], m[offRMPPType] = 1, rmppData
			a := newAssembly(m, Address{})
			for i, want := range steps {
				m[offRMPPFlags] = rmppActive
				if want.n == 1 {
					m[offRMPPFlags] |= rmppFirst
				}
				if want.last {
					m[offRMPPFlags] |= rmppLast
				}
				binary.BigEndian.PutUint32(m[offSegment:], want.n)
				binary.BigEndian.PutUint32(m[offPayloadLength:], 220)
				got := step{n: want.n, last: want.last}
				var err error
				if got.progress, got.ack, err = a.add(m); err != nil {
					t.Fatal(err)
				}
				if got.ack {
					a.acked = a.next - 1
				}
				got.acked, got.granted = a.acked, a.granted
				if got != want {
					t.Errorf("step %d: got %+v, want %+v", i, got, want)
				}
			}
		})
	}
	m := make([]byte, Size)
	m[offRMPPVersion], m[offRMPPType], m[offRMPPFlags] = 1, rmppData, rmppActive
	a := newAssembly(m, Address{})
	a.next = maxTable/segmentData + 1
	binary.BigEndian.PutUint32(m[offSegment:], a.next)
	if _, _, err := a.add(m); err == nil || err.Error() != "malformed table: longer than 1073741824 bytes" {
		t.Errorf("endless table: %v", err)
	}
}

// TestStraySegments: senders whose call is over are told so, once their
// segments come.
func TestStraySegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var control []string
		var segments []Datagram
		f := newFake(func(f *fakeTransport, d Datagram) {
			if isControl(d.MAD) {
				control = append(control, fmt.Sprintf("%#02x type %d status %d, %d/%d", d.MAD[offMethod], d.MAD[offRMPPType], d.MAD[offRMPPStatus],
					binary.BigEndian.Uint32(d.MAD[offSegment:]), binary.BigEndian.Uint32(d.MAD[offNewWindowLast:])))
				return
			}
			segments = segmentsOf(d, make([]byte, 600), 8)
			if d.LID == 1 {
				for _, s := range segments {
					f.deliver(s)
				}
			}
		})
		e := NewEngine(f, Options{Retries: -1})
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
				time.AfterFunc(time.Duration(i)*100*ms, func() { f.deliver(s) })
			}
		})
		e := NewEngine(f, Options{Retries: -1})
		defer mustClose(t, e)
		c := getTable(1)
		e.Do(t.Context(), c)
		if c.Err != nil || c.Elapsed != 200*ms {
			t.Errorf("%v after %v", c.Err, c.Elapsed)
		}
	})
}

// TestRecords: the table is a whole number of records, or there is an error.
func TestRecords(t *testing.T) {
	for _, test := range []struct {
		table, units, size int
		want               []int // lengths
		err                string
	}{
		{table: 0, units: 0, size: 108},
		{table: 112, units: 14, size: 108, want: []int{112}},
		{table: 224, units: 14, size: 108, want: []int{112, 112}},
		{table: 220, units: 14, size: 108, want: []int{112, 108}},
		{table: 219, units: 14, size: 108, err: "malformed table: 219 bytes are no whole number of records 112 bytes apart"},
		{table: 112, units: 13, size: 108, err: "malformed table: records 104 bytes apart, but at least 108 bytes long"},
		{table: 112, units: 0, size: 108, err: "malformed table: records 0 bytes apart, but at least 108 bytes long"},
		{table: 112, units: 0, size: 0, err: "malformed table: records 0 bytes apart, but at least 0 bytes long"},
		{table: -1, units: 0, size: 108, want: []int{108}},
		{table: -1, units: 0, size: 1000, want: []int{200}},
	} {
		c := getTable(1)
		binary.BigEndian.PutUint16(c.MAD[SAAttrOffsetOffset:], uint16(test.units))
		if test.table >= 0 {
			c.Table = make([]byte, test.table)
		}
		records, err := c.Records(test.size)
		var got []int
		text := ""
		if err != nil {
			text = errors.Unwrap(err).Error()
		} else {
			for r := range records {
				got = append(got, len(r))
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" || text != test.err {
			t.Errorf("%+v: %q (-want +got):\n%s", test, text, diff)
		}
	}
	c := getTable(1)
	c.Err = ErrCut
	if _, err := c.Records(8); err != ErrCut {
		t.Errorf("of a failed call: %v", err)
	}
}

// FuzzAssembly: whatever segments come, there is no panic, memory grows only
// with what came, and a table that is complete is what its segments held.
func FuzzAssembly(f *testing.F) {
	f.Add([]byte{1, 3, 100, 2, 1, 0, 3, 5, 220})
	f.Add([]byte{1, 7, 20})
	f.Add([]byte{2, 1, 0, 1, 3, 0, 2, 1, 0, 3, 5, 30})
	f.Fuzz(func(t *testing.T, script []byte) {
		m := make([]byte, Size)
		a := newAssembly(m, Address{})
		held := map[uint32]byte{}
		came := 0
		for i := 0; i+3 <= len(script) && !a.done(); i += 3 {
			// Three bytes a segment: number, flags, payload length.
			n := uint32(int8(script[i]))
			m[offRMPPVersion], m[offRMPPType], m[offRMPPFlags] = 1, rmppData, script[i+1]
			m[offRMPPStatus] = script[i+1] >> 7
			binary.BigEndian.PutUint32(m[offSegment:], n)
			binary.BigEndian.PutUint32(m[offPayloadLength:], uint32(int8(script[i+2]))+20)
			for j := range segmentData {
				m[SADataOffset+j] = byte(i)
			}
			before := a.next
			progress, _, err := a.add(m)
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
		if len(a.data) > (came+rmppWindow)*segmentData {
			t.Fatalf("%d bytes held for %d segments", len(a.data), came)
		}
		if !a.done() {
			return
		}
		table := a.table()
		if n := uint32((len(table) + segmentData - 1) / segmentData); n > a.last || n+1 < a.last {
			t.Fatalf("%d bytes of %d segments", len(table), a.last)
		}
		for i, b := range table {
			if b != held[uint32(i/segmentData+1)] {
				t.Fatalf("byte %d is not of its segment", i)
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
				sent <- binary.BigEndian.Uint32(d.MAD[offTID+4:])
			}
		})
		fake.traits.RMPP = flags&1 != 0
		e := NewEngine(fake, Options{Retries: -1})
		ends := 0
		c := getTable(1)
		c.Notify = CompleterFunc(func(*Call) { ends++ })
		e.Start(c)
		tid := <-sent
		for len(stream) > 0 {
			n := min(len(stream), Size+int(flags&2)*100)
			m := slices.Clone(stream[:n])
			stream = stream[n:]
			if n >= offTID+8 && flags&4 == 0 {
				binary.BigEndian.PutUint32(m[offTID+4:], tid)
			}
			var ended callList
			e.mu.Lock()
			e.receive(&Datagram{MAD: m, Undelivered: flags&8 != 0, Cut: flags&16 != 0}, e.now(), &ended)
			e.unlock()
			ended.complete()
		}
		mustClose(t, e)
		if ends != 1 {
			t.Fatalf("ended %d times", ends)
		}
		checkEmpty(t, e)
	})
}
