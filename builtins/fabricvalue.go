package builtins

import (
	"bytes"
	"fmt"
	"io"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// fabricValue is the value `fabric`. There is one for each *fabric.Fabric, so
// that its lists are made once.
type fabricValue struct {
	f     *fabric.Fabric
	lists map[string]*starlark.List
}

var (
	_ starlark.HasAttrs = (*fabricValue)(nil)
	_ factual           = (*fabricValue)(nil)
	_ documented        = (*fabricValue)(nil)
)

func newFabric(f *fabric.Fabric) *fabricValue {
	return &fabricValue{f: f, lists: map[string]*starlark.List{}}
}

var fabricType = newFabricType()

func newFabricType() *valueType[*fabricValue] {
	list := func(name, doc string, fill func(f *fabric.Fabric) []starlark.Value) member[*fabricValue] {
		return member[*fabricValue]{name: name, doc: doc, get: func(v *fabricValue) starlark.Value {
			l := v.lists[name]
			if l == nil {
				l = starlark.NewList(fill(v.f))
				l.Freeze()
				v.lists[name] = l
			}
			return l
		}}
	}
	return newType("fabric", "A snapshot of a subnet, which never changes: what discover() found or a file says.",
		list("nodes", "all nodes: switches, then CAs, then routers, by GUID", func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.Nodes()) }),
		list("switches", "the switches, by GUID", func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.OfType(mad.NodeTypeSwitch)) }),
		list("cas", "the channel adapters, by GUID", func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.OfType(mad.NodeTypeCA)) }),
		list("routers", "the routers, by GUID", func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.OfType(mad.NodeTypeRouter)) }),
		list("ports", "all external ports, by node and number", portsOf),
		list("links", "the cables, by their first port", linksOf),
		member[*fabricValue]{name: "complete", doc: "nothing that was asked for is missing", get: func(v *fabricValue) starlark.Value {
			return starlark.Bool(v.f.Complete())
		}},
		list("problems", "what is wrong with the fabric or with the view of it: kind and text", problemsOf),
		member[*fabricValue]{method: &dumpMethod},
	)
}

func (v *fabricValue) String() string        { return v.f.String() }
func (v *fabricValue) Type() string          { return "fabric" }
func (v *fabricValue) Freeze()               {}
func (v *fabricValue) Truth() starlark.Bool  { return true }
func (v *fabricValue) Hash() (uint32, error) { return hashBytes([]byte(v.f.String())), nil }
func (v *fabricValue) AttrNames() []string   { return fabricType.names }
func (v *fabricValue) typeDoc() typeDoc      { return fabricType.typeDoc() }
func (v *fabricValue) schema() string        { return "fabric/1" }
func (v *fabricValue) display() string       { return v.f.String() + "\n" }
func (v *fabricValue) Attr(name string) (starlark.Value, error) {
	return fabricType.attr(v, name)
}

func (v *fabricValue) facts() []fact {
	var out []fact
	for _, name := range []string{"complete", "nodes", "links", "problems"} {
		x, _ := v.Attr(name)
		out = append(out, fact{name: name, value: x})
	}
	return out
}

func nodesOf(nodes []fabric.Node) []starlark.Value {
	out := make([]starlark.Value, len(nodes))
	for i := range nodes {
		out[i] = node{&nodes[i]}
	}
	return out
}

func portsOf(f *fabric.Fabric) []starlark.Value {
	var out []starlark.Value
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Num() > 0 {
			out = append(out, port{p})
		}
	}
	return out
}

func linksOf(f *fabric.Fabric) []starlark.Value {
	out := make([]starlark.Value, 0, f.Links())
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if q := p.Peer(); q != nil && q.ID() >= p.ID() {
			out = append(out, link{p, q})
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

var problemType *valueType[problem]

func init() {
	problemType = newType("problem", "Something wrong with a fabric, or with the view of it.",
		member[problem]{name: "kind", doc: `"timed out", "duplicate guid", ...`, get: func(p problem) starlark.Value { return starlark.String(p.Kind) }},
		member[problem]{name: "text", doc: "what, where, how often tried, what to do", get: func(p problem) starlark.Value { return starlark.String(p.Text) }},
	)
}

func (p problem) String() string        { return fmt.Sprintf("problem(%q, %q)", p.Kind, p.Text) }
func (p problem) Type() string          { return "problem" }
func (p problem) Freeze()               {}
func (p problem) Truth() starlark.Bool  { return true }
func (p problem) Hash() (uint32, error) { return hashBytes([]byte(p.Text)), nil }
func (p problem) AttrNames() []string   { return problemType.names }
func (p problem) typeDoc() typeDoc      { return problemType.typeDoc() }
func (p problem) schema() string        { return "problem/1" }
func (p problem) facts() []fact {
	return []fact{{name: "kind", value: starlark.String(p.Kind)}, {name: "text", value: starlark.String(p.Text)}}
}
func (p problem) Attr(name string) (starlark.Value, error) { return problemType.attr(p, name) }

var dumpMethod = Builtin{
	Name:   "dump",
	Params: []Param{{Name: "kind", Kind: KindChoice, Default: `"ibnetdiscover"`, Doc: format.DumpHelp()}},
	Doc: `Returns the fabric as a file's text.
"ibnl" is a dict of texts by file name, which belong beside the file of "topo"; "snapshot" is bytes, for fs.write, with all that is known of the fabric but no tables. Nothing is asked of the fabric.`,
	Example: `
> discover().dump("ibnetdiscover").splitlines()[0]
"#"
`,
	fn: func(c *call) (starlark.Value, error) {
		f, kind := c.recv.(*fabricValue).f, format.Kind(c.Text("kind"))
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
	},
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
