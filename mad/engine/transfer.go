package engine

import (
	"time"

	"fabsh/mad"
)

// rmppTransfer is the state of a request of several segments (IBA 13.6.6; Linux
// mad_rmpp.c, process_rmpp_ack).
type rmppTransfer struct {
	segments uint32        // in all
	acked    uint32        // the last one that the receiver has, with all before it
	sent     uint32        // the last one sent
	window   uint32        // the receiver takes them up to this one
	rto      time.Duration // for an ACK of what was sent
	minRTO   time.Duration // what it begins with
}

// newRMPPTransfer returns the transfer of a request with n bytes of data. The first RTO for
// its ACKs is rto.
func newRMPPTransfer(n int, rto time.Duration) *rmppTransfer {
	return &rmppTransfer{segments: uint32(max(1, (n+mad.SegmentData-1)/mad.SegmentData)), window: 1, rto: rto, minRTO: rto}
}

// Done reports whether the receiver has all segments.
func (t *rmppTransfer) Done() bool { return t.acked == t.segments }

// More reports whether there are segments to be sent that the receiver takes.
func (t *rmppTransfer) More() bool { return t.sent < min(t.window, t.segments) }

// Begun reports whether the first segment has arrived, or others were sent.
func (t *rmppTransfer) Begun() bool { return t.acked > 0 || t.sent > 1 }

// Acked returns the last segment that the receiver has, with all before it, and how many
// there are in all.
func (t *rmppTransfer) Acked() (segment, of uint32) { return t.acked, t.segments }

// RTO returns how long to wait for an ACK of what was sent.
func (t *rmppTransfer) RTO() time.Duration { return t.rto }

// GoBack sends again what was not acknowledged, and doubles the RTO, up to most.
func (t *rmppTransfer) GoBack(most time.Duration) {
	t.rto = min(2*t.rto, most)
	t.sent = t.acked
}

// Put puts the next segment of the request in m, which has the other headers; last
// reports whether it is the last one. The data is that of the whole request.
func (t *rmppTransfer) Put(m, data []byte) (last bool) {
	t.sent++
	n := int(t.sent)
	part := data[(n-1)*mad.SegmentData : min(n*mad.SegmentData, len(data))]
	h := mad.RMPPHeader{
		RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: mad.NoRespTime,
		RMPPFlags: mad.RMPPFlagsActive, SegmentNumber: t.sent,
	}
	if n == 1 {
		h.RMPPFlags |= mad.RMPPFlagsFirst
		h.PayloadLength = t.segments*mad.SegmentHeader + uint32(len(data))
	}
	if last = t.sent == t.segments; last {
		h.RMPPFlags |= mad.RMPPFlagsLast
		h.PayloadLength = mad.SegmentHeader + uint32(len(part))
	}
	h.Encode(m[mad.RMPPOffset:])
	clear(m[mad.SADataOffset+copy(m[mad.SADataOffset:], part):])
	return last
}

// rmppReply is what an answer of the receiver leads to.
type rmppReply uint8

const (
	replyOvertaken rmppReply = iota // a later one has come already
	replyNoNews                     // as before, but for the window
	replyProgress                   // more segments have arrived
)

// Receive handles m, the receiver's reply to the segments. The RTO is at most longest.
// The error, an *abortError or a *peerError, ends the transfer.
func (t *rmppTransfer) Receive(m []byte, longest time.Duration) (rmppReply, error) {
	h := rmppHeaderOf(m)
	overtaken, err := t.check(&h)
	switch {
	case err != nil:
		return replyNoNews, err
	case overtaken:
		return replyOvertaken, nil
	}
	was := t.acked
	t.acked, t.window = h.SegmentNumber, h.PayloadLength // which is NewWindowLast
	t.sent = max(t.sent, t.acked)
	if t.acked == was {
		return replyNoNews, nil
	}
	t.rto = min(max(t.minRTO, respTime(&h)), longest)
	return replyProgress, nil
}

// check reports whether h, of a reply of the receiver of t, was overtaken by a later
// one, or ends the transfer.
func (t *rmppTransfer) check(h *mad.RMPPHeader) (overtaken bool, err error) {
	segment, window := h.SegmentNumber, h.PayloadLength
	switch {
	case h.RMPPVersion != 1:
		err = badACK(mad.RMPPStatusUnsupportedVersion, "RMPP version %d", h.RMPPVersion)
	case h.RMPPType == mad.RMPPTypeStop, h.RMPPType == mad.RMPPTypeAbort:
		err = newPeerError("receiver", "request", h)
	case h.RMPPType != mad.RMPPTypeACK:
		err = badACK(mad.RMPPStatusBadRMPPType, "RMPP type %d", uint8(h.RMPPType))
	case h.RMPPStatus != 0:
		err = badACK(mad.RMPPStatusIllegalStatus, "RMPP status %d", uint8(h.RMPPStatus))
	case window < segment:
		err = badACK(mad.RMPPStatusNewWindowLastTooSmall, "of segment %d, but the window ends with %d", segment, window)
	case segment > min(t.window, t.segments):
		err = badACK(mad.RMPPStatusSegmentNumberTooBig, "of segment %d, but %d were allowed of %d", segment, t.window, t.segments)
	default:
		overtaken = segment < t.acked || window < t.window && segment < t.segments
	}
	return overtaken, err
}
