package device

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/mad"
)

// GUIDKind is GUIDInfo, the GUID table of an end port. Its entry 0 is the port's
// own GUID, which cannot be changed.
var GUIDKind = &TableKind{
	Attr:    mad.AttrGUIDInfo,
	byPort:  true,
	byReply: true,
	layout: func(t *Table) (modifiers []uint32, err error) {
		for block := range (int(t.PortInfo.GUIDCap) + mad.GUIDBlock - 1) / mad.GUIDBlock {
			modifiers = append(modifiers, uint32(block))
		}
		return modifiers, nil
	},
	row:  func(t *Table, i int) (string, int, int) { return fmt.Sprintf("entry %d", i/8), i &^ 7, 8 },
	text: func(b []byte) string { return mad.GUID(binary.BigEndian.Uint64(b)).String() },
}

// GUIDs are the entries of a GUID table; 0 where none is assigned.
func GUIDs(t *Table) []mad.GUID {
	guids := make([]mad.GUID, t.PortInfo.GUIDCap)
	for i := range guids {
		guids[i] = mad.GUID(binary.BigEndian.Uint64(t.Data[8*i:]))
	}
	return guids
}

// EditGUIDs makes t a change of a GUID table: entries are merged into it, or
// replace all of it but entry 0, where 0 leaves it unchanged.
func EditGUIDs(t *Table, entries map[int]mad.GUID, replace bool) {
	t.Kind = GUIDKind
	t.Edit = func(t *Table) error {
		room := int(t.PortInfo.GUIDCap)
		if replace && room > 0 {
			clear(t.Data[8 : 8*room])
		}
		for i, g := range sorted(entries) {
			switch {
			case i >= room && g != 0:
				return unsupported("entry %d is out of range; the table has %s", i, plural.Count(room, "entry", "entries"))
			case i >= room:
			case i > 0:
				binary.BigEndian.PutUint64(t.Data[8*i:], uint64(g))
			case g != 0 && g != GUIDs(t)[0]:
				return unsupported("entry 0 is the port's own GUID, %v, and cannot be changed", GUIDs(t)[0])
			}
		}
		return nil
	}
}

// sorted iterates over entries by their numbers.
func sorted[K cmp.Ordered, V any](entries map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(entries)) {
			if !yield(k, entries[k]) {
				return
			}
		}
	}
}
