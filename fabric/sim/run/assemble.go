//go:build linux

package run

import (
	"time"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// The kernel's constants of transfers that come in (mad_rmpp.c: start_rmpp, window_size).
const (
	windowSize = 64               // segments: an eighth of the receive queue, 512
	totalTime  = 40 * time.Second // then the transfer is aborted
	rememberTo = 10 * time.Second // repeated segments are acknowledged that long
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

// transfer is what has come of one.
type transfer struct {
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
		t = &transfer{first: *m, data: m.MAD[:dataOffset(key.class):dataOffset(key.class)], next: map[int32]sim.Message{}, window: 1, replyWindow: 1}
		f.transfers[key] = t
		t.timer = time.AfterFunc(totalTime, func() { a.end(key, t) })
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
		t.timer.Reset(rememberTo)
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
	const most = mad.Size - leastMAD
	if h.PayloadLength > most {
		return 0
	}
	return most - int(h.PayloadLength)
}

// acknowledge sends an ACK of the segments in order.
func (a *agent) acknowledge(m *sim.Message, t *transfer) {
	t.acked = t.last
	a.reply(m, func(h *mad.RMPPHeader) {
		h.RMPPType, h.SegmentNumber, h.PayloadLength = mad.RMPPTypeACK, uint32(t.last), uint32(t.window)
	})
}

// end forgets a transfer whose time is over.
func (a *agent) end(key transferKey, t *transfer) {
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
