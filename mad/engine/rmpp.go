package engine

import (
	"encoding/binary"
	"fmt"
	"time"

	"fabsh/mad"
)

// The reliable multi-packet transfer protocol (RMPP) splits long requests and answers
// into segments, and reassembles them (IBA 13.6). rmppAssembly and rmppTransfer have no
// calls, addresses and timers: the caller sends the segments that they return, and guards
// the values.

// rmppWindow is how many segments the sender may be ahead of our ACK, and how far out of
// order they may come.
const rmppWindow = 64

// rmppTypeOf returns the RMPP type of m.
func rmppTypeOf(m []byte) mad.RMPPType { return mad.RMPPType(m[mad.RMPPTypeOffset]) }

// rmppHeaderOf returns the RMPP header of m.
func rmppHeaderOf(m []byte) (h mad.RMPPHeader) {
	h.Decode(m[mad.RMPPOffset:])
	return h
}

// rmppACK returns the header of an ACK of a segment, with the last one that the sender may
// send.
func rmppACK(segment, newWindowLast uint32) mad.RMPPHeader {
	return mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, SegmentNumber: segment, PayloadLength: newWindowLast}
}

// rmppAbort returns the header of an ABORT: the other end is to send no more.
func rmppAbort(status mad.RMPPStatus) mad.RMPPHeader {
	return mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: status}
}

// putRMPPControl puts in head a segment without data, with the headers of m, of whose RMPP
// header RRespTime stays. One that answers m has its response bit turned over: Linux
// matches it so (mad_rmpp.c, format_ack and nack_recv).
func putRMPPControl(head *[mad.SADataOffset]byte, m []byte, h mad.RMPPHeader, answers bool) {
	copy(head[:], m)
	h.RMPPVersion, h.RRespTime, h.RMPPFlags = 1, rmppHeaderOf(m).RRespTime, mad.RMPPFlagsActive
	h.Encode(head[mad.RMPPOffset:])
	if answers {
		head[mad.MethodOffset] ^= byte(mad.Response)
	}
}

// respTime returns the answer time that the sender of an RMPP header announces (IBA
// 13.6.2.1); 0 if it announces none.
func respTime(h *mad.RMPPHeader) time.Duration {
	if h.RRespTime == mad.NoRespTime {
		return 0
	}
	return 4096 * time.Nanosecond << h.RRespTime
}

// rmppAssembly puts the segments of one answer together (IBA 13.6.6.2).
type rmppAssembly struct {
	tid        uint32
	head       [mad.SADataOffset]byte // of segment 1, or of the first that came
	next       uint32                 // all segments before it are here
	ahead      uint64                 // bit i: segment next+i is here; bit 0 never stays set
	last       uint32                 // number of the last segment; 0: not seen yet
	lastLength int                    // bytes of the table in the last segment
	announced  uint32                 // PayloadLength of segment 1; 0: unknown
	acked      uint32                 // segments acknowledged
	granted    uint32                 // the sender may send up to this one
	most       int                    // bytes that there may be
	data       []byte
}

// newRMPPAssembly returns an assembly of an answer of which m is a segment, and which may
// have most bytes.
func newRMPPAssembly(m []byte, most int) rmppAssembly {
	a := rmppAssembly{most: most, next: 1, granted: 1, tid: uint32(binary.BigEndian.Uint64(m[mad.TIDOffset:]))}
	copy(a.head[:], m)
	return a
}

// TID returns the low half of the transaction ID of the segments.
func (a *rmppAssembly) TID() uint32 { return a.tid }

// Next returns the number of the first segment that is missing.
func (a *rmppAssembly) Next() uint32 { return a.next }

// Head returns the headers of segment 1, or of the first that came.
func (a *rmppAssembly) Head() []byte { return a.head[:] }

// Acknowledge returns the content of an ACK: which segments have come, and the last one
// that the sender may send.
func (a *rmppAssembly) Acknowledge() (segment, newWindowLast uint32) {
	a.acked = a.next - 1
	return a.acked, max(a.granted, a.acked)
}

// Add adds a DATA segment; m has mad.Size bytes. It reports whether the segment was new,
// and whether an ACK is due. The error is an *abortError.
func (a *rmppAssembly) Add(m []byte) (progress, ack bool, err error) {
	h := rmppHeaderOf(m)
	n := h.SegmentNumber
	last := h.RMPPFlags&mad.RMPPFlagsLast != 0
	switch {
	case h.RMPPVersion != 1:
		return false, false, badTable(mad.RMPPStatusUnsupportedVersion, "RMPP version %d", h.RMPPVersion)
	case h.RMPPStatus != 0:
		return false, false, badTable(mad.RMPPStatusIllegalStatus, "segment %d has RMPP status %d", n, uint8(h.RMPPStatus))
	case n == 0 || n == 1 != (h.RMPPFlags&mad.RMPPFlagsFirst != 0):
		return false, false, badTable(mad.RMPPStatusInconsistentFirstAndSegmentNumber, "segment number %d does not go with the flag of the first segment", n)
	case last && (h.PayloadLength < mad.SegmentHeader || h.PayloadLength > mad.SegmentHeader+mad.SegmentData):
		return false, false, badTable(mad.RMPPStatusInconsistentLastAndPayloadLength, "last segment with payload length %d", h.PayloadLength)
	case a.last != 0 && (n > a.last || last != (n == a.last)):
		return false, false, badTable(mad.RMPPStatusInconsistentLastAndPayloadLength, "segment %d, but the last was %d", n, a.last)
	case n < a.next:
		// A segment we have acknowledged comes again: the ACK was lost.
		return false, n <= a.acked, nil
	case n-a.next >= rmppWindow || a.ahead>>(n-a.next)&1 != 0:
		return false, false, nil
	case (int64(n)-1)*mad.SegmentData >= int64(a.most):
		return false, false, rmppTooLong(a.most)
	}
	if n == 1 {
		copy(a.head[:], m)
		if !last {
			a.announced = h.PayloadLength
		}
	}
	if last {
		if a.ahead>>(n-a.next) != 0 {
			return false, false, badTable(mad.RMPPStatusInconsistentLastAndPayloadLength, "segment %d is the last, but there are later ones", n)
		}
		a.last, a.lastLength = n, int(h.PayloadLength)-mad.SegmentHeader
	}
	a.grow(int(n))
	copy(a.data[(int(n)-1)*mad.SegmentData:], m[mad.SADataOffset:mad.Size])
	for a.ahead |= 1 << (n - a.next); a.ahead&1 != 0; a.ahead >>= 1 {
		a.next++
	}
	switch {
	case a.Done():
		if most := uint64(a.last) * (mad.SegmentData + mad.SegmentHeader); uint64(a.announced) > most {
			return true, false, badTable(mad.RMPPStatusInconsistentLastAndPayloadLength, "%d bytes at most have come, of %d that the first segment announced", most, a.announced)
		}
		ack = true
	case a.next > a.granted:
		a.granted = a.next - 1 + rmppWindow
		ack = true
	}
	return true, ack, nil
}

// grow makes room for n segments. Memory grows with what has come, twofold at
// most, whatever the first segment announces.
func (a *rmppAssembly) grow(n int) {
	need := n * mad.SegmentData
	if need > cap(a.data) {
		announced := int(a.announced / (mad.SegmentData + mad.SegmentHeader) * mad.SegmentData)
		size := max(need, min(2*need, announced+mad.SegmentData))
		if announced < need {
			size = 2 * need // it announced nothing
		}
		a.data = append(make([]byte, 0, size), a.data...)
	}
	if need > len(a.data) {
		a.data = a.data[:need]
	}
}

// Done reports whether all segments have come.
func (a *rmppAssembly) Done() bool { return a.last != 0 && a.next > a.last }

// Table returns the data of all segments. The caller owns it.
func (a *rmppAssembly) Table() []byte { return a.data[:int(a.last-1)*mad.SegmentData+a.lastLength] }

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
// reports whether it is the last one. data is the data of the whole request.
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

// abortError is a violation of the protocol by the other end, and the status that
// reports it to that end.
type abortError struct {
	Status mad.RMPPStatus
	text   string
}

func (e *abortError) Error() string { return e.text }

// badTable returns the violation of the protocol by the sender of a table.
func badTable(status mad.RMPPStatus, format string, args ...any) error {
	return &abortError{status, "malformed table: " + fmt.Sprintf(format, args...)}
}

// rmppTooLong returns the error of a table longer than most bytes.
func rmppTooLong(most int) error {
	return &abortError{mad.RMPPStatusResourcesExhausted, fmt.Sprintf("the table is longer than %d bytes; request less at once", most)}
}

// badACK returns the violation of the protocol by the receiver of a request.
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

// remedy returns what to try.
func (e *peerError) remedy() string {
	switch e.status {
	case mad.RMPPStatusResourcesExhausted:
		return "retry later, or request less at once"
	case mad.RMPPStatusTotalTimeTooLong:
		return "retry with a longer timeout, or request less at once"
	case mad.RMPPStatusTooManyRetries:
		return "datagrams are lost; check the links of the path for errors, or retry"
	case mad.RMPPStatusInconsistentLastAndPayloadLength, mad.RMPPStatusInconsistentFirstAndSegmentNumber,
		mad.RMPPStatusBadRMPPType, mad.RMPPStatusNewWindowLastTooSmall, mad.RMPPStatusSegmentNumberTooBig,
		mad.RMPPStatusIllegalStatus, mad.RMPPStatusUnsupportedVersion:
		return "one end violates the protocol; record the session to find which (--record FILE)"
	}
	return "retry"
}

// newPeerError returns the error of a STOP or ABORT with header h; who sent it: the
// "sender" or "receiver" of what, a "table" or "request".
func newPeerError(who, what string, h *mad.RMPPHeader) error {
	return &peerError{who, what, h.RMPPType, h.RMPPStatus}
}
