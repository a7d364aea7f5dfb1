package discover

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// A far end that looks like a known node, whose links say otherwise, is
// rechecked: first both ends of the link are asked again, then, if they still
// disagree, what is behind the far end is compared with what is known of the
// candidates. Of a group one far end is rechecked at a time, for the result may
// identify the others.

// recheck begins with the near end: is f still behind it?
func (s *sweep) recheck(f *farEnd) {
	f.candidates = slices.Clone(f.candidates)
	s.askNode((*sweep).gotRecheck, f.from, f.port, f.route).farEnd = f
}

func (s *sweep) gotRecheck(r *request) {
	f := r.farEnd
	info, local, err := r.nodeInfo()
	if err == nil && info == f.info && local == f.local {
		for _, n := range f.candidates {
			f.neighbours = append(f.neighbours, n.knownNeighbours(f)...)
		}
		s.checkCandidate(f)
		return
	}
	g := s.group(f.info.NodeGUID)
	g.close(f)
	s.changed(f.from, f.port, func() string {
		return fmt.Sprintf("it led to port %d of node %s, and then no longer", f.local, f.info.NodeGUID)
	})
	s.relink(r)
	s.settle(g, allPorts)
}

// checkCandidate asks the next candidate, or the node that it is connected to,
// once more.
func (s *sweep) checkCandidate(f *farEnd) {
	for ; len(f.candidates) > 0; f.candidates = f.candidates[1:] {
		n := f.candidates[0]
		p := &n.ports[f.local]
		switch {
		case p.peer != nil && p.peer.behind(p.peerPort) != nil:
			// One port cannot have two cables: if this one is still there, f is
			// another node's.
			s.askNode((*sweep).gotOtherEnd, p.peer, p.peerPort, p.peer.behind(p.peerPort)).farEnd = f
			return
		case n.isSwitch() && p.view == viewNothing:
			s.ask((*sweep).gotCandidatePort, n, f.local, n.route, mad.AttrPortInfo, uint32(f.local)).farEnd = f
			return
		case n.isSwitch() && n.behind(f.local) != nil:
			s.askNode((*sweep).gotCandidateFar, n, f.local, n.behind(f.local)).farEnd = f
			return
		}
	}
	s.compareNeighbours(f)
}

// gotOtherEnd handles NodeInfo from behind the port that the candidate's port
// is known to be connected to.
func (s *sweep) gotOtherEnd(r *request) {
	f := r.farEnd
	n := f.candidates[0]
	info, local, err := r.nodeInfo()
	if err == nil && sameNode(&info, &n.info) && local == f.local {
		s.reject(f)
		return
	}
	s.accept(f, n)
	s.relink(r)
}

// gotCandidatePort handles PortInfo of the candidate's port, which was down.
func (s *sweep) gotCandidatePort(r *request) {
	f := r.farEnd
	if r.Err == nil {
		p := &r.node.ports[r.port]
		p.info.Decode(r.Data())
		if p.info.PortPhysicalState != mad.PortPhysicalStateLinkUp {
			s.reject(f)
			return
		}
		p.view = viewSomething
		if route := r.node.behind(r.port); route != nil {
			s.askNode((*sweep).gotCandidateFar, r.node, r.port, route).farEnd = f
			return
		}
	}
	s.accept(f, f.candidates[0])
}

// gotCandidateFar handles NodeInfo from behind the candidate's port.
func (s *sweep) gotCandidateFar(r *request) {
	f := r.farEnd
	info, local, err := r.nodeInfo()
	if err == nil && (info.NodeGUID != f.from.info.NodeGUID || local != f.port) {
		s.reject(f)
		return
	}
	s.accept(f, f.candidates[0])
}

// reject: f is not the candidate's.
func (s *sweep) reject(f *farEnd) {
	f.candidates = f.candidates[1:]
	s.checkCandidate(f)
}

// accept: f is n's after all; the cabling changed.
func (s *sweep) accept(f *farEnd, n *found) {
	g := s.group(f.info.NodeGUID)
	g.close(f)
	s.changed(n, f.local, func() string {
		return fmt.Sprintf("it is connected to port %d of %s now", f.port, f.from.label())
	})
	n.unlink(f.local)
	f.from.unlink(f.port)
	s.identify(n, f)
	s.settle(g, allPorts)
}

// compareNeighbours is the last test. All candidates are rejected, so f is a new
// node, unless a cable moved between two requests; a switch that is taken for
// new by mistake would have the sweep find all that is behind it once more. So
// candidates' neighbours are asked for from behind f.
func (s *sweep) compareNeighbours(f *farEnd) {
	if len(f.neighbours) > 0 && f.route.Hops() < mad.MaxHops {
		at := f.neighbours[0]
		s.ask((*sweep).gotNeighbourPort, at.node, at.port, f.route, mad.AttrPortInfo, uint32(at.port)).farEnd = f
		return
	}
	g := s.group(f.info.NodeGUID)
	g.close(f)
	s.addFarNode(f)
	s.settle(g, allPorts)
}

// gotNeighbourPort handles PortInfo that the node at f gives of the port that
// leads to a candidate's neighbour.
func (s *sweep) gotNeighbourPort(r *request) {
	var i mad.PortInfo
	i.Decode(r.Data())
	if r.Err == nil && i.PortPhysicalState == mad.PortPhysicalStateLinkUp {
		s.askNode((*sweep).gotNeighbour, r.node, r.port, r.farEnd.route.Append(uint8(r.port))).farEnd = r.farEnd
		return
	}
	s.nextNeighbour(r.farEnd)
}

// gotNeighbour handles NodeInfo from behind that port.
func (s *sweep) gotNeighbour(r *request) {
	f := r.farEnd
	var info mad.NodeInfo
	info.Decode(r.Data())
	if p := &r.node.ports[r.port]; r.Err == nil && p.peer != nil && sameNode(&info, &p.peer.info) && int(info.LocalPortNum) == p.peerPort {
		s.accept(f, r.node)
		return
	}
	s.nextNeighbour(f)
}

func (s *sweep) nextNeighbour(f *farEnd) {
	f.neighbours = f.neighbours[1:]
	s.compareNeighbours(f)
}

// relink takes the answer to a repeated request for a first one.
func (s *sweep) relink(r *request) {
	r.node.unlink(r.port)
	p := &r.node.ports[r.port]
	if r.Err != nil {
		p.view = viewSomething // reported as changed
		s.settle(s.groupOf(r.node), r.port)
		return
	}
	s.gotFar(r)
}

// changed reports that the cabling changed during the sweep.
func (s *sweep) changed(n *found, port int, how func() string) {
	s.note(fabric.ProblemChanged, func() string {
		return fmt.Sprintf("port %d of %s changed during the sweep: %s; discover again", port, n.label(), how())
	})
}

// knownNeighbours are some of n's ports with known peers, none of them at the
// link of f.
func (n *found) knownNeighbours(f *farEnd) (list []nodePort) {
	const enough = 4 // the cables of all will hardly change during one sweep
	if !n.isSwitch() {
		return nil
	}
	for i, p := range n.ports {
		if p.peer == nil || i == f.local || p.peer == f.from && p.peerPort == f.port {
			continue
		}
		if list = append(list, nodePort{n, i}); len(list) == enough {
			break
		}
	}
	return list
}
