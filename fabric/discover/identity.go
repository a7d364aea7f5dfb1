package discover

import (
	"bytes"
	"fmt"
	"slices"

	"fabsh/mad"
)

// Which node is behind a link? Its GUID should say so, but there are nodes that
// share a GUID, and nodes whose GUID is 0. So the far end of a link is taken for
// a known node only if both agree: NodeInfo is the same, and that node, asked
// what is behind its own end of the link, answers with the near end. The sweep
// asks at both ends of a link anyway, so this costs nothing. A CA lets nothing
// through: of its ports it is enough that the link is up.
//
// Where they disagree, the node is another one, or the cabling changed between
// two answers: see recheck.go.

// guidGroup is all there is under one node GUID.
type guidGroup struct {
	nodes     []*found
	open      []*farEnd // not identified yet
	local     []byte    // their ports
	rechecked *farEnd   // the one of open that is asked about again
}

// farEnd is the far end of a link, as NodeInfo asked through a port tells it.
type farEnd struct {
	from  *found // the near end
	port  int
	route mad.DirectedRoute // of the request
	info  mad.NodeInfo
	local int // the port at the far end
	// candidates are the known nodes with the same NodeInfo, and neighbours
	// some of their ports with known peers: what a recheck has left to ask.
	candidates []*found
	neighbours []nodePort
	loop       loopTest
}

// nodePort is a port of a node.
type nodePort struct {
	node *found
	port int
}

// upward: the request went towards the local port.
func (f *farEnd) upward() bool { return len(f.route) < len(f.from.route) }

// loopTest: does a link lead from a node to itself, or to another of the same
// GUID that is cabled alike, port for port?
type loopTest uint8

const (
	loopUntested loopTest = iota
	loopReal
	loopFalse
)

// match says whether a far end is a known node's.
type match uint8

const (
	matchNo match = iota
	matchUnknown
	matchYes
)

// group is the group of a node GUID.
func (s *sweep) group(guid mad.GUID) *guidGroup {
	g := s.groups[guid]
	if g == nil {
		g = new(guidGroup)
		s.groups[guid] = g
	}
	return g
}

func (s *sweep) groupOf(n *found) *guidGroup { return s.group(n.info.NodeGUID) }

// nodeInfo reads an answer, and says which port of the far node the link is
// connected to: the one that the request came in through, unless the route
// ends on the near side of the node asked about (found.onStartRoute).
func (r *request) nodeInfo() (info mad.NodeInfo, local int, err error) {
	if r.Err != nil {
		return info, 0, r.Err
	}
	info.Decode(r.Data())
	local = int(info.LocalPortNum)
	least := 1
	if r.node == nil {
		least = 0 // a switch is its own port 0
	} else if h := r.node.route.Hops(); r.route.Hops() < h {
		local = int(r.node.route[h])
	}
	if n := int(info.NumPorts); n == 0 || int(info.LocalPortNum) > n || local < least || local > n {
		return info, 0, fmt.Errorf("its NodeInfo says that it was asked through port %d of %d", local, n)
	}
	return info, local, nil
}

// addFarEnd begins to identify f.
func (s *sweep) addFarEnd(f *farEnd) {
	g := s.group(f.info.NodeGUID)
	g.open, g.local = append(g.open, f), append(g.local, byte(f.local))
	s.settle(g, f.local)
}

// allPorts: see settle.
const allPorts = -1

// settle identifies those far ends of g that can be by now. It is called
// whenever something that this depends on has become known: of far ends at one
// port, or at allPorts. A switch has as many open far ends as ports, and each is
// looked at a few times, not once for each of the others.
func (s *sweep) settle(g *guidGroup, port int) {
	for i := g.next(0, port); i < len(g.open); i = g.next(i+1, port) {
		f := g.open[i]
		m, n := s.match(g, f)
		switch {
		case f == g.rechecked, m == matchUnknown:
			continue
		case m == matchYes:
			g.close(f)
			s.identify(n, f)
			if len(g.nodes) > 1 || f.from == n {
				port = allPorts
			}
		case len(f.candidates) == 0:
			g.close(f)
			s.addFarNode(f)
			port = allPorts
		case g.rechecked == nil:
			g.rechecked = f
			s.recheck(f)
			continue
		default:
			continue
		}
		i = -1 // a decision may allow others
	}
}

// next is the first of g's open far ends from i on that is at port, or their number.
func (g *guidGroup) next(i, port int) int {
	if port == allPorts || i >= len(g.open) {
		return i
	}
	if n := bytes.IndexByte(g.local[i:], byte(port)); n >= 0 {
		return i + n
	}
	return len(g.open)
}

// close takes f off the open far ends.
func (g *guidGroup) close(f *farEnd) {
	if i := slices.Index(g.open, f); i >= 0 {
		g.open, g.local = slices.Delete(g.open, i, i+1), slices.Delete(g.local, i, i+1)
	}
	if g.rechecked == f {
		g.rechecked = nil
	}
}

// match says whether f is an end of one of g's nodes, and of which. Of matchNo,
// f.candidates are those that are the same but for their links.
func (s *sweep) match(g *guidGroup, f *farEnd) (match, *found) {
	if f == g.rechecked {
		return matchUnknown, nil
	}
	m := matchNo
	f.candidates = f.candidates[:0]
	for _, n := range g.nodes {
		if !sameNode(&n.info, &f.info) || n == f.from && f.loop == loopFalse {
			continue
		}
		switch s.confirms(n, f) {
		case matchYes:
			if n != f.from || s.loops(g, f) {
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

// sameNode: a and b may be answers of one node, asked on two routes.
func sameNode(a, b *mad.NodeInfo) bool {
	x, y := *a, *b
	x.LocalPortNum, y.LocalPortNum = 0, 0
	if x.NodeType != mad.NodeTypeSwitch {
		x.PortGUID, y.PortGUID = 0, 0
	}
	return x == y
}

// confirms says whether n, asked what is behind its end of the link, names the
// near end of f. Where n was not asked yet, it is now.
func (s *sweep) confirms(n *found, f *farEnd) match {
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
		s.cross(n, f.local)
	case !n.isSwitch() && !p.asked:
		s.askPort(n, f.local, n.route)
	}
	return matchUnknown
}

// identify: f is an end of n.
func (s *sweep) identify(n *found, f *farEnd) {
	p := &n.ports[f.local]
	if p.peer == nil {
		s.link(n, f.local, f.from, f.port)
	}
	if f.upward() && len(f.route) < len(n.route) {
		n.onStartRoute, n.info, n.route = true, f.info, f.route
		if n.route.Hops() > 0 && (s.opt.Hops == 0 || n.hops < s.opt.Hops) {
			s.cross(n, n.via()) // the next node of the route, even if it is known
		}
	}
	if !n.isSwitch() && int(f.info.LocalPortNum) == f.local {
		p.guid = f.info.PortGUID
		if !p.known && p.view == viewSomething { // it did not answer for its other port
			s.askPort(n, f.local, f.route)
		}
	}
}

// addFarNode makes a new node of f.
func (s *sweep) addFarNode(f *farEnd) {
	if s.tooMany(&f.info) {
		return
	}
	n := s.add(f.info, f.route, f.from.hops+1)
	n.onStartRoute = f.upward()
	f.from.unlink(f.port)
	s.link(n, f.local, f.from, f.port)
	s.explore(n)
}
