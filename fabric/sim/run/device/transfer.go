//go:build linux

package device

import (
	"slices"

	"fabsh/fabric/sim/client"
	"fabsh/mad"
)

// segments cuts a transfer (ib_send_rmpp_mad).
func (s *sent) segments() (list []client.Message) {
	start := dataOffset(mad.Class(s.message.MAD[mad.ClassOffset]))
	room := mad.Size - start
	count := max(1, (len(s.data)+room-1)/room)
	pad := count*room - len(s.data)
	const behindHeader = mad.Size - leastMAD // what PayloadLength counts of a full segment
	for n := 1; n <= count; n++ {
		m := s.message
		h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: mad.NoRespTime, RMPPFlags: mad.RMPPFlagsActive, SegmentNumber: uint32(n)}
		if n == 1 {
			h.RMPPFlags |= mad.RMPPFlagsFirst
			h.PayloadLength = uint32(count*behindHeader - pad)
		}
		if n == count {
			h.RMPPFlags |= mad.RMPPFlagsLast
			h.PayloadLength = uint32(behindHeader - pad)
		}
		h.Encode(m.MAD[mad.RMPPOffset:])
		part := s.data[min((n-1)*room, len(s.data)):min(n*room, len(s.data))]
		clear(m.MAD[start+copy(m.MAD[start:], part):])
		list = append(list, m)
	}
	return list
}

// Limits of transfers that come in.
const (
	maxTransfers    = 64       // of a file at a time
	maxTransferSize = 64 << 20 // bytes
)

// transferKey names a transfer: who sends it, and for whom it is.
type transferKey struct {
	agent *agent
	from  mad.LID
	qp    uint32
	key   sentKey
}

// transfer is what has come of one.
type transfer struct {
	next uint32 // segment
	data []byte // with the header of the first segment
}

// join adds a segment to its transfer, and returns all when it is complete, without the
// padding of the last segment (get_mad_len).
func (a *agent) join(m *client.Message) (data []byte, whole bool) {
	f := a.file
	var h mad.RMPPHeader
	h.Decode(m.MAD[mad.RMPPOffset:])
	key := transferKey{a, m.SLID, m.SQP, keyOf(m.MAD[:])}
	if h.RMPPVersion != 1 || h.RMPPType != mad.RMPPTypeData || h.RMPPStatus != 0 {
		if h.RMPPType == mad.RMPPTypeStop || h.RMPPType == mad.RMPPTypeAbort {
			delete(f.transfers, key)
		}
		return nil, false
	}
	first, last := h.RMPPFlags&mad.RMPPFlagsFirst != 0, h.RMPPFlags&mad.RMPPFlagsLast != 0
	start := dataOffset(mad.Class(m.MAD[mad.ClassOffset]))
	t := f.transfers[key]
	if first {
		if t == nil && len(f.transfers) == maxTransfers {
			return nil, false
		}
		t = &transfer{next: 1, data: slices.Clone(m.MAD[:start])}
		f.transfers[key] = t
	}
	if t == nil || h.SegmentNumber != t.next || len(t.data) > maxTransferSize {
		delete(f.transfers, key) // a segment was lost
		return nil, false
	}
	t.next++
	part := m.MAD[start:]
	if last {
		length := int(h.PayloadLength) - (start - leastMAD)
		if length < 0 || length > len(part) {
			delete(f.transfers, key)
			return nil, false
		}
		part = part[:length]
	}
	t.data = append(t.data, part...)
	if !last {
		return nil, false
	}
	delete(f.transfers, key)
	return t.data, true
}
