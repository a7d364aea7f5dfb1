package agent

import (
	"slices"

	"fabsh/mad"
)

// check1 returns the status of a request of class version 1 that is not supported.
// Supported are requests that fit in one MAD, of attributes whose layout two public
// sources give, and tables of records that never exist here. GetBulk is optional
// (Shanley, InfiniBand Network Architecture, table 33-3); the values of Config's
// EditModifier are not public.
func (r *saRequest) check1() mad.Status {
	switch r.Method {
	case mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodInform:
	default:
		return mad.StatusBadMethod
	}
	switch {
	case r.attr == nil, !slices.Contains(r.attr.MethodsIn(1), r.Method):
		return mad.StatusBadMethodAttribute
	case !r.attr.Confirmed && r.isChange():
		return mad.StatusBadMethodAttribute
	}
	return mad.StatusOK
}

// answer1 answers in version 1 of the class with as many records as fit in one MAD: how
// that version sends more is not public.
func (r *saRequest) answer1(records []byte, size int) mad.Status {
	if len(records) > len(r.Data) {
		return mad.StatusNoResources
	}
	copy(r.Data, records)
	var h mad.SA1Header
	h.Decode(r.MAD[mad.RMPPOffset:])
	h.SegmentNumber, h.PayloadLength, h.AttributeOffset = 0, uint32(len(records)), uint16(size/8)
	h.FragmentFlag = mad.FragmentFlagFirst | mad.FragmentFlagLast
	h.Encode(r.MAD[mad.RMPPOffset:])
	return mad.StatusOK
}
