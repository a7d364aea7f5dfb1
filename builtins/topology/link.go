package topology

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
)

// Link is the value `link`: a cable. A is the first port in the fabric's order. Two links
// are equal if both ends are equal, also in different snapshots.
type Link struct{ A, B *fabric.Port }

var (
	_ starlark.Comparable = Link{}
	_ lang.Factual        = Link{}
)

// LinkType declares the attributes of a link.
var LinkType *lang.Type[Link]

func init() {
	end := func(name, typ, doc string, column bool, get func(l Link) starlark.Value) lang.Member[Link] {
		return lang.Member[Link]{Name: name, Type: typ, Doc: doc, Column: column, Get: get}
	}
	words := func(name, doc string, words []string, get func(p Port) starlark.Value) lang.Member[Link] {
		return lang.Member[Link]{Name: name, Type: "string", Doc: doc, Column: true, Words: words, Get: func(l Link) starlark.Value {
			if v := get(Port{l.A}); v != starlark.None {
				return v
			}
			return get(Port{l.B})
		}}
	}
	LinkType = lang.NewType("link", "A cable between two ports. Links of two fabrics are equal if both ends are equal.",
		end("a", "port", "the first port, in the fabric's order", true, func(l Link) starlark.Value { return Port{l.A} }),
		end("a_num", "int", "its number", true, func(l Link) starlark.Value { return starlark.MakeInt(l.A.Num()) }),
		end("b", "port", "the port at the other end", true, func(l Link) starlark.Value { return Port{l.B} }),
		end("b_num", "int", "its number", true, func(l Link) starlark.Value { return starlark.MakeInt(l.B.Num()) }),
		words("state", `logical state: "active", "down", ...; None if unknown`, records.WordsOf(mad.WordsPortState), portState),
		words("width", `width in use: "4x"; None while the link is down, or if unknown`, mad.Widths(), portWidth),
		words("speed", `speed in use: "hdr"; None while the link is down, or if unknown`, mad.Speeds(), portSpeed),
		words("best_width", bestWidthDoc, mad.Widths(), portBestWidth),
		words("best_speed", bestSpeedDoc, mad.Speeds(), portBestSpeed),
		end("degraded", "", "whether it is slower or narrower than both ends support; None while the link is down, or if unknown", true, func(l Link) starlark.Value {
			if degraded, known := l.A.Degraded(); known {
				return starlark.Bool(degraded)
			}
			return starlark.None
		}),
		end("plane", "int", planeDoc, false, func(l Link) starlark.Value { return plane(Port{l.A}) }),
		lang.Member[Link]{Name: "unhealthy", Type: "string", Doc: unhealthyDoc + "; of an end", Words: records.WordsOf(mad.WordsUnhealthyReason), Get: func(l Link) starlark.Value {
			if v := unhealthy(Port{l.A}); v != starlark.None {
				return v
			}
			return unhealthy(Port{l.B})
		}},
		end("a_guid", "string", "GUID of the node of a", true, func(l Link) starlark.Value { return GUIDValue(l.A.Node().GUID()) }),
		end("b_guid", "string", "GUID of the node of b", true, func(l Link) starlark.Value { return GUIDValue(l.B.Node().GUID()) }),
	).AtVersion(2)
}

func (l Link) String() string        { return fmt.Sprintf("link(%q, %q)", l.A.Name(), l.B.Name()) }
func (l Link) Type() string          { return "link" }
func (l Link) Freeze()               {}
func (l Link) Truth() starlark.Bool  { return true }
func (l Link) AttrNames() []string   { return LinkType.Names }
func (l Link) TypeDoc() lang.TypeDoc { return LinkType.TypeDoc() }
func (l Link) Schema() string        { return LinkType.Schema() }

func (l Link) Facts() []lang.Fact { return LinkType.Facts(l) }

// Hash does not depend on the order of the ends, and neither does CompareSameType.
func (l Link) Hash() (uint32, error) {
	a, _ := Port{l.A}.Hash()
	b, _ := Port{l.B}.Hash()
	return a + b, nil
}

func (l Link) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	m := y.(Link)
	return records.CompareEqual(op, l, l.A.Same(m.A) && l.B.Same(m.B) || l.A.Same(m.B) && l.B.Same(m.A))
}

func (l Link) Attr(name string) (starlark.Value, error) { return LinkType.Attr(l, name) }
