package export

import (
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Tiers are how far nodes are from the hosts, by node: those are 0, leaves 1,
// switches above these 2; -1 where there is no way to a host. A CA that sits in a
// switch, for reductions in the network (SHARP), makes no leaf of it; such are told
// by name, as by routing.DefaultClassRules.
func Tiers(f *fabric.Fabric) []int {
	nodes := f.Nodes()
	tier := make([]int, len(nodes))
	var edge []*fabric.Node
	for i := range nodes {
		n := &nodes[i]
		if tier[i] = -1; !n.IsSwitch() {
			tier[i] = 0
			if !strings.Contains(strings.ToLower(n.Name()), "aggregation node") {
				edge = append(edge, n)
			}
		}
	}
	for len(edge) > 0 {
		var next []*fabric.Node
		for _, n := range edge {
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && tier[q.Node().ID()] < 0 {
					tier[q.Node().ID()] = tier[n.ID()] + 1
					next = append(next, q.Node())
				}
			}
		}
		edge = next
	}
	return tier
}

// typeWord is ibnetdiscover's word for the type of a node.
func typeWord(n *fabric.Node) string {
	switch n.Type() {
	case mad.NodeTypeSwitch:
		return "SW"
	case mad.NodeTypeRouter:
		return "RT"
	}
	return "CA"
}
