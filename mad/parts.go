package mad

import "encoding/binary"

// Part is a stretch of a MAD that has a layout: a header, or an attribute.
type Part struct {
	Layout *Attribute
	Offset int    // in the MAD, bytes
	Data   []byte // of the MAD; fewer bytes than the layout has where the MAD ends before
}

// Parts are what MAD m is made of, in order: headers, then the attribute, of
// a table its records as far as they lie in m whole, and the paths of a
// directed route. What has no known layout is left out: vendors' data, the
// later segments of a table, reserved bytes. m may be longer than a MAD, as an
// RMPP transfer is that a kernel has put together, and any shorter.
func Parts(m []byte) []Part {
	p := parter{m: m}
	if len(m) < HeaderSize {
		return nil
	}
	h := ParseHeader(m)
	switch {
	case h.Class == ClassSubnDirected:
		p.add(LayoutDirectedMADHeader, 0)
		p.add(LayoutDirectedSMPHeader, SMPKeyOffset)
	default:
		p.add(LayoutMADHeader, 0)
	}
	switch {
	case h.Class == ClassSubn:
		p.add(LayoutSMPHeader, SMPKeyOffset)
	case h.Class == ClassSubnAdm:
		p.add(LayoutRMPPHeader, RMPPOffset)
		p.add(LayoutSAHeader, SAKeyOffset)
	case h.Class == ClassCongestion:
		p.add(LayoutCCHeader, SMPKeyOffset)
	case h.Class == ClassBM:
		p.add(LayoutBMHeader, SMPKeyOffset)
	case h.Class.HasOUI():
		p.add(LayoutRMPPHeader, RMPPOffset)
		p.add(LayoutVendorHeader, SAKeyOffset)
	}
	p.attribute(&h)
	if h.Class == ClassSubnDirected {
		p.add(LayoutDirectedPaths, SMPInitialPathOffset)
	}
	return p.parts
}

// parter collects parts.
type parter struct {
	m     []byte
	parts []Part
}

func (p *parter) add(layout *Attribute, at int) {
	if at < len(p.m) {
		p.parts = append(p.parts, Part{layout, at, p.m[at:min(at+layout.Size, len(p.m))]})
	}
}

// attribute adds what the header says the data are.
func (p *parter) attribute(h *Header) {
	a := LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	switch {
	case h.Method.IsResponse() && h.Status&StatusRedirect != 0:
		// Where to ask instead (IBA 13.4.7).
		a = LookupName(h.Class, "ClassPortInfo")
	case a != nil && h.Class.HasOUI() && !p.isFrom(a.OUI):
		a = nil
	}
	if a == nil {
		return
	}
	at := a.Offset()
	if h.Class != ClassSubnAdm || !h.Method.IsTable() || !h.Method.IsResponse() {
		if h.Class == ClassSubnAdm && p.controls() {
			return
		}
		if at < len(p.m) {
			p.add(a.Of(p.m[at:], h.Modifier), at)
		}
		return
	}
	if a.Answer != nil {
		a = a.Answer
	}
	end := p.tableEnd()
	step := 0
	if len(p.m) >= SADataOffset {
		step = 8 * int(binary.BigEndian.Uint16(p.m[SAAttrOffsetOffset:]))
	}
	for step >= a.Size && at+a.Size <= end {
		p.add(a.Of(p.m[at:end], h.Modifier), at)
		at += step
	}
}

// isFrom: the MAD, of a vendor class, is from that vendor.
func (p *parter) isFrom(oui uint32) bool {
	return len(p.m) >= VendorDataOffset && binary.BigEndian.Uint32(p.m[VendorOUIOffset-1:])&0xffffff == oui
}

// controls: the MAD is an ACK, STOP or ABORT and has no data.
func (p *parter) controls() bool {
	if len(p.m) < SAKeyOffset {
		return false
	}
	var r RMPPHeader
	r.Decode(p.m[RMPPOffset:])
	return r.RMPPFlags&RMPPFlagsActive != 0 && RMPPTypeACK <= r.RMPPType && r.RMPPType <= RMPPTypeAbort
}

// tableEnd is where the records end that can be told apart: nowhere behind the
// first segment, for a record may begin in one and end in the next.
func (p *parter) tableEnd() int {
	var r RMPPHeader
	if len(p.m) >= SAKeyOffset {
		r.Decode(p.m[RMPPOffset:])
	}
	switch {
	case r.RMPPType != RMPPTypeData || r.SegmentNumber > 1:
		return 0
	case r.RMPPFlags&RMPPFlagsLast != 0 && len(p.m) <= Size:
		return int(min(uint64(len(p.m)), SAKeyOffset+uint64(r.PayloadLength)))
	}
	return len(p.m)
}
