package discover

import (
	"slices"

	"fabsh/mad"
)

// A far end that looks like a known node, whose links say otherwise, is
// rechecked: first both ends of the link are asked again, then, if they still
// disagree, what is behind the far end is compared with what is known of the
// candidates. Of a group one far end is rechecked at a time, for the result may
// identify the others.

// rechecker asks again. It changes nothing that was found, except what answers show of
// candidates' ports: the joiner does, by the outcome.
type rechecker struct{ queue *queue }

// outcome is what a recheck has come to.
type outcome struct {
	farEnd  *farEnd
	is      verdict
	node    *found // of isCandidate: whose end farEnd is
	relinks bool   // the answer counts as that to a first request, too
}

// verdict is what is known of a far end.
type verdict uint8

const (
	undecided   verdict = iota // more is asked
	isCandidate                // it is a known node's after all: the cabling changed
	isNew                      // it is a new node's
	isElsewhere                // it has moved: the cabling changed
	isLoop                     // it is the near end's node
	isNoLoop                   // it is another node
)

// recheck begins with the near end: is f still behind it?
func (c *rechecker) recheck(f *farEnd) {
	f.candidates = slices.Clone(f.candidates)
	c.queue.askNode(recheckNear, f.from, f.port, f.route).farEnd = f
}

// gotNear handles NodeInfo from behind the near end.
func (c *rechecker) gotNear(r *request) outcome {
	f := r.farEnd
	info, local, err := r.nodeInfo()
	if err == nil && info == f.info && local == f.local {
		for _, n := range f.candidates {
			f.neighbours = append(f.neighbours, n.knownNeighbours(f)...)
		}
		return c.checkCandidate(f)
	}
	return outcome{farEnd: f, is: isElsewhere}
}

// checkCandidate asks the next candidate, or the node that it is connected to,
// once more.
func (c *rechecker) checkCandidate(f *farEnd) outcome {
	for ; len(f.candidates) > 0; f.candidates = f.candidates[1:] {
		n := f.candidates[0]
		p := &n.ports[f.local]
		switch {
		case p.peer != nil && p.peer.behind(p.peerPort) != nil:
			// One port cannot have two cables: if this one is still there, f is
			// another node's.
			c.queue.askNode(recheckOtherEnd, p.peer, p.peerPort, p.peer.behind(p.peerPort)).farEnd = f
			return outcome{}
		case n.isSwitch() && p.view == viewNothing:
			c.queue.ask(recheckCandidatePort, n, f.local, n.route, mad.AttrPortInfo, uint32(f.local)).farEnd = f
			return outcome{}
		case n.isSwitch() && n.behind(f.local) != nil:
			c.queue.askNode(recheckCandidateFar, n, f.local, n.behind(f.local)).farEnd = f
			return outcome{}
		}
	}
	return c.compareNeighbours(f)
}

// gotOtherEnd handles NodeInfo from behind the port that the candidate's port
// is known to be connected to.
func (c *rechecker) gotOtherEnd(r *request) outcome {
	f := r.farEnd
	n := f.candidates[0]
	info, local, err := r.nodeInfo()
	if err == nil && sameNode(&info, &n.info) && local == f.local {
		return c.reject(f)
	}
	return outcome{farEnd: f, is: isCandidate, node: n, relinks: true}
}

// gotCandidatePort handles PortInfo of the candidate's port, which was down.
func (c *rechecker) gotCandidatePort(r *request) outcome {
	f := r.farEnd
	if r.Err == nil {
		p := &r.node.ports[r.port]
		p.info.Decode(r.Data())
		if p.info.PortPhysicalState != mad.PortPhysicalStateLinkUp {
			return c.reject(f)
		}
		p.view = viewSomething
		if route := r.node.behind(r.port); route != nil {
			c.queue.askNode(recheckCandidateFar, r.node, r.port, route).farEnd = f
			return outcome{}
		}
	}
	return outcome{farEnd: f, is: isCandidate, node: f.candidates[0]}
}

// gotCandidateFar handles NodeInfo from behind the candidate's port.
func (c *rechecker) gotCandidateFar(r *request) outcome {
	f := r.farEnd
	info, local, err := r.nodeInfo()
	if err == nil && (info.NodeGUID != f.from.info.NodeGUID || local != f.port) {
		return c.reject(f)
	}
	return outcome{farEnd: f, is: isCandidate, node: f.candidates[0]}
}

// reject concludes that f is not the candidate's.
func (c *rechecker) reject(f *farEnd) outcome {
	f.candidates = f.candidates[1:]
	return c.checkCandidate(f)
}

// compareNeighbours is the last test. All candidates are rejected, so f is a new
// node, unless a cable moved between two requests; a switch that is taken for
// new by mistake would have the sweep find all that is behind it once more. So
// candidates' neighbours are asked for from behind f.
func (c *rechecker) compareNeighbours(f *farEnd) outcome {
	if len(f.neighbours) > 0 && f.route.Hops() < mad.MaxHops {
		at := f.neighbours[0]
		c.queue.ask(recheckNeighbourPort, at.node, at.port, f.route, mad.AttrPortInfo, uint32(at.port)).farEnd = f
		return outcome{}
	}
	return outcome{farEnd: f, is: isNew}
}

// gotNeighbourPort handles PortInfo that the node at f gives of the port that
// leads to a candidate's neighbour.
func (c *rechecker) gotNeighbourPort(r *request) outcome {
	var i mad.PortInfo
	i.Decode(r.Data())
	if r.Err == nil && i.PortPhysicalState == mad.PortPhysicalStateLinkUp {
		c.queue.askNode(recheckNeighbour, r.node, r.port, r.farEnd.route.Append(uint8(r.port))).farEnd = r.farEnd
		return outcome{}
	}
	return c.nextNeighbour(r.farEnd)
}

// gotNeighbour handles NodeInfo from behind that port.
func (c *rechecker) gotNeighbour(r *request) outcome {
	f := r.farEnd
	var info mad.NodeInfo
	info.Decode(r.Data())
	if p := &r.node.ports[r.port]; r.Err == nil && p.peer != nil && sameNode(&info, &p.peer.info) && int(info.LocalPortNum) == p.peerPort {
		return outcome{farEnd: f, is: isCandidate, node: r.node}
	}
	return c.nextNeighbour(f)
}

func (c *rechecker) nextNeighbour(f *farEnd) outcome {
	f.neighbours = f.neighbours[1:]
	return c.compareNeighbours(f)
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
