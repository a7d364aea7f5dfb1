package engine

import (
	"errors"
	"fmt"
	"time"

	"fabsh/mad"
)

const (
	// rmppWindow is how many segments we let the sender be ahead of our
	// ACK, and how far out of order they may come.
	rmppWindow = 64
	// maxTable is how long an answer is that nobody said may be longer, in bytes:
	// the records of a full subnet's ports would not come near it, but a sender
	// that never ends would.
	maxTable = 64 << 20
	// maxRequest is how long a request is at most, in bytes.
	maxRequest = 1 << 30
	// minTransferTime is how long a transfer that makes progress may last at
	// least; Linux takes 40 s too (mad_rmpp.c, start_rmpp).
	minTransferTime = 40 * time.Second
)

func rmppType(m []byte) mad.RMPPType { return mad.RMPPType(m[mad.RMPPTypeOffset]) }

// rmppHeader is the RMPP header of m.
func rmppHeader(m []byte) (h mad.RMPPHeader) {
	h.Decode(m[mad.RMPPOffset:])
	return h
}

// respTime is how long the sender of an RMPP header says it takes to answer (IBA
// 13.6.2.1); 0 if it does not.
func respTime(h *mad.RMPPHeader) time.Duration {
	if h.RRespTime == mad.NoRespTime {
		return 0
	}
	return 4096 * time.Nanosecond << h.RRespTime
}

// control is an RMPP segment without data, which the writer is to send.
type control struct {
	to   Address
	head [mad.SADataOffset]byte
}

// acknowledge tells the sender how far we are and how far it may go.
func (e *Engine) acknowledge(a *assembly) {
	a.acked = a.next - 1
	e.queueACK(a.head[:], a.to, a.acked, max(a.granted, a.acked))
}

// queueACK queues an ACK of a segment, with the last one that the sender may
// send.
func (e *Engine) queueACK(m []byte, to Address, segment, newWindowLast uint32) {
	e.queueAnswer(m, to, mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, SegmentNumber: segment, PayloadLength: newWindowLast})
}

// queueAbort tells the sender of segment m to send no more.
func (e *Engine) queueAbort(m []byte, to Address, status mad.RMPPStatus) {
	e.queueAnswer(m, to, mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: status})
}

// queueAnswer queues a control segment that answers segment m: its header is that
// of m with the response bit turned over. Linux matches it so (mad_rmpp.c,
// format_ack and nack_recv).
func (e *Engine) queueAnswer(m []byte, to Address, h mad.RMPPHeader) {
	if s := e.queueControl(m, to, h); s != nil {
		s.head[mad.MethodOffset] ^= byte(mad.Response)
	}
}

// queueControl queues a control segment with the header of m, of whose RMPP
// header RRespTime stays; nil: there is no room, or ACKs are not to be sent.
func (e *Engine) queueControl(m []byte, to Address, h mad.RMPPHeader) *control {
	w := &e.writer
	if e.traits.NoACK || len(w.control) >= maxControl {
		return nil
	}
	w.control = append(w.control, control{to: to})
	s := &w.control[len(w.control)-1]
	copy(s.head[:], m)
	h.RMPPVersion, h.RRespTime, h.RMPPFlags = 1, rmppHeader(m).RRespTime, mad.RMPPFlagsActive
	h.Encode(s.head[mad.RMPPOffset:])
	return s
}

// abortTransfer tells the other end why the transfer of c's request or answer
// ends in the middle, as c does, with err.
func (e *Engine) abortTransfer(c *Call, err error) {
	var theirs *peerError
	if err == nil || e.life.err != nil || errors.As(err, &theirs) {
		return
	}
	var ours *abortError
	status, timeout := mad.RMPPStatusUnspecified, errors.Is(err, ErrTimeout)
	switch {
	case errors.As(err, &ours):
		status = ours.status
	case timeout && c.s.rx == nil && !c.s.tooLong():
		status = mad.RMPPStatusTooManyRetries
	case timeout:
		status = mad.RMPPStatusTotalTimeTooLong
	}
	switch {
	case c.s.rx != nil:
		e.queueAbort(c.s.rx.head[:], c.s.rx.to, status)
	case c.s.tx != nil && !c.s.tx.done():
		var d Datagram
		e.putHeader(c, &d)
		d.MAD[mad.RMPPFlagsOffset] = mad.NoRespTime << 3
		e.queueControl(d.MAD, c.s.to, mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: status})
	}
}

// straySegment answers a segment that no open call waits for: its sender
// would go on for long. If the call had all, what got lost is our last ACK.
func (e *Engine) straySegment(d *Datagram, answered bool) {
	if e.traits.RMPP || !mad.IsSegment(d.MAD) || rmppType(d.MAD) != mad.RMPPTypeData {
		return
	}
	if h := rmppHeader(d.MAD); !answered {
		e.queueAbort(d.MAD, d.Address, mad.RMPPStatusTotalTimeTooLong)
	} else if h.RMPPFlags&mad.RMPPFlagsLast != 0 {
		e.queueACK(d.MAD, d.Address, h.SegmentNumber, h.SegmentNumber+rmppWindow)
	}
}

// abortError is a violation of the protocol by the other end, and the status that
// tells it so.
type abortError struct {
	status mad.RMPPStatus
	text   string
}

func (e *abortError) Error() string { return e.text }

// badTable is a violation by the sender of a table.
func badTable(status mad.RMPPStatus, format string, args ...any) error {
	return &abortError{status, "malformed table: " + fmt.Sprintf(format, args...)}
}

// tooLong: the table is longer than most bytes.
func tooLong(most int) error {
	return &abortError{mad.RMPPStatusResourcesExhausted, fmt.Sprintf("the table is longer than %d bytes: ask for less at once", most)}
}

// badACK is one by the receiver of a request.
func badACK(status mad.RMPPStatus, format string, args ...any) error {
	return &abortError{status, "malformed ACK: " + fmt.Sprintf(format, args...)}
}

// peerError is that the other end ended a transfer by STOP or ABORT.
type peerError struct {
	who, what string // "the receiver ... the request"
	kind      mad.RMPPType
	status    mad.RMPPStatus
}

func (e *peerError) Error() string {
	did := "stopped"
	if e.kind == mad.RMPPTypeAbort {
		did = "aborted"
	}
	return fmt.Sprintf("the %s %s the %s: RMPP status %d, %s: %s", e.who, did, e.what, uint8(e.status), e.status.Text(), e.remedy())
}

// remedy is what to try.
func (e *peerError) remedy() string {
	switch e.status {
	case mad.RMPPStatusResourcesExhausted:
		return "ask again later, or for less at once"
	case mad.RMPPStatusTotalTimeTooLong:
		return "ask again, with a longer timeout or for less at once"
	case mad.RMPPStatusTooManyRetries:
		return "datagrams are lost on the way: look for errors on its links, or ask again"
	case mad.RMPPStatusInconsistentLastAndPayloadLength, mad.RMPPStatusInconsistentFirstAndSegmentNumber,
		mad.RMPPStatusBadRMPPType, mad.RMPPStatusNewWindowLastTooSmall, mad.RMPPStatusSegmentNumberTooBig,
		mad.RMPPStatusIllegalStatus, mad.RMPPStatusUnsupportedVersion:
		return "one end does not keep to the protocol: a recording shows which"
	}
	return "ask again"
}

// peerErrorOf is what the STOP or ABORT with header h says.
func peerErrorOf(who, what string, h *mad.RMPPHeader) error {
	return &peerError{who, what, h.RMPPType, h.RMPPStatus}
}
