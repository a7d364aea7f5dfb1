package discover

import "fabsh/mad"

// A link whose far end looks like its near end may be a loopback, or lead to
// another node of the same GUID that is cabled alike, port for port.

// loops says whether f leads back to the node that it comes from. Where that is
// not known yet it is asked for: is the node's other neighbour behind f too?
func (s *sweep) loops(g *guidGroup, f *farEnd) bool {
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
		s.askNode((*sweep).gotLoopNeighbour, f.from, port, f.route.Append(uint8(port))).farEnd = f
	}
	return false
}

// gotLoopNeighbour handles NodeInfo of the neighbour, asked through the link.
func (s *sweep) gotLoopNeighbour(r *request) {
	if r.Err != nil { // is that port up at all?
		s.ask((*sweep).gotLoopPort, r.node, r.port, r.farEnd.route, mad.AttrPortInfo, uint32(r.port)).farEnd = r.farEnd
		return
	}
	var info mad.NodeInfo
	info.Decode(r.Data())
	p := r.node.ports[r.port]
	s.endLoopTest(r.farEnd, p.peer == nil || sameNode(&info, &p.peer.info) && int(info.LocalPortNum) == p.peerPort)
}

// gotLoopPort handles PortInfo of the port to the neighbour, asked through the
// link.
func (s *sweep) gotLoopPort(r *request) {
	var i mad.PortInfo
	i.Decode(r.Data())
	s.endLoopTest(r.farEnd, r.Err != nil || i.PortPhysicalState == mad.PortPhysicalStateLinkUp)
}

// endLoopTest: f is a loop, unless the neighbour contradicts it.
func (s *sweep) endLoopTest(f *farEnd, real bool) {
	g := s.group(f.info.NodeGUID)
	f.loop = loopFalse
	if real {
		f.loop = loopReal
		for _, o := range g.open { // the other end need not be tested
			if o.from == f.from && o.port == f.local && o.local == f.port {
				o.loop = loopReal
			}
		}
	}
	g.rechecked = nil
	s.settle(g, allPorts)
}
