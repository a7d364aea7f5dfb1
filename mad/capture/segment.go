package capture

import "fabsh/mad"

// segmentData is what one segment carries of a table, in bytes; classHeader
// what PayloadLength counts of each segment besides: the SA header (IBA
// 13.6.2.1).
const (
	segmentData = mad.Size - mad.SADataOffset
	classHeader = mad.SADataOffset - mad.SAKeyOffset
)

// isTable: h is of an answer of any number of records.
func isTable(h mad.Header) bool {
	switch h.Method {
	case mad.MethodGetTableResp, mad.MethodGetTraceTableResp, mad.MethodGetMultiResp:
		return h.Class == mad.ClassSubnAdm
	}
	return false
}

// segmentOf is the RMPP header of m; nil if nobody has made a transfer of it.
func segmentOf(m []byte) *mad.RMPPHeader {
	if len(m) < mad.SADataOffset || mad.Class(m[offClass]) != mad.ClassSubnAdm {
		return nil
	}
	s := new(mad.RMPPHeader)
	s.Decode(m[mad.RMPPOffset:])
	if s.RMPPVersion == 0 || s.RMPPFlags&mad.RMPPFlagsActive == 0 {
		return nil
	}
	return s
}

// split calls emit with each MAD that m was on the wire, or would have been.
// A transport that does RMPP itself gives a table as one long datagram, and
// one that carries less than a whole MAD gives the end of a short table by its
// length. Both are made segments.
func split(m []byte, emit func(m []byte)) {
	h := mad.ParseHeader(m)
	if len(m) == mad.Size || !isTable(h) || h.Status != 0 || len(m) < mad.SADataOffset {
		whole := make([]byte, mad.Size)
		copy(whole, m)
		emit(whole)
		return
	}
	var s mad.RMPPHeader
	s.Decode(m[mad.RMPPOffset:])
	table := m[mad.SADataOffset:]
	n := max(1, (len(table)+segmentData-1)/segmentData)
	for i := range n {
		data := table[min(len(table), i*segmentData):min(len(table), (i+1)*segmentData)]
		s.RMPPVersion, s.RMPPType, s.RMPPStatus = 1, mad.RMPPTypeData, 0
		s.RMPPFlags, s.SegmentNumber, s.PayloadLength = mad.RMPPFlagsActive, uint32(i+1), 0
		if i == 0 {
			s.RMPPFlags |= mad.RMPPFlagsFirst
			s.PayloadLength = uint32(n*classHeader + len(table))
		}
		if i == n-1 {
			s.RMPPFlags |= mad.RMPPFlagsLast
			s.PayloadLength = uint32(classHeader + len(data))
		}
		segment := make([]byte, mad.Size)
		copy(segment, m[:mad.SADataOffset])
		copy(segment[mad.SADataOffset:], data)
		s.Encode(segment[mad.RMPPOffset:])
		emit(segment)
	}
}
