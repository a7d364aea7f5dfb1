package records

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// FieldValue returns a field's value for scripts: a number is an int, or with a scale a
// float; GUIDs, GIDs, texts and the words of an enumeration are strings; the words of a
// mask are a tuple; an embedded attribute is a record. An array is a tuple of these.
func FieldValue(f *mad.Field, data []byte) starlark.Value {
	return eachElement(f, func(i int) starlark.Value { return elementValue(f, data, i) })
}

// SetNamed writes the value that a script gives for a field, x=word or x_code=number,
// and returns the field.
func SetNamed(a *mad.Attribute, data []byte, name string, v starlark.Value) (*mad.Field, error) {
	f := a.Field(name)
	if f == nil {
		if f = CodeField(a, name); f == nil {
			hint := fabric.DidYouMean(name, fieldNames(a))
			if hint == "" {
				hint = fmt.Sprintf("; help(%q) lists its fields", a.Name)
			}
			return nil, fmt.Errorf("%s has no field %s%s", a.Name, name, hint)
		}
		number := *f
		number.Type, number.Words = mad.FieldTypeUint, nil
		if _, isText := v.(starlark.String); isText {
			return nil, fmt.Errorf("%s.%s: %w", a.Name, name, lang.WantType(v, "int"))
		}
		if err := setField(&number, data, v); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", a.Name, name, err)
		}
		return f, nil
	}
	if err := setField(f, data, v); err != nil {
		return nil, fmt.Errorf("%s.%s: %w", a.Name, name, err)
	}
	return f, nil
}

// WordsOf lists the words by their numbers.
func WordsOf(w *mad.Words) []string {
	codes := make([]uint64, 0, len(w.Word()))
	for n := range w.Word() {
		codes = append(codes, n)
	}
	slices.Sort(codes)
	words := make([]string, len(codes))
	for i, n := range codes {
		words[i] = w.Word()[n]
	}
	return words
}

// ParseGUID accepts any notation of a GUID: an int, or text with or without 0x, with or
// without colons or dashes between its parts.
func ParseGUID(v starlark.Value) (mad.GUID, error) {
	switch v := v.(type) {
	case starlark.Int:
		if n, ok := v.Uint64(); ok {
			return mad.GUID(n), nil
		}
		return 0, fmt.Errorf("%s has more than 64 bits", v)
	case starlark.String:
		if g, ok := GUIDText(string(v)); ok {
			return g, nil
		}
		return 0, fmt.Errorf("%s is not a GUID; write 0x and up to 16 hexadecimal digits", v)
	}
	return 0, fmt.Errorf("got %s, want a GUID as string or int", v.Type())
}

// GUIDText is ParseGUID for a text; false: it is not a GUID.
func GUIDText(s string) (mad.GUID, bool) {
	digits := strings.TrimSpace(s)
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		digits = digits[2:]
	}
	digits = separators.Replace(digits)
	n, err := strconv.ParseUint(digits, 16, 64)
	return mad.GUID(n), err == nil && len(digits) <= 16
}

// ParseGID parses a GID, which has the form of an IPv6 address (IBA 4.1.1, RFC 4291).
func ParseGID(v starlark.Value) (mad.GID, error) {
	s, ok := starlark.AsString(v)
	if !ok {
		return mad.GID{}, fmt.Errorf("got %s, want a GID as string", v.Type())
	}
	addr, err := netip.ParseAddr(strings.TrimSpace(s))
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return mad.GID{}, fmt.Errorf("%q is not a GID; write it as an IPv6 address, for example \"fe80::2:c903:0:1\"", s)
	}
	return mad.GID(addr.As16()), nil
}

// Kinds of parameters for attributes.
var (
	KindSMPAttribute  = &lang.Kind{Convert: toAttributeArg, Type: reflect.TypeFor[AttributeArg]()}                       // the name of an attribute of subnet management, or a record of one
	KindPerfAttribute = &lang.Kind{Convert: toAttributeName, Type: reflect.TypeFor[string]()}                            // the name of an attribute of performance management
	KindRecord        = &lang.Kind{Convert: toAttributeName, Type: reflect.TypeFor[string](), Default: lang.TextDefault} // the name of a record of subnet administration
	KindAttribute     = &lang.Kind{}                                                                                     // the name or the number of an attribute of any other class
	KindRegister      = &lang.Kind{Convert: toAttributeName, Type: reflect.TypeFor[string]()}                            // the name of a register
	KindFields        = &lang.Kind{Fields: refuseDuplicates}                                                             // ** fields of the attribute, by name
)

// AttributeArg is the argument of a KindSMPAttribute.
type AttributeArg struct {
	Name   string
	Record *Record // nil: a name was given
}

// MaskKeys returns code without the values of key fields in keyword arguments and dicts:
// m_key=...
func MaskKeys(code string) string { return keyValues().ReplaceAllString(code, "$1...") }

// CompareEqual implements == and != for values without an order.
func CompareEqual(op syntax.Token, v starlark.Value, equal bool) (bool, error) {
	switch op {
	case syntax.EQL:
		return equal, nil
	case syntax.NEQ:
		return !equal, nil
	}
	return false, fmt.Errorf("%s %s %s not implemented", v.Type(), op, v.Type())
}

// Displayed values of a key.
const (
	keyNone   = "none"   // the key is 0
	keyHidden = "hidden" // the key is set
)

// eachElement returns the value of a field made of the values of its elements.
func eachElement(f *mad.Field, element func(i int) starlark.Value) starlark.Value {
	if f.Count == 1 {
		return element(0)
	}
	t := make(starlark.Tuple, f.Count)
	for i := range t {
		t[i] = element(i)
	}
	return t
}

// elementValue returns element i of a field. For a key it returns only whether it is set.
func elementValue(f *mad.Field, data []byte, i int) starlark.Value {
	switch f.Type {
	case mad.FieldTypeStruct:
		return New(f.Struct, f.At(i).Bytes(data))
	case mad.FieldTypeText:
		return starlark.String(f.At(i).Text(data))
	case mad.FieldTypeBytes:
		b := f.At(i).Bytes(data)
		switch {
		case !f.Key:
			return starlark.Bytes(b)
		case len(bytes.Trim(b, "\x00")) == 0:
			return starlark.String(keyNone)
		}
		return starlark.String(keyHidden)
	case mad.FieldTypeGID:
		return starlark.String(f.At(i).GID(data).String())
	}
	v := f.UintAt(data, i)
	switch {
	case f.Key && v == 0:
		return starlark.String(keyNone)
	case f.Key:
		return starlark.String(keyHidden)
	case f.Type == mad.FieldTypeGUID:
		return starlark.String(mad.GUID(v).String())
	case f.Type == mad.FieldTypeEnum:
		return starlark.String(f.Words.Text(v))
	case f.Type == mad.FieldTypeMask:
		words := f.Words.Split(v)
		t := make(starlark.Tuple, len(words))
		for i, w := range words {
			t[i] = starlark.String(w)
		}
		return t
	}
	switch {
	case f.Scale > 0:
		return starlark.Float(f.Number(data, i))
	case f.Signed:
		return starlark.MakeInt64(int64(f.Number(data, i)))
	}
	return starlark.MakeUint64(v)
}

// setField writes v to f. It accepts words, numbers, and for masks both; it fails if the
// value does not fit.
func setField(f *mad.Field, data []byte, v starlark.Value) error {
	if f.Count == 1 {
		return setElement(f, data, v)
	}
	it, ok := v.(starlark.Iterable)
	if !ok {
		return fmt.Errorf("got %s, want a list of %d", v.Type(), f.Count)
	}
	list := lang.Collect(it)
	if len(list) != f.Count {
		return fmt.Errorf("got %s, want %d", plural.Count(len(list), "element", "elements"), f.Count)
	}
	for i, x := range list {
		if err := setElement(f.At(i), data, x); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// setElement writes v to a field that is not an array. Texts and bytes are padded with
// zeros.
func setElement(f *mad.Field, data []byte, v starlark.Value) error {
	switch f.Type {
	case mad.FieldTypeStruct:
		r, ok := v.(*Record)
		if !ok || r.Attribute != f.Struct {
			return fmt.Errorf("got %s, want a record of type %s; or give its fields by name: %s", v.Type(), TypeName(f.Struct), strings.Join(scriptNames(f.Struct), ", "))
		}
		f.SetBytes(data, r.Data)
		return nil
	case mad.FieldTypeText, mad.FieldTypeBytes:
		var text string
		switch v := v.(type) {
		case starlark.String:
			text = string(v)
		case starlark.Bytes:
			text = string(v)
		default:
			return lang.WantType(v, "string")
		}
		if room := f.Bits / 8; len(text) > room {
			return fmt.Errorf("%d bytes are too many; the maximum is %d", len(text), room)
		}
		f.SetBytes(data, []byte(text))
		return nil
	case mad.FieldTypeGID:
		g, err := ParseGID(v)
		if err != nil {
			return err
		}
		f.SetGID(data, g)
		return nil
	}
	n, err := elementCode(f, v)
	if err != nil {
		return err
	}
	f.SetUint(data, n)
	return nil
}

// elementCode returns the number that v represents in a field. A mask accepts a word, a
// number, or an iterable of them, whose bits are combined.
func elementCode(f *mad.Field, v starlark.Value) (uint64, error) {
	switch f.Type {
	case mad.FieldTypeGUID:
		g, err := ParseGUID(v)
		return uint64(g), err
	case mad.FieldTypeMask:
		if _, ok := v.(starlark.String); ok {
			break
		}
		if it, ok := v.(starlark.Iterable); ok {
			var mask uint64
			for x := range starlark.Elements(it) {
				n, err := wordCode(f, x)
				if err != nil {
					return 0, err
				}
				mask |= n
			}
			return mask, nil
		}
	}
	return wordCode(f, v)
}

// wordCode returns the number of a word, or a number itself. "unknown(7)", which stands
// for a number without a word, is converted back to 7.
func wordCode(f *mad.Field, v starlark.Value) (uint64, error) {
	if f.Signed || f.Scale > 0 {
		n, ok := starlark.AsFloat(v)
		if _, isBool := v.(starlark.Bool); !ok || isBool {
			return 0, lang.WantType(v, "number")
		}
		code, ok := f.Code(n)
		if !ok {
			low, high := f.Range()
			return 0, fmt.Errorf("%s is out of range, %g..%g", v, low, high)
		}
		return code, nil
	}
	switch v := v.(type) {
	case starlark.Bool:
		if f.Bits == 1 {
			if v {
				return 1, nil
			}
			return 0, nil
		}
	case starlark.Int:
		n, ok := v.Uint64()
		if f.Type == mad.FieldTypeEnum {
			// Words of MTUs and rates are numbers: 10 Gb/s has the code 3.
			if code, isWord := f.Words.Code()[v.String()]; isWord && code != n {
				return 0, fmt.Errorf("%s is ambiguous; write the word as a string, \"%s\", or the code as %s_code=", v, v, f.Script)
			}
		}
		switch {
		case ok && n <= f.Max():
		case f.Key:
			return 0, fmt.Errorf("the key has more than %d bits", f.Bits)
		default:
			return 0, fmt.Errorf("%s is out of range, 0..%d", v, f.Max())
		}
		return n, nil
	case starlark.String:
		if f.Words != nil {
			word := strings.ToLower(string(v))
			if n, ok := f.Words.Code()[word]; ok {
				return n, nil
			}
			if text, ok := strings.CutPrefix(word, "unknown("); ok {
				if n, err := strconv.ParseUint(strings.TrimSuffix(text, ")"), 10, 64); err == nil && n <= f.Max() {
					return n, nil
				}
			}
			words := WordsOf(f.Words)
			return 0, fmt.Errorf("unknown word %s%s; the words are %s", v, fabric.DidYouMean(word, words), strings.Join(words, ", "))
		}
		// Keys, P_Keys and LIDs are often copied in hexadecimal.
		if n, err := strconv.ParseUint(string(v), 0, 64); err == nil && n <= f.Max() && strings.HasPrefix(string(v), "0x") {
			return n, nil
		}
	}
	if f.Words != nil {
		return 0, fmt.Errorf("got %s, want a word or an int", v.Type())
	}
	return 0, lang.WantType(v, "int")
}

// scriptNames returns the names of an attribute's own fields.
func scriptNames(a *mad.Attribute) (names []string) {
	for i := range a.Fields {
		names = append(names, a.Fields[i].Script)
	}
	return names
}

// separators removes the separators in GUIDs.
var separators = strings.NewReplacer(":", "", "-", "", ".", "")

func toAttributeArg(v starlark.Value) (any, error) {
	if r, ok := v.(*Record); ok {
		return AttributeArg{Record: r}, nil
	}
	name, err := toAttributeName(v)
	if err != nil {
		return nil, err
	}
	return AttributeArg{Name: name.(string)}, nil
}

func toAttributeName(v starlark.Value) (any, error) {
	if _, ok := v.(starlark.Int); ok {
		return nil, errors.New("got int, want the name of an attribute; mad_get, mad_set and mad_send accept numbers")
	}
	return lang.ToText(v)
}

// refuseDuplicates refuses a field that is given both by word and by number, x and x_code,
// because both are one field.
func refuseDuplicates(fields []starlark.Tuple) error {
	for i, kv := range fields {
		name := string(kv[0].(starlark.String))
		for _, other := range fields[:i] {
			if o := string(other[0].(starlark.String)); o+"_code" == name || name+"_code" == o {
				return fmt.Errorf("%s and %s are the same field; give one of them", o, name)
			}
		}
	}
	return nil
}

var keyValues = sync.OnceValue(func() *regexp.Regexp {
	names := map[string]bool{}
	var words []string
	for _, a := range mad.Attributes() {
		for i := range a.Flat() {
			if f := &a.Flat()[i]; f.Key && !names[f.Script] {
				names[f.Script] = true
				words = append(words, f.Script)
			}
		}
	}
	return regexp.MustCompile(`(\b(?:` + strings.Join(words, "|") + `)["']?\s*[=:]\s*)[^\s=,)}][^,)}]*`)
})
