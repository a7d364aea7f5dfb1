package fabric

import (
	"strings"

	"fabsh/mad"
)

// NodeKind is the purpose of a node.
type NodeKind uint8

const (
	KindUnknown NodeKind = iota // its NodeInfo has a type that IBA does not define
	KindHost
	KindGateway     // a CA that leads to another network
	KindAggregation // a CA in a switch, for reductions in the network (SHARP): it is not a host
	KindRouter
	KindSwitch
)

// NodeKinds are the words of all kinds.
var NodeKinds = []string{"unknown", "host", "gateway", "aggregation_node", "router", "switch"}

// String returns the word of k.
func (k NodeKind) String() string { return NodeKinds[k] }

// Kind is the kind of n, by NodeInfo and the description that n has of itself: a name map
// does not change it.
func (n *Node) Kind() NodeKind { return n.kind }

// IsEdge reports whether n is at the edge of the network, where traffic begins and ends: a
// host, a gateway or a router.
func (n *Node) IsEdge() bool { return n.kind != KindSwitch && n.kind != KindAggregation }

// aggregationNode is the device of the CAs that Mellanox' switches have inside, from Switch-IB 2
// to Quantum (rdma-core infiniband-diags, libibnetdisc/ibnetdisc.c, is_mlnx_ext_port_info_supported).
const aggregationNode = 0xcf09

// kindOf is the rule for all of fabsh. The vendor may be missing: OpenSM's dumps have none.
func kindOf(i *mad.NodeInfo, description string) NodeKind {
	switch i.NodeType {
	case mad.NodeTypeSwitch:
		return KindSwitch
	case mad.NodeTypeRouter:
		return KindRouter
	case mad.NodeTypeCA:
	default:
		return KindUnknown
	}
	text := strings.ToLower(description)
	switch {
	case i.DeviceID == aggregationNode && (i.VendorID == mellanox || i.VendorID == 0), strings.Contains(text, "aggregation node"):
		return KindAggregation
	case strings.Contains(text, "gateway"), strings.Contains(text, "skyway"):
		return KindGateway
	}
	return KindHost
}

// Tiers are the distances of nodes from the edge, by node id: hosts, gateways and routers
// are 0, leaves 1, the switches above these 2. Nodes without a path to the edge are -1, and
// so are aggregation nodes, which make no leaf of the switch they are in.
func (f *Fabric) Tiers() []int {
	tier := make([]int, len(f.nodes))
	var edge []*Node
	for i := range f.nodes {
		n := &f.nodes[i]
		if tier[i] = -1; n.IsEdge() {
			tier[i] = 0
			edge = append(edge, n)
		}
	}
	for len(edge) > 0 {
		var next []*Node
		for _, n := range edge {
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && tier[q.Node().ID()] < 0 && q.Node().kind != KindAggregation {
					tier[q.Node().ID()] = tier[n.ID()] + 1
					next = append(next, q.Node())
				}
			}
		}
		edge = next
	}
	return tier
}
