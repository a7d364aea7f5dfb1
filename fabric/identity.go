package fabric

// Same reports whether n and m are one node, also across two snapshots: they have the
// same node GUID. A node whose GUID is 0, or not unique in its snapshot, has no
// counterpart in another snapshot.
func (n *Node) Same(m *Node) bool {
	switch {
	case n == m:
		return true
	case n.fabric == m.fabric || n.GUID() != m.GUID() || n.GUID() == 0:
		return false
	}
	return len(n.fabric.NodeByGUID(n.GUID())) == 1 && len(m.fabric.NodeByGUID(m.GUID())) == 1
}

// Same reports whether p and q are one port: the same number of the same node.
func (p *Port) Same(q *Port) bool { return p.num == q.num && p.Node().Same(q.Node()) }
