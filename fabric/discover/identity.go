package discover

import "fmt"

// Which node is behind a link? Its GUID should say so, but there are nodes that
// share a GUID, and nodes whose GUID is 0. So the far end of a link is taken for
// a known node only if both agree: NodeInfo is the same, and that node, asked
// what is behind its own end of the link, answers with the near end. The sweep
// asks at both ends of a link anyway, so this costs nothing. A CA lets nothing
// through: of its ports it is enough that the link is up.
//
// Where they disagree, the node is another one, or the cabling changed between
// two answers: see recheck.go.

// joiner decides which nodes are behind links, and joins those.
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

// loopTest is the question whether a link leads from a node to itself, or to another of the same
// GUID that is cabled alike, port for port.
type loopTest uint8

const (
	loopUntested loopTest = iota
	loopReal
	loopFalse
)

// settleNews settles all that there is news of.
func (j *joiner) settleNews() {
	x := j.explorer
	for i := 0; i < len(x.news); i++ { // there may be more meanwhile
		j.settle(x.news[i].group, x.news[i].port)
	}
	x.news = x.news[:0]
}

// settle identifies those far ends of g that can be by now. It is called
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
// f.candidates are those that are the same but for their links.
func (j *joiner) match(g *guidGroup, f *farEnd) (match, *found) {
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
func (j *joiner) confirms(n *found, f *farEnd) match {
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
func (j *joiner) identify(n *found, f *farEnd) {
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
func (j *joiner) link(n *found, port int, m *found, mport int) {
	n.ports[port].peer, n.ports[port].peerPort = m, mport
	m.ports[mport].peer, m.ports[mport].peerPort = n, port
	j.relax(n, m)
	j.relax(m, n)
}

// relax is the relaxation of the link from n to m: m is at most n's distance
// plus one link away. Answers come in any order, so the first route found to a node need
// not be the shortest.
func (j *joiner) relax(n, m *found) {
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
		j.settleNews()
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
		j.settleNews()
		j.relink(r)
	}
}

// relink takes the answer to a repeated request for a first one.
func (j *joiner) relink(r *request) {
	r.node.unlink(r.port)
	if r.Err != nil {
		j.explorer.see(r.node, r.port, viewSomething) // reported as changed
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
