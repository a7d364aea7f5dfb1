package diff

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// Sides of a comparison.
const (
	sideOld = iota
	sideNew
)

// other is the other side.
func other(side int) int { return 1 - side }

// sideNames are the sides in texts.
var sideNames = [2]string{"the older", "the newer"}

// none stands for no node and no port.
const none = -1

// match maps the nodes of two fabrics to each other.
type match struct {
	fabrics [2]*fabric.Fabric
	// to has, by side and node id, the id of the matching node on the other side;
	// or none.
	to [2][]int32
	// replaced are nodes whose place another node has, by id on the older side.
	replaced map[int32]bool
	// ambiguous are nodes that share a GUID with others, where cables do not distinguish
	// them; by side and node id.
	ambiguous [2]map[int32]bool
	// byName means that one side has no GUIDs of its own.
	byName bool
}

// matchNodes matches nodes by GUID, where a file has none by name, and the rest by
// the places of their cables.
func matchNodes(old, new *fabric.Fabric) *match {
	m := &match{fabrics: [2]*fabric.Fabric{old, new}, replaced: map[int32]bool{}}
	for side, f := range m.fabrics {
		m.to[side] = slices.Repeat([]int32{none}, len(f.Nodes()))
		m.ambiguous[side] = map[int32]bool{}
		m.byName = m.byName || hasProblem(f, fabric.ProblemAssignedGUIDs)
	}
	for i := range old.Nodes() {
		n := &old.Nodes()[i]
		if same := m.only(n, new); same != nil && m.only(same, old) == n {
			m.join(n, same)
		}
	}
	m.matchPlaces()
	if !m.byName {
		m.findAmbiguous()
	}
	return m
}

// only is the node of f that has the GUID of n, or its name; nil: there is no such node,
// or more than one.
func (m *match) only(n *fabric.Node, f *fabric.Fabric) *fabric.Node {
	var list []*fabric.Node
	switch {
	case m.byName && n.Name() != "":
		list = f.NodeByName(n.Name())
	case !m.byName && n.GUID() != 0:
		list = f.NodeByGUID(n.GUID())
	}
	if len(list) != 1 {
		return nil
	}
	return list[0]
}

func (m *match) join(old, new *fabric.Node) {
	m.to[sideOld][old.ID()], m.to[sideNew][new.ID()] = int32(new.ID()), int32(old.ID())
}

// findAmbiguous finds nodes without a match whose GUID such a node of the other side
// has too.
func (m *match) findAmbiguous() {
	var open [2]map[mad.GUID]bool
	for side, f := range m.fabrics {
		open[side] = map[mad.GUID]bool{}
		for i := range f.Nodes() {
			if m.to[side][i] == none {
				open[side][f.Nodes()[i].GUID()] = true
			}
		}
	}
	for side, f := range m.fabrics {
		for i := range f.Nodes() {
			if m.to[side][i] == none && open[other(side)][f.Nodes()[i].GUID()] {
				m.ambiguous[side][int32(i)] = true
			}
		}
	}
}

// node is the node of the other side that is n; or nil.
func (m *match) node(side int, n *fabric.Node) *fabric.Node {
	if id := m.to[side][n.ID()]; id != none {
		return &m.fabrics[other(side)].Nodes()[id]
	}
	return nil
}

// port is the port of the other side that is p; or nil.
func (m *match) port(side int, p *fabric.Port) *fabric.Port {
	if n := m.node(side, p.Node()); n != nil {
		return n.Port(p.Num())
	}
	return nil
}

// hasProblem reports whether f has a problem of that kind.
func hasProblem(f *fabric.Fabric, kind fabric.ProblemKind) bool {
	return slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == kind })
}

// matchPlaces matches nodes that have no match yet with nodes of the other side
// at the same place: at least half of the cables go from the same port numbers
// to the same ports of matched nodes. A node with another GUID there is a
// replacement. As a match may settle the place of its neighbours, it repeats until
// nothing changes.
func (m *match) matchPlaces() {
	var open []*fabric.Node
	for i := range m.fabrics[sideOld].Nodes() {
		if m.to[sideOld][i] == none {
			open = append(open, &m.fabrics[sideOld].Nodes()[i])
		}
	}
	for found := true; found; {
		found = false
		rest := open[:0:0]
		for _, n := range open {
			same := m.atPlace(n)
			if same == nil {
				rest = append(rest, n)
				continue
			}
			m.join(n, same)
			if n.GUID() != same.GUID() && !m.byName {
				m.replaced[int32(n.ID())] = true
			}
			found = true
		}
		open = rest
	}
}

// atPlace is the node without a match that has at least half of the cables of n;
// or nil.
func (m *match) atPlace(n *fabric.Node) *fabric.Node {
	cables := 0
	votes := map[*fabric.Node]int{}
	var best *fabric.Node
	for p := range n.Ports() {
		q := p.Peer()
		if q == nil {
			continue
		}
		cables++
		far := m.port(sideOld, q)
		if far == nil || far.Peer() == nil || far.Peer().Num() != p.Num() {
			continue
		}
		x := far.Peer().Node()
		if m.to[sideNew][x.ID()] != none || x.Type() != n.Type() {
			continue
		}
		if votes[x]++; best == nil || votes[x] > votes[best] || votes[x] == votes[best] && x.ID() < best.ID() {
			best = x
		}
	}
	if best == nil || 2*votes[best] < cables {
		return nil
	}
	return best
}

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
	return hasProblem(m.fabrics[sideOld], fabric.ProblemAssignedLIDs) || hasProblem(m.fabrics[sideNew], fabric.ProblemAssignedLIDs)
}
