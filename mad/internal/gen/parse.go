package gen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad/internal/snake"
)

// errorList collects refusals.
type errorList struct {
	fset *token.FileSet
	errs []error
}

func (e *errorList) add(pos token.Pos, format string, args ...any) {
	at := e.fset.Position(pos)
	at.Filename = filepath.Base(at.Filename)
	e.errs = append(e.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
}

func (e *errorList) err() error { return errors.Join(e.errs...) }

// parse reads the Go files of dir that are neither tests nor generated.
func parse(dir string) (*pkg, error) {
	p := &pkg{
		fset:      token.NewFileSet(),
		wordTypes: map[string]*wordType{},
		layouts:   map[string]*layout{},
		types:     map[string]int{"bool": 1, "byte": 8, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64},
	}
	p.errs.fset = p.fset
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "z") {
			continue
		}
		f, err := parser.ParseFile(p.fset, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
		p.files = append(p.files, &file{name: name})
	}
	// Types first, whatever file they are in: fields and constants refer to them.
	for i, f := range parsed {
		p.eachType(f, func(t *ast.TypeSpec, doc *ast.CommentGroup) { p.typeDecl(p.files[i], t, doc) })
	}
	for _, f := range parsed {
		p.constants(f)
	}
	for i, f := range parsed {
		p.eachType(f, func(t *ast.TypeSpec, doc *ast.CommentGroup) {
			if s, ok := t.Type.(*ast.StructType); ok {
				p.structDecl(p.files[i], t, s, doc)
			}
		})
	}
	return p, nil
}

func (p *pkg) eachType(f *ast.File, do func(*ast.TypeSpec, *ast.CommentGroup)) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, s := range g.Specs {
			t := s.(*ast.TypeSpec)
			doc := t.Doc
			if doc == nil {
				doc = g.Doc
			}
			do(t, doc)
		}
	}
}

// directives are the lines of doc that begin with //mad:, without it.
func directives(doc *ast.CommentGroup) (list []*ast.Comment) {
	if doc == nil {
		return nil
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//mad:") {
			list = append(list, c)
		}
	}
	return list
}

// typeDecl notes number types, enumerations and masks, and which structs are layouts.
func (p *pkg) typeDecl(f *file, t *ast.TypeSpec, doc *ast.CommentGroup) {
	under, _ := t.Type.(*ast.Ident)
	if under != nil {
		if bits := p.types[under.Name]; bits >= 8 {
			p.types[t.Name.Name] = bits
		}
	}
	for _, c := range directives(doc) {
		verb, _, _ := strings.Cut(strings.TrimPrefix(c.Text, "//mad:"), " ")
		switch verb {
		case "enum", "mask":
			if under == nil || p.types[under.Name] < 8 {
				p.errs.add(c.Pos(), "//mad:%s on %s, which is not a uint8, uint16, uint32 or uint64", verb, t.Name.Name)
				continue
			}
			w := &wordType{name: t.Name.Name, pos: t.Pos(), mask: verb == "mask", bits: p.types[under.Name]}
			p.wordTypes[w.name] = w
			f.wordTypes = append(f.wordTypes, w)
		case "attr", "header", "variant":
			if p.layouts[t.Name.Name] == nil {
				l := &layout{goName: t.Name.Name, pos: t.Pos()}
				p.layouts[l.goName] = l
				f.layouts = append(f.layouts, l)
			}
		case "source":
		default:
			p.errs.add(c.Pos(), "unknown directive //mad:%s", verb)
		}
	}
}

// constants gives the constants of words types their words.
func (p *pkg) constants(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			id, ok := v.Type.(*ast.Ident)
			if !ok || p.wordTypes[id.Name] == nil || len(v.Names) != 1 || len(v.Values) != 1 {
				continue
			}
			w := p.wordTypes[id.Name]
			value, ok := integer(v.Values[0])
			if !ok {
				p.errs.add(v.Pos(), "%s: the value of a word must be a number or a shift of one", v.Names[0].Name)
				continue
			}
			w.consts = append(w.consts, wordConst{v.Pos(), value, constantWord(v, w.name)})
		}
	}
}

// constantWord is the word of constant v of the named type.
func constantWord(v *ast.ValueSpec, typ string) string {
	if v.Comment != nil {
		text := strings.TrimSpace(strings.TrimPrefix(v.Comment.List[0].Text, "//"))
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			s, _ := strconv.Unquote(quoted)
			return s
		}
	}
	return snake.Name(strings.TrimPrefix(v.Names[0].Name, typ))
}

// integer evaluates an integer literal, or a shift of one by another.
func integer(e ast.Expr) (uint64, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.INT {
			return constant.Uint64Val(constant.MakeFromLiteral(e.Value, e.Kind, 0))
		}
	case *ast.BinaryExpr:
		x, okX := integer(e.X)
		y, okY := integer(e.Y)
		return x << y, okX && okY && e.Op == token.SHL && y < 64
	}
	return 0, false
}

// structDecl reads the directives and fields of a layout.
func (p *pkg) structDecl(f *file, t *ast.TypeSpec, s *ast.StructType, doc *ast.CommentGroup) {
	l := p.layouts[t.Name.Name]
	if l == nil {
		return
	}
	l.doc = oneLine(doc.Text())
	if l.doc == "" {
		p.errs.add(l.pos, "%s has no comment", l.goName)
	}
	for _, c := range directives(doc) {
		verb, rest, _ := strings.Cut(strings.TrimPrefix(c.Text, "//mad:"), " ")
		switch verb {
		case "attr", "header":
			rest, own, _ := strings.Cut(rest, ";")
			a := p.attrDirective(l, c.Pos(), verb == "header", strings.Fields(rest))
			a.doc = oneLine(own)
			l.attrs = append(l.attrs, a)
		case "variant":
			l.variantOf = append(l.variantOf, p.variantDirective(l, c.Pos(), strings.Fields(rest)))
		case "source":
			if len(strings.Fields(rest)) < 3 {
				p.errs.add(c.Pos(), "//mad:source wants project, file and symbol")
			}
			l.sources = append(l.sources, rest)
		}
	}
	for _, a := range l.attrs {
		a.variable = "Attr" + l.goName
		switch {
		case a.header:
			a.variable = "Layout" + l.goName
		case len(l.attrs) > 1:
			a.variable = "Attr" + a.classWord() + strings.ReplaceAll(a.name, "_", "")
		}
		l.size = max(l.size, a.size)
	}
	for _, sf := range s.Fields.List {
		for _, name := range sf.Names {
			if fl := p.field(name, sf); fl != nil {
				l.fields = append(l.fields, fl)
			}
		}
		if len(sf.Names) == 0 {
			p.errs.add(sf.Pos(), "%s: an embedded field has no place on the wire", l.goName)
		}
	}
}

// attrDirective reads what follows //mad:attr or //mad:header.
func (p *pkg) attrDirective(l *layout, pos token.Pos, header bool, words []string) *attr {
	a := &attr{pos: pos, header: header, name: l.goName}
	bad := func(w string) { p.errs.add(pos, "%s: %q is not understood", l.goName, w) }
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "name":
			a.name = value
		case "class":
			i := slices.IndexFunc(classes, func(c class) bool { return c.name == value })
			if i < 0 {
				bad(w)
				continue
			}
			a.class = classes[i]
			a.version = max(a.version, a.class.version)
		case "alias":
			a.aliases = strings.Split(value, ",")
		case "version":
			a.version, err = strconv.Atoi(value) // after class=
		case "id":
			a.id, err = strconv.ParseUint(value, 0, 16)
			a.hasID = true
		case "answer":
			a.answer = value
		case "oui":
			a.oui, err = strconv.ParseUint(value, 0, 24)
		case "offset":
			a.offset, err = strconv.Atoi(value)
		case "methods":
			a.methods = p.methodList(l, pos, value, methods)
		case "v1":
			a.methods1 = p.methodList(l, pos, value, methods1)
		case "state":
			a.state = true
		case "config":
			a.config = true
		case "modifier":
			for text := range strings.SplitSeq(value, ",") {
				f := strings.Split(text, ":")
				if len(f) != 3 {
					bad(text)
					continue
				}
				shift, err1 := strconv.Atoi(f[1])
				bits, err2 := strconv.Atoi(f[2])
				if err1 != nil || err2 != nil || shift < 0 || bits < 1 || shift+bits > 32 {
					bad(text)
				}
				a.modifier = append(a.modifier, modifierPart{f[0], shift, bits})
			}
		case "size":
			a.size, err = strconv.Atoi(value)
		case "section":
			a.section = value
		case "words":
			a.wordsOption = value
		case "smowned":
			a.smOwned = true
		case "unconfirmed":
			a.unconfirmed = true
		default:
			bad(w)
		}
		if err != nil {
			bad(w)
		}
	}
	return a
}

func (p *pkg) methodList(l *layout, pos token.Pos, text string, known []string) []string {
	list := strings.Split(text, ",")
	for _, m := range list {
		if !slices.Contains(known, m) {
			p.errs.add(pos, "%s: unknown method %q", l.goName, m)
		}
	}
	return list
}

// variantDirective reads what follows //mad:variant.
func (p *pkg) variantDirective(l *layout, pos token.Pos, words []string) *variant {
	v := &variant{pos: pos, layout: l}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		ok := value != ""
		switch key {
		case "of":
			v.of, v.field, ok = strings.Cut(value, ".")
		case "name":
			v.name = value
		case "only":
			v.only = strings.Split(value, ",")
		case "when":
			v.when, ok = conditions(value)
		default:
			ok = false
		}
		if !ok {
			p.errs.add(pos, "%s: %q is not understood", l.goName, w)
		}
	}
	return v
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

// oneLine puts a comment's text on one line; an empty line becomes a space too.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
