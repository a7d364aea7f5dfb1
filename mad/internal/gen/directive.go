package gen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// A directive is a line of a type's doc comment that begins with //mad:.
//
// The tables of this file and of field.go are the complete grammar of tags. The
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

// attrOptions are those with a value. errValue rejects the whole option.
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
