package mad

import (
	"encoding/binary"
)

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
// where both commands and answers have method Send (IBA 16.2.3; linux
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

// SetRouteSource makes m, a directed-route SMP, one with a combined route: it is routed by LID to
// where its directed route begins, and its answer from there by LID to source, the LID of the
// sender (IBA 14.2.2, DrSLID). DrDLID stays permissive: no second part by LID follows.
func SetRouteSource(m []byte, source LID) {
	binary.BigEndian.PutUint16(m[SMPDrSLIDOffset:], uint16(source))
}

// RouteSourceOf returns DrSLID of directed-route SMP m: permissive unless it has a combined route.
func RouteSourceOf(m []byte) LID { return LID(binary.BigEndian.Uint16(m[SMPDrSLIDOffset:])) }

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

// MADHeader is the first part of every MAD.
//
// A manager chooses TransactionIDs so that no two outstanding operations to the
// same class of the same port have the same one. A response has the
// TransactionID of its request, and so does every MAD of a transfer. A repeated
// trap for the same event may have another.
//
//mad:header size=24 section=13.4.3
//mad:source python-rdma codegen/iba_13_4.xml MADHeader
//mad:source rdma-core libibumad/umad_types.h umad_hdr
type MADHeader struct {
	// BaseVersion is the version of this header; 1.
	BaseVersion uint8 `mad:"0:8"`
	// MgmtClass selects the agent or manager that the MAD is for.
	MgmtClass uint8 `mad:"8:8,hex"`
	// ClassVersion is the version of what follows the header; it depends on the class.
	ClassVersion uint8 `mad:"16:8"`
	// Response is set in the answer to a request.
	Response bool `mad:"24:1,name=R"`
	// Method is the operation on the attribute; its numbers from 0x10 on depend on the class.
	Method uint8 `mad:"25:7,hex"`
	// Status is the result of the request, in a response; 0 on success.
	Status uint16 `mad:"32:16,hex"`
	// ClassSpecific is for the class to use; only directed-route SMPs do.
	ClassSpecific uint16 `mad:"48:16,hex"`
	// TransactionID ties a response to its request, and the MADs of a transfer to each other.
	TransactionID uint64 `mad:"64:64,hex"`
	// AttributeID names the attribute, within the class.
	AttributeID uint16 `mad:"128:16,hex"`
	_           uint16 `mad:"144:16"`
	// AttributeModifier selects a part of the attribute: a port, a block.
	AttributeModifier uint32 `mad:"160:32,hex"`
}

// DirectedMADHeader is the MADHeader of directed-route SMPs.
//
//mad:header size=24 section=14.2.1.2
//mad:source python-rdma codegen/iba_13_4.xml MADHeaderDirected
//mad:source rdma-core libibumad/umad_sm.h umad_smp
type DirectedMADHeader struct {
	// BaseVersion is the version of this header; 1.
	BaseVersion uint8 `mad:"0:8"`
	// MgmtClass is 0x81.
	MgmtClass uint8 `mad:"8:8,hex"`
	// ClassVersion is the version of the class; 1.
	ClassVersion uint8 `mad:"16:8"`
	// Response is set in the answer to a request.
	Response bool `mad:"24:1,name=R"`
	// Method is the operation on the attribute.
	Method uint8 `mad:"25:7,hex"`
	// D is 0 on the way out and 1 on the way back.
	D bool `mad:"32:1"`
	// Status is the result of the request, in a response; 0 on success.
	Status uint16 `mad:"33:15,hex"`
	// HopPointer is the position of the SMP on its path, in hops.
	HopPointer uint8 `mad:"48:8"`
	// HopCount is the length of the path in hops.
	HopCount uint8 `mad:"56:8"`
	// TransactionID ties a response to its request.
	TransactionID uint64 `mad:"64:64,hex"`
	// AttributeID names the attribute.
	AttributeID uint16 `mad:"128:16,hex"`
	_           uint16 `mad:"144:16"`
	// AttributeModifier selects a part of the attribute: a port, a block.
	AttributeModifier uint32 `mad:"160:32,hex"`
}

// SMPHeader follows the MADHeader in LID-routed SMPs, at SMPKeyOffset.
//
//mad:header size=40 section=14.2.1.1
//mad:source python-rdma codegen/iba_14.xml SMPFormat
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_lid_class_hdr_t
type SMPHeader struct {
	// MKey authorizes the request.
	MKey uint64    `mad:"0:64,name=M_Key,key,hex"`
	_    [32]uint8 `mad:"64:8"`
}

// DirectedSMPHeader follows the DirectedMADHeader, at SMPKeyOffset.
//
//mad:header size=40 section=14.2.1.2
//mad:source python-rdma codegen/iba_14.xml SMPFormatDirected
//mad:source rdma-core libibumad/umad_sm.h umad_smp
type DirectedSMPHeader struct {
	// MKey authorizes the request.
	MKey uint64 `mad:"0:64,name=M_Key,key,hex"`
	// DrSLID is the LID where the directed part of the path begins; 65535 if it begins at the sender.
	DrSLID LID `mad:"64:16"`
	// DrDLID is the LID where the directed part of the path ends; 65535 if it ends at the receiver.
	DrDLID LID       `mad:"80:16"`
	_      [28]uint8 `mad:"96:8"`
}

// DirectedPaths are at the end of directed-route SMPs, at SMPInitialPathOffset.
//
//mad:header size=128 section=14.2.1.2
//mad:source python-rdma codegen/iba_14.xml SMPFormatDirected
//mad:source rdma-core libibumad/umad_sm.h umad_smp
type DirectedPaths struct {
	// InitialPath are the ports that the SMP leaves through, from element 1 on.
	InitialPath [64]uint8 `mad:"0:8"`
	// ReturnPath are the ports that it came in through, from element 1 on; the nodes on the path fill it in.
	ReturnPath [64]uint8 `mad:"512:8"`
}

// CCHeader follows the MADHeader in MADs of congestion control. There is room
// for log data between it and the attribute.
//
//mad:header size=8 section=A10.4.1
//mad:source rdma-core libibmad/fields.c IB_CC_CCKEY_F
//mad:source opensm include/iba/ib_types.h ib_cc_mad_t
type CCHeader struct {
	// CCKey authorizes the request.
	CCKey uint64 `mad:"0:64,name=CC_Key,key,hex"`
}

// BMHeader follows the MADHeader in MADs of baseboard management.
//
//mad:header size=8 section=16.2.1
//mad:source rdma-core libibmad/bm.c bm_call_via
//mad:source ibutils ibis/src/ibbbm_base.h ib_bbm_vpd_t
type BMHeader struct {
	// BKey authorizes the request.
	BKey uint64 `mad:"0:64,name=B_Key,key,hex"`
}

// VendorHeader follows the RMPPHeader in MADs of the vendor classes from 0x30
// on, at SAKeyOffset.
//
//mad:header size=4 section=16.5.1
//mad:source python-rdma codegen/iba_16_5.xml VendOUIFormat
//mad:source rdma-core libibmad/fields.c IB_VEND2_OUI_F
type VendorHeader struct {
	_ uint8 `mad:"0:8"`
	// OUI is the IEEE number of the vendor who defines the MAD.
	OUI uint32 `mad:"8:24,hex"`
}

// MaskKeys zeroes all keys in MAD m, of at least Size bytes: a recording must not
// give access to the fabric.
func MaskKeys(m []byte) {
	h := ParseHeader(m)
	if at := KeyOffset(h); at > 0 {
		clear(m[at:][:keySize])
	} else if h.Class == ClassVendor09 {
		clear(m[HeaderSize:][:keySize]) // mstflint mtcr_ib_ofed.c, ibvsmad_craccess_rw_vs
	}
	a := LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	if a == nil {
		if a = Lookup(h.Class, h.Attribute); a == nil {
			return
		}
	}
	data := m[a.OffsetIn(h.ClassVersion):]
	if h.Class.Family() == ClassSubn {
		data = data[:h.Class.DataSize()]
	}
	// A segment of a table begins and ends anywhere in a record.
	first, step := 0, len(data)
	if h.Class == ClassSubnAdm && h.Method.IsResponse() && h.Method.IsTable() {
		step = 8 * int(binary.BigEndian.Uint16(m[SAPlacesIn(h.ClassVersion).AttrOffset:]))
		if step < a.Size {
			step = (a.Size + 7) / 8 * 8
		}
		if IsSegment(m) {
			var s RMPPHeader
			if s.Decode(m[RMPPOffset:]); s.SegmentNumber > 0 {
				first = int(uint64(s.SegmentNumber-1) * SegmentData % uint64(step))
			}
		}
	} else {
		a = a.Resolve(data, h.Modifier) // a Notice of a wrong key contains the key
	}
	for i := range a.Flat() {
		f := &a.Flat()[i]
		if !f.Key {
			continue
		}
		at, end := f.Offset/8, (f.Offset+(f.Count-1)*f.Stride+f.Bits+7)/8
		for record := -first; record < len(data); record += step {
			if record+end > 0 && record+at < len(data) {
				clear(data[max(0, record+at):min(len(data), record+end)])
			}
		}
	}
}

// keySize is the size of the keys that protect agents, in bytes.
const keySize = 8

// Offsets of the RMPP header's fields, in bytes (IBA 13.6.2).
const (
	RMPPVersionOffset   = RMPPOffset
	RMPPTypeOffset      = RMPPOffset + 1
	RMPPFlagsOffset     = RMPPOffset + 2 // the lower 3 bits; the upper 5 are RRespTime
	RMPPStatusOffset    = RMPPOffset + 3
	SegmentNumberOffset = RMPPOffset + 4
	PayloadLengthOffset = RMPPOffset + 8
	NewWindowLastOffset = RMPPOffset + 8
)

// Sizes of a segment of subnet administration, in bytes.
const (
	// SegmentData is the largest part of the table in one segment.
	SegmentData = Size - SADataOffset
	// SegmentHeader is the part of each segment's header that PayloadLength
	// counts: SM_Key, AttributeOffset, ComponentMask (IBA 13.6.2.1, 15.2.1.1).
	SegmentHeader = SADataOffset - SAKeyOffset
)

// NoRespTime is the RRespTime of a sender without a response time.
const NoRespTime = 31

// IsSegment reports whether m is part of an RMPP transfer, which version 1 of the
// class does not have. OpenSM on ibsim's client library sets the active flag with
// version 0, in MADs that are not segments.
func IsSegment(m []byte) bool {
	return len(m) >= SADataOffset && Class(m[ClassOffset]) == ClassSubnAdm && m[ClassVersionOffset] != 1 &&
		RMPPFlags(m[RMPPFlagsOffset])&RMPPFlagsActive != 0 && m[RMPPVersionOffset] != 0
}

// RMPPHeader divides a transfer of more than one MAD into segments. It is at
// RMPPOffset.
//
//mad:header size=12 section=13.6.2.1
//mad:source opensm include/iba/ib_types.h ib_rmpp_mad_t
//mad:source rdma-core libibumad/umad_types.h umad_rmpp_hdr
type RMPPHeader struct {
	// RMPPVersion is 1; 0 if the MAD is not part of a transfer.
	RMPPVersion uint8 `mad:"0:8"`
	// RMPPType is the role of the MAD in the transfer.
	RMPPType RMPPType `mad:"8:8"`
	// RRespTime is the longest time in which the receiver of this MAD answers, 4.096 us * 2^value; 31 is unspecified.
	RRespTime uint8 `mad:"16:5"`
	// RMPPFlags mark the first and the last segment.
	RMPPFlags RMPPFlags `mad:"21:3"`
	// RMPPStatus is why the transfer was stopped or aborted.
	RMPPStatus RMPPStatus `mad:"24:8"`
	// SegmentNumber counts segments from 1; in an ACK it is the last one received in order.
	SegmentNumber uint32 `mad:"32:32"`
	// PayloadLength is the number of bytes after this header: of the whole transfer (or 0) in the first segment, of this segment in the last. In an ACK it is NewWindowLast, the last segment that may be sent.
	PayloadLength uint32 `mad:"64:32"`
}

// RMPPType is the role of a MAD in a transfer (IBA 13.6.2.1).
//
//mad:enum
type RMPPType uint8

const (
	RMPPTypeNone  RMPPType = 0
	RMPPTypeData  RMPPType = 1
	RMPPTypeACK   RMPPType = 2 // "ack"
	RMPPTypeStop  RMPPType = 3
	RMPPTypeAbort RMPPType = 4
)

// RMPPFlags mark a transfer's first and last segment (IBA 13.6.2.1).
//
//mad:mask
type RMPPFlags uint8

const (
	RMPPFlagsActive RMPPFlags = 1 << 0
	RMPPFlagsFirst  RMPPFlags = 1 << 1
	RMPPFlagsLast   RMPPFlags = 1 << 2
)

// RMPPStatus is why a transfer ended early (IBA 13.6.2.1).
//
//mad:enum
type RMPPStatus uint8

const (
	RMPPStatusNormal                            RMPPStatus = 0
	RMPPStatusResourcesExhausted                RMPPStatus = 1
	RMPPStatusTotalTimeTooLong                  RMPPStatus = 118
	RMPPStatusInconsistentLastAndPayloadLength  RMPPStatus = 119
	RMPPStatusInconsistentFirstAndSegmentNumber RMPPStatus = 120
	RMPPStatusBadRMPPType                       RMPPStatus = 121 // "bad_rmpp_type"
	RMPPStatusNewWindowLastTooSmall             RMPPStatus = 122
	RMPPStatusSegmentNumberTooBig               RMPPStatus = 123
	RMPPStatusIllegalStatus                     RMPPStatus = 124
	RMPPStatusUnsupportedVersion                RMPPStatus = 125
	RMPPStatusTooManyRetries                    RMPPStatus = 126
	RMPPStatusUnspecified                       RMPPStatus = 127
)

// rmppStatusTexts are the texts of messages; scripts have the words of the
// enumeration.
var rmppStatusTexts = map[RMPPStatus]string{
	RMPPStatusResourcesExhausted:                "resources exhausted",
	RMPPStatusTotalTimeTooLong:                  "total time too long",
	RMPPStatusInconsistentLastAndPayloadLength:  "inconsistent last segment and payload length",
	RMPPStatusInconsistentFirstAndSegmentNumber: "inconsistent first segment and segment number",
	RMPPStatusBadRMPPType:                       "bad RMPP type",
	RMPPStatusNewWindowLastTooSmall:             "new window too small",
	RMPPStatusSegmentNumberTooBig:               "segment number too big",
	RMPPStatusIllegalStatus:                     "illegal status",
	RMPPStatusUnsupportedVersion:                "unsupported RMPP version",
	RMPPStatusTooManyRetries:                    "too many retries",
	RMPPStatusUnspecified:                       "unspecified",
}

// Text returns why a transfer ended early, by the status of its STOP or ABORT:
// "too many retries". From 128 on the reasons are class-specific, from 192 on
// vendor-specific (IBA 13.6.2.1, table 180).
func (s RMPPStatus) Text() string {
	switch text := rmppStatusTexts[s]; {
	case s >= 192:
		return "vendor-specific reason"
	case s >= 128:
		return "class-specific reason"
	case text == "":
		return "unknown"
	default:
		return text
	}
}
