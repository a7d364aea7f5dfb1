//go:build linux

package run

import (
	"encoding/binary"
	"time"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// ackTime is how long the kernel waits for an ACK (mad_rmpp.c, send_next_seg).
const ackTime = 2 * time.Second

// outgoing is a transfer that an agent sends: how far it is.
type outgoing struct {
	data   []byte
	count  int32 // of segments; 0: a single MAD
	last   int32 // segment that was sent
	acked  int32
	window int32 // the last segment that the receiver accepts
}

// begin begins to send data in segments, and returns the first ones (ib_send_rmpp_mad).
func (s *sent) begin(data []byte) []sim.Message {
	room := mad.Size - dataOffset(mad.Class(s.message.MAD[mad.ClassOffset]))
	s.outgoing = outgoing{data: data, count: int32(max(1, (len(data)+room-1)/room)), window: s.agent.replyWindow(&s.message)}
	return s.nextWindow()
}

// nextWindow returns the segments that may be sent now.
func (s *sent) nextWindow() (list []sim.Message) {
	for s.last < min(s.window, s.count) {
		s.last++
		list = append(list, s.segment(s.last))
	}
	return list
}

// segment makes segment n, from 1.
func (s *sent) segment(n int32) sim.Message {
	const behindHeader = mad.Size - leastMAD // what PayloadLength counts of a full segment
	m := s.message
	start := dataOffset(mad.Class(m.MAD[mad.ClassOffset]))
	room := mad.Size - start
	pad := int(s.count)*room - len(s.data)
	h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: mad.RMPPFlagsActive, SegmentNumber: uint32(n)}
	if n == 1 {
		h.RMPPFlags |= mad.RMPPFlagsFirst
		h.PayloadLength = uint32(int(s.count)*behindHeader - pad)
	}
	if n == s.count {
		h.RMPPFlags |= mad.RMPPFlagsLast
		h.PayloadLength = uint32(behindHeader - pad)
	}
	h.Encode(m.MAD[mad.RMPPOffset:])
	part := s.data[min(int(n-1)*room, len(s.data)):min(int(n)*room, len(s.data))]
	clear(m.MAD[start+copy(m.MAD[start:], part):])
	return m
}

// firstWait is how long the first segment waits for its ACK, and the first one that is
// sent again.
func (s *sent) firstWait() time.Duration {
	if s.timeout == 0 {
		return ackTime
	}
	return min(s.timeout, ackTime)
}

// acknowledged takes an ACK (process_rmpp_ack).
func (a *agent) acknowledged(m *sim.Message, h *mad.RMPPHeader) {
	n, window := int32(h.SegmentNumber), int32(h.PayloadLength)
	s := a.waits(m)
	switch {
	case h.RMPPStatus != mad.RMPPStatusNormal:
		a.reject(m, mad.RMPPStatusIllegalStatus)
	case window < n:
		a.reject(m, mad.RMPPStatusNewWindowLastTooSmall)
	case s == nil && n == 0: // of the other direction: the window for the answer
		if r := a.file.transfers[keyOfTransfer(a, m)]; r != nil && r.complete {
			r.replyWindow = window
		}
	case s == nil:
	case s.acked == s.count:
		a.turn(m)
	case n > s.count || n > s.window:
		a.reject(m, mad.RMPPStatusSegmentNumberTooBig)
	case window < s.window || n < s.acked: // an old one
	default:
		a.progress(s, m, n, window)
	}
}

// progress notes that segments were acknowledged, and sends more.
func (a *agent) progress(s *sent, m *sim.Message, n, window int32) {
	if n > s.acked {
		s.acked, s.left = n, s.retries
	}
	s.window = window
	if s.acked == s.count {
		if s.timeout == 0 {
			a.file.settle(s)
			return
		}
		s.timer.Reset(s.timeout)
		a.turn(m)
		return
	}
	list := s.nextWindow()
	switch {
	case len(list) == 0:
	case s.timeout == 0 || s.timeout > ackTime:
		s.timer.Reset(ackTime)
	default: // the kernel takes a point in time for a duration, and waits for ever
		s.timer.Stop()
	}
	a.file.port.post(list...)
}

// turn acknowledges the ACK of the last segment: the other side may answer (ack_ds_ack).
func (a *agent) turn(m *sim.Message) {
	a.reply(m, func(h *mad.RMPPHeader) { h.SegmentNumber, h.PayloadLength = 0, 1 })
}

// reject aborts the transfer that m belongs to, at both ends (abort_send, nack_recv).
func (a *agent) reject(m *sim.Message, why mad.RMPPStatus) {
	a.abort(m)
	a.refuse(m, why)
}

// abort ends a transfer that is sent. Its program does not learn of it.
func (a *agent) abort(m *sim.Message) {
	if s := a.waits(m); s != nil && s.acked < s.count {
		a.file.settle(s)
	}
}

// refuse answers a segment or an ACK with an ABORT (nack_recv).
func (a *agent) refuse(m *sim.Message, why mad.RMPPStatus) {
	a.reply(m, func(h *mad.RMPPHeader) {
		*h = mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeAbort, RRespTime: h.RRespTime, RMPPStatus: why}
	})
}

// reply sends a header of RMPP in answer to a MAD that has another.
func (a *agent) reply(m *sim.Message, change func(h *mad.RMPPHeader)) {
	r := sim.Message{SQP: 1, DQP: m.SQP, DLID: m.SLID, SL: m.SL, PKeyIndex: m.PKeyIndex, HasGRH: m.HasGRH, GID: m.GID, Length: mad.Size}
	copy(r.MAD[:dataOffset(mad.Class(m.MAD[mad.ClassOffset]))], m.MAD[:])
	r.MAD[mad.MethodOffset] ^= byte(mad.Response)
	var h mad.RMPPHeader
	h.Decode(r.MAD[mad.RMPPOffset:])
	change(&h)
	h.RMPPFlags = mad.RMPPFlagsActive
	h.Encode(r.MAD[mad.RMPPOffset:])
	a.file.port.post(r)
}

// waits returns what the agent has sent, with the transaction ID and the class of a MAD,
// and still waits for an answer or an ACK (ib_find_send_mad); nil: nothing.
func (a *agent) waits(m *sim.Message) *sent {
	for _, s := range a.file.sent[keyOf(m.MAD[:])] {
		if s.agent == a {
			return s
		}
	}
	return nil
}

// payload is the data of a write that is sent in segments, behind the headers of its
// class.
func payload(m []byte) []byte {
	return m[min(len(m), dataOffset(mad.Class(m[mad.ClassOffset]))):]
}

// tidOf is the transaction ID of a MAD.
func tidOf(m []byte) uint64 { return binary.BigEndian.Uint64(m[mad.TIDOffset:]) }
