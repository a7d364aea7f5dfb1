package capture

import (
	"bytes"

	"fabsh/mad"
)

// isTable reports whether h is of an answer of any number of records.
func isTable(h mad.Header) bool {
	switch h.Method {
	case mad.MethodGetTableResp, mad.MethodGetTraceTableResp, mad.MethodGetMultiResp:
		return h.Class == mad.ClassSubnAdm
	}
	return false
}

// segmentOf returns the RMPP header of m; nil if m is not part of a transfer.
func segmentOf(m []byte) *mad.RMPPHeader {
	if !mad.IsSegment(m) {
		return nil
	}
	s := new(mad.RMPPHeader)
	s.Decode(m[mad.RMPPOffset:])
	return s
}

// uncut reports whether m is a request that the transport splits into segments.
func uncut(m []byte) bool {
	s := segmentOf(m)
	return s != nil && s.RMPPType == mad.RMPPTypeData && s.SegmentNumber == 0 && !mad.ParseHeader(m).Method.IsResponse()
}

// split calls emit with each MAD that m was on the wire, or would have been. A
// transport with RMPP sends and receives a long transfer as one datagram, and one
// that carries less than a whole MAD shows the end of a short table by the length.
// Both are split into segments.
func split(m []byte, emit func(m []byte)) {
	h := mad.ParseHeader(m)
	if !uncut(m) && (len(m) == mad.Size || !isTable(h) || h.Status != 0 || len(m) < mad.SADataOffset) {
		whole := make([]byte, mad.Size)
		copy(whole, m)
		emit(whole)
		return
	}
	var s mad.RMPPHeader
	s.Decode(m[mad.RMPPOffset:])
	table := m[mad.SADataOffset:]
	n := max(1, (len(table)+mad.SegmentData-1)/mad.SegmentData)
	for i := range n {
		data := table[min(len(table), i*mad.SegmentData):min(len(table), (i+1)*mad.SegmentData)]
		s.RMPPVersion, s.RMPPType, s.RMPPStatus = 1, mad.RMPPTypeData, 0
		s.RMPPFlags, s.SegmentNumber, s.PayloadLength = mad.RMPPFlagsActive, uint32(i+1), 0
		if i == 0 {
			s.RMPPFlags |= mad.RMPPFlagsFirst
			s.PayloadLength = uint32(n*mad.SegmentHeader + len(table))
		}
		if i == n-1 {
			s.RMPPFlags |= mad.RMPPFlagsLast
			s.PayloadLength = uint32(mad.SegmentHeader + len(data))
		}
		segment := make([]byte, mad.Size)
		copy(segment, m[:mad.SADataOffset])
		copy(segment[mad.SADataOffset:], data)
		s.Encode(segment[mad.RMPPOffset:])
		emit(segment)
	}
}

// joining is a request of which some segments are missing.
type joining struct {
	parts map[uint32][]byte // by number
	last  uint32            // 0: not seen
}

// join adds a segment of a request and returns the whole request if it is complete,
// as an engine passes it to a replay.
func (l *loader) join(s *mad.RMPPHeader, m []byte) []byte {
	tid := uint32(tidOf(m))
	j := l.joining[tid]
	if j == nil {
		j = &joining{parts: map[uint32][]byte{}}
		l.joining[tid] = j
	}
	if j.parts == nil || s.SegmentNumber == 0 || j.parts[s.SegmentNumber] != nil {
		return nil // repeated
	}
	data := m[mad.SADataOffset:]
	if s.RMPPFlags&mad.RMPPFlagsLast != 0 {
		j.last = s.SegmentNumber
		data = data[:min(max(int(s.PayloadLength)-mad.SegmentHeader, 0), mad.SegmentData)]
	}
	j.parts[s.SegmentNumber] = bytes.Clone(data)
	if len(j.parts) != int(j.last) {
		return nil
	}
	whole := bytes.Clone(m[:mad.SADataOffset])
	forgetSegments(whole)
	for n := range j.last {
		whole = append(whole, j.parts[n+1]...)
	}
	j.parts = nil
	return append(whole, make([]byte, max(0, mad.Size-len(whole)))...)
}

// forgetSegments clears the fields that show how a request was split.
func forgetSegments(m []byte) { clear(m[mad.RMPPOffset:mad.SAKeyOffset]) }
