package fabric

// Same: n and m are one node, be it in two snapshots: they have one node GUID.
// Where that is 0, or not unique in its own snapshot, nothing in another one is
// the same.
func (n *Node) Same(m *Node) bool {
	switch {
	case n == m:
		return true
	case n.fabric == m.fabric || n.GUID() != m.GUID() || n.GUID() == 0:
		return false
	}
	return len(n.fabric.NodeByGUID(n.GUID())) == 1 && len(m.fabric.NodeByGUID(m.GUID())) == 1
}

// Same: p and q are one port: they have one number, and their nodes are the same.
func (p *Port) Same(q *Port) bool { return p.num == q.num && p.Node().Same(q.Node()) }
