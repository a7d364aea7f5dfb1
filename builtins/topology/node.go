package topology

import (
	"fmt"
	"sync/atomic"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
)

// Node is the value `node`. Two are equal if they stand for one node, also in different
// snapshots.
type Node struct{ *fabric.Node }

// NodeOf returns the value of n.
func NodeOf(n *fabric.Node) Node { return Node{n} }

var (
	_ starlark.Comparable = Node{}
	_ lang.Factual        = Node{}
	_ lang.Named          = Node{}
)

// NodeType declares the attributes of a node.
var NodeType *lang.Type[Node]

func init() {
	NodeType = lang.NewType("node", "A switch, channel adapter (CA) or router of a fabric. Nodes of two fabrics are equal if their GUIDs are equal.", append([]lang.Member[Node]{
		lang.Member[Node]{Name: "name", Type: "string", Column: true, Doc: "node description; it may be empty and need not be unique", Get: func(n Node) starlark.Value { return starlark.String(n.Name()) }},
		lang.Member[Node]{Name: "type", Type: "string", Column: true, Doc: `"switch", "ca" or "router"`, Words: records.WordsOf(mad.WordsNodeType), Get: func(n Node) starlark.Value { return starlark.String(n.Node.Type().String()) }},
		lang.Member[Node]{Name: "kind", Type: "string", Doc: `"switch", "router", or of a CA "host", "gateway" (to another network), "aggregation_node" (inside a switch, for SHARP); by device and description`, Words: fabric.NodeKinds, Get: func(n Node) starlark.Value { return starlark.String(n.Kind().String()) }},
		lang.Member[Node]{Name: "unidentified", Type: "string", Doc: `why the name identifies no node, in words: it is a placeholder such as "localhost" or the model; None if it is not`, Get: func(n Node) starlark.Value { return lang.TextOrNone(fabric.Unidentified(n.Name())) }},
		lang.Member[Node]{Name: "lid", Type: "int", Column: true, Doc: "LID of port 0 of a switch, else of the first port with a LID; 0 if none", Get: func(n Node) starlark.Value { return starlark.MakeInt(int(n.LID())) }},
		lang.Member[Node]{Name: "num_ports", Type: "int", Column: true, Doc: "number of external ports", Get: func(n Node) starlark.Value { return starlark.MakeInt(n.NumPorts()) }},
		lang.Member[Node]{Name: "guid", Type: "string", Column: true, Doc: "node GUID", Get: func(n Node) starlark.Value { return GUIDValue(n.GUID()) }},
		lang.Member[Node]{Name: "ports", Type: "ports", Doc: "the ports, by number: ports[3], ports[3:6]; iterates over the external ones", Get: func(n Node) starlark.Value { return ports(n) }},
		lang.Member[Node]{Name: "route", Type: "route", Doc: "directed route on which it was found; None in a fabric from a file", Get: func(n Node) starlark.Value { return routeValue(n.Route()) }},
		lang.Member[Node]{Name: "info", Type: "node_info", Doc: "NodeInfo, as read by the sweep", Get: func(n Node) starlark.Value {
			return cachedRecord(n.Fabric(), mad.AttrNodeInfo, n.ID(), func() *records.Record {
				return encodedRecord(mad.AttrNodeInfo, n.Info(), n.Node, n.LID(), NoPortGiven)
			})
		}},
		lang.Member[Node]{Name: "switch_info", Type: "switch_info", Doc: "SwitchInfo, as read by the sweep; None if it is not a switch", Get: func(n Node) starlark.Value {
			if si := n.SwitchInfo(); si != nil {
				return encodedRecord(mad.AttrSwitchInfo, si, n.Node, n.LID(), NoPortGiven)
			}
			return starlark.None
		}},
		lang.Member[Node]{Name: "place", Type: "place", Doc: "hall, row, rack and unit by the plan that the fabric was read from; None if unknown", Get: func(n Node) starlark.Value { return placeOf(n.Place()) }},
	}, routerMembers()...)...).Important("name", "type", "lid", "guid")
}

func (n Node) String() string        { return fmt.Sprintf("node(%q, %s)", n.Name(), n.GUID()) }
func (n Node) Type() string          { return "node" }
func (n Node) Freeze()               {}
func (n Node) Truth() starlark.Bool  { return true }
func (n Node) Hash() (uint32, error) { return HashUint64(uint64(n.GUID())), nil }
func (n Node) AttrNames() []string   { return NodeType.Names }
func (n Node) TypeDoc() lang.TypeDoc { return NodeType.TypeDoc() }
func (n Node) Schema() string        { return NodeType.Schema() }

func (n Node) Facts() []lang.Fact { return NodeType.Facts(n) }

// CompareSameType compares GUIDs; Hash depends only on the GUID, so equal nodes have
// equal hashes.
func (n Node) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	return records.CompareEqual(op, n, n.Same(y.(Node).Node))
}

func (n Node) Attr(name string) (starlark.Value, error) { return NodeType.Attr(n, name) }

// routerMembers are the attributes of a node that is a router.
func routerMembers() []lang.Member[Node] {
	table := func(name, typ, doc string, rows func(t *fabric.RouterTables) []starlark.Value) lang.Member[Node] {
		return lang.Member[Node]{Name: name, Type: "list of " + typ, Doc: doc, Get: func(n Node) starlark.Value {
			if t := n.Router(); t != nil {
				return starlark.NewList(rows(t))
			}
			return starlark.None
		}}
	}
	return []lang.Member[Node]{
		{Name: "router_info", Type: "router_info", Doc: "RouterInfo of a router, with its ranges of LIDs (FLIDs); None if discover() has not read it (extended=True)", Get: func(n Node) starlark.Value {
			if t := n.Router(); t != nil {
				return records.Encoded(mad.AttrRouterInfo, &t.Info)
			}
			return starlark.None
		}},
		table("next_hops", "next_hop", "the subnets that a router leads to; None if unknown", func(t *fabric.RouterTables) (list []starlark.Value) {
			for i := range t.NextHops {
				list = append(list, records.Encoded(mad.LayoutNextHop, &t.NextHops[i]))
			}
			return list
		}),
		table("adjacent_subnets", "adj_subnet", "the subnets that a router is in; None if unknown", func(t *fabric.RouterTables) (list []starlark.Value) {
			for i := range t.Adjacent {
				list = append(list, records.Encoded(mad.LayoutAdjSubnet, &t.Adjacent[i]))
			}
			return list
		}),
		table("adjacent_lids", "adj_subnet_lids", "the ranges of LIDs of routers (FLIDs) of adjacent subnets; None if unknown", func(t *fabric.RouterTables) (list []starlark.Value) {
			for i := range t.LIDs {
				list = append(list, records.Encoded(mad.LayoutAdjSubnetLIDs, &t.LIDs[i]))
			}
			return list
		}),
	}
}

// ports is the value `ports`: a node's ports by number. It iterates over the external
// ports, and `in` takes a port.
type ports struct{ *fabric.Node }

var (
	_ starlark.Mapping   = ports{}
	_ starlark.Sequence  = ports{}
	_ starlark.Sliceable = ports{}
	_ starlark.HasAttrs  = ports{}
)

func (p ports) String() string        { return fmt.Sprintf("ports(%q, %d)", p.Name(), p.NumPorts()) }
func (p ports) Type() string          { return "ports" }
func (p ports) Freeze()               {}
func (p ports) Truth() starlark.Bool  { return true }
func (p ports) Hash() (uint32, error) { return HashUint64(uint64(p.GUID())), nil }
func (p ports) Len() int              { return p.NumPorts() }

// AttrNames and Attr give ports the methods of lists of rows.
func (p ports) AttrNames() []string { return lang.RowAttrNames() }

func (p ports) Attr(name string) (starlark.Value, error) {
	if m := lang.RowAttr(p, name); m != nil {
		return m, nil
	}
	return nil, nil
}

// Get implements both ports[3] and `x in ports`; in the latter an error means False.
func (p ports) Get(key starlark.Value) (v starlark.Value, found bool, err error) {
	switch key := key.(type) {
	case Port:
		if key.Node().Same(p.Node) {
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
		return nil, false, NoSuchPort(p.Node, key.String())
	}
	return nil, false, fmt.Errorf("ports are indexed by number: got %s, want int", key.Type())
}

// Index implements Sliceable; the interpreter calls Get instead.
func (p ports) Index(i int) starlark.Value { return Port{p.Port(i)} }

// Slice is ports[3:6], by port number. The interpreter limits end to Len, which also
// stands for "to the last port", so the last port is always included then.
func (p ports) Slice(start, end, step int) starlark.Value {
	last := p.NumPorts()
	switch {
	case step > 0 && end == last:
		end++
	case step < 0 && start == last-1:
		start++
	}
	var list []starlark.Value
	for num := start; step > 0 && num < end || step < 0 && num > end; num += step {
		if num > 0 {
			list = append(list, Port{p.Port(num)})
		}
	}
	return starlark.NewList(list)
}

// NoSuchPort returns the error for a port number that n does not have.
func NoSuchPort(n *fabric.Node, num string) error {
	first := 1
	if n.IsSwitch() {
		first = 0
	}
	return fmt.Errorf("no port %s: %s has ports %d..%d", num, n.Label(), first, n.NumPorts())
}

func (p ports) Iterate() starlark.Iterator { return &portIterator{node: p.Node} }

// portIterator iterates over the external ports, by number.
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

// GUIDValue returns g in its canonical notation, 0x and 16 digits.
func GUIDValue(g mad.GUID) starlark.String { return starlark.String(g.String()) }

// encodedRecord returns the record of an attribute of a node or of one of its ports, which the
// model keeps decoded. Audits read the records of all ports, so it does not make a Target.
func encodedRecord(a *mad.Attribute, x interface{ Encode([]byte) }, n *fabric.Node, lid mad.LID, port int) *records.Record {
	r := records.New(a, nil)
	x.Encode(r.Data)
	t := Target{Node: n, LID: lid, Port: port}
	return t.Answer(r, NoPortGiven)
}

// recordCache are the records of an attribute, by the ID of port or node.
type recordCache []atomic.Pointer[records.Record]

// cachedRecord returns the record of the port or node with an ID. It calls encode only for the
// first read: records never change, and audits read them many times.
func cachedRecord(f *fabric.Fabric, a *mad.Attribute, id int, encode func() *records.Record) *records.Record {
	kept := f.Derived(a, func() any { return make(recordCache, len(f.Ports())+len(f.Nodes())) }).(recordCache)
	r := kept[id].Load()
	if r == nil {
		r = encode()
		kept[id].Store(r)
	}
	return r
}

// HashUint64 mixes the bits of an identifier.
func HashUint64(x uint64) uint32 {
	x *= 0x9e3779b97f4a7c15 // 2^64 over the golden ratio (Knuth, 6.4)
	return uint32(x >> 32)
}
