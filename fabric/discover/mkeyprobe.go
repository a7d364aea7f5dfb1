package discover

import (
	"errors"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// The M_Key probe. A node with M_KeyProtectBits 2 or 3 does not answer a Get
// without its M_Key, but notifies the subnet manager of each (trap 256, IBA
// 14.2.4). To spare a fabric of such nodes a storm of traps, the sweep asks a
// few neighbours of its first node for NodeInfo, and all others only when one
// has answered; if none does, the others are asked once each.

// keyProbe is the state of the M_Key probe.
type keyProbe struct {
	done     bool  // a neighbour has answered
	open     int   // requests for NodeInfo of neighbours
	deferred []int // ports of the first node that wait for an answer
}

// probeFirst is how many neighbours are asked first.
const probeFirst = 4

// defers reports whether the request through port of n is still deferred.
func (x *explorer) defers(n *found, port int) bool {
	p := &x.probe
	switch {
	case p.done || n != x.findings.nodes[0]:
		return false
	case p.open < probeFirst || x.queue.retries < 0:
		p.open++
		return false
	}
	p.deferred = append(p.deferred, port)
	return true
}

// probed takes note of the end of a request for NodeInfo. Once one neighbour has
// answered, or the first few have not, the deferred ones are asked; those that
// were asked without retries in the meantime are asked again when one answers.
func (x *explorer) probed(r *request) {
	p, first := &x.probe, x.findings.nodes[0]
	if r.node != first {
		return
	}
	silent, once := errors.Is(r.Err, engine.ErrTimeout), r.Retries < 0
	if p.done {
		if silent && once {
			x.retryCross(r.port)
		}
		return
	}
	p.open--
	switch {
	case !silent:
		p.done, x.queue.retries = true, 0
	case once, p.open > 0:
		return
	default:
		x.queue.retries = -1
	}
	deferred := p.deferred
	p.deferred = nil
	for _, port := range deferred {
		x.retryCross(port)
	}
}

// retryCross asks what is behind a port of the first node, whatever came of
// asking before.
func (x *explorer) retryCross(port int) {
	first := x.findings.nodes[0]
	x.findings.failures = slices.DeleteFunc(x.findings.failures, func(f failure) bool {
		return f.node == first && f.port == port && f.attr == mad.AttrNodeInfo
	})
	x.cross(first, port)
}

// keyAdvice describes how to query nodes with an M_Key, where that may help: the first
// node has neighbours, and none of them answers. Else it is empty.
func (x *explorer) keyAdvice(keys *engine.Keys) string {
	switch {
	case x.probe.done || len(x.findings.nodes) != 1:
		return ""
	case keys == nil:
		return `an M_Key: give it with --keys FILE, or query the subnet administrator with discover(via="sa")`
	}
	return `another M_Key than that of --keys; or query the subnet administrator with discover(via="sa")`
}

// guards are whose M_Keys requests need.
type guards struct {
	local  engine.Guard      // of the local port, where there are keys
	known  *fabric.Fabric    // Options.Known
	around mad.DirectedRoute // Options.Around
}

// of is whose M_Key a request needs that is about a node, or, for NodeInfo, about
// what is behind one of its ports.
func (k *guards) of(q *question) (g engine.Guard) {
	switch n := q.node; {
	case q.attr != mad.AttrNodeInfo:
		return engine.Guard{Port: n.info.PortGUID, Node: n.info.NodeGUID}
	case n == nil && k.local != g:
		return k.local
	case k.known == nil:
		return g
	case n == nil:
		if p := k.known.PortAt(k.around); p != nil {
			g = p.Guard()
		}
		return g
	}
	for _, known := range k.known.NodeByGUID(q.node.info.NodeGUID) {
		if p := known.Port(q.port); p != nil && p.Peer() != nil {
			return p.Peer().Guard()
		}
	}
	return g
}
