package discover

import (
	"bytes"
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
)

// found is a node in the course of a sweep.
type found struct {
	info  mad.NodeInfo // as answered on route
	route mad.DirectedRoute
	name  string
	sw    *mad.SwitchInfo
	ports []portEnd // 0 to NumPorts
	hops  int       // links from where the sweep began
	// onStartRoute: route is Options.Around or a part of it from the local port
	// on. From such a node the sweep goes towards the local port too.
	onStartRoute bool
	rerouted     bool // route is the shortest one
	handle       int  // of the fabric.Builder
}

// portEnd is a port in the course of a sweep.
type portEnd struct {
	info     mad.PortInfo
	known    bool // info is
	asked    bool // PortInfo has been asked for
	fdr10    bool
	view     view
	farGUID  mad.GUID // of viewFar
	farPort  uint8
	guid     mad.GUID // of ports of CAs and routers
	peer     *found
	peerPort int
}

// view is what is known of the far end of a port's link.
type view uint8

const (
	viewUnknown   view = iota // no answer yet
	viewNothing               // the link is down
	viewFar                   // farGUID and farPort
	viewSomething             // the link is up; what is behind did not answer or cannot be asked
	viewOutside               // the link is up; what is behind is further than Options.Hops
)

func (n *found) isSwitch() bool { return n.info.NodeType == mad.NodeTypeSwitch }

func (n *found) label() string { return fabric.NodeLabel(n.name, n.info.NodeGUID) }

// via is the port that n's route comes in through.
func (n *found) via() int { return int(n.info.LocalPortNum) }

// behind is the route to what is connected to a port of n, or nil: only
// switches let SMPs through, and the local node lets them out.
func (n *found) behind(port int) mad.DirectedRoute {
	hops := n.route.Hops()
	switch {
	case n.onStartRoute && port == n.via() && hops > 0:
		return n.route[:hops]
	case hops == mad.MaxHops, !n.isSwitch() && (hops > 0 || port != n.via()):
		return nil
	}
	return n.route.Append(uint8(port))
}

// gotStart handles NodeInfo of the node that the sweep begins at.
func (s *sweep) gotStart(r *request) {
	info, _, err := r.nodeInfo()
	if err != nil {
		s.ended = err
		return
	}
	n := s.add(info, r.route, 0)
	n.onStartRoute = true
	s.explore(n)
}

// add makes a node.
func (s *sweep) add(info mad.NodeInfo, route mad.DirectedRoute, hops int) *found {
	n := &found{info: info, name: s.opt.Names[info.NodeGUID], route: route, hops: hops, ports: make([]portEnd, int(info.NumPorts)+1)}
	n.ports[n.via()].guid = info.PortGUID
	s.nodes = append(s.nodes, n)
	s.ports += len(n.ports)
	b := s.groupOf(n)
	b.nodes = append(b.nodes, n)
	if s.opt.Progress != nil {
		s.opt.Progress(len(s.nodes))
	}
	return n
}

// explore asks a new node for all its attributes. The external ports of a switch
// wait for its port 0: a switch that does not answer is not asked 40 times.
func (s *sweep) explore(n *found) {
	s.ask((*sweep).gotName, n, 0, n.route, mad.AttrNodeDescription, 0)
	if n.isSwitch() {
		s.ask((*sweep).gotSwitch, n, 0, n.route, mad.AttrSwitchInfo, 0)
		s.ask((*sweep).gotPort0, n, 0, n.route, mad.AttrPortInfo, 0)
	} else {
		s.askPort(n, n.via(), n.route)
	}
	if n.onStartRoute && n.route.Hops() > 0 {
		s.expand(n, n.via())
	}
}

func (s *sweep) askPort(n *found, port int, route mad.DirectedRoute) *question {
	n.ports[port].asked = true
	return s.ask((*sweep).gotPort, n, port, route, mad.AttrPortInfo, uint32(port))
}

func (s *sweep) gotName(r *request) {
	if r.Err != nil {
		s.fail(r, mad.AttrNodeDescription)
		return
	}
	text := r.Data()[:mad.AttrNodeDescription.Size]
	if i := bytes.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	if r.node.name == "" {
		r.node.name = string(text)
	}
}

func (s *sweep) gotSwitch(r *request) {
	if r.Err != nil {
		s.fail(r, mad.AttrSwitchInfo)
		return
	}
	r.node.sw = new(mad.SwitchInfo)
	r.node.sw.Decode(r.Data())
}

func (s *sweep) gotPort0(r *request) {
	n := r.node
	if r.Err != nil {
		s.fail(r, mad.AttrPortInfo)
		for i := range n.ports {
			if n.ports[i].view == viewUnknown {
				n.ports[i].view = viewSomething
			}
		}
		s.settle(s.groupOf(n), allPorts)
		return
	}
	n.ports[0].info.Decode(r.Data())
	n.ports[0].known = true
	for port := 1; port < len(n.ports); port++ {
		s.askPort(n, port, n.route)
	}
}

// gotPort handles PortInfo of a port other than a switch's port 0.
func (s *sweep) gotPort(r *request) {
	n, p := r.node, &r.node.ports[r.port]
	if r.Err != nil {
		s.fail(r, mad.AttrPortInfo)
		p.view = viewSomething
		s.settle(s.groupOf(n), r.port)
		return
	}
	p.info.Decode(r.Data())
	p.known = true
	if p.info.PortPhysicalState != mad.PortPhysicalStateLinkUp {
		p.view = viewNothing
		s.settle(s.groupOf(n), r.port)
		return
	}
	caps := &p.info
	if n.isSwitch() {
		caps = &n.ports[0].info
	}
	if !s.opt.PlainSpeeds && fabric.ActiveSpeed(caps, &p.info) == "qdr" && fabric.HasExtPortInfo(&n.info) { // or FDR10
		s.ask((*sweep).gotExtPort, n, r.port, r.route, mad.AttrMlnxExtPortInfo, uint32(r.port))
	}
	switch {
	case n.onStartRoute && r.port == n.via() && n.route.Hops() > 0: // crossed already
	case n.isSwitch() || r.port == n.via():
		s.expand(n, r.port)
	default:
		p.view = viewSomething
		s.settle(s.groupOf(n), r.port)
	}
}

// gotExtPort handles the vendor's attribute. Not every device of a known number
// has it: an error means that it does not run FDR10.
func (s *sweep) gotExtPort(r *request) {
	if r.Err == nil {
		var x mad.MlnxExtPortInfo
		x.Decode(r.Data())
		r.node.ports[r.port].fdr10 = x.IsFDR10()
	}
}

// expand goes through a port whose link is up, unless what is behind is known
// or further than Options.Hops.
func (s *sweep) expand(n *found, port int) {
	switch p := &n.ports[port]; {
	case p.peer != nil:
	case s.opt.Hops > 0 && n.hops >= s.opt.Hops:
		p.view = viewOutside
		s.settle(s.groupOf(n), port)
	default:
		s.cross(n, port)
	}
}

// cross asks what is behind a port.
func (s *sweep) cross(n *found, port int) {
	n.ports[port].view = viewUnknown
	if route := n.behind(port); route != nil {
		if !s.defers(n, port) {
			s.askNode((*sweep).gotFar, n, port, route)
		}
		return
	}
	n.ports[port].view = viewSomething
	s.settle(s.groupOf(n), port)
}

// gotFar handles NodeInfo of what is behind a port.
func (s *sweep) gotFar(r *request) {
	n, p := r.node, &r.node.ports[r.port]
	defer s.probed(r)
	info, local, err := r.nodeInfo()
	if err != nil {
		if r.Err != nil {
			s.fail(r, mad.AttrNodeInfo)
		} else {
			port := r.port
			s.note(fabric.ProblemInvalid, func() string {
				return fmt.Sprintf("the node behind port %d of %s is left out, for %v; look at its management agent", port, n.label(), err)
			})
		}
		p.view = viewSomething
		s.settle(s.groupOf(n), r.port)
		return
	}
	p.view, p.farGUID, p.farPort = viewFar, info.NodeGUID, uint8(local)
	s.addFarEnd(&farEnd{from: n, port: r.port, route: r.route, info: info, local: local})
	s.settle(s.groupOf(n), r.port)
}

// link connects two ports.
func (s *sweep) link(n *found, port int, m *found, mport int) {
	n.ports[port].peer, n.ports[port].peerPort = m, mport
	m.ports[mport].peer, m.ports[mport].peerPort = n, port
	s.relax(n, m)
	s.relax(m, n)
}

// unlink takes back link.
func (n *found) unlink(port int) {
	p := &n.ports[port]
	if p.peer == nil {
		return
	}
	p.peer.ports[p.peerPort].peer = nil
	p.peer = nil
}

// relax is the relaxation of the link from n to m: m is no further away than n
// and one link. Answers come in any order, so the first way found to a node need
// not be the shortest.
func (s *sweep) relax(n, m *found) {
	if n.hops+1 >= m.hops || n.behind(n.via()) == nil && !n.isSwitch() {
		return
	}
	m.hops = n.hops + 1
	for port := range m.ports {
		switch p := &m.ports[port]; {
		case p.peer != nil:
			s.relax(m, p.peer)
		case p.view == viewOutside:
			s.expand(m, port)
		}
	}
}
