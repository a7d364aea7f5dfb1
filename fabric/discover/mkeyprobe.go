package discover

import (
	"errors"
	"slices"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// The M_Key probe. A node with M_KeyProtectBits 2 or 3 does not answer a Get
// without its M_Key, but tells the subnet manager of each (trap 256, IBA
// 14.2.4). To spare a fabric of such nodes a storm of traps, the sweep asks a
// few neighbours of its first node for NodeInfo, and all others only when one
// has answered; if none does, the others are asked once each.

// keyProbe is the state of the M_Key probe.
type keyProbe struct {
	done     bool  // a neighbour has answered
	open     int   // requests for NodeInfo of neighbours
	deferred []int // ports of the first node that wait for an answer
	retries  int   // of requests for NodeInfo: 0, the engine's; -1, none
}

// probeFirst is how many neighbours are asked first.
const probeFirst = 4

// defers: what is behind port of n is not asked for yet.
func (s *sweep) defers(n *found, port int) bool {
	p := &s.probe
	switch {
	case p.done || n != s.nodes[0]:
		return false
	case p.open < probeFirst || p.retries < 0:
		p.open++
		return false
	}
	p.deferred = append(p.deferred, port)
	return true
}

// probed takes note of the end of a request for NodeInfo. Once one neighbour has
// answered, or the first few have not, the deferred ones are asked; those that
// were asked without retries in the meantime are asked again when one answers.
func (s *sweep) probed(r *request) {
	p, first := &s.probe, s.nodes[0]
	if r.node != first {
		return
	}
	silent, once := errors.Is(r.Err, engine.ErrTimeout), r.Retries < 0
	if p.done {
		if silent && once {
			s.retryCross(r.port)
		}
		return
	}
	p.open--
	switch {
	case !silent:
		p.done, p.retries = true, 0
	case once, p.open > 0:
		return
	default:
		p.retries = -1
	}
	deferred := p.deferred
	p.deferred = nil
	for _, port := range deferred {
		s.retryCross(port)
	}
}

// retryCross asks what is behind a port of the first node, whatever came of
// asking before.
func (s *sweep) retryCross(port int) {
	first := s.nodes[0]
	s.failures = slices.DeleteFunc(s.failures, func(f failure) bool {
		return f.node == first && f.port == port && f.attr == mad.AttrNodeInfo
	})
	s.cross(first, port)
}

// allSilent: the first node has neighbours, and none of them answers.
func (s *sweep) allSilent() bool { return !s.probe.done && len(s.nodes) == 1 }

// keyAdvice says in words how to ask nodes with an M_Key.
func (s *sweep) keyAdvice() string {
	if s.engine.Options().Keys == nil {
		return `an M_Key: give it with --keys FILE, or ask the subnet administrator with discover(via="sa")`
	}
	return `another M_Key than that of --keys; or ask the subnet administrator with discover(via="sa")`
}

// guard is whose M_Key a request needs that is about n, or, for NodeInfo, about
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
