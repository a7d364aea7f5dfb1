package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"fabsh/fabric/sim/agent"
	"fabsh/mad"
)

// isSegment reports whether p is a packet of an RMPP transfer.
func isSegment(p *agent.Packet) bool {
	if mad.Class(p.MAD[mad.ClassOffset]) != mad.ClassSubnAdm || p.MAD[mad.ClassVersionOffset] == 1 {
		return false
	}
	h := rmppHeader(p.MAD[:])
	return h.RMPPVersion == 1 && h.RMPPFlags&mad.RMPPFlagsActive != 0 &&
		h.RMPPType >= mad.RMPPTypeData && h.RMPPType <= mad.RMPPTypeAbort
}

func rmppHeader(m []byte) (h mad.RMPPHeader) {
	h.Decode(m[mad.RMPPOffset:])
	return h
}

func transferID(p *agent.Packet) uint64 { return binary.BigEndian.Uint64(p.MAD[mad.TIDOffset:]) }

const (
	maxRequest      = 64 << 10 // largest data of a request, in bytes
	maxReassemblies = 64       // of one conn at a time
	receiveWindow   = 8        // in segments
)

// reassembly is a request of several segments, as far as it has been received.
type reassembly struct {
	id       uint64
	segments map[uint32][]byte // the segments by number
	next     uint32            // the first segment that is missing
	window   uint32            // the last segment that is accepted
	acked    uint32
	last     uint32 // the number of segments; 0: not known yet
	complete bool   // all have come
}

// receiveSegment receives a segment of a request and acknowledges it (IBA 13.6). After
// the last one it returns the data of the request.
func (c *Conn) receiveSegment(p *agent.Packet) (data []byte, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := rmppHeader(p.MAD[:])
	a := c.reassemblyOf(transferID(p))
	n, length := h.SegmentNumber, int(h.PayloadLength)-mad.SegmentHeader
	last := h.RMPPFlags&mad.RMPPFlagsLast != 0
	switch {
	case h.RMPPStatus != 0:
		return c.reject(p, a, mad.RMPPTypeAbort, mad.RMPPStatusIllegalStatus)
	case n == 0, (n == 1) != (h.RMPPFlags&mad.RMPPFlagsFirst != 0):
		return c.reject(p, a, mad.RMPPTypeAbort, mad.RMPPStatusInconsistentFirstAndSegmentNumber)
	case last && (length < 0 || length > mad.SegmentData), a.last > 0 && (n > a.last || last != (n == a.last)):
		return c.reject(p, a, mad.RMPPTypeAbort, mad.RMPPStatusInconsistentLastAndPayloadLength)
	case n > maxRequest/mad.SegmentData:
		return c.reject(p, a, mad.RMPPTypeStop, mad.RMPPStatusResourcesExhausted)
	case a.complete || n <= a.acked: // the ACK was lost
		c.acknowledge(p, a)
		return nil, false
	case n > a.window:
		return nil, false
	}
	part := slices.Clone(p.MAD[mad.SADataOffset:])
	if last {
		a.last, part = n, part[:length]
	}
	a.segments[n] = part
	for a.segments[a.next] != nil {
		a.next++
	}
	if a.complete = a.next > a.last && a.last > 0; a.complete {
		data = []byte{}
		for n := range a.last {
			data = append(data, a.segments[n+1]...)
		}
		a.segments = nil
	} else if a.next <= a.window {
		return nil, false
	} else {
		a.window += receiveWindow
	}
	c.acknowledge(p, a)
	return data, a.complete
}

// reassemblyOf finds or makes the reassembly of a transfer.
func (c *Conn) reassemblyOf(id uint64) *reassembly {
	for _, a := range c.reassemblies {
		if a.id == id {
			return a
		}
	}
	if len(c.reassemblies) == maxReassemblies {
		c.reassemblies = slices.Delete(c.reassemblies, 0, 1)
	}
	a := &reassembly{id: id, segments: map[uint32][]byte{}, next: 1, window: 1}
	c.reassemblies = append(c.reassemblies, a)
	return a
}

// forget drops the reassembly of a transfer.
func (c *Conn) forget(id uint64) {
	c.reassemblies = slices.DeleteFunc(c.reassemblies, func(a *reassembly) bool { return a.id == id })
}

// acknowledge sends an ACK with the last segment that came in order, and the
// window.
func (c *Conn) acknowledge(p *agent.Packet, a *reassembly) {
	a.acked = a.next - 1
	c.replyToSegment(p, mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, SegmentNumber: a.acked, PayloadLength: max(a.acked, a.window)})
}

// reject ends a transfer by a STOP or ABORT.
func (c *Conn) reject(p *agent.Packet, a *reassembly, how mad.RMPPType, why mad.RMPPStatus) ([]byte, bool) {
	c.forget(a.id)
	c.replyToSegment(p, mad.RMPPHeader{RMPPType: how, RMPPStatus: why})
	return nil, false
}

// replyToSegment sends h as the answer to segment p.
func (c *Conn) replyToSegment(p *agent.Packet, h mad.RMPPHeader) {
	answer := *p
	h.RMPPVersion, h.RRespTime, h.RMPPFlags = 1, mad.NoRespTime, mad.RMPPFlagsActive
	answer.MAD[mad.MethodOffset] |= byte(mad.Response)
	h.Encode(answer.MAD[mad.RMPPOffset:])
	clear(answer.MAD[mad.SADataOffset:])
	c.deliver(&answer)
}

const (
	maxResends   = 7                      // of one window, then the transfer is aborted
	maxTransfers = 256                    // of one conn at a time; more requests get no answer
	resendAfter  = 100 * time.Millisecond // plus two round trips
)

// transfer is an RMPP transfer of a table to a conn (IBA 13.6).
type transfer struct {
	agent.Packet // the address, and the header of all segments
	data         []byte
	segs         int // number of segments
	acked        int // the last segment acknowledged
	sent         int // the last segment sent
	window       int // the last segment that the receiver takes
	tries        int // resends since acked grew
	timer        *time.Timer
}

// startTransfer begins to send data as the answer whose header is in p. If the
// request is a repeated one, it resends the window of the transfer under way.
func (c *Conn) startTransfer(p *agent.Packet, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tid := transferID(p)
	if t := c.transfers[tid]; t != nil {
		t.sent = t.acked
		c.sendWindow(t)
		return
	}
	if c.queue.closed.Load() || len(c.transfers) >= maxTransfers {
		return
	}
	t := &transfer{Packet: *p, data: data, segs: max(1, (len(data)+mad.SegmentData-1)/mad.SegmentData), window: 1}
	c.transfers[tid] = t
	t.timer = time.AfterFunc(c.resendTimeout(), func() { c.resend(t) })
	c.sendWindow(t)
}

// receiveControl takes the receiver's ACK, STOP or ABORT.
func (c *Conn) receiveControl(p *agent.Packet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.transfers[transferID(p)]
	if t == nil {
		return
	}
	h := rmppHeader(p.MAD[:])
	if h.RMPPType != mad.RMPPTypeACK {
		c.endTransfer(t)
		return
	}
	seg, window := int(h.SegmentNumber), int(h.PayloadLength) // in an ACK: NewWindowLast
	switch {
	case seg > t.sent:
		c.abort(t, mad.RMPPStatusSegmentNumberTooBig)
		return
	case seg < t.acked: // an old ACK
		return
	case window < t.window && seg < t.segs:
		c.abort(t, mad.RMPPStatusNewWindowLastTooSmall)
		return
	case seg == t.segs:
		c.endTransfer(t)
		return
	}
	if seg > t.acked {
		t.acked, t.tries = seg, 0
	}
	t.window = window
	t.timer.Reset(c.resendTimeout())
	c.sendWindow(t)
}

// resend sends again what was not acknowledged in time.
func (c *Conn) resend(t *transfer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transfers[transferID(&t.Packet)] != t {
		return
	}
	if t.tries++; t.tries > maxResends {
		c.abort(t, mad.RMPPStatusTooManyRetries)
		return
	}
	t.sent = t.acked
	c.sendWindow(t)
	t.timer.Reset(c.resendTimeout())
}

// resendTimeout is the time after which segments without ACK are sent again.
func (c *Conn) resendTimeout() time.Duration {
	o := c.agents.Faults.Settings.Load()
	return resendAfter + 2*(o.Delay+o.Jitter)
}

// sendWindow sends the segments that the window allows.
func (c *Conn) sendWindow(t *transfer) {
	for t.sent < min(t.window, t.segs) {
		t.sent++
		c.deliver(t.segment(t.sent))
	}
}

// segment makes segment n, from 1.
func (t *transfer) segment(n int) *agent.Packet {
	p := t.Packet
	m := p.MAD[:]
	data := t.data[(n-1)*mad.SegmentData : min(n*mad.SegmentData, len(t.data))]
	h := mad.RMPPHeader{
		RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: mad.NoRespTime,
		RMPPFlags: mad.RMPPFlagsActive, SegmentNumber: uint32(n),
	}
	if n == 1 {
		h.RMPPFlags |= mad.RMPPFlagsFirst
		h.PayloadLength = uint32(t.segs*mad.SegmentHeader + len(t.data))
	}
	if n == t.segs {
		h.RMPPFlags |= mad.RMPPFlagsLast
		h.PayloadLength = uint32(mad.SegmentHeader + len(data))
	}
	h.Encode(m[mad.RMPPOffset:])
	clear(m[mad.SADataOffset+copy(m[mad.SADataOffset:], data):])
	return &p
}

// abort ends the transfer with an ABORT.
func (c *Conn) abort(t *transfer, why mad.RMPPStatus) {
	p := t.Packet
	h := mad.RMPPHeader{
		RMPPVersion: 1, RMPPType: mad.RMPPTypeAbort, RRespTime: mad.NoRespTime,
		RMPPFlags: mad.RMPPFlagsActive, RMPPStatus: why,
	}
	h.Encode(p.MAD[mad.RMPPOffset:])
	c.deliver(&p)
	c.endTransfer(t)
}

func (c *Conn) endTransfer(t *transfer) {
	t.timer.Stop()
	delete(c.transfers, transferID(&t.Packet))
}
