package discover

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// findings are what a sweep has found so far. The queue's mu guards them.
type findings struct {
	nodes    []*sweepNode
	ports    int  // of all nodes
	full     bool // there are more than a subnet can have
	groups   map[mad.GUID]*guidGroup
	failures []failure
	notes    []note
	names    map[mad.GUID]string // Options.Names
	progress func(nodes int)     // Options.Progress
}

// sweepNode is a node in the course of a sweep.
type sweepNode struct {
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
	peer     *sweepNode
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

func (n *sweepNode) isSwitch() bool { return n.info.NodeType == mad.NodeTypeSwitch }

func (n *sweepNode) label() string { return fabric.NodeLabel(n.name, n.info.NodeGUID) }

// via is the port that n's route comes in through.
func (n *sweepNode) via() int { return int(n.info.LocalPortNum) }

// behind is the route to what is connected to a port of n, or nil: only
// switches let SMPs through, and the local node lets them out.
func (n *sweepNode) behind(port int) mad.DirectedRoute {
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
func (n *sweepNode) unlink(port int) {
	p := &n.ports[port]
	if p.peer == nil {
		return
	}
	p.peer.ports[p.peerPort].peer = nil
	p.peer = nil
}

// add makes a node.
func (f *findings) add(info mad.NodeInfo, route mad.DirectedRoute, hops int) *sweepNode {
	n := &sweepNode{info: info, name: f.names[info.NodeGUID], route: route, hops: hops, ports: make([]portEnd, int(info.NumPorts)+1)}
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
	nodes     []*sweepNode
	open      []*farEnd // not identified yet
	local     []byte    // their ports
	rechecked *farEnd   // the one of open that is asked about again
}

// farEnd is the far end of a link, as NodeInfo requested through a port shows it.
type farEnd struct {
	from  *sweepNode // the near end
	port  int
	route mad.DirectedRoute // of the request
	info  mad.NodeInfo
	local int // the port at the far end
	// candidates are the known nodes with equal NodeInfo, and neighbours
	// some of their ports with known peers: what a recheck has left to ask.
	candidates []*sweepNode
	neighbours []nodePort
	loop       loopTest
}

// nodePort is a port of a node.
type nodePort struct {
	node *sweepNode
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

func (f *findings) groupOf(n *sweepNode) *guidGroup { return f.group(n.info.NodeGUID) }

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

// failure is a request without a useful answer.
type failure struct {
	node *sweepNode
	attr *mad.Attribute
	port int
	err  error
}

func (f *findings) fail(r *request, a *mad.Attribute) {
	f.failures = append(f.failures, failure{r.node, a, r.port, r.Err})
}

// note is a problem found during the sweep. Its text is made at the end, when
// all names and routes are known.
type note struct {
	kind fabric.ProblemKind
	text func() string
}

func (f *findings) note(k fabric.ProblemKind, text func() string) {
	f.notes = append(f.notes, note{k, text})
}

// text is f.err as it would have been on the node's final route.
func (f *failure) text() string {
	e, ok := errors.AsType[*engine.Error](f.err)
	if !ok {
		return f.err.Error()
	}
	x := *e
	route := f.node.route
	if f.attr == mad.AttrNodeInfo {
		route = f.node.behind(f.port)
	}
	x.Dest = "route " + route.String()
	return x.Error()
}

// changed reports that the cabling changed during the sweep.
func (f *findings) changed(n *sweepNode, port int, how func() string) {
	f.note(fabric.ProblemChanged, func() string {
		return fmt.Sprintf("port %d of %s changed during the sweep: %s; discover again", port, n.label(), how())
	})
}

// report makes problems of what went wrong: ended is why the sweep was not done, and
// keyAdvice how to ask nodes with an M_Key, if that may help.
func (f *findings) report(b *fabric.Builder, ended error, keyAdvice string) {
	add := func(k fabric.ProblemKind, format string, args ...any) {
		b.AddProblem(fabric.Problem{Kind: k, Text: fmt.Sprintf(format, args...)})
	}
	for _, n := range f.notes {
		add(n.kind, "%s", n.text())
	}
	switch ended {
	case nil:
	case errTooMany:
		add(fabric.ProblemCut, "%s", f.tooManyText())
	default:
		add(fabric.ProblemCut, "the sweep ended early: %v; discover again", ended)
	}
	f.reportFailures(b, keyAdvice)
	for _, n := range f.nodes {
		for i, p := range n.ports {
			if n.isSwitch() && p.view == viewSomething && p.known && p.peer == nil && n.route.Hops() == mad.MaxHops {
				add(fabric.ProblemTooFar, "the node behind port %d of %s is more than %d hops away; start from a nearer node", i, n.label(), mad.MaxHops)
			}
		}
	}
}

// reportFailures makes problems of failures, one for all ports of a node. What
// another request answered in the end is left out.
func (all *findings) reportFailures(b *fabric.Builder, keyAdvice string) {
	type key struct {
		node *sweepNode
		attr *mad.Attribute
		kind fabric.ProblemKind
	}
	groups := map[key][]failure{}
	for _, f := range all.failures {
		p := &f.node.ports[f.port]
		if f.attr == mad.AttrPortInfo && p.known || f.attr == mad.AttrNodeInfo && p.peer != nil {
			continue
		}
		k := key{f.node, f.attr, fabric.ProblemFailed}
		if errors.Is(f.err, engine.ErrTimeout) {
			k.kind = fabric.ProblemTimedOut
		}
		groups[k] = append(groups[k], f)
	}
	for k, fs := range groups {
		add := func(kind fabric.ProblemKind, format string, args ...any) {
			b.AddProblem(fabric.Problem{Kind: kind, Text: fmt.Sprintf(format, args...), Attribute: k.attr.Name})
		}
		slices.SortFunc(fs, func(a, b failure) int { return cmp.Compare(a.port, b.port) })
		ports := make([]string, len(fs))
		for i, f := range fs {
			ports[i] = strconv.Itoa(f.port)
		}
		what := "port " + ports[0]
		if len(ports) > 1 {
			what = "ports " + strings.Join(ports, ", ")
		}
		switch {
		case k.attr == mad.AttrNodeInfo && keyAdvice != "":
			add(k.kind, "%s of %s: the node at the other end is unknown: %s; the link is up, so check that node and the cable; or that node requires %s", what, k.node.label(), fs[0].text(), keyAdvice)
		case k.attr == mad.AttrNodeInfo:
			for _, f := range fs {
				add(k.kind, "port %d of %s: the node at the other end is unknown: %s; the link is up, so check that node and the cable", f.port, k.node.label(), f.text())
			}
		case k.attr != mad.AttrPortInfo:
			add(k.kind, "%s of %s is unknown: %s; check the node's management agent", k.attr.Name, k.node.label(), fs[0].text())
		case k.node.isSwitch() && fs[0].port == 0:
			add(k.kind, "PortInfo of %s is unknown: %s; its other ports were not read; check the node's management agent", k.node.label(), fs[0].text())
		default:
			add(k.kind, "PortInfo of %s of %s is unknown: %s; check the node's management agent", what, k.node.label(), fs[0].text())
		}
	}
}

// Limits of a subnet: a node needs a LID, of 16 bits (IBA 4.1.3), and nearly all ports are of
// switches. A faulty node may invent as many nodes behind it as requests are sent.
const (
	maxNodes = 1 << 16
	maxPorts = 1 << 20
)

// errTooMany ends a sweep that has found more. What was found is kept.
var errTooMany = errors.New("more nodes than a subnet can have")

// tooMany reports whether with one more node there are too many, and notes it: that ends
// the sweep.
func (f *findings) tooMany(info *mad.NodeInfo) bool {
	f.full = f.full || len(f.nodes) >= maxNodes || f.ports+int(info.NumPorts)+1 > maxPorts
	return f.full
}

// tooManyText describes where most nodes are.
func (f *findings) tooManyText() string {
	return fmt.Sprintf("the sweep stopped at %s with %s, the most that a subnet can have; most are behind %s at route %s; check its management agent",
		plural.Count(len(f.nodes), "node", "nodes"), plural.Count(f.ports, "port", "ports"), f.crowdedNode().label(), f.crowdedNode().route)
}

// crowdedNode is the node furthest from the local port with more than half of all
// nodes behind it: the node that invents them, or the nearest to it.
func (f *findings) crowdedNode() *sweepNode {
	at := f.nodes[0]
	behind := f.nodes
	for {
		hops := len(at.route)
		var next [256][]*sweepNode // by the port that the route leaves at
		for _, n := range behind {
			if len(n.route) > hops {
				next[n.route[hops]] = append(next[n.route[hops]], n)
			}
		}
		further := at
		for _, nodes := range next {
			if 2*len(nodes) > len(f.nodes) {
				behind = nodes
				for _, n := range nodes {
					if len(n.route) == hops+1 {
						further = n
					}
				}
			}
		}
		if further == at {
			return at
		}
		at = further
	}
}
