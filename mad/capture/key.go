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
		clear(m[at:][:keySize])
	} else if h.Class == mad.ClassVendor09 {
		clear(m[mad.HeaderSize:][:keySize]) // mstflint mtcr_ib_ofed.c, ibvsmad_craccess_rw_vs
	}
	a := mad.LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	if a == nil {
		if a = mad.Lookup(h.Class, h.Attribute); a == nil {
			return
		}
	}
	data := m[a.OffsetIn(h.ClassVersion):]
	if h.Class.Family() == mad.ClassSubn {
		data = data[:h.Class.DataSize()]
	}
	if beginsWithKey(a) {
		clear(data[:keySize])
	}
	// A segment of a table begins and ends anywhere in a record.
	first, step := 0, len(data)
	if isTable(h) {
		step = 8 * int(binary.BigEndian.Uint16(m[mad.SAPlacesIn(h.ClassVersion).AttrOffset:]))
		if step < a.Size {
			step = (a.Size + 7) / 8 * 8
		}
		if s := segmentOf(m); s != nil && s.SegmentNumber > 0 {
			first = int(uint64(s.SegmentNumber-1) * mad.SegmentData % uint64(step))
		}
	} else {
		a = a.Resolve(data, h.Modifier) // a Notice of a wrong key tells the key
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

// keySize of the keys that guard agents, in bytes.
const keySize = 8

// beginsWithKey: all that is known of a's layout is that a key comes first.
func beginsWithKey(a *mad.Attribute) bool {
	switch a {
	case mad.AttrBKeyInfo, // opa-ff ib_bm.h BKEY_INFO; in ibutils ibbbm_base.h it has 32 bits
		mad.AttrMlnxConfigSpace: // mstflint mtcr_ib_ofed.c, ibvsmad_craccess_rw_smp
		return true
	}
	return false
}
