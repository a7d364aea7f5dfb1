package mad

import "encoding/binary"

// Part is a part of a MAD that has a layout: a header, or an attribute.
type Part struct {
	Layout *Attribute
	Offset int    // in the MAD, bytes
	Data   []byte // of the MAD; shorter than the layout if the MAD ends early
}

// Dissect splits MAD m into its parts, in order: the headers, the attribute or
// the records of a table, the paths of a directed route. Bytes without a known
// layout are left out: vendors' data, reserved bytes, all segments of a table
// but the first, and a record that is only partly in the first segment. m may be
// shorter than a MAD, or longer: an RMPP transfer that the kernel has
// reassembled.
func Dissect(m []byte) []Part {
	d := dissection{m: m}
	if len(m) < HeaderSize {
		return nil
	}
	h := ParseHeader(m)
	switch {
	case h.Class == ClassSubnDirected:
		d.add(LayoutDirectedMADHeader, 0)
		d.add(LayoutDirectedSMPHeader, SMPKeyOffset)
	default:
		d.add(LayoutMADHeader, 0)
	}
	switch {
	case h.Class == ClassSubn:
		d.add(LayoutSMPHeader, SMPKeyOffset)
	case h.Class == ClassSubnAdm && h.ClassVersion == 1:
		d.add(LayoutSA1Header, RMPPOffset)
	case h.Class == ClassSubnAdm:
		d.add(LayoutRMPPHeader, RMPPOffset)
		d.add(LayoutSAHeader, SAKeyOffset)
	case h.Class == ClassCongestion:
		d.add(LayoutCCHeader, SMPKeyOffset)
	case h.Class == ClassBM:
		d.add(LayoutBMHeader, SMPKeyOffset)
	case h.Class.HasOUI():
		d.add(LayoutRMPPHeader, RMPPOffset)
		d.add(LayoutVendorHeader, SAKeyOffset)
	}
	d.addAttribute(&h)
	if h.Class == ClassSubnDirected {
		d.add(LayoutDirectedPaths, SMPInitialPathOffset)
	}
	return d.parts
}

// dissection collects the parts of a MAD.
type dissection struct {
	m     []byte
	parts []Part
}

func (d *dissection) add(layout *Attribute, at int) {
	if at < len(d.m) {
		d.parts = append(d.parts, Part{layout, at, d.m[at:min(at+layout.Size, len(d.m))]})
	}
}

// addAttribute adds the attribute that header h names, or its records in a table.
func (d *dissection) addAttribute(h *Header) {
	a := LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	if a == nil && h.Class == ClassSubnAdm && h.ClassVersion == 1 {
		a = inVersion1(Lookup(h.Class, h.Attribute))
	}
	switch {
	case h.Method.IsResponse() && h.Status&StatusRedirect != 0:
		// A redirection response holds the ClassPortInfo (IBA 13.4.7).
		a = LookupName(h.Class, "ClassPortInfo")
	case a != nil && h.Class.HasOUI() && !d.isOfVendor(a.OUI):
		a = nil
	}
	if a == nil {
		return
	}
	at := a.OffsetIn(h.ClassVersion)
	if h.Class != ClassSubnAdm || !h.Method.IsTable() || !h.Method.IsResponse() {
		if h.Class == ClassSubnAdm && d.isControl(h) {
			return
		}
		if at < len(d.m) {
			d.add(a.Resolve(d.m[at:], h.Modifier), at)
		}
		return
	}
	if a.Answer != nil {
		a = a.Answer
	}
	end := d.recordsEnd(h)
	step := 0
	if len(d.m) >= at {
		step = 8 * int(binary.BigEndian.Uint16(d.m[SAPlacesIn(h.ClassVersion).AttrOffset:]))
	}
	for step >= a.Size && at+a.Size <= end {
		d.add(a.Resolve(d.m[at:end], h.Modifier), at)
		at += step
	}
}

// inVersion1 returns a, a record of subnet administration, in version 1: with the
// layout of version 2, as no other is known, and therefore unconfirmed; nil if it
// is not in version 1.
func inVersion1(a *Attribute) *Attribute {
	if a == nil || len(a.Methods1) == 0 {
		return nil
	}
	b := *a
	b.Confirmed = false
	return &b
}

// isOfVendor reports whether the MAD, of a vendor class, has that vendor's OUI.
func (d *dissection) isOfVendor(oui uint32) bool {
	return len(d.m) >= VendorDataOffset && binary.BigEndian.Uint32(d.m[VendorOUIOffset-1:])&0xffffff == oui
}

// isControl reports whether the MAD is an ACK, STOP or ABORT, which have no data.
func (d *dissection) isControl(h *Header) bool {
	switch {
	case len(d.m) < SADataOffset:
		return false
	case h.ClassVersion == 1:
		return FragmentFlag(d.m[sa1FragmentFlagOffset])&FragmentFlagACK != 0
	}
	var r RMPPHeader
	r.Decode(d.m[RMPPOffset:])
	return r.RMPPFlags&RMPPFlagsActive != 0 && RMPPTypeACK <= r.RMPPType && r.RMPPType <= RMPPTypeAbort
}

// recordsEnd returns the offset where the records of a table end. It is 0 in all
// segments but the first: a record may begin in one segment and end in the next,
// so the beginning of a record in them is unknown.
func (d *dissection) recordsEnd(h *Header) int {
	if h.ClassVersion == 1 {
		end, _ := sa1Records(d.m)
		return end
	}
	var r RMPPHeader
	if len(d.m) >= SAKeyOffset {
		r.Decode(d.m[RMPPOffset:])
	}
	switch {
	case r.RMPPType != RMPPTypeData || r.SegmentNumber > 1:
		return 0
	case r.RMPPFlags&RMPPFlagsLast != 0 && len(d.m) <= Size:
		return int(min(uint64(len(d.m)), SAKeyOffset+uint64(r.PayloadLength)))
	}
	return len(d.m)
}
