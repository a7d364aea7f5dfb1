package engine

import (
	"fmt"

	"fabsh/mad"
)

// abortError is a violation of the protocol by the other end, and the status that
// reports it to that end.
type abortError struct {
	Status mad.RMPPStatus
	text   string
}

func (e *abortError) Error() string { return e.text }

// badTable is a violation by the sender of a table.
func badTable(status mad.RMPPStatus, format string, args ...any) error {
	return &abortError{status, "malformed table: " + fmt.Sprintf(format, args...)}
}

// rmppTooLong returns the error of a table longer than most bytes.
func rmppTooLong(most int) error {
	return &abortError{mad.RMPPStatusResourcesExhausted, fmt.Sprintf("the table is longer than %d bytes; request less at once", most)}
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
