package change

import (
	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// Fingerprint identifies the fabric that a plan was made from. If the fabric has
// another one, the plan is stale.
type Fingerprint struct {
	Nodes []Node // as in fabric.Fabric
	Links []Link // by A, the end that comes first
	// Manager is the subnet manager in charge; nil: none.
	Manager *Manager
}

// Node is a node of a topology.
type Node struct {
	GUID     mad.GUID
	Type     mad.NodeType
	Name     string
	NumPorts int
	LIDs     []PortLID // by port number; of a switch port 0's
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

func (n *Node) addLID(p *fabric.Port) {
	if lid := p.LID(); lid != 0 {
		n.LIDs = append(n.LIDs, PortLID{p.Num(), p.LMC(), lid})
	}
}
