package topology

import (
	"bytes"
	"fmt"
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Fabric is the value `fabric`. There is one for each *fabric.Fabric, so
// that its lists are made once.
type Fabric struct {
	F     *fabric.Fabric
	lists map[string]*starlark.List
}

var (
	_ starlark.HasAttrs = (*Fabric)(nil)
	_ lang.Factual      = (*Fabric)(nil)
	_ lang.Documented   = (*Fabric)(nil)
)

func NewFabric(f *fabric.Fabric) *Fabric {
	return &Fabric{F: f, lists: map[string]*starlark.List{}}
}

var FabricType = newFabricType()

func newFabricType() *lang.Type[*Fabric] {
	list := func(name, doc string, fill func(f *fabric.Fabric) []starlark.Value) lang.Member[*Fabric] {
		return lang.Member[*Fabric]{Name: name, Doc: doc, Get: func(v *Fabric) starlark.Value {
			l := v.lists[name]
			if l == nil {
				l = starlark.NewList(fill(v.F))
				l.Freeze()
				v.lists[name] = l
			}
			return l
		}}
	}
	return lang.NewType("fabric", "A snapshot of a subnet, which never changes: what discover() found or a file says.",
		list("nodes", "all nodes: switches, then CAs, then routers, by GUID", func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.Nodes()) }),
		list("switches", "the switches, by GUID", func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.OfType(mad.NodeTypeSwitch)) }),
		list("cas", "the channel adapters, by GUID", func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.OfType(mad.NodeTypeCA)) }),
		list("routers", "the routers, by GUID", func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.OfType(mad.NodeTypeRouter)) }),
		list("ports", "all external ports, by node and number", portsOf),
		list("links", "the cables, by their first port", linksOf),
		lang.Member[*Fabric]{Name: "complete", Doc: "nothing that was asked for is missing", Get: func(v *Fabric) starlark.Value {
			return starlark.Bool(v.F.Complete())
		}},
		list("problems", "what is wrong with the fabric or with the view of it: kind and text", problemsOf),
		lang.Member[*Fabric]{Method: &dumpMethod},
	)
}

func (v *Fabric) String() string        { return v.F.String() }
func (v *Fabric) Type() string          { return "fabric" }
func (v *Fabric) Freeze()               {}
func (v *Fabric) Truth() starlark.Bool  { return true }
func (v *Fabric) Hash() (uint32, error) { return lang.HashBytes([]byte(v.F.String())), nil }
func (v *Fabric) AttrNames() []string   { return FabricType.Names }
func (v *Fabric) TypeDoc() lang.TypeDoc { return FabricType.TypeDoc() }
func (v *Fabric) Schema() string        { return "fabric/1" }
func (v *Fabric) Display() string       { return v.F.String() + "\n" }
func (v *Fabric) Attr(name string) (starlark.Value, error) {
	return FabricType.Attr(v, name)
}

func (v *Fabric) Facts() []lang.Fact {
	var out []lang.Fact
	for _, name := range []string{"complete", "nodes", "links", "problems"} {
		x, _ := v.Attr(name)
		out = append(out, lang.Fact{Name: name, Value: x})
	}
	return out
}

func nodesOf(nodes []fabric.Node) []starlark.Value {
	out := make([]starlark.Value, len(nodes))
	for i := range nodes {
		out[i] = Node{&nodes[i]}
	}
	return out
}

func portsOf(f *fabric.Fabric) []starlark.Value {
	var out []starlark.Value
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Num() > 0 {
			out = append(out, Port{p})
		}
	}
	return out
}

func linksOf(f *fabric.Fabric) []starlark.Value {
	out := make([]starlark.Value, 0, f.Links())
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if q := p.Peer(); q != nil && q.ID() >= p.ID() {
			out = append(out, Link{p, q})
		}
	}
	return out
}

func problemsOf(f *fabric.Fabric) []starlark.Value {
	var out []starlark.Value
	for _, p := range f.Problems() {
		out = append(out, problem(p))
	}
	return out
}

// problem is the value `problem`.
type problem fabric.Problem

var ProblemType *lang.Type[problem]

func init() {
	ProblemType = lang.NewType("problem", "Something wrong with a fabric, or with the view of it.",
		lang.Member[problem]{Name: "kind", Doc: `"timed out", "duplicate guid", ...`, Get: func(p problem) starlark.Value { return starlark.String(p.Kind) }},
		lang.Member[problem]{Name: "text", Doc: "what, where, how often tried, what to do", Get: func(p problem) starlark.Value { return starlark.String(p.Text) }},
	)
}

func (p problem) String() string        { return fmt.Sprintf("problem(%q, %q)", p.Kind, p.Text) }
func (p problem) Type() string          { return "problem" }
func (p problem) Freeze()               {}
func (p problem) Truth() starlark.Bool  { return true }
func (p problem) Hash() (uint32, error) { return lang.HashBytes([]byte(p.Text)), nil }
func (p problem) AttrNames() []string   { return ProblemType.Names }
func (p problem) TypeDoc() lang.TypeDoc { return ProblemType.TypeDoc() }
func (p problem) Schema() string        { return "problem/1" }
func (p problem) Facts() []lang.Fact {
	return []lang.Fact{{Name: "kind", Value: starlark.String(p.Kind)}, {Name: "text", Value: starlark.String(p.Text)}}
}
func (p problem) Attr(name string) (starlark.Value, error) { return ProblemType.Attr(p, name) }

var dumpMethod = lang.Builtin{
	Name:   "dump",
	Params: []lang.Param{{Name: "kind", Kind: lang.KindChoice, Default: `"ibnetdiscover"`, Doc: format.DumpHelp()}},
	Doc: `Returns the fabric as a file's text.
"ibnl" is a dict of texts by file name, which belong beside the file of "topo"; "snapshot" is bytes, for fs.write, with all that is known of the fabric but no tables. Nothing is asked of the fabric.`,
	Example: `
> discover().dump("ibnetdiscover").splitlines()[0]
"#"
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		f, kind := c.Recv.(*Fabric).F, format.Kind(c.Text("kind"))
		if kind == format.KindIBNL {
			return ibnls(f)
		}
		var b bytes.Buffer
		if err := format.Dump(&b, f, kind); err != nil {
			return nil, fmt.Errorf("dump: %w", err)
		}
		if kind == format.KindSnapshot {
			return starlark.Bytes(b.String()), nil
		}
		return starlark.String(b.String()), nil
	}),
}

// ibnls are the texts of ibdm's descriptions of systems, by file name.
func ibnls(f *fabric.Fabric) (starlark.Value, error) {
	files := new(starlark.Dict)
	err := format.WriteIBNLs(f, func(name string) (io.WriteCloser, error) {
		return &dictFile{files: files, name: name}, nil
	})
	return files, err
}

// dictFile becomes an entry of a dict when it is closed.
type dictFile struct {
	bytes.Buffer
	files *starlark.Dict
	name  string
}

func (d *dictFile) Close() error {
	return d.files.SetKey(starlark.String(d.name), starlark.String(d.String()))
}
