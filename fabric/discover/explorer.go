package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// explorer reads nodes and their ports, and goes through the links. What an answer shows
// of a link, and what may identify a far end, is a linkUpdate for the joiner.
type explorer struct {
	queue       *queue
	findings    *findings
	hops        int  // Options.Hops
	plainSpeeds bool // Options.PlainSpeeds
	probe       keyProbe
	updates     []linkUpdate
	qdrPorts    []nodePort // that seem to run QDR
}

// linkUpdate records that something has become known on which far ends in group at port, or at
// allPorts, depend.
type linkUpdate struct {
	group *guidGroup
	port  int
}

// allPorts is the port of a linkUpdate about all ports of a group.
const allPorts = -1

// publish adds a linkUpdate about a port of n.
func (x *explorer) publish(n *sweepNode, port int) {
	x.updates = append(x.updates, linkUpdate{x.findings.groupOf(n), port})
}

// setView sets what is known of the far end of a port of n, and publishes it.
func (x *explorer) setView(n *sweepNode, port int, v view) {
	n.ports[port].view = v
	x.publish(n, port)
}

// addFarEnd begins to identify f.
func (x *explorer) addFarEnd(f *farEnd) {
	g := x.findings.group(f.info.NodeGUID)
	g.open, g.local = append(g.open, f), append(g.local, byte(f.local))
	x.updates = append(x.updates, linkUpdate{g, f.local})
}

// gotStart handles NodeInfo of the node that the sweep begins at.
func (x *explorer) gotStart(r *request) error {
	info, _, err := r.nodeInfo()
	if err != nil {
		return err
	}
	n := x.findings.add(info, r.route, 0)
	n.onStartRoute = true
	x.explore(n)
	return nil
}

// explore asks a new node for all its attributes. The external ports of a switch
// wait for its port 0: a switch that does not answer is not asked 40 times.
func (x *explorer) explore(n *sweepNode) {
	x.queue.ask(readName, n, 0, n.route, mad.AttrNodeDescription, 0)
	if n.isSwitch() {
		x.queue.ask(readSwitch, n, 0, n.route, mad.AttrSwitchInfo, 0)
		x.queue.ask(readPort0, n, 0, n.route, mad.AttrPortInfo, 0)
	} else {
		x.askPort(n, n.via(), n.route)
	}
	if n.onStartRoute && n.route.Hops() > 0 {
		x.expand(n, n.via())
	}
}

func (x *explorer) askPort(n *sweepNode, port int, route mad.DirectedRoute) *question {
	n.ports[port].asked = true
	return x.queue.ask(readPort, n, port, route, mad.AttrPortInfo, uint32(port))
}

func (x *explorer) gotName(r *request) {
	if r.Err != nil {
		x.findings.fail(r, mad.AttrNodeDescription)
		return
	}
	text, _, _ := bytes.Cut(r.Data()[:mad.AttrNodeDescription.Size], []byte{0})
	if r.node.name == "" {
		r.node.name = string(text)
	}
}

func (x *explorer) gotSwitch(r *request) {
	if r.Err != nil {
		x.findings.fail(r, mad.AttrSwitchInfo)
		return
	}
	r.node.sw = new(mad.SwitchInfo)
	r.node.sw.Decode(r.Data())
}

func (x *explorer) gotPort0(r *request) {
	n := r.node
	if r.Err != nil {
		x.findings.fail(r, mad.AttrPortInfo)
		for i := range n.ports {
			if n.ports[i].view == viewUnknown {
				n.ports[i].view = viewSomething
			}
		}
		x.publish(n, allPorts)
		return
	}
	n.ports[0].info.Decode(r.Data())
	n.ports[0].known = true
	for port := 1; port < len(n.ports); port++ {
		x.askPort(n, port, n.route)
	}
}

// gotPort handles PortInfo of a port other than a switch's port 0.
func (x *explorer) gotPort(r *request) {
	n, p := r.node, &r.node.ports[r.port]
	if r.Err != nil {
		x.findings.fail(r, mad.AttrPortInfo)
		x.setView(n, r.port, viewSomething)
		return
	}
	p.info.Decode(r.Data())
	p.known = true
	if p.info.PortPhysicalState != mad.PortPhysicalStateLinkUp {
		x.setView(n, r.port, viewNothing)
		return
	}
	caps := &p.info
	if n.isSwitch() {
		caps = &n.ports[0].info
	}
	if !x.plainSpeeds && fabric.ActiveSpeed(caps, &p.info) == "qdr" && n.info.HasExtPortInfo() { // or FDR10
		x.qdrPorts = append(x.qdrPorts, nodePort{n, r.port})
	}
	switch {
	case n.onStartRoute && r.port == n.via() && n.route.Hops() > 0: // crossed already
	case n.isSwitch() || r.port == n.via():
		x.expand(n, r.port)
	default:
		x.setView(n, r.port, viewSomething)
	}
}

// readFDR10 reads which of the ports that seem to run QDR run FDR10. Not every device of a
// known number has the vendor's attribute: an error means that the port does not.
func (x *explorer) readFDR10(ctx context.Context) error {
	if len(x.qdrPorts) == 0 {
		return nil
	}
	x.queue.engine.KnowNodes(func(yield func(*mad.NodeInfo) bool) {
		for _, p := range x.qdrPorts {
			if !yield(&p.node.info) {
				return
			}
		}
	})
	// All nodes are in the first batch: nodes that do not answer for what they announce cost one
	// timeout.
	var first, others []nodePort
	seen := map[*sweepNode]bool{}
	for _, p := range x.qdrPorts {
		if !seen[p.node] {
			seen[p.node] = true
			first = append(first, p)
		} else {
			others = append(others, p)
		}
	}
	for _, ports := range append([][]nodePort{first}, slices.Collect(slices.Chunk(others, maxOpen))...) {
		calls := make([]engine.Call, len(ports))
		all := make([]*engine.Call, len(ports))
		for i, p := range ports {
			at := question{node: p.node, route: p.node.route}
			all[i] = fabric.Dest{Route: at.route, Guard: x.queue.guards.of(&at)}.Put(&calls[i], mad.MethodGet, mad.AttrExtendedPortInfo, uint32(p.port), nil)
		}
		if err := x.queue.engine.Do(ctx, all...); err != nil {
			return err
		}
		for i, p := range ports {
			if calls[i].Err == nil {
				var ext mad.ExtendedPortInfo
				ext.Decode(calls[i].Data())
				p.node.ports[p.port].fdr10 = ext.IsFDR10()
			}
		}
	}
	return nil
}

// expand goes through a port whose link is up, unless what is behind is known
// or further than Options.Hops.
func (x *explorer) expand(n *sweepNode, port int) {
	switch {
	case n.ports[port].peer != nil:
	case x.hops > 0 && n.hops >= x.hops:
		x.setView(n, port, viewOutside)
	default:
		x.cross(n, port)
	}
}

// cross asks what is behind a port.
func (x *explorer) cross(n *sweepNode, port int) {
	n.ports[port].view = viewUnknown
	if route := n.behind(port); route != nil {
		if !x.defers(n, port) {
			x.queue.askNode(readFar, n, port, route)
		}
		return
	}
	x.setView(n, port, viewSomething)
}

// gotFar handles NodeInfo of what is behind a port.
func (x *explorer) gotFar(r *request) {
	n, p := r.node, &r.node.ports[r.port]
	info, local, err := r.nodeInfo()
	if err != nil {
		if r.Err != nil {
			x.findings.fail(r, mad.AttrNodeInfo)
		} else {
			port := r.port
			x.findings.note(fabric.ProblemInvalid, func() string {
				return fmt.Sprintf("the node behind port %d of %s is left out: %v; check its management agent", port, n.label(), err)
			})
		}
		x.setView(n, r.port, viewSomething)
		return
	}
	p.farGUID, p.farPort = info.NodeGUID, uint8(local)
	x.addFarEnd(&farEnd{from: n, port: r.port, route: r.route, info: info, local: local})
	x.setView(n, r.port, viewFar)
}

// nodeInfo reads an answer, and says which port of the far node the link is
// connected to: the one that the request came in through, unless the route
// ends on the near side of the node asked about (sweepNode.onStartRoute).
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
		return info, 0, fmt.Errorf("its NodeInfo claims that the request came in through port %d of %d", local, n)
	}
	return info, local, nil
}

// keyProbe is the state of the M_Key probe. A node with M_KeyProtectBits 2 or 3 does not
// answer a Get without its M_Key, but notifies the subnet manager of each (trap 256, IBA
// 14.2.4). To spare a fabric of such nodes a storm of traps, the sweep asks a few neighbours
// of its first node for NodeInfo, and all others only when one has answered; if none does, the
// others are asked once each.
type keyProbe struct {
	done     bool  // a neighbour has answered
	open     int   // requests for NodeInfo of neighbours
	deferred []int // ports of the first node that wait for an answer
}

// probeFirst is how many neighbours are asked first.
const probeFirst = 4

// defers reports whether the request through port of n is still deferred.
func (x *explorer) defers(n *sweepNode, port int) bool {
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

// endProbe handles the end of a request for NodeInfo. Once one neighbour has
// answered, or the first few have not, the deferred ones are asked; neighbours that
// were asked without retries in the meantime are asked again when one answers.
func (x *explorer) endProbe(r *request) {
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
