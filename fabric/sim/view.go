package sim

import (
	"math"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// PortView is the visible state of a port.
type PortView struct {
	Num     int
	GUID    mad.GUID
	Info    mad.PortInfo
	FDR10   bool
	Peer    state.End // Node -1: no cable
	Percent int       // of packets that are lost, and of which attribute
	Attr    mad.AttributeID
}

// NodeView is the visible state of a node. Ports begin with number 0.
type NodeView struct {
	Info   mad.NodeInfo
	Switch *mad.SwitchInfo // of switches
	LFT    []uint8
	Ports  []PortView
}

// View returns a view of a node, or nil.
func (s *Subnet) View(node int) *NodeView {
	s.state.RLock()
	defer s.state.RUnlock()
	if node < 0 || node >= len(s.state.Nodes) {
		return nil
	}
	s.state.EnsureTables()
	n := &s.state.Nodes[node]
	v := &NodeView{}
	v.Info.Decode(n.Info[:])
	if n.IsSwitch {
		v.Switch = &mad.SwitchInfo{}
		v.Switch.Decode(n.SwitchInfo[:])
		v.LFT = append(v.LFT, n.LFT...)
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		pv := PortView{Num: i, GUID: p.GUID, FDR10: p.FDR10, Peer: state.End{Node: -1}}
		pv.Info.Decode(p.Info[:])
		if p.Peer != nil && !p.Unplugged {
			pv.Peer = state.End{Node: s.state.Index(p.Peer.Node), Num: int(p.Peer.Num)}
		}
		if p.Loss != nil {
			pv.Percent, pv.Attr = int(math.Round(100*p.Loss.Share)), p.Loss.Attr
		}
		v.Ports = append(v.Ports, pv)
	}
	return v
}

// Find is the end port that has a LID.
func (s *Subnet) Find(lid mad.LID) (state.End, bool) {
	s.state.RLock()
	defer s.state.RUnlock()
	if int(lid) >= len(s.state.LIDs) || s.state.LIDs[lid] == nil {
		return state.End{}, false
	}
	p := s.state.LIDs[lid]
	return state.End{Node: s.state.Index(p.Node), Num: int(p.Num)}, true
}

// NodeName returns the name of the node with a GUID; "" without one.
func (s *Subnet) NodeName(guid mad.GUID) string {
	s.state.RLock()
	defer s.state.RUnlock()
	if n := s.state.NodeByGUID(guid); n != nil {
		return n.Name()
	}
	return ""
}

// NodeNames returns the names of all nodes by their GUIDs.
func (s *Subnet) NodeNames() map[mad.GUID]string {
	s.state.RLock()
	defer s.state.RUnlock()
	names := make(map[mad.GUID]string, len(s.state.Nodes))
	for i := range s.state.Nodes {
		names[s.state.Nodes[i].GUID()] = s.state.Nodes[i].Name()
	}
	return names
}

// NodeGUIDs returns the GUIDs of the nodes with a name, or else those of the
// adapters of the host of that name, as fabric.FindNode does.
func (s *Subnet) NodeGUIDs(name string) []mad.GUID {
	s.state.RLock()
	defer s.state.RUnlock()
	var nodes, adapters []mad.GUID
	for i := range s.state.Nodes {
		n := &s.state.Nodes[i]
		switch has := n.Name(); {
		case has == name:
			nodes = append(nodes, n.GUID())
		case !n.IsSwitch && strings.HasPrefix(has, name+" "):
			if host, ok := fabric.HostName(has); ok && host == name {
				adapters = append(adapters, n.GUID())
			}
		}
	}
	if nodes == nil {
		return adapters
	}
	return nodes
}

// NodesByName returns the results of NodeGUIDs for all names, for callers with many names
// to look up.
func (s *Subnet) NodesByName() map[string][]mad.GUID {
	s.state.RLock()
	defer s.state.RUnlock()
	byName := make(map[string][]mad.GUID, len(s.state.Nodes))
	adapters := map[string][]mad.GUID{}
	for i := range s.state.Nodes {
		n := &s.state.Nodes[i]
		byName[n.Name()] = append(byName[n.Name()], n.GUID())
		if host, ok := fabric.HostName(n.Name()); ok && !n.IsSwitch {
			adapters[host] = append(adapters[host], n.GUID())
		}
	}
	for host, guids := range adapters {
		if byName[host] == nil {
			byName[host] = guids
		}
	}
	return byName
}
