// Package mad is the wire of InfiniBand management datagrams (MADs): headers,
// classes, methods, status, attributes, their effects, and generated codecs.
// Package mad/engine moves them.
//
// The package is organised by what a reader looks for:
//
//	mad.go        the base header every MAD begins with, and where its parts stand
//	header.go     the headers of the classes
//	address.go    LIDs, GUIDs, GIDs, directed routes
//	class.go      management classes, methods, what each allows
//	status.go     the status field in words
//	rmpp.go       the header of transfers, their status in words
//	attribute.go  what an attribute is: fields, modifier
//	effect.go     what a request does to the fabric
//	smp.go sa.go perf.go classport.go   the attributes, one family a file
//	enum.go       the words of their enumerations and masks
//	z*.go         generated from those: decode, encode, field tables
//	registry.go   attributes by number and by name
//	field.go      single fields, without decoding the rest
//	parts.go      what a datagram is made of; validate.go, what is wrong with it
//	speed.go      a link's speed and width, out of PortInfo
//
// Section numbers are those of the InfiniBand Architecture Specification,
// volume 1 (IBA).
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

// Where the parts beyond the base header stand, in bytes.
const (
	SMPKeyOffset         = 24  // M_Key (IBA 14.2.1)
	SMPDrSLIDOffset      = 32  // DrSLID, directed route (IBA 14.2.1.2)
	SMPDrDLIDOffset      = 34  // DrDLID, directed route
	SMPDataOffset        = 64  // SMP data, 64 bytes
	SMPInitialPathOffset = 128 // InitialPath, 64 bytes
	SMPReturnPathOffset  = 192 // ReturnPath, 64 bytes
	PerfDataOffset       = 64  // PerfMgt data, 192 bytes (IBA 16.1.1)
	RMPPOffset           = 24  // RMPP header, 12 bytes (IBA 13.6.2)
	SAKeyOffset          = 36  // SM_Key (IBA 15.2.1.1)
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

// bmAnswer is the modifier's bit that marks a baseboard's answer: baseboard
// management commands and answers by Send (IBA 16.2.3; linux
// drivers/infiniband/core/mad.c ib_response_mad).
const bmAnswer = 1

// IsAnswer: the MAD answers a request.
func (h *Header) IsAnswer() bool {
	return h.Method.IsResponse() || h.Class == ClassBM && h.Method == MethodSend && h.Modifier&bmAnswer != 0
}

// IsAnswered: the MAD is a request that is answered. The others are answers
// themselves, or say something and want nothing (IBA 13.4.5).
func (h *Header) IsAnswered() bool {
	switch h.Method {
	case MethodSend:
		return h.Class == ClassBM && !h.IsAnswer()
	case MethodTrap, MethodTrapRepress:
		return false
	}
	return !h.Method.IsResponse()
}

// Put writes h to the first 24 bytes of m and leaves the rest alone, but for
// the hop pointer and hop count of directed-route SMPs.
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
// The D bit, which directed-route SMPs keep in the status field's top bit, is
// not part of Status.
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

// SetRoute makes m a directed-route SMP along route, whose first element is 0
// (the local node) and whose others are exit ports (IBA 14.2.2).
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

// KeyOffset is where MADs have their key, 8 bytes: the M_Key (IBA 14.2.1), B_Key
// (libibmad bm.c, bm_call_via), CC_Key (opensm ib_types.h, ib_cc_mad_t), a
// vendor's (ibutils ibvs_base.h, ib_vs_t) or the SM_Key of subnet
// administration (IBA 15.2.1.1). 0: they have none.
func KeyOffset(h Header) int {
	switch c := h.Class.Family(); {
	case c == ClassSubn, c == ClassBM, c == ClassCongestion, c == ClassVendor0A && h.Attribute != AttrVendor0AClassPortInfo.ID:
		return SMPKeyOffset
	case c == ClassSubnAdm:
		return SAKeyOffset
	}
	return 0
}
