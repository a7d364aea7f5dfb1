package discover

import "fabsh/mad"

// A link whose far end looks like its near end may be a loopback, or lead to
// another node of the same GUID that is cabled alike, port for port.

// loops reports whether f leads back to the node that it comes from. Where that is
// not known yet it is asked for: is the node's other neighbour behind f too?
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
