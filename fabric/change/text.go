package change

import (
	"encoding/binary"
	"fmt"
	"strings"

	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Changed describes the change of s: "LIDs 64..127: 3 entries", "port 5:
// port_physical_state link_up to disabled".
func (s *Set) Changed() string {
	var texts []string
	if where := s.where(); where != "" {
		texts = append(texts, where)
	}
	what := "nothing"
	switch {
	case s.New != nil:
		size := entrySize(s.Attr)
		n := 0
		for i := 0; i < len(s.New); i += size {
			if string(s.Old[i:i+size]) != string(s.New[i:i+size]) {
				n++
			}
		}
		if n > 0 {
			what = plural.Count(n, "entry", "entries")
		}
	case len(s.Fields) > 0:
		var fields []string
		for _, f := range s.Fields {
			field := s.Attr.Field(f.Name)
			fields = append(fields, fmt.Sprintf("%s %s to %s", f.Name, fieldText(field, f.Old), fieldText(field, f.New)))
		}
		what = strings.Join(fields, ", ")
	}
	return strings.Join(append(texts, what), ": ")
}

// where names the part of the node that a Set is about; "" if there is only one.
func (s *Set) where() string {
	at := s.Place().At
	switch s.Attr {
	case mad.AttrLinearForwardingTable:
		return fmt.Sprintf("LIDs %d..%d", at*mad.LFTBlock, at*mad.LFTBlock+mad.LFTBlock-1)
	case mad.AttrPortInfo:
		return fmt.Sprintf("port %d", at)
	case mad.AttrSwitchInfo:
		return ""
	}
	var parts []string
	for _, part := range s.Attr.Modifier {
		if part.Bits > 1 {
			parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(part.Name, "_", " "), at>>part.Shift&(1<<part.Bits-1)))
		}
	}
	return strings.Join(parts, ", ")
}

// entrySize is the size of a table entry in bytes; two lanes share one.
func entrySize(a *mad.Attribute) int {
	switch a {
	case mad.AttrMulticastForwardingTable, mad.AttrPKeyTable, mad.AttrVLArbitrationTable:
		return binary.Size(uint16(0))
	case mad.AttrGUIDInfo:
		return binary.Size(uint64(0))
	}
	return 1
}

func fieldText(f *mad.Field, v uint64) string {
	switch f.Type {
	case mad.FieldTypeEnum:
		return f.Words.Text(v)
	case mad.FieldTypeMask:
		return "[" + f.Words.Join(v) + "]"
	}
	return fmt.Sprint(v)
}
