package sim

import (
	"encoding/binary"
	"time"

	"fabsh/mad"
)

// The RMPP header (IBA 13.6.2).
const (
	rmppVersionByte = mad.RMPPOffset
	rmppTypeByte    = mad.RMPPOffset + 1
	rmppFlagsByte   = mad.RMPPOffset + 2
	rmppStatusByte  = mad.RMPPOffset + 3
	rmppSegment     = mad.RMPPOffset + 4 // DATA, ACK: SegmentNumber
	rmppLength      = mad.RMPPOffset + 8 // DATA: PayloadLength; ACK: NewWindowLast

	rmppData  = 1
	rmppACK   = 2
	rmppStop  = 3
	rmppAbort = 4

	rmppActive     = 1
	rmppFirst      = 2
	rmppLast       = 4
	rmppNoRespTime = 0x1f << 3

	rmppBadWindow   = 122 // NewWindowLast too small
	rmppBadSegment  = 123 // SegmentNumber too big
	rmppManyRetries = 126
)

const (
	segmentSize   = mad.Size - mad.SADataOffset            // bytes of records in a segment
	segmentHeader = mad.SADataOffset - mad.RMPPOffset - 12 // SA header, counted in PayloadLength
	maxResends    = 7                                      // of one window, before the transfer is given up
	resendAfter   = 100 * time.Millisecond                 // plus two round trips
)

// transfer is a table on its way to a conn, segment by segment.
type transfer struct {
	packet // the address, and the header that every segment repeats
	data   []byte
	segs   int // in all
	acked  int // the last one that the receiver has with all before it
	sent   int // the last one sent
	window int // the last one that the receiver wants now
	tries  int // resends since acked grew
	timer  *time.Timer
}

// transmit begins to send data as the answer whose header is in p. A repeated
// request goes on with the transfer that it began.
func (c *conn) transmit(p *packet, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tid := transferID(p)
	if t := c.transfers[tid]; t != nil {
		t.sent = t.acked
		c.fill(t)
		return
	}
	if c.queue.closed.Load() {
		return
	}
	t := &transfer{packet: *p, data: data, segs: max(1, (len(data)+segmentSize-1)/segmentSize), window: 1}
	c.transfers[tid] = t
	t.timer = time.AfterFunc(c.resendTime(), func() { c.resend(t) })
	c.fill(t)
}

// control takes the receiver's ACK, STOP or ABORT.
func (c *conn) control(p *packet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.transfers[transferID(p)]
	if t == nil {
		return
	}
	if p.mad[rmppTypeByte] != rmppACK {
		c.end(t)
		return
	}
	seg := int(binary.BigEndian.Uint32(p.mad[rmppSegment:]))
	window := int(binary.BigEndian.Uint32(p.mad[rmppLength:]))
	switch {
	case seg > t.sent:
		c.abort(t, rmppBadSegment)
		return
	case seg < t.acked: // overtaken by a later one
		return
	case window < t.window && seg < t.segs:
		c.abort(t, rmppBadWindow)
		return
	case seg == t.segs:
		c.end(t)
		return
	}
	if seg > t.acked {
		t.acked, t.tries = seg, 0
	}
	t.window = window
	t.timer.Reset(c.resendTime())
	c.fill(t)
}

// resend repeats what was not acknowledged in time.
func (c *conn) resend(t *transfer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transfers[transferID(&t.packet)] != t {
		return
	}
	if t.tries++; t.tries > maxResends {
		c.abort(t, rmppManyRetries)
		return
	}
	t.sent = t.acked
	c.fill(t)
	t.timer.Reset(c.resendTime())
}

// resendTime is how long the receiver may take to acknowledge.
func (c *conn) resendTime() time.Duration {
	return resendAfter + 2*(c.fates.Delay+c.fates.Jitter)
}

// fill sends what the window allows.
func (c *conn) fill(t *transfer) {
	for t.sent < min(t.window, t.segs) {
		t.sent++
		c.deliver(t.segment(t.sent))
	}
}

// segment makes segment n, counted from 1.
func (t *transfer) segment(n int) *packet {
	p := t.packet
	m := p.mad[:]
	data := t.data[(n-1)*segmentSize : min(n*segmentSize, len(t.data))]
	flags, length := byte(rmppActive), 0
	if n == 1 {
		flags |= rmppFirst
		length = t.segs*segmentHeader + len(t.data)
	}
	if n == t.segs {
		flags |= rmppLast
		length = segmentHeader + len(data)
	}
	m[rmppVersionByte], m[rmppTypeByte] = 1, rmppData
	m[rmppFlagsByte], m[rmppStatusByte] = rmppNoRespTime|flags, 0
	binary.BigEndian.PutUint32(m[rmppSegment:], uint32(n))
	binary.BigEndian.PutUint32(m[rmppLength:], uint32(length))
	clear(m[mad.SADataOffset+copy(m[mad.SADataOffset:], data):])
	return &p
}

// abort tells the receiver that no more comes, and why.
func (c *conn) abort(t *transfer, why byte) {
	p := t.packet
	m := p.mad[:]
	m[rmppVersionByte], m[rmppTypeByte] = 1, rmppAbort
	m[rmppFlagsByte], m[rmppStatusByte] = rmppNoRespTime|rmppActive, why
	clear(m[rmppSegment:])
	c.deliver(&p)
	c.end(t)
}

func (c *conn) end(t *transfer) {
	t.timer.Stop()
	delete(c.transfers, transferID(&t.packet))
}

// isRMPPControl: p concerns a transfer under way and is no request.
func isRMPPControl(p *packet) bool {
	return mad.Class(p.mad[1]) == mad.ClassSubnAdm &&
		p.mad[rmppVersionByte] == 1 && p.mad[rmppFlagsByte]&rmppActive != 0 &&
		p.mad[rmppTypeByte] >= rmppACK && p.mad[rmppTypeByte] <= rmppAbort
}

func transferID(p *packet) uint64 { return binary.BigEndian.Uint64(p.mad[8:]) }
