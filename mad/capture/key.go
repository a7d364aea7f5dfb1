package capture

import (
	"encoding/binary"

	"fabsh/mad"
)

// maskKeys zeroes all keys in a MAD: whoever holds a recording must not hold
// the fabric.
func maskKeys(m []byte) {
	h := mad.ParseHeader(m)
	if at := mad.KeyOffset(h); at > 0 {
		clear(m[at:][:8])
	}
	data := m[h.Class.DataOffset():][:h.Class.DataSize()]
	if h.Attribute == attrNotice {
		maskNotice(data)
	}
	a := mad.Lookup(h.Class, h.Attribute)
	if a == nil {
		return
	}
	// A segment of a table begins and ends anywhere in a record.
	first, step := 0, len(data)
	if isTable(h) {
		step = 8 * int(binary.BigEndian.Uint16(m[mad.SAAttrOffsetOffset:]))
		if step < a.Size {
			step = (a.Size + 7) / 8 * 8
		}
		if s := segmentOf(m); s != nil && s.SegmentNumber > 0 {
			first = int(uint64(s.SegmentNumber-1) * segmentData % uint64(step))
		}
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

// Trap 256 tells the M_Key that somebody tried in vain, in the last 8 of the
// first 22 bytes of the details (IBA 14.2.5.1, table 145; opensm ib_types.h,
// ntc_256).
const (
	attrNotice       = 0x0002
	badMKey          = 256
	offTrapNumber    = 4
	offNoticeDetails = 10
	offTrap256MKey   = offNoticeDetails + 14
)

// maskNotice zeroes the key in a Notice, if it has one.
func maskNotice(data []byte) {
	const generic = 0x80
	if data[0]&generic != 0 && binary.BigEndian.Uint16(data[offTrapNumber:]) == badMKey {
		clear(data[offTrap256MKey:][:8])
	}
}
