package discover

import (
	"bytes"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// findings are what a sweep has found so far. The queue's mu guards them.
type findings struct {
	nodes    []*found
	ports    int  // of all nodes
	full     bool // there are more than a subnet can have
	groups   map[mad.GUID]*guidGroup
	failures []failure
	notes    []note
	names    map[mad.GUID]string // Options.Names
	progress func(nodes int)     // Options.Progress
}

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

// unlink undoes link.
func (n *found) unlink(port int) {
	p := &n.ports[port]
	if p.peer == nil {
		return
	}
	p.peer.ports[p.peerPort].peer = nil
	p.peer = nil
}

// add makes a node.
func (f *findings) add(info mad.NodeInfo, route mad.DirectedRoute, hops int) *found {
	n := &found{info: info, name: f.names[info.NodeGUID], route: route, hops: hops, ports: make([]portEnd, int(info.NumPorts)+1)}
	n.ports[n.via()].guid = info.PortGUID
	f.nodes = append(f.nodes, n)
	f.ports += len(n.ports)
	g := f.groupOf(n)
	g.nodes = append(g.nodes, n)
	if f.progress != nil {
		f.progress(len(f.nodes))
	}
	return n
}

// guidGroup is all there is under one node GUID.
type guidGroup struct {
	nodes     []*found
	open      []*farEnd // not identified yet
	local     []byte    // their ports
	rechecked *farEnd   // the one of open that is asked about again
}

// farEnd is the far end of a link, as NodeInfo requested through a port shows it.
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

// upward reports whether the request went towards the local port.
func (f *farEnd) upward() bool { return len(f.route) < len(f.from.route) }

// group is the group of a node GUID.
func (f *findings) group(guid mad.GUID) *guidGroup {
	g := f.groups[guid]
	if g == nil {
		g = new(guidGroup)
		f.groups[guid] = g
	}
	return g
}

func (f *findings) groupOf(n *found) *guidGroup { return f.group(n.info.NodeGUID) }

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

// sameNode reports whether a and b may be answers of one node on two routes.
func sameNode(a, b *mad.NodeInfo) bool {
	x, y := *a, *b
	x.LocalPortNum, y.LocalPortNum = 0, 0
	if x.NodeType != mad.NodeTypeSwitch {
		x.PortGUID, y.PortGUID = 0, 0
	}
	return x == y
}
