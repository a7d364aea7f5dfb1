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
	n := max(1, (len(table)+segmentData-1)/segmentData)
	list := make([]Datagram, n)
	for i := range list {
		d := respond(request)
		binary.BigEndian.PutUint16(d.MAD[mad.SAAttrOffsetOffset:], uint16((record+7)/8))
		part := table[i*segmentData : min(len(table), (i+1)*segmentData)]
		clear(d.MAD[mad.SADataOffset:])
		copy(d.MAD[mad.SADataOffset:], part)
		flags, length := byte(rmppActive), 0
		if i == 0 {
			flags |= rmppFirst
			length = len(table) + n*rmppClassHeader
		}
		if i == n-1 {
			flags |= rmppLast
			length = len(part) + rmppClassHeader
		}
		d.MAD[mad.RMPPVersionOffset], d.MAD[mad.RMPPTypeOffset], d.MAD[mad.RMPPFlagsOffset] = 1, rmppData, 0x1f<<3|flags
		binary.BigEndian.PutUint32(d.MAD[mad.SegmentNumberOffset:], uint32(i+1))
		binary.BigEndian.PutUint32(d.MAD[mad.PayloadLengthOffset:], uint32(length))
		list[i] = d
	}
	return list
}

// isControl: m is an ACK, STOP or ABORT.
func isControl(m []byte) bool { return isSegment(m) && m[mad.RMPPTypeOffset] != rmppData }

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
	segment := int(binary.BigEndian.Uint32(m[mad.SegmentNumberOffset:]))
	window := int(binary.BigEndian.Uint32(m[mad.NewWindowLastOffset:]))
	switch {
	case s.ended != "":
	case m[mad.RMPPTypeOffset] == rmppAbort:
		s.ended = fmt.Sprintf("aborted %d", m[mad.RMPPStatusOffset])
	case m[mad.RMPPTypeOffset] != rmppACK || m[mad.RMPPVersionOffset] != 1 || m[mad.RMPPFlagsOffset]&7 != rmppActive || m[mad.RMPPStatusOffset] != 0:
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
func agent(table func(d Datagram) []byte, fault func(f *fakeTransport, d Datagram)) (*fakeTransport, map[uint64]*sender) {
	senders := map[uint64]*sender{}
	f := newFake(func(f *fakeTransport, d Datagram) {
		f.mu.Lock()
		defer f.mu.Unlock()
		tid := binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:])
		if isSegment(d.MAD) {
			// An ACK carries the ID of our response, upper half and all.
			if s := senders[tid&0xffffffff]; s != nil && tid>>32 == 0xabcd0000 && mad.Method(d.MAD[mad.MethodOffset]) == mad.MethodGetTable {
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
