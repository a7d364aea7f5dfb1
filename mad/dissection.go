package mad

import (
	"encoding/binary"
	"fmt"
	"slices"
)

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

// Validate lists the violations of the specification in MAD m, worst first; nil
// without any. A receiver drops a MAD for some of them, and answers with a
// status for the rest (IBA 13.5.3; for SMPs 14.2; Shanley, InfiniBand Network
// Architecture, "SMP Validation"). It checks neither classes and attributes of
// vendors nor the values of an attribute's fields.
func Validate(m []byte) []string {
	if len(m) < HeaderSize {
		return []string{fmt.Sprintf("too short for the header of a MAD (%d bytes): %d bytes", HeaderSize, len(m))}
	}
	h := ParseHeader(m)
	var v validation
	if v.length(m, &h); m[BaseVersionOffset] != 1 {
		v.add("BaseVersion is %d, want 1", m[BaseVersionOffset])
	}
	v.request(&h)
	v.status(&h)
	v.notice(m, &h)
	if h.Class == ClassSubnDirected {
		v.route(m)
	}
	v.reserved(m, &h)
	return v.list
}

type validation struct{ list []string }

func (v *validation) add(format string, args ...any) {
	v.list = append(v.list, fmt.Sprintf(format, args...))
}

func (v *validation) length(m []byte, h *Header) {
	switch {
	case len(m) < Size:
		v.add("%d bytes: a MAD has %d", len(m), Size)
	case len(m) > Size && h.Class != ClassSubnAdm && !h.Class.IsVendor():
		v.add("%d bytes: a MAD has %d, and this class has no longer ones", len(m), Size)
	}
}

// request checks class, method and attribute.
func (v *validation) request(h *Header) {
	if h.Method.IsReserved() {
		v.add("Method %#02x is reserved, in all classes", uint8(h.Method))
		return
	}
	switch isApplication := classAppFirst <= h.Class && h.Class <= classAppLast; {
	case h.Class.IsVendor() && h.ClassVersion == 0, isApplication && h.ClassVersion == 0:
		v.add("ClassVersion is 0, want 1 or more")
	case isApplication && !h.Class.WasReserved() && h.ClassVersion != 1:
		v.add("ClassVersion is %d, want 1", h.ClassVersion)
	case !hasTables(h.Class) && !h.Class.IsVendor() && !isApplication:
		v.add("MgmtClass %#02x is reserved", uint8(h.Class))
	}
	if !hasTables(h.Class) {
		return
	}
	if err := Allowed(h.Class, h.ClassVersion, h.Method, h.Attribute); err != nil {
		v.add("%v", err)
		return
	}
	if a := LookupVersion(h.Class, h.ClassVersion, h.Attribute); a != nil && h.Status == 0 && !h.Class.IsVendor() && !answers(h, a.MethodsIn(h.ClassVersion)) {
		v.add("%v%s(%s): no request of the attribute has this response", h.Class.Family(), h.Method.Name(h.Class, h.ClassVersion), a.Name)
	}
	if h.Class.Family() == ClassSubn && LookupVersion(h.Class, h.ClassVersion, h.Attribute) == nil && h.Attribute < vendorFirst {
		v.add("AttributeID %#04x is unknown in subnet management", uint16(h.Attribute))
	}
}

// answers reports whether a MAD that is a response answers one of these methods.
func answers(h *Header, requests []Method) bool {
	return !h.Method.IsResponse() || slices.ContainsFunc(requests, func(m Method) bool { return m.ResponseTo() == h.Method })
}

// notice checks a trap, or its report, whose fields have values (Shanley, InfiniBand Network
// Architecture, tables 29-7 and 29-12).
func (v *validation) notice(m []byte, h *Header) {
	a := LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	if a == nil || a.Name != "Notice" || h.Method != MethodTrap && h.Method != MethodReport || h.Class.Family() != ClassSubn && h.Class != ClassSubnAdm {
		return
	}
	at := a.OffsetIn(h.ClassVersion)
	if len(m) < at+a.Size {
		return
	}
	var n Notice
	if n.Decode(m[at:]); !n.IsGeneric {
		return
	}
	switch n.TrapNumber {
	case 128, 131:
		if n.ProducerType != ProducerTypeSwitch {
			v.add("ProducerType is %v, want switch: only switches send trap %d", n.ProducerType, n.TrapNumber)
		}
	case 257:
		var key NoticeBadKey
		if key.Decode(n.DataDetails[:]); key.Key > 0xffff {
			v.add("KEY is %#08x, want 0 in its upper 16 bits: trap 257 has a P_Key", key.Key)
		}
	}
}

// HasUndefinedData reports whether the attribute's data in m have no meaning: in a Get, unless the
// agent takes a choice from them, as of performance management, or a vendor may.
func HasUndefinedData(m []byte) bool {
	h := ParseHeader(m)
	if h.Method != MethodGet || h.Attribute >= vendorFirst {
		return false
	}
	return h.Class.Family() == ClassSubn || h.Class == ClassDevMgt || h.Class == ClassCongestion
}

func (v *validation) status(h *Header) {
	if !h.Method.IsResponse() && h.Method != MethodTrapRepress && h.Status != 0 {
		v.add("Status is %#04x, want 0 in a request", uint16(h.Status))
		return
	}
	code := h.Status & statusInvalidMask >> 2
	if code != 0 && nameOf(h.Status&statusInvalidMask, 0) == "" {
		v.add("Status has the reserved code %d", code)
	}
	if rest := h.Status & 0x00e0; rest != 0 {
		v.add("Status has reserved bits, %#04x", uint16(rest))
	}
}

// route checks the hops of a directed route (IBA 14.2.2).
func (v *validation) route(m []byte) {
	hops, at := int(m[HopCountOffset]), int(m[HopPointerOffset])
	switch {
	case hops > MaxHops:
		v.add("HopCount is %d, maximum %d", hops, MaxHops)
	case at > hops+1:
		v.add("HopPointer is %d, past the end of the path (HopCount %d)", at, hops)
	case len(m) >= SMPInitialPathOffset+64 && slices.Contains(m[SMPInitialPathOffset+1:SMPInitialPathOffset+1+hops], 0):
		v.add("InitialPath has port 0 within its %d hops", hops)
	}
}

// reserved checks what must be 0: ClassSpecific outside directed routes, and reserved
// bits of the headers and of an attribute that counts (Shanley, InfiniBand Network
// Architecture, tables 28-1 and 28-2). The content of a Get is undefined, and a refusal may
// repeat it.
func (v *validation) reserved(m []byte, h *Header) {
	if h.Class.IsVendor() || !hasTables(h.Class) {
		return
	}
	if specific := binary.BigEndian.Uint16(m[HopPointerOffset:]); h.Class != ClassSubnDirected && specific != 0 {
		v.add("ClassSpecific is %#04x, want 0: only directed-route SMPs use it", specific)
	}
	counts := h.Method == MethodSet || h.Method == MethodTrap || h.Method == MethodReport || h.Method.IsResponse() && h.Status == 0
	for _, p := range Dissect(m) {
		if !counts && p.Layout.Class != 0 {
			continue
		}
		for _, at := range reservedBits(p.Layout, p.Data, 0) {
			v.add("%s has reserved bits set, %#02x in byte %d", p.Layout.Name, at[1], p.Offset+at[0])
		}
	}
}

// reservedBits returns the bytes of data, of layout a at a bit offset, in which bits are
// set that are in no field, and these bits.
func reservedBits(a *Attribute, data []byte, offset int) (list [][2]int) {
	used := make([]byte, a.Size)
	for i := range a.Fields {
		f := &a.Fields[i]
		for e := range f.Count {
			for bit := f.Offset + e*f.Stride; bit < f.Offset+e*f.Stride+f.Bits; bit++ {
				if bit/8 < len(used) {
					used[bit/8] |= 0x80 >> (bit % 8)
				}
			}
			if f.Type == FieldTypeStruct {
				list = append(list, reservedBits(f.Struct, data, offset+f.Offset+e*f.Stride)...)
			}
		}
	}
	for i := range used {
		// After a variant is padding, whose content is unspecified.
		if at := offset/8 + i; a.Variant == "" && at < len(data) && data[at]&^used[i] != 0 {
			list = append(list, [2]int{at, int(data[at] &^ used[i])})
		}
	}
	return list
}
