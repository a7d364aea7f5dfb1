package diff

import (
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
)

// unreadNodes are nodes of one side that the other may have too, by id: it did not
// read what is behind the ports that they were connected to. Only that is
// reported of them.
//
// Time: O(P) for P ports.
func (m *match) unreadNodes(side int) map[int32]bool {
	far := m.fabrics[other(side)]
	unread := map[int32]bool{}
	if far.Complete() && far.Scope() == "" {
		return unread
	}
	var queue []*fabric.Node
	mark := func(n *fabric.Node) {
		if m.to[side][n.ID()] == none && !unread[int32(n.ID())] {
			unread[int32(n.ID())] = true
			queue = append(queue, n)
		}
	}
	nodes := m.fabrics[side].Nodes()
	for i := range nodes {
		n, cables := &nodes[i], 0
		for p := range n.Ports() {
			if q := p.Peer(); q != nil {
				cables++
				if far := m.port(side, q); far != nil && m.unknown(other(side), far) {
					mark(n)
				}
			}
		}
		if cables == 0 {
			mark(n)
		}
	}
	for len(queue) > 0 { // what is behind something unread is unread
		n := queue[0]
		queue = queue[1:]
		for p := range n.Ports() {
			if q := p.Peer(); q != nil {
				mark(q.Node())
			}
		}
	}
	return unread
}

// unknown reports whether nothing is known of the other end of a port of one side.
func (m *match) unknown(side int, p *fabric.Port) bool {
	f := m.fabrics[side]
	if p.Peer() != nil || f.Complete() && f.Scope() == "" {
		return false
	}
	return p.Info() == nil || p.PhysicalState() == mad.PortPhysicalStateLinkUp
}

// coverage reports what one side did not get, and what it cannot hold.
func (c *comparison) coverage() {
	for side, f := range c.fabrics {
		if !f.Complete() {
			c.Unread = append(c.Unread, fmt.Sprintf("%s fabric is incomplete: %s", sideNames[side], f.Missing()))
		}
		if f.Scope() != "" {
			c.NotCompared = append(c.NotCompared, fmt.Sprintf("%s fabric is a part of the subnet: %s", sideNames[side], f.Scope()))
		}
	}
	if c.byName {
		c.NotCompared = append(c.NotCompared, "GUIDs: missing in a file; nodes are matched by name")
	}
	if c.assignedLIDs() {
		c.NotCompared = append(c.NotCompared, "LIDs: missing in a file")
	}
}

// assignedLIDs reports whether the LIDs of one side were assigned by its reader.
func (m *match) assignedLIDs() bool {
	return has(m.fabrics[sideOld], fabric.ProblemAssignedLIDs) || has(m.fabrics[sideNew], fabric.ProblemAssignedLIDs)
}
