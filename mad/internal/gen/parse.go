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
	"strconv"
	"strings"

	"fabsh/mad/internal/snake"
)

// errorList collects errors.
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
	for _, f := range parsed {
		p.eachType(f, func(t *ast.TypeSpec, doc *ast.CommentGroup) {
			if s, ok := t.Type.(*ast.StructType); ok {
				p.structDecl(t, s, doc)
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

// eachDirective calls do for each line of doc that begins with //mad:, with the
// directive's word and the text after it.
func eachDirective(doc *ast.CommentGroup, do func(verb, text string, c *ast.Comment)) {
	if doc == nil {
		return
	}
	for _, c := range doc.List {
		if line, ok := strings.CutPrefix(c.Text, "//mad:"); ok {
			verb, text, _ := strings.Cut(line, " ")
			do(verb, text, c)
		}
	}
}

// typeDecl records number types, and what the type's directives declare.
func (p *pkg) typeDecl(f *file, t *ast.TypeSpec, doc *ast.CommentGroup) {
	if under, ok := t.Type.(*ast.Ident); ok && p.types[under.Name] >= 8 {
		p.types[t.Name.Name] = p.types[under.Name]
	}
	eachDirective(doc, func(verb, _ string, c *ast.Comment) {
		d, ok := directives[verb]
		if !ok {
			p.errs.add(c.Pos(), "unknown directive //mad:%s", verb)
		} else if d.declare != nil {
			d.declare(p, f, t, c)
		}
	})
}

// constants adds the words of the constants of enumerations and masks.
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

// constantWord returns the word of constant v of the named type.
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
func (p *pkg) structDecl(t *ast.TypeSpec, s *ast.StructType, doc *ast.CommentGroup) {
	l := p.layouts[t.Name.Name]
	if l == nil {
		return
	}
	l.doc = oneLine(doc.Text())
	if l.doc == "" {
		p.errs.add(l.pos, "%s has no comment", l.goName)
	}
	eachDirective(doc, func(verb, text string, c *ast.Comment) {
		if d := directives[verb]; d.read != nil {
			d.read(p, l, c.Pos(), text)
		}
	})
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
			p.errs.add(sf.Pos(), "%s: embedded fields are not supported", l.goName)
		}
	}
}

// oneLine puts a comment's text on one line; an empty line also becomes a space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
