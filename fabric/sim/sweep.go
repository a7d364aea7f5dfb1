package sim

import "fabsh/mad"

// sweep is a sweep of the subnet manager: it discovers the nodes, makes links
// active, fills the forwarding tables, and reports the end ports that appeared
// and disappeared (opensm reports traps 65 while it drops nodes, osm_drop_mgr.c,
// and 64 when the subnet is up, osm_state_mgr.c).
func (s *Subnet) sweep() {
	if s.sm == nil || s.sm.node.off {
		return
	}
	s.sweeps++
	appeared, disappeared := s.discover()
	for i := range s.ports {
		if p := &s.ports[i]; p.up && p.state == mad.PortStateInitialize && (p.node.found || p.peer.node.found) {
			p.setState(mad.PortStateActive)
		}
	}
	s.fillTables()
	for _, p := range disappeared {
		s.leaveAll(p)
	}
	s.setAllMFTs()
	for _, p := range disappeared {
		s.reportGID(65, p.gid())
	}
	for _, p := range appeared {
		s.reportGID(64, p.gid())
	}
}

// discover finds the nodes and end ports that the subnet manager reaches.
func (s *Subnet) discover() (appeared, disappeared []*port) {
	for i := range s.nodes {
		s.nodes[i].found = false
	}
	if s.sm == nil {
		return nil, nil
	}
	s.sm.node.found = true
	queue := []*node{s.sm.node}
	for ; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for i := range n.ports {
			p := &n.ports[i]
			if !n.isSwitch && p != s.sm { // it does not forward
				continue
			}
			if far := p.neighbour(); far != nil && !far.node.found {
				far.node.found = true
				queue = append(queue, far.node)
			}
		}
	}
	for i := range s.nodes {
		for _, p := range s.nodes[i].endPorts() {
			before := p.inService
			far := p.neighbour()
			p.inService = p == s.sm || p.num == 0 && p.node.found || far != nil && far.node.found && (far.node.isSwitch || far == s.sm)
			switch {
			case p.inService && !before:
				appeared = append(appeared, p)
			case before && !p.inService:
				disappeared = append(disappeared, p)
			}
		}
	}
	return appeared, disappeared
}

func (p *port) setState(state mad.PortState) {
	var info mad.PortInfo
	info.Decode(p.info[:])
	info.PortState = state
	p.setInfo(&info)
}

// reportGID reports that the GID of an end port came into service (trap 64) or
// went out of it (65), or that a multicast group was made (66) or deleted (67).
func (s *Subnet) reportGID(trap uint16, gid mad.GID) {
	notice := mad.Notice{
		IsGeneric: true, Type: mad.NoticeTypeSM, ProducerType: mad.ProducerTypeSM,
		TrapNumber: trap, IssuerLID: s.sm.lid, IssuerGID: s.sm.gid(),
	}
	details := mad.NoticeGID{GIDAddr: gid}
	details.Encode(notice.DataDetails[:])
	s.report(&notice)
}
