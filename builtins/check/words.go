package check

import (
	"slices"

	libmath "go.starlark.net/lib/math"
	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/remedies"
	"fabsh/builtins/routing"
	"fabsh/mad"
)

// FieldWords returns the possible words of all attributes of records and other values
// whose value is always one of these or a tuple of them, by the attribute's name.
func FieldWords() map[string]lang.FieldWords {
	all := map[string]lang.FieldWords{}
	texts := map[string]bool{} // names of attributes that can be any text
	add := func(name string, words []string, mask bool) {
		w, ok := all[name]
		for _, word := range words {
			if !slices.Contains(w.Words, word) {
				w.Words = append(w.Words, word)
			}
		}
		w.Mask = mask && (!ok || w.Mask)
		if ok && w.Mask != mask {
			texts[name] = true // a word in one type, a tuple in another
		}
		all[name] = w
	}
	for _, a := range layouts() {
		for i := range a.Flat() {
			f := &a.Flat()[i]
			for _, name := range append([]string{f.Script}, f.Also...) {
				switch {
				case f.Words != nil && f.Count == 1:
					add(name, records.WordsOf(f.Words), f.Type == mad.FieldTypeMask)
				case f.Type != mad.FieldTypeUint && f.Type != mad.FieldTypeLID || f.Key || f.Count > 1:
					texts[name] = true
				}
			}
		}
	}
	for _, d := range Types() {
		for _, m := range d.Members {
			if m.Words != nil {
				add(m.ShortName(), m.Words, false)
			} else if m.Method == nil {
				texts[m.Name] = true
			}
		}
	}
	for name := range texts {
		delete(all, name)
	}
	return all
}

// wordsByType returns the possible words of attributes by type and name, as FieldWords does by
// name.
func wordsByType() map[[2]string]lang.FieldWords {
	all := map[[2]string]lang.FieldWords{}
	for _, a := range mad.Attributes() {
		for i := range a.Flat() {
			if f := &a.Flat()[i]; f.Words != nil && f.Count == 1 {
				for _, name := range append([]string{f.Script}, f.Also...) {
					all[[2]string{records.TypeName(a), name}] = lang.FieldWords{Words: records.WordsOf(f.Words), Mask: f.Type == mad.FieldTypeMask}
				}
			}
		}
	}
	for _, d := range Types() {
		for _, m := range d.Members {
			if m.Words != nil {
				all[[2]string{d.Name, m.ShortName()}] = lang.FieldWords{Words: m.Words}
			}
		}
	}
	return all
}

// AttributeTypes returns the types of the values of all attributes of one name, by the name.
// Names of which a value may be of an unknown type are left out. None is not a type here:
// any attribute may be unknown.
func AttributeTypes() map[string][]string {
	all := map[string][]string{}
	add := func(name, typ string) {
		if !slices.Contains(all[name], typ) {
			all[name] = append(all[name], typ)
		}
	}
	for _, a := range layouts() {
		for i := range a.Flat() {
			f := &a.Flat()[i]
			for _, name := range append([]string{f.Script}, f.Also...) {
				add(name, fieldType(f))
				if f.Words != nil {
					add(name+"_code", codeType(f))
				}
			}
		}
		for i := range a.Fields {
			add(a.Fields[i].Script, fieldType(&a.Fields[i]))
		}
	}
	add("data", "bytes")
	add("source", "int")
	for _, d := range append(Types(), datagrams.StatsDoc(), routing.ReportDoc(), audits.ReportType.TypeDoc(), audits.CoverageType.TypeDoc(), audits.AckType.TypeDoc(), audits.HealthType.TypeDoc(), audits.HostType.TypeDoc(), remedies.RunType.TypeDoc(), remedies.DecisionType.TypeDoc(), routing.HostsDiffType.TypeDoc(), routing.HostsChangeType.TypeDoc()) {
		for _, m := range d.Members {
			switch {
			case m.Method != nil:
				add(m.ShortName(), methodType)
			case m.Words != nil:
				add(m.Name, "string")
			default:
				add(m.Name, m.Type)
			}
		}
	}
	for _, v := range []starlark.HasAttrs{starlark.String(""), starlark.Bytes(""), new(starlark.List), new(starlark.Dict), new(starlark.Set)} {
		for _, name := range v.AttrNames() {
			add(name, methodType)
		}
	}
	for _, v := range []starlark.HasAttrs{libtime.Time{}, libtime.Duration(0), libtime.Module, libmath.Module} {
		for _, name := range v.AttrNames() {
			add(name, "")
		}
	}
	for name, types := range all {
		if slices.Contains(types, "") {
			delete(all, name)
		}
	}
	return all
}

// fieldType returns the type of a field of a record.
func fieldType(f *mad.Field) string {
	switch {
	case f.Count > 1, f.Type == mad.FieldTypeMask:
		return "tuple"
	case f.Type == mad.FieldTypeStruct:
		return records.TypeName(f.Struct)
	case f.Key:
		return "string"
	case f.Type == mad.FieldTypeBytes:
		return "bytes"
	case f.Type == mad.FieldTypeUint || f.Type == mad.FieldTypeLID:
		if f.Scale > 0 {
			return "float"
		}
		return "int"
	}
	return "string" // texts, GUIDs, GIDs, words
}

// codeType returns the type of the number of a word.
func codeType(f *mad.Field) string {
	if f.Count > 1 {
		return "tuple"
	}
	return "int"
}

// layouts returns all attributes, headers, and the variants of both.
func layouts() []*mad.Attribute {
	list := slices.Concat(mad.Attributes(), mad.Headers())
	for _, a := range list {
		for _, v := range a.Variants {
			list = append(list, v.Layout)
		}
	}
	return list
}
