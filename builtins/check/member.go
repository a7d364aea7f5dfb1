package check

import (
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/mad"
)

// AttrNames lists the declared attributes of the values of a type, by the type's name.
func AttrNames(typ string) []string {
	switch typ {
	case "string":
		return starlark.String("").AttrNames()
	case "bytes":
		return starlark.Bytes("").AttrNames()
	case "list":
		return new(starlark.List).AttrNames()
	case "dict":
		return new(starlark.Dict).AttrNames()
	case "set":
		return new(starlark.Set).AttrNames()
	}
	var names []string
	for _, d := range Types() {
		if d.Name == typ {
			for _, m := range d.Members {
				names = append(names, m.ShortName())
			}
			return names
		}
	}
	for _, a := range records.AttributesNamed(typ) {
		return Example(a).AttrNames()
	}
	return nil
}

// Example returns an empty record of an attribute. Records of subnet administration have
// no target.
func Example(a *mad.Attribute) *records.Record {
	r := records.New(a, nil)
	if a.Class == mad.ClassSubnAdm {
		return r
	}
	return r.AskedOf(records.Origin{Of: starlark.None, LID: starlark.None, Port: starlark.None})
}

// hasAttr reports whether values of a type have, or may have, an attribute of that name.
// In place of a record there may be a list, an error or bytes.
func hasAttr(typ, name string) bool {
	if slices.Contains(AttrNames(typ), name) {
		return true
	}
	all := records.AttributesNamed(typ)
	for _, a := range all {
		for _, l := range append([]*mad.Attribute{a}, variantsOf(a)...) {
			if v, err := Example(l).Attr(name); err == nil && v != nil {
				return true
			}
		}
	}
	return len(all) > 0 && (name == "source" || slices.ContainsFunc(records.OriginMembers, func(m lang.MemberDoc) bool { return m.Name == name }) ||
		slices.Contains(starlark.Bytes("").AttrNames(), name) || slices.Contains(new(starlark.List).AttrNames(), name) || slices.Contains(new(lang.Failure).AttrNames(), name))
}

// attrType returns the declared type of an attribute of the values of a type, or its
// method. Both are empty if nothing is declared.
func attrType(typ, name string) (string, *lang.Builtin) {
	if m, ok := declared()[[2]string{typ, name}]; ok {
		return m.Type, m.Method
	}
	for _, a := range records.AttributesNamed(typ) {
		if v, err := Example(a).Attr(name); err == nil && v != nil && v != starlark.None {
			return v.Type(), nil // an empty record has all its parts
		}
	}
	return "", nil
}

// Member returns the declaration of an attribute or method of the values of a type.
func Member(typ, name string) (m lang.MemberDoc, ok bool) {
	m, ok = declared()[[2]string{typ, name}]
	return m, ok
}

// declared returns the members of all types, by type and name.
var declared = sync.OnceValue(func() map[[2]string]lang.MemberDoc {
	all := map[[2]string]lang.MemberDoc{}
	for _, d := range Types() {
		for _, m := range d.Members {
			all[[2]string{d.Name, m.ShortName()}] = m
		}
	}
	return all
})

// Words returns the words that an attribute of the values of a type may have, sorted as
// declared; nil if it may have any text.
func Words(typ, name string) []string {
	if m, ok := declared()[[2]string{typ, name}]; ok {
		return m.Words
	}
	for _, a := range records.AttributesNamed(typ) {
		for _, l := range append([]*mad.Attribute{a}, variantsOf(a)...) {
			for i := range l.Flat() {
				if f := &l.Flat()[i]; f.Words != nil && f.Count == 1 && (f.Script == name || slices.Contains(f.Also, name)) {
					return records.WordsOf(f.Words)
				}
			}
		}
	}
	return nil
}

// variantsOf returns the other layouts of an attribute.
func variantsOf(a *mad.Attribute) []*mad.Attribute {
	var list []*mad.Attribute
	for _, v := range a.Variants {
		list = append(list, v.Layout)
	}
	return list
}

// elementType returns the declared type of the elements of a value of a type.
func elementType(typ string) string {
	switch {
	case typ == "ports", typ == "path":
		return "port"
	case typ == "string":
		return "string"
	case len(records.AttributesNamed(typ)) > 0:
		return typ // for many targets the result is a list
	}
	return ""
}

// resultType returns the declared type of a function's result. text returns the literal
// of an argument by the position and name of its parameter; empty: unknown.
func resultType(b *lang.Builtin, text func(position int, name string) string) string {
	param, ok := strings.CutPrefix(b.Returns, "record of ")
	if !ok {
		param, ok = strings.CutPrefix(b.Returns, "list of record of ")
	}
	if !ok {
		return b.Returns
	}
	for i, p := range b.Params {
		if p.Name != param {
			continue
		}
		name := text(i, p.Name)
		if name == "" {
			name = strings.Trim(p.Default, `"`)
		}
		return strings.TrimSuffix(b.Returns, "record of "+param) + name
	}
	return ""
}
