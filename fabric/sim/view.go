package sim

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim/spec"
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
	for guid, n := range s.state.NodesByGUID() {
		names[guid] = n.Name()
	}
	return names
}

// NodeGUIDs returns the nodes with a name, or else the adapters of the host of that name, as
// fabric.FindNode does: by the GUIDs that they had when the subnet was made, which distinguish
// nodes that now have one GUID.
func (s *Subnet) NodeGUIDs(name string) []mad.GUID {
	s.state.RLock()
	defer s.state.RUnlock()
	var nodes, adapters []mad.GUID
	for i := range s.state.Nodes {
		n := &s.state.Nodes[i]
		switch has := n.Name(); {
		case has == name:
			nodes = append(nodes, n.Origin)
		case !n.IsSwitch && strings.HasPrefix(has, name+" "):
			if host, ok := fabric.HostName(has); ok && host == name {
				adapters = append(adapters, n.Origin)
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
		byName[n.Name()] = append(byName[n.Name()], n.Origin)
		if host, ok := fabric.HostName(n.Name()); ok && !n.IsSwitch {
			adapters[host] = append(adapters[host], n.Origin)
		}
	}
	for host, guids := range adapters {
		if byName[host] == nil {
			byName[host] = guids
		}
	}
	return byName
}

// Names finds nodes by what programs, consoles and people call them. It is safe for
// concurrent use.
type Names struct {
	IDs      []string // by node: the id in the net file, else the name
	byID     map[string]int
	byName   map[string]int
	byGUID   map[string]int // as fabric writes it
	Standard int            // where programs are that name no node
}

// NewNames returns the names of a fabric's nodes, with sm as the node of the subnet's own subnet manager, or -1.
func NewNames(f *fabric.Fabric, sm int) *Names {
	n := &Names{byID: map[string]int{}, byName: map[string]int{}, byGUID: map[string]int{}, Standard: -1}
	for i := range f.Nodes() {
		node := &f.Nodes()[i]
		id := node.FileID()
		if id == "" {
			id = node.Name()
		}
		n.IDs = append(n.IDs, id)
		for _, entry := range []struct {
			index map[string]int
			key   string
		}{{n.byID, id}, {n.byName, node.Name()}, {n.byGUID, node.GUID().String()}} {
			if _, known := entry.index[entry.key]; !known {
				entry.index[entry.key] = i
			}
		}
		if n.Standard < 0 && !node.IsSwitch() && spec.HasCable(node) && i != sm { // so that an OpenSM there stands by
			n.Standard = i
		}
	}
	if n.Standard < 0 {
		n.Standard = max(sm, 0)
	}
	return n
}

// Find returns a node by its id in the net file, its name, its GUID, or as ibnetdiscover
// writes that: H- or S- and 16 digits. "" is the first channel adapter
// with a cable and without the subnet's own subnet manager.
func (n *Names) Find(name string) (int, error) {
	if name == "" {
		return n.Standard, nil
	}
	for _, index := range []map[string]int{n.byID, n.byName, n.byGUID} {
		if i, ok := index[name]; ok {
			return i, nil
		}
	}
	if kind, digits, ok := strings.Cut(name, "-"); ok && len(kind) == 1 {
		if i, ok := n.byGUID["0x"+digits]; ok {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown node %q%s", name, fabric.DidYouMean(name, n.IDs))
}

// Image returns everything in the subnet that a request may change, as text. Tests compare it.
func (s *Subnet) Image() string {
	s.state.Lock()
	defer s.state.Unlock()
	s.state.EnsureTables()
	var b strings.Builder
	name := func(p *state.Port) string { return fmt.Sprintf("%s/%d", p.Node.Label, p.Num) }
	for i := range s.state.Nodes {
		n := &s.state.Nodes[i]
		fmt.Fprintf(&b, "%s %x %x %x %d %x %v %v\n", n.Label, n.Info, n.Description, n.SwitchInfo, n.FDBTop, bytes.TrimRight(n.LFT, "\xff"), n.Off, n.Busy.Load())
		if n.Measurement != nil {
			fmt.Fprintf(&b, "samples %+v\n", n.Measurement.Control)
		}
		for j := range n.Ports {
			p := &n.Ports[j]
			fmt.Fprintf(&b, "%s %x %v %v %v %d %d %d %d %d %d %x %v %v\n", name(p), p.Info, p.Up, p.Unplugged, p.State, p.LMC, p.KeyLevel, p.MTU, p.Rate, p.LID, p.MKey, uint64(p.GUID), p.Light, p.InService)
			for _, key := range counterKeys() {
				if v := p.Counters.Value(key, time.Time{}); v != 0 {
					fmt.Fprintf(&b, "%v %d\n", key, v)
				}
			}
		}
	}
	var lines []string
	for key, data := range s.state.Blocks {
		lines = append(lines, fmt.Sprintf("%s %s %#x %x", name(key.Port), key.Attr.Name, key.Block, *data))
	}
	for key, data := range s.Edit.CongestionSettings {
		lines = append(lines, fmt.Sprintf("%s %s %#x %x", name(key.Port), key.Attr.Name, key.Block, data))
	}
	slices.Sort(lines)
	for lid, p := range s.state.LIDs {
		if p != nil {
			lines = append(lines, fmt.Sprintf("LID %d %s", lid, name(p)))
		}
	}
	for _, x := range s.Notices.Subscriptions {
		lines = append(lines, fmt.Sprintf("subscription %s %+v", name(x.To), x.Info))
	}
	for _, g := range s.state.Groups {
		lines = append(lines, fmt.Sprintf("group %+v, members %d %v", g.MCMemberRecord, len(g.Members), g.WellKnown))
	}
	lines = append(lines, fmt.Sprintf("services %+v sweeps %d traps %d", s.SA.Services, s.SM.Sweeps, s.Notices.LastTrap))
	return b.String() + strings.Join(lines, "\n")
}

// counterKeys are all counters.
var counterKeys = sync.OnceValue(func() (keys []state.CounterKey) {
	for _, a := range mad.Attributes() {
		for _, c := range state.CounterViews()[a] {
			for e := range c.Count {
				keys = append(keys, state.CounterKey{Name: c.Name, Element: e})
			}
		}
	}
	return keys
})
