package discover

import (
	"errors"
	"slices"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// A node that wants an M_Key for Gets does not answer without it, but tells the
// subnet manager of each try (trap 256, IBA 14.2.4). Where all of a fabric's
// nodes do, the sweep goes no further than the neighbours of its first node.
// Of these it asks a few first; if none answers, the others once only.

// keyProbe is how far a sweep has come in finding out whether its first node has
// neighbours that talk.
type keyProbe struct {
	over    bool  // one has answered
	open    int   // asked
	held    []int // ports behind which nobody was asked yet
	retries int   // of requests for NodeInfo
}

// scouts is how many neighbours are asked first.
const scouts = 4

// holds: port, of the first node, is not crossed yet.
func (s *sweep) holds(n *found, port int) bool {
	h := &s.hush
	switch {
	case h.over || n != s.nodes[0]:
		return false
	case h.open < scouts || h.retries < 0:
		h.open++
		return false
	}
	h.held = append(h.held, port)
	return true
}

// heard takes note of the end of a request for the NodeInfo of a neighbour.
func (s *sweep) heard(r *request) {
	h, first := &s.hush, s.nodes[0]
	if r.node != first {
		return
	}
	silent, once := errors.Is(r.Err, engine.ErrTimeout), r.Retries < 0
	if h.over {
		if silent && once {
			s.crossAgain(r.port)
		}
		return
	}
	h.open--
	switch {
	case !silent:
		h.over, h.retries = true, 0
	case once, h.open > 0:
		return
	default:
		h.retries = -1
	}
	held := h.held
	h.held = nil
	for _, port := range held {
		s.crossAgain(port)
	}
}

// crossAgain asks what is behind a port of the first node, whatever came of
// asking before.
func (s *sweep) crossAgain(port int) {
	first := s.nodes[0]
	s.failures = slices.DeleteFunc(s.failures, func(f failure) bool {
		return f.node == first && f.port == port && f.attr == mad.AttrNodeInfo
	})
	s.cross(first, port)
}

// silent: the first node has neighbours, and none of them answers.
func (s *sweep) silent() bool { return !s.hush.over && len(s.nodes) == 1 }

// wants says in words how to ask nodes with an M_Key.
func (s *sweep) wants() string {
	if s.engine.Options().Keys == nil {
		return `an M_Key: give it with --keys FILE, or ask the subnet administrator with discover(via="sa")`
	}
	return `another M_Key than that of --keys; or ask the subnet administrator with discover(via="sa")`
}

// guard is whose M_Key a request wants that is about n, or, for NodeInfo, about
// what is behind one of its ports.
func (s *sweep) guard(n *found, port int, a *mad.Attribute) (g engine.Guard) {
	switch {
	case a != mad.AttrNodeInfo:
		return engine.Guard{Port: n.info.PortGUID, Node: n.info.NodeGUID}
	case n == nil && s.local != g:
		return s.local
	case s.opt.Known == nil:
		return g
	case n == nil:
		if p := s.opt.Known.PortAt(s.opt.Around); p != nil {
			g = p.Guard()
		}
		return g
	}
	for _, known := range s.opt.Known.NodeByGUID(n.info.NodeGUID) {
		if p := known.Port(port); p != nil && p.Peer() != nil {
			return p.Peer().Guard()
		}
	}
	return g
}
