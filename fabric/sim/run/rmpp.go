//go:build linux

package run

import (
	"encoding/binary"
	"time"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// ackTimeout is how long the kernel waits for an ACK (mad_rmpp.c, send_next_seg).
const ackTimeout = 2 * time.Second

// outgoingTransfer is a transfer that an agent sends: how far it is.
type outgoingTransfer struct {
	data   []byte
	count  int32 // of segments; 0: a single MAD
	last   int32 // segment that was sent
	acked  int32
	window int32 // the last segment that the receiver accepts
}

// begin begins to send data in segments, and returns the first ones (ib_send_rmpp_mad).
func (s *sentMAD) begin(data []byte) []sim.Message {
	room := mad.Size - dataOffset(mad.Class(s.message.MAD[mad.ClassOffset]))
	s.outgoingTransfer = outgoingTransfer{data: data, count: int32(max(1, (len(data)+room-1)/room)), window: s.agent.replyWindow(&s.message)}
	return s.nextWindow()
}

// nextWindow returns the segments that may be sent now.
func (s *sentMAD) nextWindow() (list []sim.Message) {
	for s.last < min(s.window, s.count) {
		s.last++
		list = append(list, s.segment(s.last))
	}
	return list
}

// segment makes segment n, from 1.
func (s *sentMAD) segment(n int32) sim.Message {
	const behindHeader = mad.Size - minWriteMAD // what PayloadLength counts of a full segment
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
func (s *sentMAD) firstWait() time.Duration {
	if s.timeout == 0 {
		return ackTimeout
	}
	return min(s.timeout, ackTimeout)
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
func (a *agent) progress(s *sentMAD, m *sim.Message, n, window int32) {
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
	case s.timeout == 0 || s.timeout > ackTimeout:
		s.timer.Reset(ackTimeout)
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
func (a *agent) waits(m *sim.Message) *sentMAD {
	for _, s := range a.file.sent[sentKeyOf(m.MAD[:])] {
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

// The kernel's constants of transfers that come in (mad_rmpp.c: start_rmpp, window_size).
const (
	windowSize   = 64               // segments: an eighth of the receive queue, 512
	transferTime = 40 * time.Second // then the transfer is aborted
	rememberTime = 10 * time.Second // repeated segments are acknowledged that long
)

// Limits that a kernel does not have; what comes beyond is lost.
const (
	maxTransfers    = 1 << 14  // of a file at a time
	maxTransferSize = 64 << 20 // bytes
)

// transferKey names a transfer (find_rmpp_recv).
type transferKey struct {
	agent   *agent
	from    mad.LID
	qp      uint32
	tid     uint64
	class   mad.Class
	version uint8
	method  mad.Method
}

func keyOfTransfer(a *agent, m *sim.Message) transferKey {
	b := m.MAD[:]
	return transferKey{a, m.SLID, m.SQP, tidOf(b), mad.Class(b[mad.ClassOffset]), b[mad.ClassVersionOffset], mad.Method(b[mad.MethodOffset])}
}

// incomingTransfer is what has come of one.
type incomingTransfer struct {
	first       sim.Message
	data        []byte // of the segments in order, with the header of the first one
	next        map[int32]sim.Message
	last        int32 // segment in order
	acked       int32
	window      int32 // the last segment that is accepted
	complete    bool
	replyWindow int32
	timer       *time.Timer
}

// receiveSegment takes a MAD of a transfer, and returns all when it is complete, without
// the padding of the last segment (ib_process_rmpp_recv_wc).
func (a *agent) receiveSegment(m *sim.Message) []byte {
	var h mad.RMPPHeader
	h.Decode(m.MAD[mad.RMPPOffset:])
	switch {
	case h.RMPPVersion != 1:
		a.reject(m, mad.RMPPStatusUnsupportedVersion)
	case h.RMPPType == mad.RMPPTypeACK:
		a.acknowledged(m, &h)
	case h.RMPPType == mad.RMPPTypeStop && h.RMPPStatus == mad.RMPPStatusResourcesExhausted,
		h.RMPPType == mad.RMPPTypeAbort && h.RMPPStatus >= mad.RMPPStatusTotalTimeTooLong && h.RMPPStatus <= mad.RMPPStatusUnspecified:
		a.abort(m)
	case h.RMPPType == mad.RMPPTypeStop, h.RMPPType == mad.RMPPTypeAbort:
		a.reject(m, mad.RMPPStatusIllegalStatus)
	case h.RMPPType != mad.RMPPTypeData:
		a.reject(m, mad.RMPPStatusBadRMPPType)
	case h.RMPPStatus != mad.RMPPStatusNormal:
		a.refuse(m, mad.RMPPStatusIllegalStatus)
	case (h.SegmentNumber == 1) != (h.RMPPFlags&mad.RMPPFlagsFirst != 0):
		a.refuse(m, mad.RMPPStatusInconsistentFirstAndSegmentNumber)
	default:
		return a.join(m, &h)
	}
	return nil
}

// join adds a segment to its transfer (start_rmpp, continue_rmpp).
func (a *agent) join(m *sim.Message, h *mad.RMPPHeader) []byte {
	f, key, n := a.file, keyOfTransfer(a, m), int32(h.SegmentNumber)
	t := f.transfers[key]
	switch {
	case t == nil && (n != 1 || len(f.transfers) == maxTransfers):
		return nil
	case t == nil:
		t = &incomingTransfer{first: *m, data: m.MAD[:dataOffset(key.class):dataOffset(key.class)], next: map[int32]sim.Message{}, window: 1, replyWindow: 1}
		f.transfers[key] = t
		t.timer = time.AfterFunc(transferTime, func() { a.end(key, t) })
	case n > t.window:
		return nil
	case n <= t.acked || t.complete: // the ACK was lost
		a.acknowledge(m, t)
		return nil
	}
	if _, repeated := t.next[n]; repeated || n <= t.last || len(t.data) > maxTransferSize {
		return nil
	}
	t.next[n] = *m
	for !t.complete {
		segment, ok := t.next[t.last+1]
		if !ok {
			break
		}
		t.last++
		delete(t.next, t.last)
		t.data = append(t.data, segment.MAD[dataOffset(key.class):]...)
		t.complete = segment.MAD[mad.RMPPFlagsOffset]&byte(mad.RMPPFlagsLast) != 0
		h.Decode(segment.MAD[mad.RMPPOffset:])
	}
	switch {
	case t.complete:
		a.acknowledge(&t.first, t)
		t.timer.Reset(rememberTime)
		data := t.data[:len(t.data)-padding(h)]
		t.data, t.next = nil, nil
		return data
	case t.last == t.window:
		t.window += windowSize
		a.acknowledge(m, t)
	}
	return nil
}

// padding is how many bytes of the last segment do not count (get_mad_len).
func padding(h *mad.RMPPHeader) int {
	const most = mad.Size - minWriteMAD
	if h.PayloadLength > most {
		return 0
	}
	return most - int(h.PayloadLength)
}

// acknowledge sends an ACK of the segments in order.
func (a *agent) acknowledge(m *sim.Message, t *incomingTransfer) {
	t.acked = t.last
	a.reply(m, func(h *mad.RMPPHeader) {
		h.RMPPType, h.SegmentNumber, h.PayloadLength = mad.RMPPTypeACK, uint32(t.last), uint32(t.window)
	})
}

// end forgets a transfer whose time is over.
func (a *agent) end(key transferKey, t *incomingTransfer) {
	p := a.file.port
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.file.transfers[key] != t {
		return
	}
	delete(a.file.transfers, key)
	if !t.complete {
		a.refuse(&t.first, mad.RMPPStatusTotalTimeTooLong)
	}
}

// replyWindow is the first window of a transfer: 1, unless it answers one whose sender
// has announced another (init_newwin).
func (a *agent) replyWindow(m *sim.Message) int32 {
	b := m.MAD[:]
	if !mad.Method(b[mad.MethodOffset]).IsResponse() {
		return 1
	}
	for key, t := range a.file.transfers {
		if key.agent == a && key.tid == tidOf(b) && key.class == mad.Class(b[mad.ClassOffset]) && key.version == b[mad.ClassVersionOffset] &&
			!key.method.IsResponse() && key.from == m.DLID {
			return t.replyWindow
		}
	}
	return 1
}
