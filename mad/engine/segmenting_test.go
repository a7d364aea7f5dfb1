package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"fabsh/mad"
)

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
