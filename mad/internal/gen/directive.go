package gen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad/internal/snake"
)

// A directive is a line of a type's doc comment that begins with //mad:.
//
// The tables of this file are the complete grammar of directives and tags. The
// package doc of mad describes it for authors; TestGrammar compares the two.
type directive struct {
	// declare records the type before any struct is read, because fields and
	// constants of all files refer to it.
	declare func(p *pkg, f *file, t *ast.TypeSpec, c *ast.Comment)
	// read reads the text after the directive, for layout l.
	read func(p *pkg, l *layout, pos token.Pos, text string)
}

var directives = map[string]directive{
	"attr": {declareLayout, func(p *pkg, l *layout, pos token.Pos, text string) {
		p.readAttr(l, &attr{pos: pos, name: l.goName}, text)
	}},
	"header": {declareLayout, func(p *pkg, l *layout, pos token.Pos, text string) {
		p.readAttr(l, &attr{pos: pos, name: l.goName, header: true}, text)
	}},
	"variant": {declareLayout, (*pkg).readVariant},
	"source":  {nil, (*pkg).readSource},
	"enum":    {declareWords, nil},
	"mask":    {declareWords, nil},
}

// attrFlags are the options of //mad:attr and //mad:header without a value.
var attrFlags = map[string]func(a *attr) *bool{
	"config":      func(a *attr) *bool { return &a.config },
	"inferred":    func(a *attr) *bool { return &a.inferred },
	"safeget":     func(a *attr) *bool { return &a.safeGet },
	"older":       func(a *attr) *bool { return &a.older },
	"onlyrouters": func(a *attr) *bool { return &a.onlyRouters },
	"required":    func(a *attr) *bool { return &a.required },
	"smowned":     func(a *attr) *bool { return &a.smOwned },
	"state":       func(a *attr) *bool { return &a.state },
	"unconfirmed": func(a *attr) *bool { return &a.unconfirmed },
}

// attrOptions are the options of an attribute that have a value. errValue rejects the whole option.
var attrOptions = map[string]func(a *attr, value string) error{
	"alias":      func(a *attr, value string) error { a.aliases = strings.Split(value, ","); return nil },
	"answer":     func(a *attr, value string) error { a.answer = value; return nil },
	"capability": func(a *attr, value string) error { a.capability = strings.Split(value, "|"); return nil },
	"class":      (*attr).readClass,
	"device":     func(a *attr, value string) error { return readNumber(&a.device, value, 16) },
	"id":         func(a *attr, value string) error { a.hasID = true; return readNumber(&a.id, value, 16) },
	"methods":    func(a *attr, value string) (err error) { a.methods, err = readMethods(value, methods); return err },
	"modifier":   (*attr).readModifier,
	"name":       func(a *attr, value string) error { a.name = value; return nil },
	"needs":      func(a *attr, value string) error { a.needs = strings.Split(value, "|"); return nil },
	"offset":     func(a *attr, value string) error { return readInt(&a.offset, value) },
	"oui":        func(a *attr, value string) error { return readNumber(&a.oui, value, 24) },
	"register":   func(a *attr, value string) error { return readNumber(&a.register, value, 16) },
	"section":    func(a *attr, value string) error { a.section = value; return nil },
	"size":       func(a *attr, value string) error { return readInt(&a.size, value) },
	"v1":         func(a *attr, value string) (err error) { a.methods1, err = readMethods(value, methods1); return err },
	"version":    func(a *attr, value string) error { return readInt(&a.version, value) },
	"words":      func(a *attr, value string) error { a.wordsOption = value; return nil },
}

// variantOptions are the options of //mad:variant.
var variantOptions = map[string]func(v *variant, value string) (ok bool){
	"name": func(v *variant, value string) bool { v.name = value; return true },
	"of":   func(v *variant, value string) (ok bool) { v.of, v.field, ok = strings.Cut(value, "."); return ok },
	"only": func(v *variant, value string) bool { v.only = strings.Split(value, ","); return true },
	"when": func(v *variant, value string) (ok bool) { v.when, ok = conditions(value); return ok },
}

// errValue is the error of an invalid value of an option.
var errValue = errors.New("invalid")

func errInvalid(text string) error { return fmt.Errorf("%q is invalid", text) }

// declareLayout records that the struct is a layout.
func declareLayout(p *pkg, f *file, t *ast.TypeSpec, _ *ast.Comment) {
	if p.layouts[t.Name.Name] == nil {
		l := &layout{goName: t.Name.Name, pos: t.Pos()}
		p.layouts[l.goName] = l
		f.layouts = append(f.layouts, l)
	}
}

// declareWords records that the number type is an enumeration or a mask.
func declareWords(p *pkg, f *file, t *ast.TypeSpec, c *ast.Comment) {
	verb := strings.TrimPrefix(c.Text, "//mad:")
	under, _ := t.Type.(*ast.Ident)
	if under == nil || p.types[under.Name] < 8 {
		p.errs.add(c.Pos(), "//mad:%s on %s, which is not a uint8, uint16, uint32 or uint64", verb, t.Name.Name)
		return
	}
	w := &wordType{name: t.Name.Name, pos: t.Pos(), mask: verb == "mask", bits: p.types[under.Name]}
	p.wordTypes[w.name] = w
	f.wordTypes = append(f.wordTypes, w)
}

// readAttr reads the options of //mad:attr or //mad:header into a, one of l's.
func (p *pkg) readAttr(l *layout, a *attr, text string) {
	text, own, _ := strings.Cut(text, ";")
	a.doc = oneLine(own)
	for _, w := range strings.Fields(text) {
		key, value, valued := strings.Cut(w, "=")
		var err error
		switch option, flag := attrOptions[key], attrFlags[key]; {
		case option != nil:
			if err = option(a, value); err == errValue {
				err = errInvalid(w)
			}
		case flag != nil && !valued:
			*flag(a) = true
		default:
			err = errInvalid(w)
		}
		if err != nil {
			p.errs.add(a.pos, "%s: %v", l.goName, err)
		}
	}
	if a.version == 0 {
		a.version = a.class.version
	}
	l.attrs = append(l.attrs, a)
}

// readClass reads a class by its name in the table of classes.
func (a *attr) readClass(value string) error {
	i := slices.IndexFunc(classes, func(c class) bool { return c.name == value })
	if i < 0 {
		return errValue
	}
	a.class = classes[i]
	return nil
}

// readModifier reads "port:0:8,flag:31:1": names, first bits and lengths; or "unknown".
func (a *attr) readModifier(value string) error {
	if value == "unknown" {
		a.unknownModifier = true
		return nil
	}
	for text := range strings.SplitSeq(value, ",") {
		f := strings.Split(text, ":")
		if len(f) != 3 {
			return errInvalid(text)
		}
		shift, err1 := strconv.Atoi(f[1])
		bits, err2 := strconv.Atoi(f[2])
		if err1 != nil || err2 != nil || shift < 0 || bits < 1 || shift+bits > 32 {
			return errInvalid(text)
		}
		a.modifier = append(a.modifier, modifierPart{f[0], shift, bits})
	}
	return nil
}

func readMethods(value string, known []string) ([]string, error) {
	list := strings.Split(value, ",")
	for _, m := range list {
		if !slices.Contains(known, m) {
			return list, fmt.Errorf("unknown method %q", m)
		}
	}
	return list, nil
}

func readInt(to *int, value string) (err error) {
	if *to, err = strconv.Atoi(value); err != nil {
		return errValue
	}
	return nil
}

func readNumber(to *uint64, value string, bits int) (err error) {
	if *to, err = strconv.ParseUint(value, 0, bits); err != nil {
		return errValue
	}
	return nil
}

func (p *pkg) readSource(l *layout, pos token.Pos, text string) {
	if len(strings.Fields(text)) < 3 {
		p.errs.add(pos, "//mad:source wants project, file and symbol")
	}
	l.sources = append(l.sources, text)
}

func (p *pkg) readVariant(l *layout, pos token.Pos, text string) {
	v := &variant{pos: pos, layout: l}
	for _, w := range strings.Fields(text) {
		key, value, _ := strings.Cut(w, "=")
		if option := variantOptions[key]; option == nil || value == "" || !option(v, value) {
			p.errs.add(pos, "%s: %v", l.goName, errInvalid(w))
		}
	}
	l.variantOf = append(l.variantOf, v)
}

// conditions reads "IsGeneric:1,TrapNumber:64-67|144,modifier.mode:2".
func conditions(text string) (list []condition, ok bool) {
	for one := range strings.SplitSeq(text, ",") {
		name, values, has := strings.Cut(one, ":")
		if !has {
			return nil, false
		}
		c := condition{name: name}
		for r := range strings.SplitSeq(values, "|") {
			low, high, is := strings.Cut(r, "-")
			if !is {
				high = low
			}
			a, err1 := strconv.ParseUint(low, 0, 64)
			b, err2 := strconv.ParseUint(high, 0, 64)
			if err1 != nil || err2 != nil || b < a {
				return nil, false
			}
			c.values = append(c.values, [2]uint64{a, b})
		}
		list = append(list, c)
	}
	return list, true
}

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
	"minor":  func(f *field) *bool { return &f.minor },
	"ro":     func(f *field) *bool { return &f.readOnly },
	"signed": func(f *field) *bool { return &f.signed },
	"text":   func(f *field) *bool { return &f.text },
	"w1c":    func(f *field) *bool { return &f.w1c },
}

// fieldOptions are the options of a field that have a value.
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
