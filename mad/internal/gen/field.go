package gen

import (
	"go/ast"
	"go/token"
	"reflect"
	"strconv"
	"strings"

	"fabsh/mad/internal/snake"
)

// field reads one struct field and its tag; nil if it has no place or type.
func (p *pkg) field(name *ast.Ident, sf *ast.Field) *field {
	f := &field{pos: name.Pos(), goName: name.Name, name: name.Name, count: 1, components: 1}
	if sf.Tag == nil {
		p.errs.add(f.pos, "%s has no mad tag", f.goName)
		return nil
	}
	text, _ := strconv.Unquote(sf.Tag.Value)
	tag, ok := reflect.StructTag(text).Lookup("mad")
	if !ok {
		p.errs.add(f.pos, "%s has no mad tag", f.goName)
		return nil
	}
	f.doc = oneLine(sf.Doc.Text())
	if f.doc == "" && !f.reserved() {
		p.errs.add(f.pos, "%s has no comment", f.goName)
	}
	options := strings.Split(tag, ",")
	if !f.parsePlace(options[0]) {
		p.errs.add(f.pos, "%s: %q is not offset:bits", f.goName, options[0])
		return nil
	}
	for _, o := range options[1:] {
		if !f.option(o) {
			p.errs.add(f.pos, "%s: unknown tag %q", f.goName, o)
		}
	}
	f.script = snake.Name(f.name)
	if !p.resolveType(f, sf.Type) {
		p.errs.add(f.pos, "%s: unsupported type of a field", f.goName)
		return nil
	}
	if f.stride == 0 {
		f.stride = f.bits
	}
	return f
}

// parsePlace reads "128:16".
func (f *field) parsePlace(s string) bool {
	offset, bits, ok := strings.Cut(s, ":")
	var err1, err2 error
	f.offset, err1 = strconv.Atoi(offset)
	f.bits, err2 = strconv.Atoi(bits)
	return ok && err1 == nil && err2 == nil && f.offset >= 0 && f.bits > 0
}

// fieldFlags are the options of a field's tag without a value.
var fieldFlags = map[string]func(f *field) *bool{
	"bytes":  func(f *field) *bool { return &f.raw },
	"enum":   func(f *field) *bool { return &f.enum },
	"hex":    func(f *field) *bool { return &f.hex },
	"key":    func(f *field) *bool { return &f.key },
	"ro":     func(f *field) *bool { return &f.readOnly },
	"signed": func(f *field) *bool { return &f.signed },
	"text":   func(f *field) *bool { return &f.text },
	"w1c":    func(f *field) *bool { return &f.w1c },
}

// fieldOptions are those with a value.
var fieldOptions = map[string]func(f *field, value string) (ok bool){
	"also":       func(f *field, value string) bool { f.also = append(f.also, value); return value != "" },
	"component":  (*field).readComponent,
	"components": func(f *field, value string) bool { return readCount(&f.components, value) && f.components > 0 },
	"name":       func(f *field, value string) bool { f.name = value; return value != "" },
	"nochange":   func(f *field, value string) bool { f.noChange = true; return value == "0" },
	"scale":      func(f *field, value string) bool { return readCount(&f.scale, value) && f.scale > 1 },
	"select2":    func(f *field, value string) bool { f.inSelect2 = true; return readCount(&f.select2, value) },
	"stride":     func(f *field, value string) bool { return readCount(&f.stride, value) && f.stride > 0 },
	"vendor":     func(f *field, value string) bool { f.vendor = value; return value != "" },
}

// option reads one option of f's tag.
func (f *field) option(o string) (ok bool) {
	key, value, valued := strings.Cut(o, "=")
	if flag := fieldFlags[key]; flag != nil && !valued {
		*flag(f) = true
		return true
	}
	read := fieldOptions[key]
	return read != nil && valued && read(f, value)
}

func (f *field) readComponent(value string) bool {
	f.fixed = true
	if value == "none" {
		f.component, f.components = -1, 0
		return true
	}
	return readCount(&f.component, value)
}

// readCount reads a number that is not negative.
func readCount(to *int, value string) bool {
	n, err := strconv.Atoi(value)
	*to = n
	return err == nil && n >= 0
}

// resolveType sets the field type that follows from f's Go type.
func (p *pkg) resolveType(f *field, t ast.Expr) bool {
	if a, ok := t.(*ast.ArrayType); ok {
		n, ok := a.Len.(*ast.BasicLit)
		if !ok || n.Kind != token.INT {
			return false
		}
		f.count, _ = strconv.Atoi(n.Value)
		f.array = true
		t = a.Elt
	}
	id, ok := t.(*ast.Ident)
	if !ok {
		return false
	}
	f.goType = id.Name
	f.typeBits = p.types[id.Name]
	f.words = p.wordTypes[id.Name]
	switch {
	case f.text || f.raw:
		// An array of bytes that is one value.
		if !f.array || f.typeBits != 8 {
			return false
		}
		f.fieldType, f.typeBits, f.count, f.array = "Bytes", 8*f.count, 1, false
		if f.text {
			f.fieldType = "Text"
		}
		return true
	case id.Name == "GID":
		f.fieldType, f.typeBits = "GID", 128
		return true
	case p.layouts[id.Name] != nil:
		f.fieldType, f.structure = "Struct", p.layouts[id.Name]
		return true
	case id.Name == "LID":
		f.fieldType = "LID"
	case id.Name == "GUID":
		f.fieldType = "GUID"
	case f.words == nil:
		f.fieldType = "Uint"
	case f.words.mask && !f.enum:
		f.fieldType = "Mask"
	default:
		f.fieldType = "Enum"
	}
	return f.typeBits > 0
}
