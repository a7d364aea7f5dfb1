package agent

import (
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// sweep is a sweep of the subnet manager: it discovers the nodes, makes links
// active, fills the forwarding tables, and reports the end ports that appeared
// and disappeared (opensm reports traps 65 while it drops nodes, osm_drop_mgr.c,
// and 64 when the subnet is up, osm_state_mgr.c).
func (m *Manager) sweep() {
	if m.subnet.SM == nil || m.subnet.SM.Node.Off {
		return
	}
	m.Sweeps++
	appeared, disappeared := m.discover()
	for i := range m.subnet.Nodes { // opensm osm_ucast_mgr.c set_fwd_top
		if n := &m.subnet.Nodes[i]; n.Found {
			n.ClearStateChange()
		}
	}
	for i := range m.subnet.Ports {
		if p := &m.subnet.Ports[i]; p.Up && p.State == mad.PortStateInitialize && (p.Node.Found || p.Peer.Node.Found) {
			p.ChangeInfo(func(info *mad.PortInfo) { info.PortState = mad.PortStateActive })
		}
	}
	m.traffic.Suspend()
	m.subnet.InvalidateTables()
	for _, p := range disappeared {
		m.leaveAll(p)
	}
	m.subnet.SetAllMFTs()
	for _, p := range disappeared {
		m.notices.ReportGID(65, p.GID())
	}
	for _, p := range appeared {
		m.notices.ReportGID(64, p.GID())
	}
}

// discover finds the nodes and end ports that the subnet manager reaches.
func (m *Manager) discover() (appeared, disappeared []*state.Port) {
	for i := range m.subnet.Nodes {
		m.subnet.Nodes[i].Found = false
	}
	if m.subnet.SM == nil {
		return nil, nil
	}
	m.subnet.SM.Node.Found = true
	queue := []*state.Node{m.subnet.SM.Node}
	for ; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for i := range n.Ports {
			p := &n.Ports[i]
			if !n.IsSwitch && p != m.subnet.SM { // CAs do not forward
				continue
			}
			if far := p.Neighbour(); far != nil && !far.Node.Found {
				far.Node.Found = true
				queue = append(queue, far.Node)
			}
		}
	}
	for i := range m.subnet.Nodes {
		for _, p := range m.subnet.Nodes[i].EndPorts() {
			before := p.InService
			far := p.Neighbour()
			p.InService = p == m.subnet.SM || p.Num == 0 && p.Node.Found || far != nil && far.Node.Found && (far.Node.IsSwitch || far == m.subnet.SM)
			switch {
			case p.InService && !before:
				appeared = append(appeared, p)
			case before && !p.InService:
				disappeared = append(disappeared, p)
			}
		}
	}
	return appeared, disappeared
}

// leaveAll ends the memberships of a port that is out of service (opensm
// osm_drop_mgr.c drop_mgr_remove_port).
func (m *Manager) leaveAll(p *state.Port) {
	for _, g := range slices.Clone(m.subnet.Groups) {
		before := len(g.Members)
		g.Members = slices.DeleteFunc(g.Members, func(x state.Member) bool { return x.Port == p })
		if len(g.Members) < before {
			m.Dissolve(g)
			m.subnet.SetMFTs(g)
		}
	}
}

// Dissolve deletes a group that no longer has full members.
func (m *Manager) Dissolve(g *state.Group) {
	if g.FullMembers() > 0 {
		return
	}
	m.notices.ReportGID(67, g.MGID)
	g.Members = nil
	m.subnet.Groups = slices.DeleteFunc(m.subnet.Groups, func(x *state.Group) bool { return x == g && !g.WellKnown })
}
