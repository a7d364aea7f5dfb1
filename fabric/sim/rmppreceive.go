package sim

import (
	"slices"

	"fabsh/mad"
)

const (
	maxRequest      = 64 << 10 // bytes of a request's data that are taken
	maxReassemblies = 64       // of one conn that are remembered
	receiveWindow   = 8        // segments of a request from one ACK to the next
)

// reassembly is a request of several segments on its way from a conn.
type reassembly struct {
	id       uint64
	segments map[uint32][]byte // the segments by number
	next     uint32            // all before it are here
	window   uint32            // no segment after it is taken
	acked    uint32
	last     uint32 // 0: not seen yet
	complete bool   // nothing is waited for
}

// receiveSegment takes a segment of a request, answers it, and gives the data of all
// when the last one has come.
func (c *conn) receiveSegment(p *packet) (data []byte, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := rmppHeader(p.mad[:])
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
	part := slices.Clone(p.mad[mad.SADataOffset:])
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

// reassemblyOf finds or makes the arrival of a transfer.
func (c *conn) reassemblyOf(id uint64) *reassembly {
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

// forget forgets a transfer that the sender will not go on with.
func (c *conn) forget(id uint64) {
	c.reassemblies = slices.DeleteFunc(c.reassemblies, func(a *reassembly) bool { return a.id == id })
}

// acknowledge says what has come, and how much more may.
func (c *conn) acknowledge(p *packet, a *reassembly) {
	a.acked = a.next - 1
	c.replyToSegment(p, mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, SegmentNumber: a.acked, PayloadLength: max(a.acked, a.window)})
}

// reject says that no more is taken, and why.
func (c *conn) reject(p *packet, a *reassembly, how mad.RMPPType, why mad.RMPPStatus) ([]byte, bool) {
	c.forget(a.id)
	c.replyToSegment(p, mad.RMPPHeader{RMPPType: how, RMPPStatus: why})
	return nil, false
}

// replyToSegment sends h as what becomes of segment p.
func (c *conn) replyToSegment(p *packet, h mad.RMPPHeader) {
	answer := *p
	h.RMPPVersion, h.RRespTime, h.RMPPFlags = 1, mad.NoRespTime, mad.RMPPFlagsActive
	answer.mad[3] |= byte(mad.Response)
	h.Encode(answer.mad[mad.RMPPOffset:])
	clear(answer.mad[mad.SADataOffset:])
	c.deliver(&answer)
}
