package diff

import (
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

// match has which nodes of two fabrics are the same.
type match struct {
	fabrics [2]*fabric.Fabric
	// to has, by side and node id, the id of the same node on the other side;
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
		m.byName = m.byName || has(f, fabric.ProblemAssignedGUIDs)
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

// has reports whether f has a problem of that kind.
func has(f *fabric.Fabric, kind fabric.ProblemKind) bool {
	return slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == kind })
}
