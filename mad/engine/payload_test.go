package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/mad"
)

// payloadReceiver is an SA's side of a long request, as Linux has it (mad_rmpp.c):
// segments in any order up to the window's end, which moves when it is reached.
type payloadReceiver struct {
	window int // segments, added when the end is reached
	got    map[uint32][]byte
	next   uint32 // all before it are here
	end    uint32 // of the window
	acked  uint32
	last   uint32
	claim  uint32 // bytes, by the first segment
	whole  []byte // when all is here
	turned bool   // the sender acknowledged our last ACK
}

// ack is an ACK to segment d.
func ack(d Datagram, segment, window uint32) Datagram {
	return answerSegment(d, mad.RMPPTypeACK, 0, segment, window)
}

// answerSegment is a control segment that answers segment d.
func answerSegment(d Datagram, kind mad.RMPPType, status mad.RMPPStatus, segment, window uint32) Datagram {
	d = respond(d)
	clear(d.MAD[mad.SADataOffset:])
	d.MAD[mad.RMPPVersionOffset], d.MAD[mad.RMPPTypeOffset], d.MAD[mad.RMPPFlagsOffset], d.MAD[mad.RMPPStatusOffset] = 1, byte(kind), mad.NoRespTime<<3|byte(mad.RMPPFlagsActive), byte(status)
	binary.BigEndian.PutUint32(d.MAD[mad.SegmentNumberOffset:], segment)
	binary.BigEndian.PutUint32(d.MAD[mad.NewWindowLastOffset:], window)
	return d
}

// take takes in a segment and returns what it answers.
func (r *payloadReceiver) take(d Datagram) (answers []Datagram) {
	var h mad.RMPPHeader
	h.Decode(d.MAD[mad.RMPPOffset:])
	if r.got == nil {
		r.got, r.next, r.end = map[uint32][]byte{}, 1, 1
	}
	n := h.SegmentNumber
	switch {
	case h.RMPPType == mad.RMPPTypeACK:
		r.turned = r.whole != nil && n == 0 && h.PayloadLength >= 1
		return nil
	case h.RMPPType != mad.RMPPTypeData || n > r.end || n == 0:
		return nil
	case n <= r.acked || r.whole != nil:
		return []Datagram{ack(d, r.next-1, r.end)}
	}
	if n == 1 {
		r.claim = h.PayloadLength
	}
	size := uint32(mad.SegmentData)
	if h.RMPPFlags&mad.RMPPFlagsLast != 0 {
		r.last, size = n, h.PayloadLength-mad.SegmentHeader
	}
	r.got[n] = bytes.Clone(d.MAD[mad.SADataOffset:][:size])
	for r.got[r.next] != nil {
		r.next++
	}
	switch {
	case r.next-1 == r.last:
		for i := range r.last {
			r.whole = append(r.whole, r.got[i+1]...)
		}
		if r.whole == nil {
			r.whole = []byte{}
		}
	case r.next-1 == r.end:
		r.end += uint32(r.window)
	default:
		return nil
	}
	r.acked = r.next - 1
	return []Datagram{ack(d, r.acked, r.end)}
}

// getMulti is a request for a MultiPathRecord, which this peer does not read.
func getMulti(payload []byte) *Call {
	c := &Call{Payload: payload}
	c.PutSA(mad.MethodGetMulti, mad.AttrMultiPathRecord.ID, 0, 0, nil)
	c.SetLID(1)
	return c
}

// multiAgent takes long requests over a faulty network and answers each with a
// table of its bytes, so that both directions are seen.
type multiAgent struct {
	receivers map[uint64]*payloadReceiver
	senders   map[uint64]*tableSender
	aborted   map[uint64]uint8
}

func newMultiAgent(window int, deliver func(f *fakeTransport, d Datagram)) (*fakeTransport, *multiAgent) {
	a := &multiAgent{map[uint64]*payloadReceiver{}, map[uint64]*tableSender{}, map[uint64]uint8{}}
	return newFake(func(f *fakeTransport, d Datagram) {
		f.mu.Lock()
		defer f.mu.Unlock()
		tid := binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:])
		// What answers our response has the upper half that respond puts there.
		if s := a.senders[tid&0xffffffff]; tid>>32 != 0 && s != nil && binary.BigEndian.Uint32(d.MAD[mad.SegmentNumberOffset:]) > 0 || s != nil && rmppTypeOf(d.MAD) == mad.RMPPTypeAbort {
			s.control(d.MAD)
			return
		}
		tid &= 0xffffffff
		if rmppTypeOf(d.MAD) == mad.RMPPTypeAbort {
			a.aborted[tid] = d.MAD[mad.RMPPStatusOffset]
			return
		}
		r := a.receivers[tid]
		if r == nil {
			r = &payloadReceiver{window: window}
			a.receivers[tid] = r
		}
		had := r.whole != nil
		for _, d := range r.take(d) {
			deliver(f, d)
		}
		if !had && r.whole != nil {
			s := &tableSender{f: f, segments: segmentsOf(d, r.whole, 8), send: func(d Datagram) { deliver(f, d) }}
			a.senders[tid] = s
			s.start()
		}
	}), a
}

// TestPayload sends requests of all sizes around segment and window ends.
func TestPayload(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	for _, window := range []int{1, 3, 64} {
		for _, size := range []int{0, 8, 192, 200, 208, 400, 600, 608, 800, 12800, 13000, 13008, 100000, 1 << 20} {
			synctest.Test(t, func(t *testing.T) {
				want := randomTable(r, size)
				f, a := newMultiAgent(window, (*fakeTransport).deliver)
				e := New(f, Options{})
				defer mustClose(t, e)
				c := getMulti(want)
				e.Do(t.Context(), c)
				synctest.Wait()
				if c.Err != nil || !bytes.Equal(c.Table, want) || c.Elapsed != 0 || c.Attempts != 1 {
					t.Errorf("size %d, window %d: %v after %v and %d attempts, %d bytes", size, window, c.Err, c.Elapsed, c.Attempts, len(c.Table))
				}
				for _, r := range a.receivers {
					if !r.turned {
						t.Errorf("size %d, window %d: the transfer was not turned round", size, window)
					}
					// The length of a single segment is its own; the rule holds, too.
					if want := uint32(size) + r.last*mad.SegmentHeader; r.claim != want {
						t.Errorf("size %d: the first segment announces %d bytes, want %d", size, r.claim, want)
					}
				}
				checkEmpty(t, e)
			})
		}
	}
}

// TestPayloadFaults: over a network that loses, doubles, delays and reorders,
// in both directions, requests arrive whole, and so do their answers.
func TestPayloadFaults(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			fault := func(f *fakeTransport, d Datagram) {
				if r.IntN(10) == 0 {
					return
				}
				for range 1 + r.IntN(20)/19 {
					after(time.Duration(r.IntN(5))*ms, func() { f.deliver(d) })
				}
			}
			f, a := newMultiAgent(1+r.IntN(64), fault)
			peer := f.peer
			f.peer = func(f *fakeTransport, d Datagram) {
				f.mu.Lock()
				lost, delay := r.IntN(10) == 0, time.Duration(r.IntN(5))*ms
				f.mu.Unlock()
				if !lost {
					after(delay, func() { peer(f, d) })
				}
			}
			e := New(f, Options{Retries: 20})
			defer mustClose(t, e)
			var calls []*Call
			for range 8 {
				calls = append(calls, getMulti(randomTable(r, r.IntN(40000)/8*8)))
			}
			e.Do(t.Context(), calls...)
			for i, c := range calls {
				if c.Err != nil || !bytes.Equal(c.Table, c.Payload) {
					t.Errorf("seed %d, call %d: %v, %d bytes of %d", seed, i, c.Err, len(c.Table), len(c.Payload))
				}
			}
			time.Sleep(time.Minute) // virtual: each sender must come to an end
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, s := range a.senders {
				if s.ended != "complete" && s.ended != "aborted 118" && s.ended != "aborted 127" {
					t.Errorf("seed %d: the answer's sender: %s", seed, s.ended)
				}
			}
			checkEmpty(t, e)
		})
	}
}

// TestPayloadWhole: a transport that does RMPP gets the whole request at once.
func TestPayloadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := randomTable(rand.New(rand.NewPCG(8, 0)), 1000)
		var sent []Datagram
		f := newFake(func(f *fakeTransport, d Datagram) {
			sent = append(sent, d)
			d = respond(d)
			f.deliver(d)
		})
		f.traits.RMPP = true
		e := New(f, Options{})
		defer mustClose(t, e)
		c := getMulti(want)
		e.Do(t.Context(), c)
		if c.Err != nil || !bytes.Equal(c.Table, want) || len(sent) != 1 {
			t.Errorf("%v, %d bytes, %d datagrams", c.Err, len(c.Table), len(sent))
		}
		var h mad.RMPPHeader
		h.Decode(sent[0].MAD[mad.RMPPOffset:])
		if want := (mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: 31, RMPPFlags: mad.RMPPFlagsActive}); h != want || sent[0].Timeout != 3*time.Second {
			t.Errorf("%+v, timeout %v", h, sent[0].Timeout)
		}
	})
}

// TestPayloadRefused: what cannot be sent is not.
func TestPayloadRefused(t *testing.T) {
	perf := &Call{Payload: []byte{1}}
	perf.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
	perf.SetLID(1)
	report := getMulti([]byte{1})
	report.MAD[mad.MethodOffset] = byte(mad.MethodReportResp)
	for _, test := range []struct {
		c      *Call
		traits Traits
		want   string
	}{
		{perf, Traits{}, "PerfGet(PortCounters) to LID 1: only requests to subnet administration may be longer than one MAD"},
		{report, Traits{}, "SubnAdmReport(MultiPathRecord) to LID 1: only requests that are answered may be longer than one MAD"},
		{getMulti(make([]byte, maxRequest+1)), Traits{RMPP: true}, "SubnAdmGetMulti(MultiPathRecord) to LID 1: a request of 1073741825 bytes, more than 1073741824"},
		{getMulti(make([]byte, 201)), Traits{NoACK: true}, "SubnAdmGetMulti(MultiPathRecord) to LID 1: a request of 201 bytes; this transport carries only requests that fit in one MAD (200 bytes); request less at once"},
	} {
		f := newFake(func(*fakeTransport, Datagram) { t.Error("it was sent") })
		f.traits = test.traits
		e := New(f, Options{Write: true})
		e.Do(t.Context(), test.c)
		if fmt.Sprint(test.c.Err) != test.want {
			t.Errorf("got  %v\nwant %s", test.c.Err, test.want)
		}
		mustClose(t, e)
	}
}

// moments takes a request of 5 segments, two or three at a time, and answers
// it, but for what otherwise does with the n-th MAD, from 1, that comes for the
// first time: the segments, the ACK that turns the transfer round, and an ACK of
// the answer's first segment.
type moments struct {
	payloadReceiver
	otherwise func(f *fakeTransport, d Datagram, n int) (done bool)
	seen      map[string]bool
	answer    []Datagram
	aborts    []byte // statuses of those we sent
}

func (p *moments) fake() *fakeTransport {
	p.window, p.seen = 2, map[string]bool{}
	return newFake(func(f *fakeTransport, d Datagram) {
		if rmppTypeOf(d.MAD) == mad.RMPPTypeAbort {
			p.aborts = append(p.aborts, d.MAD[mad.RMPPStatusOffset])
			return
		}
		p.seen[string(d.MAD[mad.TIDOffset+4:mad.TIDOffset+8])+string(d.MAD[mad.RMPPOffset:mad.SAKeyOffset])] = true
		if p.otherwise(f, d, len(p.seen)) {
			return
		}
		ofAnswer := p.answer != nil && rmppTypeOf(d.MAD) == mad.RMPPTypeACK && d.MAD[mad.SegmentNumberOffset+3] > 0
		if !ofAnswer {
			for _, a := range p.take(d) {
				f.deliver(a)
			}
		}
		switch {
		case ofAnswer && len(p.answer) > 1:
			for _, a := range p.answer[1:] {
				f.deliver(a)
			}
		case p.whole != nil && p.answer == nil && p.turned:
			p.answer = segmentsOf(d, p.whole, 8)
			f.deliver(p.answer[0])
		}
	})
}

// TestBrokenOff: at each moment of a transfer the peer stops it, aborts it, or
// dies. The last is in the middle of the answer.
func TestBrokenOff(t *testing.T) {
	const exhausted = ": RMPP status 1, resources exhausted: retry later, or request less at once, 0s []"
	const retries = ": RMPP status 126, too many retries: datagrams are lost; check the links of the path for errors, or retry, 0s []"
	noACK := func(n, of, attempts int) string {
		return fmt.Sprintf("request incomplete, no ACK of segment %d of %d: timed out after %d in 3s, 3s [126]", n, of, attempts)
	}
	for _, action := range []struct {
		name   string
		kind   mad.RMPPType
		status mad.RMPPStatus
		want   [7]string
	}{
		{"stop", mad.RMPPTypeStop, 1, [7]string{5: "the receiver stopped the request" + exhausted, 6: "the sender stopped the table" + exhausted}},
		{"abort", mad.RMPPTypeAbort, 126, [7]string{5: "the receiver aborted the request" + retries, 6: "the sender aborted the table" + retries}},
		{"dies", 0, 0, [7]string{noACK(1, 5, 1), noACK(2, 5, 1), noACK(2, 5, 1), noACK(4, 5, 1), noACK(4, 5, 1), noACK(1, 5, 2), "table incomplete, segment 2: timed out after 1 in 3s, 3s [118]"}},
	} {
		for i, want := range action.want {
			if want == "" {
				want = action.want[5]
			}
			synctest.Test(t, func(t *testing.T) {
				p := &moments{otherwise: func(f *fakeTransport, d Datagram, n int) bool {
					if n == i+1 && action.kind != 0 {
						f.deliver(answerSegment(d, action.kind, action.status, 0, 0))
					}
					return n > i
				}}
				e := New(p.fake(), Options{})
				defer mustClose(t, e)
				c := getMulti(make([]byte, 1000))
				e.Do(t.Context(), c)
				synctest.Wait()
				got, _ := strings.CutPrefix(fmt.Sprint(c.Err), "SubnAdmGetMulti(MultiPathRecord) to LID 1: ")
				got = strings.NewReplacer(" attempts", "", " attempt", "").Replace(got)
				if got = fmt.Sprintf("%s, %v %v", got, c.Elapsed, p.aborts); got != want {
					t.Errorf("%s at moment %d\ngot  %s\nwant %s", action.name, i+1, got, want)
				}
				checkEmpty(t, e)
			})
		}
	}
}

// TestBadACK: an invalid ACK ends the call, and its sender gets the reason.
func TestBadACK(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(m []byte)
		want   string
		abort  byte
	}{
		{"version", func(m []byte) { m[mad.RMPPVersionOffset] = 2 }, "RMPP version 2", 125},
		{"type", func(m []byte) { m[mad.RMPPTypeOffset] = 9 }, "RMPP type 9", 121},
		{"status", func(m []byte) { m[mad.RMPPStatusOffset] = 1 }, "RMPP status 1", 124},
		{"window", func(m []byte) { m[mad.NewWindowLastOffset+3] = 0 }, "of segment 1, but the window ends with 0", 122},
		{"segment", func(m []byte) { m[mad.SegmentNumberOffset+3], m[mad.NewWindowLastOffset+3] = 2, 9 }, "of segment 2, but 1 were allowed of 5", 123},
		{"huge", func(m []byte) { m[mad.SegmentNumberOffset], m[mad.NewWindowLastOffset] = 0x80, 0x80 }, "of segment 2147483649, but 1 were allowed of 5", 123},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &moments{}
			p.otherwise = func(f *fakeTransport, d Datagram, n int) bool {
				for _, a := range p.take(d) {
					test.change(a.MAD)
					f.deliver(a)
				}
				return true
			}
			e := New(p.fake(), Options{})
			defer mustClose(t, e)
			c := getMulti(make([]byte, 1000))
			e.Do(t.Context(), c)
			synctest.Wait()
			want := "SubnAdmGetMulti(MultiPathRecord) to LID 1: malformed ACK: " + test.want
			if fmt.Sprint(c.Err) != want || !slices.Equal(p.aborts, []byte{test.abort}) || c.Elapsed != 0 {
				t.Errorf("%s\ngot  %v, ABORT %v, after %v\nwant %s, ABORT %d", test.name, c.Err, p.aborts, c.Elapsed, want, test.abort)
			}
		})
	}
}

// TestCancelTransfer: who gives up in the middle tells the receiver.
func TestCancelTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &moments{otherwise: func(_ *fakeTransport, _ Datagram, n int) bool { return n >= 3 }}
		e := New(p.fake(), Options{})
		defer mustClose(t, e)
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		c := getMulti(make([]byte, 1000))
		e.Do(ctx, c)
		synctest.Wait()
		if !errors.Is(c.Err, context.DeadlineExceeded) || !slices.Equal(p.aborts, []byte{byte(mad.RMPPStatusUnspecified)}) {
			t.Errorf("%v, ABORT %v", c.Err, p.aborts)
		}
		checkEmpty(t, e)
	})
}

// TestACKs: ACKs late, repeated, and overtaken by later ones.
func TestACKs(t *testing.T) {
	want := randomTable(rand.New(rand.NewPCG(9, 0)), 3000) // 15 segments
	for _, test := range []struct {
		name    string
		deliver func(f *fakeTransport, d Datagram, n int)
		elapsed time.Duration
		sent    int // segments; 15 suffice
	}{
		{"at once", func(f *fakeTransport, d Datagram, n int) { f.deliver(d) }, 0, 15},
		// While each is waited for, what it acknowledges is sent again, after
		// 100 ms; 200 ms later would be the next time.
		{"late", func(f *fakeTransport, d Datagram, n int) { time.AfterFunc(250*ms, func() { f.deliver(d) }) }, 8 * 250 * ms, 30},
		{"late, as announced", func(f *fakeTransport, d Datagram, n int) {
			d.MAD[mad.RMPPFlagsOffset] = 17<<3 | byte(mad.RMPPFlagsActive) // 537 ms
			time.AfterFunc(250*ms, func() { f.deliver(d) })
		}, 8 * 250 * ms, 16},
		{"three times", func(f *fakeTransport, d Datagram, n int) { f.deliver(d); f.deliver(d); f.deliver(d) }, 0, 15},
		{"again, overtaken", func(f *fakeTransport, d Datagram, n int) {
			f.deliver(d)
			time.AfterFunc(ms, func() { f.deliver(d) })
		}, 0, 15},
	} {
		synctest.Test(t, func(t *testing.T) {
			var r payloadReceiver
			r.window = 2
			sent, acks := 0, 0
			f := newFake(func(f *fakeTransport, d Datagram) {
				f.mu.Lock()
				defer f.mu.Unlock()
				if rmppTypeOf(d.MAD) == mad.RMPPTypeData {
					sent++
				}
				answers := r.take(d)
				for _, a := range answers {
					acks++
					test.deliver(f, a, acks)
				}
				if r.turned {
					f.deliver(segmentsOf(d, r.whole[:8], 8)[0])
				}
			})
			e := New(f, Options{})
			defer mustClose(t, e)
			c := getMulti(want)
			e.Do(t.Context(), c)
			if c.Err != nil || c.Elapsed != test.elapsed || sent != test.sent || !bytes.Equal(r.whole, want) {
				t.Errorf("%s: %v after %v, %d segments, %d ACKs; want %v, %d segments", test.name, c.Err, c.Elapsed, sent, acks, test.elapsed, test.sent)
			}
		})
	}
}

// TestTooLong: a peer that goes on, but would never come to an end, is given up
// after 40 s, or ten times what a call may last.
func TestTooLong(t *testing.T) {
	const segments = 10000
	for _, test := range []struct {
		name    string
		timeout time.Duration
		call    *Call
		peer    func(f *fakeTransport, d Datagram)
		want    string
	}{
		{"request", time.Second, getMulti(make([]byte, segments*mad.SegmentData)), func(f *fakeTransport, d Datagram) {
			if n := binary.BigEndian.Uint32(d.MAD[mad.SegmentNumberOffset:]); rmppTypeOf(d.MAD) == mad.RMPPTypeData {
				time.AfterFunc(90*ms, func() { f.deliver(ack(d, n, n+1)) })
			}
		}, "request incomplete after 40s, no ACK of segment 445 of 10000: timed out after 1 attempt"},
		{"table", 2 * time.Second, getTable(1), func(f *fakeTransport, d Datagram) {
			if !isControl(d.MAD) {
				for i, s := range segmentsOf(d, make([]byte, segments*mad.SegmentData), 8) {
					after(time.Duration(i)*990*ms, func() { f.deliver(s) })
				}
			}
		}, "table incomplete after 1m0s, segment 62: timed out after 1 attempt"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var aborts []byte
			e := New(newFake(func(f *fakeTransport, d Datagram) {
				if rmppTypeOf(d.MAD) == mad.RMPPTypeAbort {
					aborts = append(aborts, d.MAD[mad.RMPPStatusOffset])
					return
				}
				test.peer(f, d)
			}), Options{Timeout: test.timeout})
			defer mustClose(t, e)
			e.Do(t.Context(), test.call)
			synctest.Wait()
			_, got, _ := strings.Cut(fmt.Sprint(test.call.Err), " LID 1: ")
			if got != test.want || len(aborts) == 0 || aborts[0] != byte(mad.RMPPStatusTotalTimeTooLong) {
				t.Errorf("%s: ABORT %v\ngot  %s\nwant %s", test.name, aborts, got, test.want)
			}
		})
	}
}

// FuzzTransfer: whatever comes to what we send, request or ACK, a call with a
// long request or a table ends once, in time, with all of a table or none.
func FuzzTransfer(f *testing.F) {
	f.Add(uint16(1000), []byte{2, 1, 3, 0, 2, 3, 9, 0, 2, 5, 9, 0, 1, 1, 3, 220})
	f.Add(uint16(0), []byte{2, 1, 1, 0, 3, 0, 0, 1})
	f.Add(uint16(401), []byte{2, 1, 9, 0, 4, 0, 0, 126})
	f.Add(uint16(0xffff), []byte{1, 1, 3, 255, 1, 2, 1, 0, 1, 3, 5, 30})
	f.Fuzz(func(t *testing.T, size uint16, script []byte) {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			e := New(newFake(func(f *fakeTransport, d Datagram) {
				sent.Add(1)
				// Four bytes an answer: what it is, its number, two more.
				for n := min(len(script)/4, 3); n > 0; n-- {
					b := script[:4]
					script = script[4:]
					a := respond(d)
					a.MAD[mad.RMPPVersionOffset], a.MAD[mad.RMPPTypeOffset], a.MAD[mad.RMPPFlagsOffset] = 1, b[0]&7, byte(mad.RMPPFlagsActive)
					binary.BigEndian.PutUint32(a.MAD[mad.SegmentNumberOffset:], uint32(int8(b[1])))
					switch b[0] & 7 {
					case 0:
						clear(a.MAD[mad.RMPPOffset:mad.SAKeyOffset])
						binary.BigEndian.PutUint16(a.MAD[mad.StatusOffset:], uint16(b[2])<<8|uint16(b[3]))
					case byte(mad.RMPPTypeData):
						a.MAD[mad.RMPPFlagsOffset] = b[2] | byte(mad.RMPPFlagsActive)
						binary.BigEndian.PutUint32(a.MAD[mad.PayloadLengthOffset:], uint32(int8(b[3]))+100)
					default:
						binary.BigEndian.PutUint32(a.MAD[mad.NewWindowLastOffset:], uint32(int8(b[2])))
						a.MAD[mad.RMPPStatusOffset] = b[3]
					}
					after(time.Duration(b[0]>>3)*10*ms, func() { f.deliver(a) })
				}
			}), Options{})
			defer mustClose(t, e)
			c := getMulti(make([]byte, size))
			if size == 0xffff {
				c = getTable(1)
			}
			e.Do(t.Context(), c)
			if c.Elapsed > time.Minute || (c.Err == nil) != (c.Table != nil) || sent.Load() > 20000 {
				t.Errorf("%v after %v, table of %d bytes, %d sent", c.Err, c.Elapsed, len(c.Table), sent.Load())
			}
			time.Sleep(time.Minute)
			checkEmpty(t, e)
		})
	})
}
