package diff

import "fabsh/fabric"

// matchPlaces matches nodes that have no match yet with those of the other side
// that are at the same place: at least half of the cables go from the same port
// to the same port of a node that is matched. A node with another GUID there is a
// replacement. As a match may settle the place of its neighbours, it goes on until
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
