package discover

import (
	"fmt"

	"fabsh/mad"
)

// Who is who. A GUID should tell whether the node behind a link is one that is
// known already, but boxes with the same GUID exist, and so do boxes without
// one. A sighting is therefore taken for a known node only if the two agree:
// NodeInfo is the same, and the port named in the sighting leads, as seen from
// the known node, to where the sighting comes from. Since the sweep asks at
// both ends of a link anyway, this costs nothing. On CAs, which let nothing
// through, the port in question must at least be up as seen from the known
// port.
//
// Where they disagree, either the box is another one or the cabling changed
// between two answers: see recheck.go.

// guidGroup is all there is under one node GUID.
type guidGroup struct {
	nodes    []*found
	open     []*sighting
	examined *sighting // the one of open that is asked about again
}

// sighting is an answer to NodeInfo from behind a port.
type sighting struct {
	from     *found
	port     int
	route    mad.DirectedRoute // of the question
	info     mad.NodeInfo
	local    int // the far end of the link
	suspects []*found
	marks    []mark
	loop     loopTest
}

// mark is a port by whose neighbour a switch can be known.
type mark struct {
	node *found
	port int
}

// upward: the question went towards the local port.
func (g *sighting) upward() bool { return len(g.route) < len(g.from.route) }

// loopTest: a link from a node to itself, or to a twin cabled port for port?
type loopTest uint8

const (
	loopUntested loopTest = iota
	loopReal
	loopFalse
)

type verdict uint8

const (
	verdictNo verdict = iota
	verdictUnknown
	verdictYes
)

func (s *sweep) book(n *found) *guidGroup { return s.bookOf(n.info.NodeGUID) }

func (s *sweep) bookOf(g mad.GUID) *guidGroup {
	b := s.books[g]
	if b == nil {
		b = new(guidGroup)
		s.books[g] = b
	}
	return b
}

// nodeInfo reads an answer, and says which port of the far node the link is
// connected to: the one that the request came in through, unless the route
// ends on the near side of the node asked about (found.anchor).
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

// sight takes up a sighting.
func (s *sweep) sight(g *sighting) {
	b := s.bookOf(g.info.NodeGUID)
	b.open = append(b.open, g)
	s.settle(b)
}

// settle decides what can be decided of b's open sightings. It is called
// whenever something that it depends on has become known.
func (s *sweep) settle(b *guidGroup) {
	for i := 0; i < len(b.open); i++ {
		g := b.open[i]
		v, n := s.judge(b, g)
		switch {
		case g == b.examined, v == verdictUnknown:
			continue
		case v == verdictYes:
			b.close(g)
			s.recognise(n, g)
		case len(g.suspects) == 0:
			b.close(g)
			s.meet(g)
		case b.examined == nil:
			b.examined = g
			s.askAgain(g)
			continue
		default:
			continue
		}
		i = -1 // a decision may allow others
	}
}

// close takes g off the open sightings.
func (b *guidGroup) close(g *sighting) {
	for i := range b.open {
		if b.open[i] == g {
			b.open = append(b.open[:i], b.open[i+1:]...)
			break
		}
	}
	if b.examined == g {
		b.examined = nil
	}
}

// judge says whether g is one of b's nodes. Of a No, g.suspects are those that
// look the same but for their links.
func (s *sweep) judge(b *guidGroup, g *sighting) (verdict, *found) {
	if g == b.examined {
		return verdictUnknown, nil
	}
	v := verdictNo
	g.suspects = g.suspects[:0]
	for _, n := range b.nodes {
		if !sameBox(&n.info, &g.info) || n == g.from && g.loop == loopFalse {
			continue
		}
		switch s.sees(n, g) {
		case verdictYes:
			if n != g.from || s.loops(b, g) {
				return verdictYes, n
			}
			v = verdictUnknown
		case verdictUnknown:
			v = verdictUnknown
		}
		g.suspects = append(g.suspects, n)
	}
	return v, nil
}

// sameBox: a and b may be answers of one node, asked on two routes.
func sameBox(a, b *mad.NodeInfo) bool {
	x, y := *a, *b
	x.LocalPortNum, y.LocalPortNum = 0, 0
	if x.NodeType != mad.NodeTypeSwitch {
		x.PortGUID, y.PortGUID = 0, 0
	}
	return x == y
}

// sees says whether n, asked about its end of the link, confirms g.
func (s *sweep) sees(n *found, g *sighting) verdict {
	p, q := &n.ports[g.local], &g.from.ports[g.port]
	switch {
	case p.peer == g.from && p.peerPort == g.port:
		return verdictYes
	case p.peer != nil, q.peer != nil, p.view == viewNothing:
		return verdictNo
	case p.view == viewFar:
		if p.farGUID == g.from.info.NodeGUID && int(p.farPort) == g.port {
			return verdictYes
		}
		return verdictNo
	case p.view == viewSomething:
		return verdictYes // nothing speaks against it
	case p.view == viewOutside:
		if n.behind(g.local) == nil {
			return verdictYes
		}
		s.cross(n, g.local)
	case !n.isSwitch() && !p.asked:
		s.askPort(n, g.local, n.route)
	}
	return verdictUnknown
}

// recognise: g is of n.
func (s *sweep) recognise(n *found, g *sighting) {
	p := &n.ports[g.local]
	if p.peer == nil {
		s.link(n, g.local, g.from, g.port)
	}
	if g.upward() && len(g.route) < len(n.route) {
		n.anchor, n.info, n.route = true, g.info, g.route
		if n.route.Hops() > 0 && (s.opt.Hops == 0 || n.hops < s.opt.Hops) {
			s.cross(n, n.via()) // to anchor the next one, even if it is known
		}
	}
	if !n.isSwitch() && int(g.info.LocalPortNum) == g.local {
		p.guid = g.info.PortGUID
		if !p.known && p.view == viewSomething { // it did not answer for its other port
			s.askPort(n, g.local, g.route)
		}
	}
}

// meet makes a new node of g.
func (s *sweep) meet(g *sighting) {
	n := s.add(g.info, g.route, g.from.hops+1)
	n.anchor = g.upward()
	g.from.unlink(g.port)
	s.link(n, g.local, g.from, g.port)
	s.explore(n)
}
