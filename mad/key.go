package mad

import "encoding/binary"

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
