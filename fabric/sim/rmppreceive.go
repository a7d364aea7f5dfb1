package sim

import (
	"slices"

	"fabsh/fabric/sim/agent"
	"fabsh/mad"
)

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
