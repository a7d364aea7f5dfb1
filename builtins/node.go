package builtins

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/mad"
)

// node is the value `node`. Two are equal when they are the same node of the
// same snapshot.
type node struct{ *fabric.Node }

var (
	_ starlark.HasAttrs = node{}
	_ factual           = node{}
	_ documented        = node{}
)

var nodeType *valueType[node]

func init() {
	nodeType = newType("node", "A switch, channel adapter (CA) or router of a fabric.",
		member[node]{name: "guid", doc: "node GUID", get: func(n node) starlark.Value { return guidValue(n.GUID()) }},
		member[node]{name: "name", doc: "node description; it may be empty and need not be unique", get: func(n node) starlark.Value { return starlark.String(n.Name()) }},
		member[node]{name: "type", doc: `"switch", "ca" or "router"`, get: func(n node) starlark.Value { return starlark.String(n.Node.Type().String()) }},
		member[node]{name: "lid", doc: "LID of a switch's port 0, else of the first port that has one; 0 if none", get: func(n node) starlark.Value { return starlark.MakeInt(int(n.LID())) }},
		member[node]{name: "num_ports", doc: "number of external ports", get: func(n node) starlark.Value { return starlark.MakeInt(n.NumPorts()) }},
		member[node]{name: "ports", doc: "the ports, by number: ports[3]; iterates over the external ones", get: func(n node) starlark.Value { return ports(n) }},
		member[node]{name: "route", doc: "directed route on which it was found, None of a file's", get: func(n node) starlark.Value { return routeValue(n.Route()) }},
		member[node]{name: "info", doc: "NodeInfo, as read by the sweep", get: func(n node) starlark.Value { return encoded(mad.AttrNodeInfo, n.Info()) }},
		member[node]{name: "switch_info", doc: "SwitchInfo, as read by the sweep; None of others than switches", get: func(n node) starlark.Value {
			if si := n.SwitchInfo(); si != nil {
				return encoded(mad.AttrSwitchInfo, si)
			}
			return starlark.None
		}},
	)
}

func (n node) String() string        { return fmt.Sprintf("node(%q, %s)", n.Name(), n.GUID()) }
func (n node) Type() string          { return "node" }
func (n node) Freeze()               {}
func (n node) Truth() starlark.Bool  { return true }
func (n node) Hash() (uint32, error) { return hashUint64(uint64(n.GUID())), nil }
func (n node) AttrNames() []string   { return nodeType.names }
func (n node) typeDoc() typeDoc      { return nodeType.typeDoc() }
func (n node) schema() string        { return "node/1" }

func (n node) Attr(name string) (starlark.Value, error) { return nodeType.attr(n, name) }

func (n node) facts() []fact {
	out := make([]fact, 0, 5)
	for _, name := range []string{"guid", "name", "type", "lid", "num_ports"} {
		v, _ := n.Attr(name)
		out = append(out, fact{name: name, value: v})
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
func (p ports) Hash() (uint32, error) { return hashUint64(uint64(p.GUID())), nil }
func (p ports) Len() int              { return p.NumPorts() }

// Get is both ports[3] and x in ports; the latter takes an error for no.
func (p ports) Get(key starlark.Value) (v starlark.Value, found bool, err error) {
	switch key := key.(type) {
	case port:
		if key.Node() == p.Node {
			return key, true, nil
		}
		return nil, false, nil
	case starlark.Int:
		n, err := toInt(key)
		if err == nil {
			if q := p.Port(n); q != nil {
				return port{q}, true, nil
			}
		}
		return nil, false, noPort(p.Node, key.String())
	}
	return nil, false, fmt.Errorf("ports are indexed by number: got %s, want int", key.Type())
}

func noPort(n *fabric.Node, num string) error {
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
		*v = port{p}
	}
	return p != nil
}

func (it *portIterator) Done() {}

// port is the value `port`.
type port struct{ *fabric.Port }

var (
	_ starlark.HasAttrs = port{}
	_ factual           = port{}
	_ documented        = port{}
)

var portType *valueType[port]

func init() {
	portType = newType("port", "A port of a node.",
		member[port]{name: "name", doc: "name of the node and number: leaf-1/3", get: func(p port) starlark.Value { return starlark.String(p.Name()) }},
		member[port]{name: "num", doc: "port number", get: func(p port) starlark.Value { return starlark.MakeInt(p.Num()) }},
		member[port]{name: "node", doc: "the node it is of", get: func(p port) starlark.Value { return node{p.Node()} }},
		member[port]{name: "peer", doc: "the port at the other end of the cable, None if there is none", get: func(p port) starlark.Value {
			if q := p.Peer(); q != nil {
				return port{q}
			}
			return starlark.None
		}},
		member[port]{name: "guid", doc: "port GUID; all ports of a switch have port 0's", get: func(p port) starlark.Value { return guidValue(p.GUID()) }},
		member[port]{name: "lid", doc: "base LID; all ports of a switch have port 0's; 0 if none", get: func(p port) starlark.Value { return starlark.MakeInt(int(p.LID())) }},
		member[port]{name: "lmc", doc: "how many low bits of the LID it ignores", get: func(p port) starlark.Value { return starlark.MakeInt(p.LMC()) }},
		member[port]{name: "state", doc: `logical state: "active", "down", ...; None if unknown`, get: func(p port) starlark.Value { return known(p, p.State()) }},
		member[port]{name: "physical_state", doc: `state of link training: "link_up", "polling", ...; None if unknown`, get: func(p port) starlark.Value { return known(p, p.PhysicalState()) }},
		member[port]{name: "width", doc: `width in use: "4x"; None while the link is down, or if unknown`, get: func(p port) starlark.Value { return whileUp(p, p.Width()) }},
		member[port]{name: "speed", doc: `speed in use: "HDR"; None while the link is down, or if unknown`, get: func(p port) starlark.Value { return whileUp(p, p.Speed()) }},
		member[port]{name: "info", doc: "PortInfo, as read by the sweep; None if unknown", get: func(p port) starlark.Value {
			if i := p.Info(); i != nil {
				return encoded(mad.AttrPortInfo, i)
			}
			return starlark.None
		}},
	)
}

// known is a state's word, None where no PortInfo is known.
func known(p port, state fmt.Stringer) starlark.Value {
	if p.Info() == nil {
		return starlark.None
	}
	return starlark.String(state.String())
}

// whileUp is a fact of the link in use.
func whileUp(p port, text string) starlark.Value {
	if p.Info() == nil || p.PhysicalState() != mad.PortPhysicalStateLinkUp || text == "" {
		return starlark.None
	}
	return starlark.String(text)
}

func (p port) String() string       { return fmt.Sprintf("port(%q, %s)", p.Name(), p.Node().GUID()) }
func (p port) Type() string         { return "port" }
func (p port) Freeze()              {}
func (p port) Truth() starlark.Bool { return true }
func (p port) Hash() (uint32, error) {
	return hashUint64(uint64(p.Node().GUID()) + uint64(p.Num())), nil
}
func (p port) AttrNames() []string { return portType.names }
func (p port) typeDoc() typeDoc    { return portType.typeDoc() }
func (p port) schema() string      { return "port/1" }

func (p port) Attr(name string) (starlark.Value, error) { return portType.attr(p, name) }

func (p port) facts() []fact {
	out := []fact{{name: "node_guid", value: guidValue(p.Node().GUID())}}
	for _, name := range []string{"name", "num", "guid", "lid", "state", "physical_state", "width", "speed"} {
		v, _ := p.Attr(name)
		out = append(out, fact{name: name, value: v})
	}
	peer := fact{name: "peer", value: starlark.None}
	guid := fact{name: "peer_guid", value: starlark.None}
	num := fact{name: "peer_num", value: starlark.None}
	if q := p.Peer(); q != nil {
		peer.value, guid.value, num.value = starlark.String(q.Name()), guidValue(q.Node().GUID()), starlark.MakeInt(q.Num())
	}
	return append(out, peer, guid, num)
}

// link is the value `link`: a cable. a is the port that comes first.
type link struct{ a, b *fabric.Port }

var (
	_ starlark.HasAttrs = link{}
	_ factual           = link{}
	_ documented        = link{}
)

var linkType *valueType[link]

func init() {
	linkType = newType("link", "A cable between two ports.",
		member[link]{name: "a", doc: "the port that comes first in the fabric's order", get: func(l link) starlark.Value { return port{l.a} }},
		member[link]{name: "b", doc: "the port at the other end", get: func(l link) starlark.Value { return port{l.b} }},
	)
}

func (l link) String() string        { return fmt.Sprintf("link(%q, %q)", l.a.Name(), l.b.Name()) }
func (l link) Type() string          { return "link" }
func (l link) Freeze()               {}
func (l link) Truth() starlark.Bool  { return true }
func (l link) Hash() (uint32, error) { return port{l.a}.Hash() }
func (l link) AttrNames() []string   { return linkType.names }
func (l link) typeDoc() typeDoc      { return linkType.typeDoc() }
func (l link) schema() string        { return "link/1" }

func (l link) Attr(name string) (starlark.Value, error) { return linkType.attr(l, name) }

func (l link) facts() []fact {
	out := []fact{
		{name: "a", value: starlark.String(l.a.Name())},
		{name: "a_guid", value: guidValue(l.a.Node().GUID())},
		{name: "a_num", value: starlark.MakeInt(l.a.Num())},
		{name: "b", value: starlark.String(l.b.Name())},
		{name: "b_guid", value: guidValue(l.b.Node().GUID())},
		{name: "b_num", value: starlark.MakeInt(l.b.Num())},
	}
	for _, name := range []string{"state", "width", "speed"} {
		v, _ := port{l.a}.Attr(name)
		out = append(out, fact{name: name, value: v})
	}
	return out
}

func guidValue(g mad.GUID) starlark.String { return starlark.String(g.String()) }

// encoded makes a record of a decoded attribute.
func encoded(a *mad.Attribute, x interface{ Encode([]byte) }) *record {
	r := newRecord(a, nil)
	x.Encode(r.data)
	return r
}

// hashUint64 mixes the bits of an identifier.
func hashUint64(x uint64) uint32 {
	x *= 0x9e3779b97f4a7c15 // 2^64 over the golden ratio (Knuth, 6.4)
	return uint32(x >> 32)
}
