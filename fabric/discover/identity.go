package discover

import (
	"fmt"
	"slices"

	"fabsh/mad"
)

// joiner decides which node is behind a link, and joins the two.
//
// The GUID should identify the node, but there are nodes that share a GUID, and nodes whose
// GUID is 0. So the far end of a link is taken for a known node only if both agree: NodeInfo
// is equal, and that node, asked what is behind its own end of the link, answers with the near
// end. The sweep asks at both ends of a link anyway, so this costs nothing. A CA forwards
// nothing: of its ports it is enough that the link is up.
//
// Where they disagree, the node is another one, or the cabling changed between two answers:
// the rechecker finds out.
type joiner struct {
	explorer  *explorer
	rechecker rechecker
}

// match reports whether a far end is a known node's.
type match uint8

const (
	matchNo match = iota
	matchUnknown
	matchYes
)

// loopTest is whether a link leads from a node to itself, or to another node with its GUID that
// is cabled alike, port for port.
type loopTest uint8

const (
	loopUntested loopTest = iota
	loopReal
	loopFalse
)

// settleUpdates settles what the linkUpdates are about.
func (j *joiner) settleUpdates() {
	x := j.explorer
	for i := 0; i < len(x.updates); i++ { // there may be more meanwhile
		j.settle(x.updates[i].group, x.updates[i].port)
	}
	x.updates = x.updates[:0]
}

// settle identifies the far ends of g that can be identified by now. It is called
// whenever something that this depends on has become known: of far ends at one
// port, or at allPorts. A switch has as many open far ends as ports, and each is
// checked a few times, not once for each of the others.
func (j *joiner) settle(g *guidGroup, port int) {
	for i := g.next(0, port); i < len(g.open); i = g.next(i+1, port) {
		f := g.open[i]
		m, n := j.match(g, f)
		switch {
		case f == g.rechecked, m == matchUnknown:
			continue
		case m == matchYes:
			g.close(f)
			j.identify(n, f)
			if len(g.nodes) > 1 || f.from == n {
				port = allPorts
			}
		case len(f.candidates) == 0:
			g.close(f)
			j.addFarNode(f)
			port = allPorts
		case g.rechecked == nil:
			g.rechecked = f
			j.rechecker.recheck(f)
			continue
		default:
			continue
		}
		i = -1 // a decision may allow others
	}
}

// match reports whether f is an end of one of g's nodes, and of which. Of matchNo,
// f.candidates are the nodes that agree with f except in their links.
func (j *joiner) match(g *guidGroup, f *farEnd) (match, *sweepNode) {
	if f == g.rechecked {
		return matchUnknown, nil
	}
	m := matchNo
	f.candidates = f.candidates[:0]
	for _, n := range g.nodes {
		if !sameNode(&n.info, &f.info) || n == f.from && f.loop == loopFalse {
			continue
		}
		switch j.confirms(n, f) {
		case matchYes:
			if n != f.from || j.rechecker.loops(g, f) {
				return matchYes, n
			}
			m = matchUnknown
		case matchUnknown:
			m = matchUnknown
		}
		f.candidates = append(f.candidates, n)
	}
	return m, nil
}

// confirms reports whether n, asked what is behind its end of the link, names the
// near end of f. Where n was not asked yet, it is now.
func (j *joiner) confirms(n *sweepNode, f *farEnd) match {
	p, q := &n.ports[f.local], &f.from.ports[f.port]
	switch {
	case p.peer == f.from && p.peerPort == f.port:
		return matchYes
	case p.peer != nil, q.peer != nil, p.view == viewNothing:
		return matchNo
	case p.view == viewFar:
		if p.farGUID == f.from.info.NodeGUID && int(p.farPort) == f.port {
			return matchYes
		}
		return matchNo
	case p.view == viewSomething:
		return matchYes // nothing contradicts it
	case p.view == viewOutside:
		if n.behind(f.local) == nil {
			return matchYes
		}
		j.explorer.cross(n, f.local)
	case !n.isSwitch() && !p.asked:
		j.explorer.askPort(n, f.local, n.route)
	}
	return matchUnknown
}

// identify makes f an end of n.
func (j *joiner) identify(n *sweepNode, f *farEnd) {
	p := &n.ports[f.local]
	if p.peer == nil {
		j.link(n, f.local, f.from, f.port)
	}
	if f.upward() && len(f.route) < len(n.route) {
		n.onStartRoute, n.info, n.route = true, f.info, f.route
		if n.route.Hops() > 0 && (j.explorer.hops == 0 || n.hops < j.explorer.hops) {
			j.explorer.cross(n, n.via()) // the next node of the route, even if it is known
		}
	}
	if !n.isSwitch() && int(f.info.LocalPortNum) == f.local {
		p.guid = f.info.PortGUID
		if !p.known && p.view == viewSomething { // it did not answer for its other port
			j.explorer.askPort(n, f.local, f.route)
		}
	}
}

// addFarNode makes a new node of f.
func (j *joiner) addFarNode(f *farEnd) {
	if j.explorer.findings.tooMany(&f.info) {
		return
	}
	n := j.explorer.findings.add(f.info, f.route, f.from.hops+1)
	n.onStartRoute = f.upward()
	f.from.unlink(f.port)
	j.link(n, f.local, f.from, f.port)
	j.explorer.explore(n)
}

// link connects two ports.
func (j *joiner) link(n *sweepNode, port int, m *sweepNode, mport int) {
	n.ports[port].peer, n.ports[port].peerPort = m, mport
	m.ports[mport].peer, m.ports[mport].peerPort = n, port
	j.relax(n, m)
	j.relax(m, n)
}

// relax is the relaxation of the link from n to m: m is at most n's distance
// plus one link away. Answers come in any order, so the first route found to a node need
// not be the shortest.
func (j *joiner) relax(n, m *sweepNode) {
	if n.hops+1 >= m.hops || n.behind(n.via()) == nil && !n.isSwitch() {
		return
	}
	m.hops = n.hops + 1
	for port := range m.ports {
		switch p := &m.ports[port]; {
		case p.peer != nil:
			j.relax(m, p.peer)
		case p.view == viewOutside:
			j.explorer.expand(m, port)
		}
	}
}

// conclude does what follows from the outcome of a recheck, whose last answer is r's.
func (j *joiner) conclude(r *request, o outcome) {
	if o.is == undecided {
		return
	}
	f, all := o.farEnd, j.explorer.findings
	g := all.group(f.info.NodeGUID)
	if o.is == isLoop || o.is == isNoLoop {
		g.endLoopTest(f, o.is)
		j.settle(g, allPorts)
		return
	}
	g.close(f)
	switch o.is {
	case isElsewhere:
		all.changed(f.from, f.port, func() string {
			return fmt.Sprintf("it led to port %d of node %s and later did not", f.local, f.info.NodeGUID)
		})
		j.relink(r)
		j.settleUpdates()
	case isCandidate:
		all.changed(o.node, f.local, func() string {
			return fmt.Sprintf("it is now connected to port %d of %s", f.port, f.from.label())
		})
		o.node.unlink(f.local)
		f.from.unlink(f.port)
		j.identify(o.node, f)
	case isNew:
		j.addFarNode(f)
	}
	j.settle(g, allPorts)
	if o.relinks {
		j.settleUpdates()
		j.relink(r)
	}
}

// relink takes the answer to a repeated request for a first one.
func (j *joiner) relink(r *request) {
	r.node.unlink(r.port)
	if r.Err != nil {
		j.explorer.setView(r.node, r.port, viewSomething) // reported as changed
		return
	}
	r.purpose = readFar
	j.explorer.gotFar(r)
}

// endLoopTest records whether f leads back to the node that it comes from.
func (g *guidGroup) endLoopTest(f *farEnd, is verdict) {
	f.loop = loopFalse
	if is == isLoop {
		f.loop = loopReal
		for _, o := range g.open { // the other end need not be tested
			if o.from == f.from && o.port == f.local && o.local == f.port {
				o.loop = loopReal
			}
		}
	}
	g.rechecked = nil
}

// rechecker repeats requests for a far end that looks like a known node, whose links contradict
// it: first to both ends of the link, then, if they still disagree, it compares what is behind
// the far end with what is known of the candidates. Of a group one far end is rechecked at a
// time, for the result may identify the others.
//
// It changes nothing that was found, except what answers show of candidates' ports: the joiner
// does, by the outcome.
type rechecker struct{ queue *queue }

// outcome is what a recheck has come to.
type outcome struct {
	farEnd  *farEnd
	is      verdict
	node    *sweepNode // of isCandidate: whose end farEnd is
	relinks bool       // the answer counts as an answer to a first request, too
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
func (n *sweepNode) knownNeighbours(f *farEnd) (list []nodePort) {
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

// loops reports whether f, which looks like its near end, leads back to the node that it comes
// from: a loopback. Else it leads to another node with the GUID that is cabled alike, port for
// port. Where that is not known yet it is asked for: is the node's other neighbour behind f too?
func (c *rechecker) loops(g *guidGroup, f *farEnd) bool {
	if f.loop == loopReal || f.from.ports[f.port].peer != nil {
		return true
	}
	neighbours := f.from.knownNeighbours(f)
	if len(neighbours) == 0 || f.route.Hops() == mad.MaxHops {
		return true
	}
	if g.rechecked == nil {
		g.rechecked = f
		port := neighbours[0].port
		c.queue.askNode(recheckLoop, f.from, port, f.route.Append(uint8(port))).farEnd = f
	}
	return false
}

// gotLoopNeighbour handles NodeInfo of the neighbour, asked through the link.
func (c *rechecker) gotLoopNeighbour(r *request) outcome {
	if r.Err != nil { // is that port up at all?
		c.queue.ask(recheckLoopPort, r.node, r.port, r.farEnd.route, mad.AttrPortInfo, uint32(r.port)).farEnd = r.farEnd
		return outcome{}
	}
	var info mad.NodeInfo
	info.Decode(r.Data())
	p := r.node.ports[r.port]
	return loopOutcome(r.farEnd, p.peer == nil || sameNode(&info, &p.peer.info) && int(info.LocalPortNum) == p.peerPort)
}

// gotLoopPort handles PortInfo of the port to the neighbour, asked through the
// link.
func (c *rechecker) gotLoopPort(r *request) outcome {
	var i mad.PortInfo
	i.Decode(r.Data())
	return loopOutcome(r.farEnd, r.Err != nil || i.PortPhysicalState == mad.PortPhysicalStateLinkUp)
}

// loopOutcome concludes that f is a loop, unless the neighbour contradicts it.
func loopOutcome(f *farEnd, real bool) outcome {
	if real {
		return outcome{farEnd: f, is: isLoop}
	}
	return outcome{farEnd: f, is: isNoLoop}
}
