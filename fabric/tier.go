package fabric

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
