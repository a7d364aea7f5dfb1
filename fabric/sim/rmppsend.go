package sim

import (
	"time"

	"fabsh/fabric/sim/agent"
	"fabsh/mad"
)

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
