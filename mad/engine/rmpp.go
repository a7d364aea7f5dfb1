// Package rmpp implements the reliable multi-packet transfer protocol: it splits long
// requests and answers into segments, and reassembles them (IBA 13.6).
//
//	rmpp.go      headers, and segments without data: ACK, STOP, ABORT
//	assembly.go  an answer of many segments
//	transfer.go  a request of many segments
//	error.go     violations of the protocol, and the errors of STOP and ABORT
//
// Its values have no calls, addresses and timers: the caller sends the segments that
// they return, and guards the values.

package engine

import (
	"time"

	"fabsh/mad"
)

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
