package gen

import (
	"go/ast"
	"go/token"
	"reflect"
	"strconv"
	"strings"

	"fabsh/mad/internal/snake"
)

// field reads one struct field and its tag; nil after a refusal.
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
		p.errs.add(f.pos, "%s: a field of this type has no form on the wire", f.goName)
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

func (f *field) option(o string) bool {
	key, value, has := strings.Cut(o, "=")
	num := func(to *int) bool {
		n, err := strconv.Atoi(value)
		*to = n
		return err == nil && n >= 0
	}
	switch {
	case key == "name":
		f.name = value
		return value != ""
	case key == "also":
		f.also = value
		return value != ""
	case key == "stride":
		return num(&f.stride) && f.stride > 0
	case key == "components":
		return num(&f.components) && f.components > 0
	case o == "component=none":
		f.component, f.components, f.fixed = -1, 0, true
	case key == "component":
		f.fixed = true
		return num(&f.component)
	case key == "select2":
		f.inSelect2 = true
		return num(&f.select2)
	case o == "nochange=0":
		f.noChange = true
	case has:
		return false
	case key == "text":
		f.text = true
	case key == "bytes":
		f.raw = true
	case key == "enum":
		f.enum = true
	case key == "ro":
		f.readOnly = true
	case key == "w1c":
		f.w1c = true
	case key == "key":
		f.key = true
	case key == "hex":
		f.hex = true
	default:
		return false
	}
	return true
}

// resolveType finds out what f's Go type means.
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
		// A byte array that is one value.
		if !f.array || f.typeBits != 8 {
			return false
		}
		f.fieldType, f.typeBits, f.count, f.array = "FieldTypeBytes", 8*f.count, 1, false
		if f.text {
			f.fieldType = "FieldTypeText"
		}
		return true
	case id.Name == "GID":
		f.fieldType, f.typeBits = "FieldTypeGID", 128
		return true
	case p.layouts[id.Name] != nil:
		f.fieldType, f.structure = "FieldTypeStruct", p.layouts[id.Name]
		return true
	case id.Name == "LID":
		f.fieldType = "FieldTypeLID"
	case id.Name == "GUID":
		f.fieldType = "FieldTypeGUID"
	case f.words == nil:
		f.fieldType = "FieldTypeUint"
	case f.words.mask && !f.enum:
		f.fieldType = "FieldTypeMask"
	default:
		f.fieldType = "FieldTypeEnum"
	}
	return f.typeBits > 0
}
