package discover

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// What is done about a sighting that does not fit: first both ends of the link
// are asked again, and if they still disagree the node sighted is looked at
// more closely. One sighting of a book is examined at a time, for the outcome
// may settle the others.

// askAgain begins to examine g: is it still there?
func (s *sweep) askAgain(g *sighting) {
	g.suspects = slices.Clone(g.suspects)
	s.askNode((*sweep).gotAgain, g.from, g.port, g.route).sighting = g
}

func (s *sweep) gotAgain(r *request) {
	g := r.sighting
	info, local, err := r.nodeInfo()
	if err == nil && info == g.info && local == g.local {
		for _, n := range g.suspects {
			g.marks = append(g.marks, n.marks(g)...)
		}
		s.question(g)
		return
	}
	b := s.bookOf(g.info.NodeGUID)
	b.close(g)
	s.changed(g.from, g.port, func() string {
		return fmt.Sprintf("it led to port %d of node %s, and then no longer", g.local, g.info.NodeGUID)
	})
	s.lookAnew(r)
	s.settle(b)
}

// question asks the next suspect, or what it is connected to, once more.
func (s *sweep) question(g *sighting) {
	for ; len(g.suspects) > 0; g.suspects = g.suspects[1:] {
		n := g.suspects[0]
		p := &n.ports[g.local]
		switch {
		case p.peer != nil && p.peer.behind(p.peerPort) != nil:
			// Two cables in one port? Then they are two ports.
			s.askNode((*sweep).gotRival, p.peer, p.peerPort, p.peer.behind(p.peerPort)).sighting = g
			return
		case n.isSwitch() && p.view == viewNothing:
			s.ask((*sweep).gotSuspectPort, n, g.local, n.route, mad.AttrPortInfo, uint32(g.local)).sighting = g
			return
		case n.isSwitch() && n.behind(g.local) != nil:
			s.askNode((*sweep).gotSuspectFar, n, g.local, n.behind(g.local)).sighting = g
			return
		}
	}
	s.lookForMarks(g)
}

// gotRival handles NodeInfo from behind the port that the suspect's port is
// said to be connected to.
func (s *sweep) gotRival(r *request) {
	g := r.sighting
	n := g.suspects[0]
	info, local, err := r.nodeInfo()
	if err == nil && sameBox(&info, &n.info) && local == g.local {
		s.acquit(g)
		return
	}
	s.convict(g, n)
	s.lookAnew(r)
}

func (s *sweep) gotSuspectPort(r *request) {
	g := r.sighting
	if r.Err == nil {
		p := &r.node.ports[r.port]
		p.info.Decode(r.Data())
		if p.info.PortPhysicalState != mad.PortPhysicalStateLinkUp {
			s.acquit(g)
			return
		}
		p.view = viewSomething
		if route := r.node.behind(r.port); route != nil {
			s.askNode((*sweep).gotSuspectFar, r.node, r.port, route).sighting = g
			return
		}
	}
	s.convict(g, g.suspects[0])
}

func (s *sweep) gotSuspectFar(r *request) {
	g := r.sighting
	info, local, err := r.nodeInfo()
	if err == nil && (info.NodeGUID != g.from.info.NodeGUID || local != g.port) {
		s.acquit(g)
		return
	}
	s.convict(g, g.suspects[0])
}

// acquit: the suspect is another box.
func (s *sweep) acquit(g *sighting) {
	g.suspects = g.suspects[1:]
	s.question(g)
}

// lookForMarks: another box, then, unless a cable moved at the wrong moment. A
// wrong verdict on a switch would have the sweep find all that is behind it
// once more. So a last test: from behind the sighting, are a suspect's other
// neighbours where they are from the suspect itself?
func (s *sweep) lookForMarks(g *sighting) {
	if len(g.marks) > 0 && g.route.Hops() < mad.MaxHops {
		m := g.marks[0]
		s.ask((*sweep).gotMarkPort, m.node, m.port, g.route, mad.AttrPortInfo, uint32(m.port)).sighting = g
		return
	}
	b := s.bookOf(g.info.NodeGUID)
	b.close(g)
	s.meet(g)
	s.settle(b)
}

// gotMarkPort handles PortInfo of a mark, asked of the node sighted.
func (s *sweep) gotMarkPort(r *request) {
	var i mad.PortInfo
	i.Decode(r.Data())
	if r.Err == nil && i.PortPhysicalState == mad.PortPhysicalStateLinkUp {
		s.askNode((*sweep).gotMark, r.node, r.port, r.sighting.route.Append(uint8(r.port))).sighting = r.sighting
		return
	}
	s.nextMark(r.sighting)
}

func (s *sweep) gotMark(r *request) {
	g := r.sighting
	var info mad.NodeInfo
	info.Decode(r.Data())
	if p := &r.node.ports[r.port]; r.Err == nil && p.peer != nil && sameBox(&info, &p.peer.info) && int(info.LocalPortNum) == p.peerPort {
		s.convict(g, r.node)
		return
	}
	s.nextMark(g)
}

func (s *sweep) nextMark(g *sighting) {
	g.marks = g.marks[1:]
	s.lookForMarks(g)
}

// convict: g is of n after all; the cabling changed.
func (s *sweep) convict(g *sighting, n *found) {
	b := s.bookOf(g.info.NodeGUID)
	b.close(g)
	s.changed(n, g.local, func() string {
		return fmt.Sprintf("it is connected to port %d of %s now", g.port, g.from.label())
	})
	n.unlink(g.local)
	g.from.unlink(g.port)
	s.recognise(n, g)
	s.settle(b)
}

// lookAnew takes the answer to a repeated question for a first one.
func (s *sweep) lookAnew(r *request) {
	r.node.unlink(r.port)
	p := &r.node.ports[r.port]
	if r.Err != nil {
		p.view = viewSomething // reported as changed
		s.settle(s.book(r.node))
		return
	}
	s.gotFar(r)
}

// changed reports that the cabling changed under the sweep.
func (s *sweep) changed(n *found, port int, how func() string) {
	s.note(fabric.ProblemChanged, func() string {
		return fmt.Sprintf("port %d of %s changed during the sweep: %s; discover again", port, n.label(), how())
	})
}

// marks are some of n's ports with known neighbours, none of them an end of g.
func (n *found) marks(g *sighting) (list []mark) {
	const enough = 4 // that all have changed during one sweep is not to be feared
	if !n.isSwitch() {
		return nil
	}
	for i, p := range n.ports {
		if p.peer == nil || i == g.local || p.peer == g.from && p.peerPort == g.port {
			continue
		}
		if list = append(list, mark{n, i}); len(list) == enough {
			break
		}
	}
	return list
}

// loops says whether a link that seems to lead back to where it comes from
// does, and asks if that is not known yet: from behind the link, is the node's
// other neighbour where it should be?
func (s *sweep) loops(b *guidGroup, g *sighting) bool {
	if g.loop == loopReal || g.from.ports[g.port].peer != nil {
		return true
	}
	marks := g.from.marks(g)
	if len(marks) == 0 || g.route.Hops() == mad.MaxHops {
		return true
	}
	if b.examined == nil {
		b.examined = g
		port := marks[0].port
		s.askNode((*sweep).gotLoopFar, g.from, port, g.route.Append(uint8(port))).sighting = g
	}
	return false
}

func (s *sweep) gotLoopFar(r *request) {
	if r.Err != nil { // is there a link at all?
		s.ask((*sweep).gotLoopPort, r.node, r.port, r.sighting.route, mad.AttrPortInfo, uint32(r.port)).sighting = r.sighting
		return
	}
	var info mad.NodeInfo
	info.Decode(r.Data())
	p := r.node.ports[r.port]
	s.loopIs(r.sighting, p.peer == nil || sameBox(&info, &p.peer.info) && int(info.LocalPortNum) == p.peerPort)
}

// gotLoopPort handles PortInfo of the mark, asked through the link.
func (s *sweep) gotLoopPort(r *request) {
	var i mad.PortInfo
	i.Decode(r.Data())
	s.loopIs(r.sighting, r.Err != nil || i.PortPhysicalState == mad.PortPhysicalStateLinkUp)
}

// loopIs ends the test. Where nothing came of it the link is what it seems.
func (s *sweep) loopIs(g *sighting, real bool) {
	g.loop = loopFalse
	if real {
		g.loop = loopReal
	}
	b := s.bookOf(g.info.NodeGUID)
	b.examined = nil
	s.settle(b)
}
