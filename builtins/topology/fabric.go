package topology

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Fabric is the value `fabric`. Each *fabric.Fabric has only one, so that its lists are
// made only once.
type Fabric struct {
	*fabric.Fabric
	lists lists
}

var _ lang.Factual = (*Fabric)(nil)

// lists are the lists and dicts of attributes, by their names. Audits read them from several
// goroutines.
type lists struct {
	mu sync.Mutex
	by map[string]starlark.Value
}

// NewFabric returns the value of f.
func NewFabric(f *fabric.Fabric) *Fabric {
	return &Fabric{Fabric: f, lists: lists{by: map[string]starlark.Value{}}}
}

// of returns the list or dict of that name, which fill makes when it is first read. It is
// frozen, because all users of the fabric share it.
func (s *lists) of(name string, fill func() starlark.Value) starlark.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.by[name]
	if l == nil {
		l = fill()
		l.Freeze()
		s.by[name] = l
	}
	return l
}

// FabricType declares the attributes of a fabric. Other vocabularies add methods.
var FabricType = newFabricType()

// newFabricType returns FabricType.
func newFabricType() *lang.Type[*Fabric] {
	list := func(name, element, doc string, column bool, fill func(f *fabric.Fabric) []starlark.Value) lang.Member[*Fabric] {
		return lang.Member[*Fabric]{Name: name, Doc: doc, Type: "list of " + element, Column: column, Get: func(v *Fabric) starlark.Value {
			return v.lists.of(name, func() starlark.Value { return starlark.NewList(fill(v.Fabric)) })
		}}
	}
	dict := func(name, doc string, fill func(f *fabric.Fabric) starlark.Value) lang.Member[*Fabric] {
		return lang.Member[*Fabric]{Name: name, Doc: doc, Type: "dict", Get: func(v *Fabric) starlark.Value {
			return v.lists.of(name, func() starlark.Value { return fill(v.Fabric) })
		}}
	}
	return lang.NewType("fabric", "An immutable snapshot of a subnet, from discover() or from a file.",
		lang.Member[*Fabric]{Name: "complete", Column: true, Doc: "whether all requests were answered", Get: func(v *Fabric) starlark.Value {
			return starlark.Bool(v.Complete())
		}},
		list("nodes", "node", "all nodes: switches, then CAs, then routers, by GUID", true, func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.Nodes()) }),
		list("alike_nodes", "list of node", "the nodes in groups: those of a group are of the same kind, model and revision", false, alikeNodesOf),
		list("switches", "node", "the switches, by GUID", false, func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.OfType(mad.NodeTypeSwitch)) }),
		list("cas", "node", "the channel adapters, by GUID", false, func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.OfType(mad.NodeTypeCA)) }),
		list("routers", "node", "the routers, by GUID", false, func(f *fabric.Fabric) []starlark.Value { return nodesOf(f.OfType(mad.NodeTypeRouter)) }),
		list("ports", "port", "all external ports, by node and number", false, portsOf),
		list("end_ports", "port", "the ports with their own LID and known PortInfo: port 0 of switches, and the ports with a cable of other nodes", false, endPortsOf),
		list("alike_end_ports", "list of port", "the end ports in groups: those of a group are of nodes of the same kind, model and revision, and have the same PortInfo, besides LID, M_Key and counters", false, alikeEndPortsOf),
		list("unlinked_ports", "port", "the external ports without a cable, by node and number", false, unlinkedPortsOf),
		list("virtual_ports", "virtual_port", "the virtual ports of adapters, by port, as far as discover(extended=True) has read them", false, virtualPortsOf),
		list("links", "link", "the cables, by first port", true, linksOf),
		list("alike_links", "list of link", "the cables in groups: those of a group have ends of the same kinds and models, with the same states, widths, speeds, MTUs, lanes and time limits", false, alikeLinksOf),
		list("loops", "link", "the cables with both ends in one node", false, loopsOf),
		list("trunks", "list of link", "the cables between two switches that have several, by pair of switches", false, trunksOf),
		dict("neighbours", "the switches next to each switch: a dict of switch to a dict of switch to the number of cables between them", neighboursOf),
		dict("leaves", "the switches with hosts, gateways or routers: a dict of switch to the list of these nodes, one for each cable", leavesOf),
		list("parts", "list of node", "the nodes of each part with links that is not connected to the others, the largest first; a sweep has one", false, func(f *fabric.Fabric) []starlark.Value {
			var out []starlark.Value
			for _, p := range f.Parts() {
				out = append(out, lang.List(p.Nodes, func(n *fabric.Node) starlark.Value { return Node{n} }))
			}
			return out
		}),
		list("problems", "problem", "problems of the fabric or of its discovery: kind and text", true, problemsOf),
		lang.Member[*Fabric]{Name: "plan", Type: "cable_plan", Doc: "what a plan of cables states besides nodes and links; None if the fabric was not read from a plan", Get: func(v *Fabric) starlark.Value { return planOf(v.Fabric) }},
		lang.Member[*Fabric]{Name: "sections", Type: "dict", Doc: "what came with a file of ibdiagnet as text, by section: its lines, dicts of column to text", Get: func(v *Fabric) starlark.Value { return sectionsOf(v.Fabric) }},
		lang.Member[*Fabric]{Method: &nodeMethod},
		lang.Member[*Fabric]{Method: &dumpMethod},
		lang.Member[*Fabric]{Method: &diffMethod},
	).AtVersion(2)
}

func (v *Fabric) Type() string          { return "fabric" }
func (v *Fabric) Freeze()               {}
func (v *Fabric) Truth() starlark.Bool  { return true }
func (v *Fabric) Hash() (uint32, error) { return lang.HashBytes([]byte(v.String())), nil }
func (v *Fabric) AttrNames() []string   { return FabricType.Names }
func (v *Fabric) TypeDoc() lang.TypeDoc { return FabricType.TypeDoc() }
func (v *Fabric) Schema() string        { return FabricType.Schema() }
func (v *Fabric) Facts() []lang.Fact    { return FabricType.Facts(v) }
func (v *Fabric) Display() string       { return v.String() + "\n" }
func (v *Fabric) Attr(name string) (starlark.Value, error) {
	return FabricType.Attr(v, name)
}

// sectionsOf returns the sections of a file that are kept as text.
func sectionsOf(f *fabric.Fabric) starlark.Value {
	all := new(starlark.Dict)
	for _, s := range f.Sections() {
		rows := make([]starlark.Value, len(s.Rows))
		for i, row := range s.Rows {
			line := starlark.NewDict(len(row))
			for k, text := range row {
				line.SetKey(starlark.String(s.Columns[k]), starlark.String(text))
			}
			rows[i] = line
		}
		all.SetKey(starlark.String(s.Name), starlark.NewList(rows))
	}
	all.Freeze()
	return all
}

// nodesOf returns the values of nodes.
func nodesOf(nodes []fabric.Node) []starlark.Value {
	out := make([]starlark.Value, len(nodes))
	for i := range nodes {
		out[i] = Node{&nodes[i]}
	}
	return out
}

// portsOf returns all external ports.
func portsOf(f *fabric.Fabric) []starlark.Value {
	var out []starlark.Value
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Num() > 0 {
			out = append(out, Port{p})
		}
	}
	return out
}

// endPortsOf returns the ports that have their own LID.
func endPortsOf(f *fabric.Fabric) []starlark.Value { return portValues(f.EndPorts()) }

// portValues returns the values of ports.
func portValues(ports []*fabric.Port) []starlark.Value {
	out := make([]starlark.Value, len(ports))
	for i, p := range ports {
		out[i] = Port{p}
	}
	return out
}

// alikeEndPortsOf returns the end ports in groups.
func alikeEndPortsOf(f *fabric.Fabric) []starlark.Value {
	groups := f.AlikeEndPorts()
	out := make([]starlark.Value, len(groups))
	for i, ports := range groups {
		out[i] = starlark.NewList(portValues(ports))
	}
	return out
}

// alikeNodesOf returns the nodes in groups.
func alikeNodesOf(f *fabric.Fabric) []starlark.Value {
	groups := f.AlikeNodes()
	out := make([]starlark.Value, len(groups))
	for i, nodes := range groups {
		out[i] = lang.List(nodes, func(n *fabric.Node) starlark.Value { return Node{n} })
	}
	return out
}

// linksOf returns the links, each once, from its first port.
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

// loopsOf returns the links of nodes with themselves.
func loopsOf(f *fabric.Fabric) []starlark.Value {
	return slices.DeleteFunc(linksOf(f), func(v starlark.Value) bool { return !v.(Link).A.Node().Same(v.(Link).B.Node()) })
}

// unlinkedPortsOf returns the external ports without a link.
func unlinkedPortsOf(f *fabric.Fabric) []starlark.Value {
	var out []starlark.Value
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Num() > 0 && p.Peer() == nil {
			out = append(out, Port{p})
		}
	}
	return out
}

// alikeLinksOf returns the links in groups.
func alikeLinksOf(f *fabric.Fabric) []starlark.Value {
	groups := f.AlikeLinks()
	out := make([]starlark.Value, len(groups))
	for i, ports := range groups {
		out[i] = lang.List(ports, func(p *fabric.Port) starlark.Value { return Link{p, p.Peer()} })
	}
	return out
}

// problemsOf returns the values of the problems.
func problemsOf(f *fabric.Fabric) []starlark.Value {
	var out []starlark.Value
	for _, p := range f.Problems() {
		out = append(out, problem{p})
	}
	return out
}

// problem is the value `problem`.
type problem struct{ fabric.Problem }

// ProblemType declares the attributes of a problem.
var ProblemType *lang.Type[problem]

func init() {
	ProblemType = lang.NewType("problem", "A problem of a fabric, or of its discovery.",
		lang.Member[problem]{Name: "kind", Type: "string", Column: true, Doc: `"timed out", "duplicate guid", ...`, Get: func(p problem) starlark.Value { return starlark.String(p.Kind) }},
		lang.Member[problem]{Name: "text", Type: "string", Column: true, Doc: "the problem, its place, the number of attempts, and the remedy", Get: func(p problem) starlark.Value { return starlark.String(p.Text) }},
	).Important("kind", "text")
}

func (p problem) String() string                           { return fmt.Sprintf("problem(%q, %q)", p.Kind, p.Text) }
func (p problem) Type() string                             { return "problem" }
func (p problem) Freeze()                                  {}
func (p problem) Truth() starlark.Bool                     { return true }
func (p problem) Hash() (uint32, error)                    { return lang.HashBytes([]byte(p.Text)), nil }
func (p problem) AttrNames() []string                      { return ProblemType.Names }
func (p problem) TypeDoc() lang.TypeDoc                    { return ProblemType.TypeDoc() }
func (p problem) Schema() string                           { return ProblemType.Schema() }
func (p problem) Facts() []lang.Fact                       { return ProblemType.Facts(p) }
func (p problem) Attr(name string) (starlark.Value, error) { return ProblemType.Attr(p, name) }

// nodeMethod is fabric.node(), which finds a node.
var nodeMethod = lang.Builtin{
	Name:    "node",
	Returns: "node",
	Params:  []lang.Param{{Name: "target", Kind: KindTarget, Doc: "name, GUID, GID or LID of the node or of one of its ports; or a node or port of another fabric"}},
	Doc: `Returns the node of this fabric with a name, GUID, GID or LID.
It fails if no node or more than one node matches.`,
	Example: `
> f = discover()
> f.node("leaf-1").lid
1
> f.node(13) == f.cas[0], f.node(f.cas[0].guid) == f.cas[0]
(True, True)
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Target starlark.Value }) (starlark.Value, error) {
		t := FindValue(c.Recv.(*Fabric).Fabric, a.Target)
		if t.Err != nil {
			return nil, lang.ParamError("target", "%w", t.Err)
		}
		return Node{t.Node}, nil
	}),
}

// FindValue returns the node or port of f that v names: by name, GUID, GID or LID, or as
// a node or port of another fabric. A LID names the node.
func FindValue(f *fabric.Fabric, v starlark.Value) Target {
	switch v := v.(type) {
	case starlark.Int:
		lid, err := lang.ToInt(v)
		if err == nil && lid > 0 && lid <= int(mad.MaxUnicastLID) {
			if p := f.PortByLID(mad.LID(lid)); p != nil {
				return NodeTarget(p.Node())
			}
		}
		return missingTarget(v.String(), "the fabric has no LID %s%s", v, guidAdvice(v))
	case starlark.String:
		return FindIn(f, string(v))
	case Node:
		return sameNodeIn(f, v.Node)
	case Port:
		t := sameNodeIn(f, v.Node())
		if t.Err == nil && t.Node.Port(v.Num()) != nil {
			t = portTarget(t.Node.Port(v.Num()))
		}
		return t
	}
	return missingTarget(v.Type(), "got %s, want a name, a GUID, a GID, a LID, a node or a port", v.Type())
}

// sameNodeIn returns the node n of another snapshot in f.
func sameNodeIn(f *fabric.Fabric, n *fabric.Node) Target {
	if n.Fabric() == f {
		return NodeTarget(n)
	}
	for _, m := range f.NodeByGUID(n.GUID()) {
		if m.Same(n) {
			return NodeTarget(m)
		}
	}
	return missingTarget(n.Label(), "the fabric has no node %s", n.Label())
}

// dumpMethod is fabric.dump().
var dumpMethod = lang.Builtin{
	Name: "dump",
	Params: []lang.Param{
		{Name: "kind", Kind: lang.KindChoice, Default: `"ibnetdiscover"`, Doc: format.DumpHelp()},
		{Name: "chassis", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: `of "ibnetdiscover": nodes by chassis, those of a director by slot (ibnetdiscover -g)`},
	},
	Doc: `Returns the fabric in a file format.
"ibnl" is a dict of file contents by file name, for the directory of the "topo" file; "snapshot" is bytes, for fs.write, with everything known about the fabric and its tables; all others are strings. No requests are sent.`,
	Example: `
> discover().dump("ibnetdiscover").splitlines()[0]
"#"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Kind    string
		Chassis bool
	}) (starlark.Value, error) {
		f, kind := c.Recv.(*Fabric).Fabric, format.FormatName(a.Kind)
		if kind == format.KindIBNL && !a.Chassis {
			return ibnls(f)
		}
		var b bytes.Buffer
		var err error
		switch {
		case !a.Chassis:
			err = format.Dump(&b, f, kind)
		case kind == format.KindIbnetdiscover:
			err = format.WriteChassis(&b, f)
		default:
			return nil, lang.ParamError("chassis", "only %q can be grouped, not %q", format.KindIbnetdiscover, kind)
		}
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		if kind == format.KindSnapshot {
			return starlark.Bytes(b.String()), nil
		}
		return starlark.String(b.String()), nil
	}),
}

// ibnls returns ibdm's descriptions of systems, by file name.
func ibnls(f *fabric.Fabric) (starlark.Value, error) {
	files := new(starlark.Dict)
	err := format.WriteIBNLs(f, func(name string) (io.WriteCloser, error) {
		return &dictFile{files: files, name: name}, nil
	})
	return files, err
}

// dictFile is a file that becomes an entry of a dict when it is closed.
type dictFile struct {
	bytes.Buffer
	files *starlark.Dict
	name  string
}

func (d *dictFile) Close() error {
	return d.files.SetKey(starlark.String(d.name), starlark.String(d.String()))
}

// SaveAs writes the fabric as a snapshot.
func (f *Fabric) SaveAs(suffix string) func(io.Writer) error {
	if suffix != "fab" {
		return nil
	}
	return func(w io.Writer) error { return format.WriteSnapshot(w, f.Fabric) }
}
