package mad

import "encoding/binary"

// SA1Header follows the MADHeader in MADs of subnet administration of class
// version 1, at RMPPOffset. That version has no RMPP.
//
//mad:header size=40 section=15.2.1.1 unconfirmed
//mad:source opensm libvendor/osm_vendor_umadt.c ib_sa_mad_t_vM3
type SA1Header struct {
	_ [8]uint8 `mad:"0:8"`
	// SMKey shows that the sender is trusted; 0 in most requests.
	SMKey uint64 `mad:"64:64,name=SM_Key,key,hex"`
	// SegmentNumber counts the MADs of a transfer from 1; 0 in a single MAD.
	SegmentNumber uint32 `mad:"128:32"`
	// PayloadLength is the number of bytes after this header: of the whole transfer in the first MAD, of this MAD in the others.
	PayloadLength uint32 `mad:"160:32"`
	// FragmentFlag marks the first and the last MAD of a transfer.
	FragmentFlag FragmentFlag `mad:"192:8"`
	// EditModifier is the operation of a Config on the records; its values are not public.
	EditModifier uint8 `mad:"200:8,hex"`
	// Window is the number of MADs that may be unacknowledged.
	Window uint16 `mad:"208:16"`
	// AttributeOffset is the distance from record to record in a table, in units of 8 bytes.
	AttributeOffset uint16 `mad:"224:16"`
	_               uint16 `mad:"240:16"`
	// ComponentMask selects the components of the record that a query compares, a bit each.
	ComponentMask uint64 `mad:"256:64,hex"`
}

// sa1FragmentFlagOffset is the offset of FragmentFlag in a MAD, in bytes.
const sa1FragmentFlagOffset = 48

// FragmentFlag distinguishes the MADs of a transfer, in version 1 of SubnAdm
// (opensm libvendor/osm_vendor_umadt.c osm_vendor_send, __mad_recv_processor).
//
//mad:mask
type FragmentFlag uint8

const (
	FragmentFlagFirst FragmentFlag = 1 << 0
	FragmentFlagLast  FragmentFlag = 1 << 2
	FragmentFlagACK   FragmentFlag = 1 << 5 // "ack"
)

// SAPlaces are the offsets of the fields of a MAD of subnet administration, in
// bytes. They depend on the class version.
type SAPlaces struct {
	Key        int // SM_Key, 8 bytes
	AttrOffset int // AttributeOffset, 2 bytes, units of 8 bytes
	Mask       int // ComponentMask, 8 bytes
	Data       int // the records, to the end
}

// SAPlacesIn returns the offsets in a version of the class.
func SAPlacesIn(version uint8) SAPlaces {
	if version == 1 {
		return SAPlaces{Key: 32, AttrOffset: 52, Mask: 56, Data: 64}
	}
	return SAPlaces{Key: SAKeyOffset, AttrOffset: SAAttrOffsetOffset, Mask: SAMaskOffset, Data: SADataOffset}
}

// PutSA writes the header of m, a request to subnet administration in one MAD:
// the mask of the components that count, and in class version 1 the length of
// the record.
func PutSA(m []byte, mask uint64, size int) {
	version := m[ClassVersionOffset]
	binary.BigEndian.PutUint64(m[SAPlacesIn(version).Mask:], mask)
	if version == 1 {
		h := SA1Header{PayloadLength: uint32(size), FragmentFlag: FragmentFlagFirst | FragmentFlagLast, ComponentMask: mask}
		h.Encode(m[RMPPOffset:])
	}
}

// sa1Records returns the offset where the records in m end, a table of class
// version 1, and whether m is all of it. The offset is 0 in all MADs but the
// first: a record may begin in one and end in the next.
func sa1Records(m []byte) (end int, whole bool) {
	at := SAPlacesIn(1).Data
	if len(m) < at {
		return 0, false
	}
	var h SA1Header
	h.Decode(m[RMPPOffset:])
	switch {
	case h.FragmentFlag&FragmentFlagFirst == 0 || h.FragmentFlag&FragmentFlagACK != 0:
		return 0, false
	case h.FragmentFlag&FragmentFlagLast == 0:
		return len(m), false
	}
	return int(min(uint64(len(m)), uint64(at)+uint64(h.PayloadLength))), true
}

// SA1Table returns the table in m, an answer of class version 1 in one MAD; ok is
// false for a longer answer.
func SA1Table(m []byte) (table []byte, ok bool) {
	end, whole := sa1Records(m)
	if !whole {
		return nil, false
	}
	return m[SAPlacesIn(1).Data:end], true
}
