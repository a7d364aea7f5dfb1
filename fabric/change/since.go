package change

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"fabsh/mad"
)

// Since describes what has changed since a plan was made: nodes and links that were
// added, removed or moved, LIDs, the subnet manager. The order is that of names. Blocks
// of tables are compared where they are read.
func (old *Fingerprint) Since(now *Fingerprint) []string {
	then, is := byGUID(old), byGUID(now)
	var said []string
	for _, n := range old.Nodes {
		switch m := is[n.GUID]; {
		case m == nil:
			said = append(said, fmt.Sprintf("%s was removed", n.label()))
		case m.Name != n.Name:
			said = append(said, fmt.Sprintf("%s (%v) was renamed to %s", n.label(), n.GUID, m.label()))
		case m.Type != n.Type || m.NumPorts != n.NumPorts:
			said = append(said, fmt.Sprintf("%s is now a %v with %d ports, not a %v with %d", n.label(), m.Type, m.NumPorts, n.Type, n.NumPorts))
		}
		if m := is[n.GUID]; m != nil {
			said = append(said, n.lidsSince(m)...)
		}
	}
	for _, n := range now.Nodes {
		if then[n.GUID] == nil {
			said = append(said, fmt.Sprintf("%s was added", n.label()))
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
			said = append(said, fmt.Sprintf("%s no longer has a LID; it had %d", what(l.Port), l.LID))
		case m.LID != l.LID:
			said = append(said, fmt.Sprintf("%s now has LID %d; it had %d", what(l.Port), m.LID, l.LID))
		case m.LMC != l.LMC:
			said = append(said, fmt.Sprintf("%s now has LMC %d; it had %d", what(l.Port), m.LMC, l.LMC))
		}
		delete(is, l.Port)
	}
	for port, l := range is {
		said = append(said, fmt.Sprintf("%s now has LID %d; it had none", what(port), l.LID))
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

// linksSince describes links, each by one of its ends, a switch's if there is one.
// Links of nodes that were added or removed are left out.
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
			said = append(said, fmt.Sprintf("%s is now connected to %s, not to %s", name(then, at), name(is, to), name(then, peer)))
		default:
			if _, moved := after[peer]; !moved && !names(then, at, peer) {
				continue
			}
			said = append(said, fmt.Sprintf("%s is now down", name(then, at)))
		}
	}
	for at, peer := range after {
		if _, linked := before[at]; linked || then[at.node] == nil || then[peer.node] == nil {
			continue
		}
		if _, moved := before[peer]; moved || names(then, at, peer) {
			said = append(said, fmt.Sprintf("%s is now up, connected to %s", name(is, at), name(is, peer)))
		}
	}
	return said
}

// names reports whether a link is named by this end, and not the other: a switch's, by
// name, then by port.
func names(nodes map[mad.GUID]*Node, at, peer place) bool {
	a, b := nodes[at.node], nodes[peer.node]
	if x, y := a.Type == mad.NodeTypeSwitch, b.Type == mad.NodeTypeSwitch; x != y {
		return x
	}
	return cmp.Or(cmp.Compare(a.label(), b.label()), cmp.Compare(at.node, peer.node), cmp.Compare(at.port, peer.port)) <= 0
}

// since describes the current subnet manager if it is not m; "" for the same.
func (m *Manager) since(now *Manager) string {
	switch {
	case m == nil && now == nil, m != nil && now != nil && *m == *now:
		return ""
	case m == nil:
		return fmt.Sprintf("there is now a subnet manager: %v", now)
	case now == nil:
		return fmt.Sprintf("there is no longer a subnet manager; it was %v", m)
	case m.GUID != now.GUID:
		return fmt.Sprintf("another subnet manager is now in charge: %v; it was %v", now, m)
	}
	return fmt.Sprintf("the subnet manager is now %v; it was %v", now, m)
}

// String is the subnet manager in words.
func (m *Manager) String() string {
	if m.GUID == 0 {
		return fmt.Sprintf("one at LID %d that does not identify itself", m.LID)
	}
	return fmt.Sprintf("GUID %v at LID %d, priority %d, state %v", m.GUID, m.LID, m.Priority, m.State)
}
