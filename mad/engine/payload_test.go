package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
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
// table of the same bytes, so that both directions are seen.
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
					// That of a single segment is its own; the rule is the same.
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
