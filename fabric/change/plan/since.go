package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"fabsh/mad"
)

// Since says in words what is another thing now than when a plan was made: nodes
// and links that came, went or moved, LIDs, the subnet manager. The order is that
// of names. Blocks of tables are compared by whoever reads them.
func (old *Fingerprint) Since(now *Fingerprint) []string {
	then, is := byGUID(old), byGUID(now)
	var said []string
	for _, n := range old.Nodes {
		switch m := is[n.GUID]; {
		case m == nil:
			said = append(said, fmt.Sprintf("%s is gone since", n.label()))
		case m.Name != n.Name:
			said = append(said, fmt.Sprintf("%s (%v) is called %s since", n.label(), n.GUID, m.label()))
		case m.Type != n.Type || m.NumPorts != n.NumPorts:
			said = append(said, fmt.Sprintf("%s is a %v with %d ports since, not a %v with %d", n.label(), m.Type, m.NumPorts, n.Type, n.NumPorts))
		}
		if m := is[n.GUID]; m != nil {
			said = append(said, n.lidsSince(m)...)
		}
	}
	for _, n := range now.Nodes {
		if then[n.GUID] == nil {
			said = append(said, fmt.Sprintf("%s is new since", n.label()))
		}
	}
	said = append(said, linksSince(old, now, then, is)...)
	slices.Sort(said)
	said = slices.Compact(said)
	if s := old.Manager.since(now.Manager); s != "" {
		said = append(said, s)
	}
	return said
}

func byGUID(f *Fingerprint) map[mad.GUID]*Node {
	m := map[mad.GUID]*Node{}
	for i := range f.Nodes {
		m[f.Nodes[i].GUID] = &f.Nodes[i]
	}
	return m
}

func (n *Node) label() string { return cmp.Or(n.Name, n.GUID.String()) }

func (n *Node) lidsSince(now *Node) (said []string) {
	is := map[int]PortLID{}
	for _, l := range now.LIDs {
		is[l.Port] = l
	}
	what := func(port int) string {
		if n.Type == mad.NodeTypeSwitch {
			return n.label()
		}
		return n.label() + "/" + strconv.Itoa(port)
	}
	for _, l := range n.LIDs {
		switch m, ok := is[l.Port]; {
		case !ok:
			said = append(said, fmt.Sprintf("%s has no LID since, and had %d", what(l.Port), l.LID))
		case m.LID != l.LID:
			said = append(said, fmt.Sprintf("%s has LID %d since, and had %d", what(l.Port), m.LID, l.LID))
		case m.LMC != l.LMC:
			said = append(said, fmt.Sprintf("%s has LMC %d since, and had %d", what(l.Port), m.LMC, l.LMC))
		}
		delete(is, l.Port)
	}
	for port, l := range is {
		said = append(said, fmt.Sprintf("%s has LID %d since, and had none", what(port), l.LID))
	}
	return said
}

// place is a port of a node, across snapshots.
type place struct {
	node mad.GUID
	port int
}

// peers are both ends of all links.
func (f *Fingerprint) peers() map[place]place {
	peers := make(map[place]place, 2*len(f.Links))
	for _, l := range f.Links {
		a, b := place{f.Nodes[l.A.Node].GUID, l.A.Port}, place{f.Nodes[l.B.Node].GUID, l.B.Port}
		peers[a], peers[b] = b, a
	}
	return peers
}

// linksSince: a link is told of by one of its ends, a switch's where one is, and
// not at all where a node of it came or went.
func linksSince(old, now *Fingerprint, then, is map[mad.GUID]*Node) (said []string) {
	before, after := old.peers(), now.peers()
	name := func(nodes map[mad.GUID]*Node, p place) string {
		return nodes[p.node].label() + "/" + strconv.Itoa(p.port)
	}
	for at, peer := range before {
		to, linked := after[at]
		switch {
		case to == peer || is[at.node] == nil || is[peer.node] == nil:
		case linked:
			said = append(said, fmt.Sprintf("%s is connected to %s since, not to %s", name(then, at), name(is, to), name(then, peer)))
		default:
			if _, moved := after[peer]; !moved && !tells(then, at, peer) {
				continue
			}
			said = append(said, fmt.Sprintf("%s is down since", name(then, at)))
		}
	}
	for at, peer := range after {
		if _, linked := before[at]; linked || then[at.node] == nil || then[peer.node] == nil {
			continue
		}
		if _, moved := before[peer]; moved || tells(then, at, peer) {
			said = append(said, fmt.Sprintf("%s is up since, connected to %s", name(is, at), name(is, peer)))
		}
	}
	return said
}

// tells: of a link it is this end that is named, and not the other: a switch's, by
// name, then by port.
func tells(nodes map[mad.GUID]*Node, at, peer place) bool {
	a, b := nodes[at.node], nodes[peer.node]
	if x, y := a.Type == mad.NodeTypeSwitch, b.Type == mad.NodeTypeSwitch; x != y {
		return x
	}
	return cmp.Or(cmp.Compare(a.label(), b.label()), cmp.Compare(at.node, peer.node), cmp.Compare(at.port, peer.port)) <= 0
}

// since says which subnet manager there is now in place of m; "" for the same.
func (m *Manager) since(now *Manager) string {
	switch {
	case m == nil && now == nil, m != nil && now != nil && *m == *now:
		return ""
	case m == nil:
		return fmt.Sprintf("there is a subnet manager since: %v", now)
	case now == nil:
		return fmt.Sprintf("there is no subnet manager since: it was %v", m)
	case m.GUID != now.GUID:
		return fmt.Sprintf("another subnet manager is in charge since: %v, and was %v", now, m)
	}
	return fmt.Sprintf("the subnet manager is %v since, and was %v", now, m)
}

// String is the subnet manager in words.
func (m *Manager) String() string {
	if m.GUID == 0 {
		return fmt.Sprintf("one at LID %d that says nothing of itself", m.LID)
	}
	return fmt.Sprintf("GUID %v at LID %d, priority %d, state %v", m.GUID, m.LID, m.Priority, m.State)
}
