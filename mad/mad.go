package mad

import "encoding/binary"

// Size is the length of a MAD on the wire in bytes (IBA 13.4.2).
const Size = 256

// Offsets of the base header's fields in bytes (IBA 13.4.3).
const (
	BaseVersionOffset  = 0
	ClassOffset        = 1
	ClassVersionOffset = 2
	MethodOffset       = 3
	StatusOffset       = 4
	HopPointerOffset   = 6
	HopCountOffset     = 7
	TIDOffset          = 8
	AttributeOffset    = 16
	ModifierOffset     = 20
	// HeaderSize is the length of the base header in bytes.
	HeaderSize = 24
)

// Offsets of what follows the base header, in bytes.
const (
	SMPKeyOffset         = 24  // M_Key (IBA 14.2.1)
	SMPDrSLIDOffset      = 32  // DrSLID, directed route (IBA 14.2.1.2)
	SMPDrDLIDOffset      = 34  // DrDLID, directed route
	SMPDataOffset        = 64  // SMP data, 64 bytes
	SMPInitialPathOffset = 128 // InitialPath, 64 bytes
	SMPReturnPathOffset  = 192 // ReturnPath, 64 bytes
	PerfDataOffset       = 64  // PerfMgt data, 192 bytes (IBA 16.1.1)
	RMPPOffset           = 24  // RMPP header, 12 bytes (IBA 13.6.2)
	SAKeyOffset          = 36  // SM_Key (IBA 15.2.1.1; in class version 1 see SAPlacesIn)
	SAAttrOffsetOffset   = 44  // AttributeOffset, units of 8 bytes
	SAMaskOffset         = 48  // ComponentMask
	SADataOffset         = 56  // SA data, 200 bytes
	VendorOUIOffset      = 37  // OUI of the vendor, 3 bytes, in classes 0x30 to 0x4f (IBA 16.5.1)
	VendorDataOffset     = 40  // vendor's data there, 216 bytes
)

// Header is the base header of a MAD.
type Header struct {
	Class        Class
	ClassVersion uint8
	Method       Method // the response bit included
	Status       Status
	TID          uint64
	Attribute    AttributeID
	Modifier     uint32
}

// bmAnswer is the bit of the modifier that marks an answer in baseboard management,
// where commands and answers have the same method, Send (IBA 16.2.3; linux
// drivers/infiniband/core/mad.c ib_response_mad).
const bmAnswer = 1

// IsAnswer reports whether the MAD is the answer to a request.
func (h *Header) IsAnswer() bool {
	return h.Method.IsResponse() || h.Class == ClassBM && h.Method == MethodSend && h.Modifier&bmAnswer != 0
}

// IsAnswered reports whether the MAD is a request with an answer. The others are
// answers, or messages without an answer, such as a Trap (IBA 13.4.5).
func (h *Header) IsAnswered() bool {
	switch h.Method {
	case MethodSend:
		return h.Class == ClassBM && !h.IsAnswer()
	case MethodTrap, MethodTrapRepress:
		return false
	}
	return !h.Method.IsResponse()
}

// DataOffset returns the offset of the attribute in MADs with header h, in bytes.
func (h *Header) DataOffset() int {
	if h.Class == ClassSubnAdm {
		return SAPlacesIn(h.ClassVersion).Data
	}
	return h.Class.DataOffset()
}

// DataSize returns the size of the attribute data in one MAD with header h, in bytes.
func (h *Header) DataSize() int {
	if h.Class.Family() == ClassSubn {
		return h.Class.DataSize()
	}
	return Size - h.DataOffset()
}

// Put writes h to the first 24 bytes of m, but not to the hop pointer and hop
// count of directed-route SMPs. It leaves the rest of m unchanged.
func (h *Header) Put(m []byte) {
	m[BaseVersionOffset] = 1
	m[ClassOffset] = byte(h.Class)
	m[ClassVersionOffset] = h.ClassVersion
	m[MethodOffset] = byte(h.Method)
	binary.BigEndian.PutUint16(m[StatusOffset:], uint16(h.Status))
	binary.BigEndian.PutUint64(m[TIDOffset:], h.TID)
	binary.BigEndian.PutUint16(m[AttributeOffset:], uint16(h.Attribute))
	m[18], m[19] = 0, 0
	binary.BigEndian.PutUint32(m[ModifierOffset:], h.Modifier)
}

// ParseHeader reads the base header of m, which has at least HeaderSize bytes.
// The top bit of a directed-route SMP's status field, D, is not part of Status.
func ParseHeader(m []byte) Header {
	h := Header{
		Class:        Class(m[ClassOffset]),
		ClassVersion: m[ClassVersionOffset],
		Method:       Method(m[MethodOffset]),
		Status:       Status(binary.BigEndian.Uint16(m[StatusOffset:])),
		TID:          binary.BigEndian.Uint64(m[TIDOffset:]),
		Attribute:    AttributeID(binary.BigEndian.Uint16(m[AttributeOffset:])),
		Modifier:     binary.BigEndian.Uint32(m[ModifierOffset:]),
	}
	if h.Class == ClassSubnDirected {
		h.Status &= 0x7fff
	}
	return h
}

// SetRoute makes m a directed-route SMP along route (IBA 14.2.2).
func SetRoute(m []byte, route DirectedRoute) {
	m[ClassOffset] = byte(ClassSubnDirected)
	m[StatusOffset], m[StatusOffset+1] = 0, 0
	m[HopPointerOffset] = 0
	m[HopCountOffset] = byte(route.Hops())
	binary.BigEndian.PutUint16(m[SMPDrSLIDOffset:], uint16(PermissiveLID))
	binary.BigEndian.PutUint16(m[SMPDrDLIDOffset:], uint16(PermissiveLID))
	path := m[SMPInitialPathOffset : SMPInitialPathOffset+64]
	clear(path)
	copy(path, route)
}

// RouteOf returns the initial path of directed-route SMP m.
func RouteOf(m []byte) DirectedRoute {
	n := min(int(m[HopCountOffset]), MaxHops)
	return append(DirectedRoute(nil), m[SMPInitialPathOffset:SMPInitialPathOffset+1+n]...)
}

// KeyOffset returns the offset of the key, 8 bytes, in MADs with header h: the M_Key
// (IBA 14.2.1), B_Key (libibmad bm.c, bm_call_via), CC_Key (opensm ib_types.h,
// ib_cc_mad_t), a vendor's key (ibutils ibvs_base.h, ib_vs_t; opensm ib_n2n_mad_t) or the SM_Key of
// subnet administration (IBA 15.2.1.1). It returns 0 for MADs without a key.
func KeyOffset(h Header) int {
	switch c := h.Class.Family(); {
	case c == ClassSubn, c == ClassBM, c == ClassCongestion, (c == ClassVendor0A || c == ClassVendor0C) && h.Attribute != AttrVendor0AClassPortInfo.ID:
		return SMPKeyOffset
	case c == ClassSubnAdm:
		return SAPlacesIn(h.ClassVersion).Key
	}
	return 0
}
