package fabric

import "strings"

// Tiers are the distances of nodes from the hosts, by node id: CAs and routers are 0,
// leaves 1, the switches above these 2; -1 without a path to a host. A CA that sits in
// a switch, for reductions in the network (SHARP), makes no leaf of it; such CAs are
// recognized by name, as by graph.DefaultRules.
func (f *Fabric) Tiers() []int {
	tier := make([]int, len(f.nodes))
	var edge []*Node
	for i := range f.nodes {
		n := &f.nodes[i]
		if tier[i] = -1; !n.IsSwitch() {
			tier[i] = 0
			if !strings.Contains(strings.ToLower(n.Name()), "aggregation node") {
				edge = append(edge, n)
			}
		}
	}
	for len(edge) > 0 {
		var next []*Node
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
