package change

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// Fingerprint identifies the fabric that a plan was made from. If the fabric has another
// fingerprint, the plan is stale.
type Fingerprint struct {
	Nodes []Node // in the order of fabric.Fabric
	Links []Link // sorted by A, the end that comes first
	// Manager is the subnet manager in charge; nil: none.
	Manager *Manager
}

// Node is a node of a topology.
type Node struct {
	GUID     mad.GUID
	Type     mad.NodeType
	Name     string
	NumPorts int
	LIDs     []PortLID // by port number; a switch has only the LID of port 0
}

// PortLID is the LID and the LMC of a port.
type PortLID struct {
	Port, LMC int
	LID       mad.LID
}

// Link is a link between two ports.
type Link struct{ A, B End }

// End is one port of a link.
type End struct{ Node, Port int } // Node is an index

// Manager is a master subnet manager.
type Manager struct {
	GUID     mad.GUID
	LID      mad.LID
	Priority int
	State    mad.SMState
}

// FingerprintOf returns the fingerprint of f, as it was discovered, and of the subnet
// manager that sa.Client.FindSM has found, nil without one.
func FingerprintOf(f *fabric.Fabric, sm *sa.SM) Fingerprint {
	var p Fingerprint
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		node := Node{GUID: n.GUID(), Type: n.Type(), Name: n.Name(), NumPorts: n.NumPorts()}
		if n.IsSwitch() {
			node.addLID(n.Port(0))
		}
		for port := range n.Ports() {
			if !n.IsSwitch() {
				node.addLID(port)
			}
			if peer := port.Peer(); peer != nil && port.ID() <= peer.ID() {
				p.Links = append(p.Links, Link{End{i, port.Num()}, End{peer.Node().ID(), peer.Num()}})
			}
		}
		p.Nodes = append(p.Nodes, node)
	}
	if sm != nil {
		p.Manager = &Manager{LID: sm.LID}
		if sm.Info != nil {
			p.Manager.GUID, p.Manager.Priority, p.Manager.State = sm.Info.GUID, int(sm.Info.Priority), sm.Info.SMState
		}
	}
	return p
}

// Since describes what has changed since a plan was made: nodes and links that were
// added, removed or moved, LIDs, the subnet manager. The texts are sorted. Blocks of tables
// are compared where they are read.
func (old *Fingerprint) Since(now *Fingerprint) []string {
	then, is := byGUID(old), byGUID(now)
	var changes []string
	for _, n := range old.Nodes {
		switch m := is[n.GUID]; {
		case m == nil:
			changes = append(changes, fmt.Sprintf("%s was removed", n.label()))
		case m.Name != n.Name:
			changes = append(changes, fmt.Sprintf("%s (%v) was renamed to %s", n.label(), n.GUID, m.label()))
		case m.Type != n.Type || m.NumPorts != n.NumPorts:
			changes = append(changes, fmt.Sprintf("%s is now a %v with %s, not a %v with %d", n.label(), m.Type, plural.Count(int(m.NumPorts), "port", "ports"), n.Type, n.NumPorts))
		}
		if m := is[n.GUID]; m != nil {
			changes = append(changes, n.lidsSince(m)...)
		}
	}
	for _, n := range now.Nodes {
		if then[n.GUID] == nil {
			changes = append(changes, fmt.Sprintf("%s was added", n.label()))
		}
	}
	changes = append(changes, linksSince(old, now, then, is)...)
	slices.Sort(changes)
	changes = slices.Compact(changes)
	if s := old.Manager.since(now.Manager); s != "" {
		changes = append(changes, s)
	}
	return changes
}

func (n *Node) addLID(p *fabric.Port) {
	if lid := p.LID(); lid != 0 {
		n.LIDs = append(n.LIDs, PortLID{p.Num(), p.LMC(), lid})
	}
}

func byGUID(f *Fingerprint) map[mad.GUID]*Node {
	m := map[mad.GUID]*Node{}
	for i := range f.Nodes {
		m[f.Nodes[i].GUID] = &f.Nodes[i]
	}
	return m
}

func (n *Node) label() string { return cmp.Or(n.Name, n.GUID.String()) }

func (n *Node) lidsSince(now *Node) (changes []string) {
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
			changes = append(changes, fmt.Sprintf("%s no longer has a LID; it had %d", what(l.Port), l.LID))
		case m.LID != l.LID:
			changes = append(changes, fmt.Sprintf("%s now has LID %d; it had %d", what(l.Port), m.LID, l.LID))
		case m.LMC != l.LMC:
			changes = append(changes, fmt.Sprintf("%s now has LMC %d; it had %d", what(l.Port), m.LMC, l.LMC))
		}
		delete(is, l.Port)
	}
	for port, l := range is {
		changes = append(changes, fmt.Sprintf("%s now has LID %d; it had none", what(port), l.LID))
	}
	return changes
}

// portKey is a port of a node, across snapshots.
type portKey struct {
	node mad.GUID
	port int
}

// peers returns, for both ends of all links, the other end.
func (f *Fingerprint) peers() map[portKey]portKey {
	peers := make(map[portKey]portKey, 2*len(f.Links))
	for _, l := range f.Links {
		a, b := portKey{f.Nodes[l.A.Node].GUID, l.A.Port}, portKey{f.Nodes[l.B.Node].GUID, l.B.Port}
		peers[a], peers[b] = b, a
	}
	return peers
}

// linksSince describes links that have changed, each by one of its ends: the end at a
// switch, if there is one. Links of nodes that were added or removed are left out.
func linksSince(old, now *Fingerprint, then, is map[mad.GUID]*Node) (changes []string) {
	before, after := old.peers(), now.peers()
	name := func(nodes map[mad.GUID]*Node, p portKey) string {
		return nodes[p.node].label() + "/" + strconv.Itoa(p.port)
	}
	for at, peer := range before {
		to, linked := after[at]
		switch {
		case to == peer || is[at.node] == nil || is[peer.node] == nil:
		case linked:
			changes = append(changes, fmt.Sprintf("%s is now connected to %s, not to %s", name(then, at), name(is, to), name(then, peer)))
		default:
			if _, moved := after[peer]; !moved && !namesLink(then, at, peer) {
				continue
			}
			changes = append(changes, fmt.Sprintf("%s is now down", name(then, at)))
		}
	}
	for at, peer := range after {
		if _, linked := before[at]; linked || then[at.node] == nil || then[peer.node] == nil {
			continue
		}
		if _, moved := before[peer]; moved || namesLink(then, at, peer) {
			changes = append(changes, fmt.Sprintf("%s is now up, connected to %s", name(is, at), name(is, peer)))
		}
	}
	return changes
}

// namesLink reports whether a link is named by the end at, not by peer: the end at a switch,
// otherwise the first by name, then by port.
func namesLink(nodes map[mad.GUID]*Node, at, peer portKey) bool {
	a, b := nodes[at.node], nodes[peer.node]
	if x, y := a.Type == mad.NodeTypeSwitch, b.Type == mad.NodeTypeSwitch; x != y {
		return x
	}
	return cmp.Or(cmp.Compare(a.label(), b.label()), cmp.Compare(at.node, peer.node), cmp.Compare(at.port, peer.port)) <= 0
}

// since describes the current subnet manager if it differs from m; "": it does not.
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

// String describes the subnet manager.
func (m *Manager) String() string {
	if m.GUID == 0 {
		return fmt.Sprintf("one at LID %d that does not identify itself", m.LID)
	}
	return fmt.Sprintf("GUID %v at LID %d, priority %d, state %v", m.GUID, m.LID, m.Priority, m.State)
}
