package topology

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
)

// Node is the value `node`. Two are equal when they are the same node of the
// same snapshot.
type Node struct{ *fabric.Node }

// NodeOf is the value of n.
func NodeOf(n *fabric.Node) Node { return Node{n} }

var (
	_ starlark.HasAttrs = Node{}
	_ lang.Factual      = Node{}
	_ lang.Documented   = Node{}
)

var NodeType *lang.Type[Node]

func init() {
	NodeType = lang.NewType("node", "A switch, channel adapter (CA) or router of a fabric.",
		lang.Member[Node]{Name: "guid", Doc: "node GUID", Get: func(n Node) starlark.Value { return GUIDValue(n.GUID()) }},
		lang.Member[Node]{Name: "name", Doc: "node description; it may be empty and need not be unique", Get: func(n Node) starlark.Value { return starlark.String(n.Name()) }},
		lang.Member[Node]{Name: "type", Doc: `"switch", "ca" or "router"`, Get: func(n Node) starlark.Value { return starlark.String(n.Node.Type().String()) }},
		lang.Member[Node]{Name: "lid", Doc: "LID of a switch's port 0, else of the first port that has one; 0 if none", Get: func(n Node) starlark.Value { return starlark.MakeInt(int(n.LID())) }},
		lang.Member[Node]{Name: "num_ports", Doc: "number of external ports", Get: func(n Node) starlark.Value { return starlark.MakeInt(n.NumPorts()) }},
		lang.Member[Node]{Name: "ports", Doc: "the ports, by number: ports[3]; iterates over the external ones", Get: func(n Node) starlark.Value { return ports(n) }},
		lang.Member[Node]{Name: "route", Doc: "directed route on which it was found, None of a file's", Get: func(n Node) starlark.Value { return routeValue(n.Route()) }},
		lang.Member[Node]{Name: "info", Doc: "NodeInfo, as read by the sweep", Get: func(n Node) starlark.Value { return encoded(mad.AttrNodeInfo, n.Info()) }},
		lang.Member[Node]{Name: "switch_info", Doc: "SwitchInfo, as read by the sweep; None of others than switches", Get: func(n Node) starlark.Value {
			if si := n.SwitchInfo(); si != nil {
				return encoded(mad.AttrSwitchInfo, si)
			}
			return starlark.None
		}},
	)
}

func (n Node) String() string        { return fmt.Sprintf("node(%q, %s)", n.Name(), n.GUID()) }
func (n Node) Type() string          { return "node" }
func (n Node) Freeze()               {}
func (n Node) Truth() starlark.Bool  { return true }
func (n Node) Hash() (uint32, error) { return HashUint64(uint64(n.GUID())), nil }
func (n Node) AttrNames() []string   { return NodeType.Names }
func (n Node) TypeDoc() lang.TypeDoc { return NodeType.TypeDoc() }
func (n Node) Schema() string        { return "node/1" }

func (n Node) Attr(name string) (starlark.Value, error) { return NodeType.Attr(n, name) }

func (n Node) Facts() []lang.Fact {
	out := make([]lang.Fact, 0, 5)
	for _, name := range []string{"guid", "name", "type", "lid", "num_ports"} {
		v, _ := n.Attr(name)
		out = append(out, lang.Fact{Name: name, Value: v})
	}
	return out
}

// ports is the value `ports`: a node's ports by number. It iterates over the
// external ones, and `in` takes a port.
type ports struct{ *fabric.Node }

var (
	_ starlark.Mapping  = ports{}
	_ starlark.Sequence = ports{}
)

func (p ports) String() string        { return fmt.Sprintf("ports(%q, %d)", p.Name(), p.NumPorts()) }
func (p ports) Type() string          { return "ports" }
func (p ports) Freeze()               {}
func (p ports) Truth() starlark.Bool  { return true }
func (p ports) Hash() (uint32, error) { return HashUint64(uint64(p.GUID())), nil }
func (p ports) Len() int              { return p.NumPorts() }

// Get is both ports[3] and x in ports; the latter takes an error for no.
func (p ports) Get(key starlark.Value) (v starlark.Value, found bool, err error) {
	switch key := key.(type) {
	case Port:
		if key.Node() == p.Node {
			return key, true, nil
		}
		return nil, false, nil
	case starlark.Int:
		n, err := lang.ToInt(key)
		if err == nil {
			if q := p.Port(n); q != nil {
				return Port{q}, true, nil
			}
		}
		return nil, false, NoPort(p.Node, key.String())
	}
	return nil, false, fmt.Errorf("ports are indexed by number: got %s, want int", key.Type())
}

func NoPort(n *fabric.Node, num string) error {
	first := 1
	if n.IsSwitch() {
		first = 0
	}
	return fmt.Errorf("no port %s: %s has ports %d..%d", num, n.Label(), first, n.NumPorts())
}

func (p ports) Iterate() starlark.Iterator { return &portIterator{node: p.Node} }

type portIterator struct {
	node *fabric.Node
	num  int
}

func (it *portIterator) Next(v *starlark.Value) bool {
	it.num++
	p := it.node.Port(it.num)
	if p != nil {
		*v = Port{p}
	}
	return p != nil
}

func (it *portIterator) Done() {}

// Port is the value `port`.
type Port struct{ *fabric.Port }

// PortOf is the value of p.
func PortOf(p *fabric.Port) Port { return Port{p} }

var (
	_ starlark.HasAttrs = Port{}
	_ lang.Factual      = Port{}
	_ lang.Documented   = Port{}
)

var PortType *lang.Type[Port]

func init() {
	PortType = lang.NewType("port", "A port of a node.",
		lang.Member[Port]{Name: "name", Doc: "name of the node and number: leaf-1/3", Get: func(p Port) starlark.Value { return starlark.String(p.Name()) }},
		lang.Member[Port]{Name: "num", Doc: "port number", Get: func(p Port) starlark.Value { return starlark.MakeInt(p.Num()) }},
		lang.Member[Port]{Name: "node", Doc: "the node it is of", Get: func(p Port) starlark.Value { return Node{p.Node()} }},
		lang.Member[Port]{Name: "peer", Doc: "the port at the other end of the cable, None if there is none", Get: func(p Port) starlark.Value {
			if q := p.Peer(); q != nil {
				return Port{q}
			}
			return starlark.None
		}},
		lang.Member[Port]{Name: "guid", Doc: "port GUID; all ports of a switch have port 0's", Get: func(p Port) starlark.Value { return GUIDValue(p.GUID()) }},
		lang.Member[Port]{Name: "lid", Doc: "base LID; all ports of a switch have port 0's; 0 if none", Get: func(p Port) starlark.Value { return starlark.MakeInt(int(p.LID())) }},
		lang.Member[Port]{Name: "lmc", Doc: "how many low bits of the LID it ignores", Get: func(p Port) starlark.Value { return starlark.MakeInt(p.LMC()) }},
		lang.Member[Port]{Name: "state", Doc: `logical state: "active", "down", ...; None if unknown`, Get: func(p Port) starlark.Value { return known(p, p.State()) }},
		lang.Member[Port]{Name: "physical_state", Doc: `state of link training: "link_up", "polling", ...; None if unknown`, Get: func(p Port) starlark.Value { return known(p, p.PhysicalState()) }},
		lang.Member[Port]{Name: "width", Doc: `width in use: "4x"; None while the link is down, or if unknown`, Get: func(p Port) starlark.Value { return whileUp(p, p.Width()) }},
		lang.Member[Port]{Name: "speed", Doc: `speed in use: "HDR"; None while the link is down, or if unknown`, Get: func(p Port) starlark.Value { return whileUp(p, p.Speed()) }},
		lang.Member[Port]{Name: "info", Doc: "PortInfo, as read by the sweep; None if unknown", Get: func(p Port) starlark.Value {
			if i := p.Info(); i != nil {
				return encoded(mad.AttrPortInfo, i)
			}
			return starlark.None
		}},
	)
}

// known is a state's word, None where no PortInfo is known.
func known(p Port, state fmt.Stringer) starlark.Value {
	if p.Info() == nil {
		return starlark.None
	}
	return starlark.String(state.String())
}

// whileUp is a fact of the link in use.
func whileUp(p Port, text string) starlark.Value {
	if p.Info() == nil || p.PhysicalState() != mad.PortPhysicalStateLinkUp || text == "" {
		return starlark.None
	}
	return starlark.String(text)
}

func (p Port) String() string       { return fmt.Sprintf("port(%q, %s)", p.Name(), p.Node().GUID()) }
func (p Port) Type() string         { return "port" }
func (p Port) Freeze()              {}
func (p Port) Truth() starlark.Bool { return true }
func (p Port) Hash() (uint32, error) {
	return HashUint64(uint64(p.Node().GUID()) + uint64(p.Num())), nil
}
func (p Port) AttrNames() []string   { return PortType.Names }
func (p Port) TypeDoc() lang.TypeDoc { return PortType.TypeDoc() }
func (p Port) Schema() string        { return "port/1" }

func (p Port) Attr(name string) (starlark.Value, error) { return PortType.Attr(p, name) }

func (p Port) Facts() []lang.Fact {
	out := []lang.Fact{{Name: "node_guid", Value: GUIDValue(p.Node().GUID())}}
	for _, name := range []string{"name", "num", "guid", "lid", "state", "physical_state", "width", "speed"} {
		v, _ := p.Attr(name)
		out = append(out, lang.Fact{Name: name, Value: v})
	}
	peer := lang.Fact{Name: "peer", Value: starlark.None}
	guid := lang.Fact{Name: "peer_guid", Value: starlark.None}
	num := lang.Fact{Name: "peer_num", Value: starlark.None}
	if q := p.Peer(); q != nil {
		peer.Value, guid.Value, num.Value = starlark.String(q.Name()), GUIDValue(q.Node().GUID()), starlark.MakeInt(q.Num())
	}
	return append(out, peer, guid, num)
}

// Link is the value `link`: a cable. a is the port that comes first.
type Link struct{ A, B *fabric.Port }

var (
	_ starlark.HasAttrs = Link{}
	_ lang.Factual      = Link{}
	_ lang.Documented   = Link{}
)

var LinkType *lang.Type[Link]

func init() {
	LinkType = lang.NewType("link", "A cable between two ports.",
		lang.Member[Link]{Name: "a", Doc: "the port that comes first in the fabric's order", Get: func(l Link) starlark.Value { return Port{l.A} }},
		lang.Member[Link]{Name: "b", Doc: "the port at the other end", Get: func(l Link) starlark.Value { return Port{l.B} }},
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

func GUIDValue(g mad.GUID) starlark.String { return starlark.String(g.String()) }

// encoded makes a record of a decoded attribute.
func encoded(a *mad.Attribute, x interface{ Encode([]byte) }) *records.Record {
	r := records.New(a, nil)
	x.Encode(r.Data)
	return r
}

// HashUint64 mixes the bits of an identifier.
func HashUint64(x uint64) uint32 {
	x *= 0x9e3779b97f4a7c15 // 2^64 over the golden ratio (Knuth, 6.4)
	return uint32(x >> 32)
}
