package sim

import (
	"slices"

	"fabsh/mad"
)

const (
	maxRequest  = 64 << 10 // bytes of a request's data that are taken
	maxArrivals = 64       // of one conn that are remembered
	takeAhead   = 8        // segments of a request from one ACK to the next
)

// arrival is a request of several segments on its way from a conn.
type arrival struct {
	id     uint64
	parts  map[uint32][]byte // the segments by number
	next   uint32            // all before it are here
	window uint32            // no segment after it is taken
	acked  uint32
	last   uint32 // 0: not seen yet
	whole  bool   // nothing is waited for
}

// arrive takes a segment of a request, answers it, and gives the data of all
// when the last one has come.
func (c *conn) arrive(p *packet) (data []byte, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := rmppHeader(p.mad[:])
	a := c.arrivalOf(transferID(p))
	n, length := h.SegmentNumber, int(h.PayloadLength)-mad.SegmentHeader
	last := h.RMPPFlags&mad.RMPPFlagsLast != 0
	switch {
	case h.RMPPStatus != 0:
		return c.refuse(p, a, mad.RMPPTypeAbort, mad.RMPPStatusIllegalStatus)
	case n == 0, (n == 1) != (h.RMPPFlags&mad.RMPPFlagsFirst != 0):
		return c.refuse(p, a, mad.RMPPTypeAbort, mad.RMPPStatusInconsistentFirstAndSegmentNumber)
	case last && (length < 0 || length > mad.SegmentData), a.last > 0 && (n > a.last || last != (n == a.last)):
		return c.refuse(p, a, mad.RMPPTypeAbort, mad.RMPPStatusInconsistentLastAndPayloadLength)
	case n > maxRequest/mad.SegmentData:
		return c.refuse(p, a, mad.RMPPTypeStop, mad.RMPPStatusResourcesExhausted)
	case a.whole || n <= a.acked: // the ACK was lost
		c.acknowledge(p, a)
		return nil, false
	case n > a.window:
		return nil, false
	}
	part := slices.Clone(p.mad[mad.SADataOffset:])
	if last {
		a.last, part = n, part[:length]
	}
	a.parts[n] = part
	for a.parts[a.next] != nil {
		a.next++
	}
	if a.whole = a.next > a.last && a.last > 0; a.whole {
		data = []byte{}
		for n := range a.last {
			data = append(data, a.parts[n+1]...)
		}
		a.parts = nil
	} else if a.next <= a.window {
		return nil, false
	} else {
		a.window += takeAhead
	}
	c.acknowledge(p, a)
	return data, a.whole
}

// arrivalOf finds or makes the arrival of a transfer.
func (c *conn) arrivalOf(id uint64) *arrival {
	for _, a := range c.arrivals {
		if a.id == id {
			return a
		}
	}
	if len(c.arrivals) == maxArrivals {
		c.arrivals = slices.Delete(c.arrivals, 0, 1)
	}
	a := &arrival{id: id, parts: map[uint32][]byte{}, next: 1, window: 1}
	c.arrivals = append(c.arrivals, a)
	return a
}

// giveUp forgets a transfer that the sender will not go on with.
func (c *conn) giveUp(id uint64) {
	c.arrivals = slices.DeleteFunc(c.arrivals, func(a *arrival) bool { return a.id == id })
}

// acknowledge says what has come, and how much more may.
func (c *conn) acknowledge(p *packet, a *arrival) {
	a.acked = a.next - 1
	c.answerSegment(p, mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, SegmentNumber: a.acked, PayloadLength: max(a.acked, a.window)})
}

// refuse says that no more is taken, and why.
func (c *conn) refuse(p *packet, a *arrival, how mad.RMPPType, why mad.RMPPStatus) ([]byte, bool) {
	c.giveUp(a.id)
	c.answerSegment(p, mad.RMPPHeader{RMPPType: how, RMPPStatus: why})
	return nil, false
}

// answerSegment sends h as what becomes of segment p.
func (c *conn) answerSegment(p *packet, h mad.RMPPHeader) {
	answer := *p
	h.RMPPVersion, h.RRespTime, h.RMPPFlags = 1, mad.NoRespTime, mad.RMPPFlagsActive
	answer.mad[3] |= byte(mad.Response)
	h.Encode(answer.mad[mad.RMPPOffset:])
	clear(answer.mad[mad.SADataOffset:])
	c.deliver(&answer)
}
