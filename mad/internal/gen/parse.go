package gen

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad/internal/snake"
)

// pkg is the package as the generator has read it.
type pkg struct {
	fset      *token.FileSet
	files     []*file
	wordTypes map[string]*wordType
	layouts   map[string]*layout
	types     map[string]int // bits of the number types, by name
	errs      errorList
}

type file struct {
	name      string
	layouts   []*layout
	wordTypes []*wordType
}

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

// wordType is an enumeration or mask type with its constants.
type wordType struct {
	name   string
	pos    token.Pos
	mask   bool
	bits   int // of the underlying type
	consts []wordConst
}

// joins reports whether t is a mask that also has words for several bits.
func (t *wordType) joins() bool {
	return t.mask && slices.ContainsFunc(t.consts, func(c wordConst) bool { return bits.OnesCount64(c.value) > 1 })
}

type wordConst struct {
	pos   token.Pos
	value uint64
	word  string
}

// layout is a tagged struct.
type layout struct {
	goName    string
	pos       token.Pos
	doc       string
	sources   []string
	size      int // bytes: the largest of its attributes
	attrs     []*attr
	fields    []*field
	variantOf []*variant  // the uses of the layout as a variant
	variants  []placement // the variants of its fields
}

// fieldsIn returns the fields that have a name and are within a's size.
func (l *layout) fieldsIn(a *attr) (list []*field) {
	for _, f := range l.fields {
		if !f.reserved() && f.offset < 8*a.size {
			list = append(list, f)
		}
	}
	return list
}

// variantsOf returns the variants that a can have.
func (l *layout) variantsOf(a *attr) (list []placement) {
	for _, v := range l.variants {
		if len(v.only) == 0 || slices.Contains(v.only, a.name) || slices.Contains(v.only, a.classWord()) {
			list = append(list, v)
		}
	}
	return list
}

// named returns the field with a Go name; nil if it is unknown. Outer.Inner is a
// field of the layout inside.
func (l *layout) named(goName string) *field {
	outer, inner, nested := strings.Cut(goName, ".")
	i := slices.IndexFunc(l.fields, func(f *field) bool { return f.goName == outer })
	switch {
	case i < 0, nested && l.fields[i].structure == nil:
		return nil
	case nested:
		return l.fields[i].structure.named(inner)
	}
	return l.fields[i]
}

// placement is a variant with the index of its field.
type placement struct {
	field int
	*variant
}

// variant is a //mad:variant directive: a field of another layout has this one
// where the conditions hold.
type variant struct {
	pos       token.Pos
	layout    *layout
	name      string
	of, field string // layout and Go name of its field
	base      *layout
	only      []string // classes or attributes; empty: all
	when      []condition
}

// condition is one of when=: ranges of values of a field or of a part of the
// modifier.
type condition struct {
	name   string // Go name of a field, or "modifier." and the name of a part
	values [][2]uint64
}

// attr is one use of a layout: an attribute, or a header.
type attr struct {
	pos             token.Pos
	header          bool
	name            string
	variable        string
	doc             string // of this attribute alone
	aliases         []string
	class           class
	version         int
	id              uint64
	oui             uint64
	hasID           bool
	answer          string // Go name of the attribute in the answer
	methods         []string
	methods1        []string // in version 1 of SubnAdm
	modifier        []modifierPart
	offset          int // in the MAD, bytes; 0: the class's
	size            int // bytes
	section         string
	smOwned         bool
	unconfirmed     bool
	safeGet         bool     // a Get of a vendor's attribute only reads
	capability      []string // words of GeneralInfo's masks; the device needs one of them
	capabilities    []int    // capability as numbers
	unknownModifier bool     // no public source has the modifier
	needs           []string // fields of other attributes
	needed          []need   // needs, resolved
	onlyRouters     bool     // only routers have it
	device          uint64   // of an older attribute: DeviceID in NodeInfo of the devices that have it; 0: any
	older           bool     // a newer attribute has its number, too
	inferred        bool     // the modifier is inferred, not published
	state           bool
	config          bool
	required        bool                 // of each subnet administrator, by class version 1
	register        uint64               // of a header: the device's register that it is
	words           map[string]*wordType // by Go name of the field
	wordsOption     string
}

// text returns the documentation of a.
func (a *attr) text(l *layout) string {
	if a.doc == "" {
		return l.doc
	}
	return a.name + " " + a.doc + " " + l.doc
}

// classWord is a's class, with the version if it is not the current one: SubnAdm1.
func (a *attr) classWord() string {
	if a.version != a.class.version {
		return fmt.Sprint(a.class.name, a.version)
	}
	return a.class.name
}

func (a *attr) compare(b *attr) int {
	return cmp.Or(cmp.Compare(a.class.id, b.class.id), cmp.Compare(a.id, b.id), cmp.Compare(b.version, a.version))
}

// need is one of needs=: a field of another attribute that must not be 0.
type need struct {
	variable, field string // Go name of the attribute, script name of the field
	mask            uint64
}

type modifierPart struct {
	name        string
	shift, bits int
}

// field is a struct field with a tag; a run of reserved bits has no name.
type field struct {
	pos        token.Pos
	goName     string // "_": reserved
	name       string // in the specification
	script     string
	also       []string // other script names
	vendor     string   // its name in the specification if a vendor defines the attribute
	doc        string
	goType     string // of one element
	typeBits   int    // of an element's Go type
	offset     int
	bits       int
	count      int
	stride     int
	array      bool
	fieldType  string
	words      *wordType
	structure  *layout
	component  int
	components int
	fixed      bool // the tag has component=
	union      bool // it has variants
	inSelect2  bool // the tag has select2=
	select2    int
	scale      int // the number on the wire is the value times this; 0: it is the value
	tagOptions
}

// tagOptions are the options of a tag without a value.
type tagOptions struct {
	text, raw, enum, readOnly, noChange, w1c, key, hex, signed, minor bool
}

func (f *field) reserved() bool { return f.goName == "_" }

// scriptNames returns f's names in scripts.
func (f *field) scriptNames() []string {
	names := append([]string{f.script}, f.also...)
	if f.vendor != "" {
		names = append(names, snake.Name(f.vendor))
	}
	return names
}

// span is the number of bits from the field's first to its last, gaps between
// the elements of an array included.
func (f *field) span() int { return (f.count-1)*f.stride + f.bits }

// class is a management class as directives name it.
type class struct {
	name, constant string
	id, version    int
}

var classes = []class{
	{"Subn", "ClassSubn", 0x01, 1},
	{"SubnAdm", "ClassSubnAdm", 0x03, 2},
	{"Perf", "ClassPerf", 0x04, 1},
	{"BM", "ClassBM", 0x05, 1},
	{"DevMgt", "ClassDevMgt", 0x06, 1},
	{"ComMgt", "ClassComMgt", 0x07, 2},
	{"SNMP", "ClassSNMP", 0x08, 1},
	{"Vendor09", "ClassVendor09", 0x09, 1},
	{"Vendor0A", "ClassVendor0A", 0x0a, 1},
	{"Vendor0C", "ClassVendor0C", 0x0c, 1},
	{"CC", "ClassCongestion", 0x21, 2},
	{"Ping", "ClassPing", 0x32, 1},
	{"SysStat", "ClassSysStat", 0x33, 1},
}

// methods are the requests a directive may name, methods1 the requests of version 1
// of SubnAdm.
var (
	methods  = []string{"Get", "Set", "Send", "Trap", "Report", "TrapRepress", "GetTable", "GetTraceTable", "GetMulti", "Delete"}
	methods1 = []string{"Get", "Set", "Report", "Inform", "GetTable", "GetBulk", "Config"}
)
