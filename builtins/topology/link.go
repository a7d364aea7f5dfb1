package topology

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
)

// Link is the value `link`: a cable. A is the port that comes first.
type Link struct{ A, B *fabric.Port }

var (
	_ starlark.HasAttrs = Link{}
	_ lang.Factual      = Link{}
	_ lang.Documented   = Link{}
)

// LinkType is what scripts find in a link.
var LinkType *lang.Type[Link]

func init() {
	LinkType = lang.NewType("link", "A cable between two ports.",
		lang.Member[Link]{Name: "a", Type: "port", Doc: "the port that comes first in the fabric's order", Get: func(l Link) starlark.Value { return Port{l.A} }},
		lang.Member[Link]{Name: "b", Type: "port", Doc: "the port at the other end", Get: func(l Link) starlark.Value { return Port{l.B} }},
	)
}

func (l Link) String() string        { return fmt.Sprintf("link(%q, %q)", l.A.Name(), l.B.Name()) }
func (l Link) Type() string          { return "link" }
func (l Link) Freeze()               {}
func (l Link) Truth() starlark.Bool  { return true }
func (l Link) Hash() (uint32, error) { return Port{l.A}.Hash() }
func (l Link) AttrNames() []string   { return LinkType.Names }
func (l Link) TypeDoc() lang.TypeDoc { return LinkType.TypeDoc() }
func (l Link) Schema() string        { return "link/1" }

func (l Link) Attr(name string) (starlark.Value, error) { return LinkType.Attr(l, name) }

// Facts have the state, width and speed of the first port.
func (l Link) Facts() []lang.Fact {
	out := []lang.Fact{
		{Name: "a", Value: starlark.String(l.A.Name())},
		{Name: "a_guid", Value: GUIDValue(l.A.Node().GUID())},
		{Name: "a_num", Value: starlark.MakeInt(l.A.Num())},
		{Name: "b", Value: starlark.String(l.B.Name())},
		{Name: "b_guid", Value: GUIDValue(l.B.Node().GUID())},
		{Name: "b_num", Value: starlark.MakeInt(l.B.Num())},
	}
	for _, name := range []string{"state", "width", "speed"} {
		v, _ := Port{l.A}.Attr(name)
		out = append(out, lang.Fact{Name: name, Value: v})
	}
	return out
}
