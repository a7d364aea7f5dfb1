package gen

import (
	"cmp"
	"go/token"
)

// pkg is what the generator has read.
type pkg struct {
	fset    *token.FileSet
	files   []*file
	words   map[string]*words
	layouts map[string]*layout
	types   map[string]int // other named number types: bits
	errs    problems
}

type file struct {
	name    string
	layouts []*layout
	words   []*words
}

// words is an enumeration or mask type with its constants.
type words struct {
	name   string
	pos    token.Pos
	mask   bool
	bits   int // of the underlying type
	consts []konst
}

type konst struct {
	pos   token.Pos
	value uint64
	word  string
}

// layout is a tagged struct.
type layout struct {
	goName  string
	pos     token.Pos
	doc     string
	sources []string
	attrs   []*attr
	fields  []*field
}

// attr is one use of a layout: an attribute, or a header.
type attr struct {
	pos         token.Pos
	header      bool
	name        string
	variable    string
	class       class
	id          uint64
	methods     []string
	modifier    []part
	size        int // bytes
	section     string
	smOwned     bool
	unconfirmed bool
	words       map[string]*words // by Go name of the field
	wordsText   string
}

func (a *attr) compare(b *attr) int {
	return cmp.Or(cmp.Compare(a.class.id, b.class.id), cmp.Compare(a.id, b.id))
}

type part struct {
	name        string
	shift, bits int
}

// field is a struct field with a tag; a run of reserved bits has no name.
type field struct {
	pos        token.Pos
	goName     string // "_": reserved
	name       string // of the specification
	script     string
	doc        string
	goType     string // of one element
	typeBits   int    // of an element's Go type
	offset     int
	bits       int
	count      int
	stride     int
	array      bool
	kind       string
	words      *words
	structure  *layout
	component  int
	components int
	fixed      bool // component was given
	tagOptions
}

// tagOptions are the parts of a tag that are just there or not.
type tagOptions struct {
	text, raw, enum, readOnly, noChange, w1c, key, hex bool
}

func (f *field) reserved() bool { return f.goName == "_" }

// span is how many bits the field covers, what lies between the elements included.
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
	{"CC", "ClassCongestion", 0x21, 2},
}

// methods are the requests a directive may name.
var methods = []string{"Get", "Set", "Send", "Trap", "Report", "TrapRepress", "GetTable", "GetTraceTable", "GetMulti", "Delete"}
