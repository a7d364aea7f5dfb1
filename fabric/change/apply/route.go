package apply

import (
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// Routes finds directed routes to the nodes of a fabric that was swept from the local
// port.
type Routes struct {
	f     *fabric.Fabric
	nodes []way // by node number
	round int
}

// way is how the search reached a node.
type way struct {
	in    *fabric.Port // the port through which it was reached
	done  int          // the round in which it was reached
	asked int          // the round in which it was found, by a link that is not shared
}

// NewRoutes finds routes in f.
func NewRoutes(f *fabric.Fabric) *Routes { return &Routes{f: f, nodes: make([]way, len(f.Nodes()))} }

// To returns at most two directed routes to n: that of the sweep, and a shortest one of
// those that share the fewest links with it.
func (w *Routes) To(n *fabric.Node) []mad.DirectedRoute {
	first := n.Route()
	if first == nil {
		return nil
	}
	if second := w.other(n, first); second != nil && !slices.Equal(second, first) {
		return []mad.DirectedRoute{first, second}
	}
	return []mad.DirectedRoute{first}
}

// other searches breadth first along the links that first does not cross; when these are
// exhausted, it continues behind those that first crosses.
func (w *Routes) other(n *fabric.Node, first mad.DirectedRoute) mad.DirectedRoute {
	from := w.f.From()
	if from == nil || first.Hops() == 0 {
		return nil
	}
	var shared []*fabric.Port
	for hops := 1; hops <= first.Hops(); hops++ {
		in := w.f.PortAt(first[:hops+1])
		if in == nil {
			return nil
		}
		shared = append(shared, in.Peer())
	}
	w.round++
	start := from.Node()
	level := []*fabric.Port{nil} // the ports where the search continues
	for len(level) > 0 {
		var next []*fabric.Port
		for queue := level; len(queue) > 0; queue = queue[1:] {
			in, at := queue[0], start
			if in != nil {
				at = in.Node()
			}
			place := &w.nodes[at.ID()]
			if place.done == w.round {
				continue
			}
			place.done, place.in = w.round, in
			if at == n {
				return w.back(n)
			}
			for p := range at.Ports() {
				peer := p.Peer()
				switch {
				case peer == nil, at == start && !at.IsSwitch() && p != from:
				case !peer.Node().IsSwitch() && peer.Node() != n:
				case slices.Contains(shared, p):
					next = append(next, peer)
				default:
					if to := &w.nodes[peer.Node().ID()]; to.asked != w.round && to.done != w.round {
						to.asked = w.round
						queue = append(queue, peer)
					}
				}
			}
		}
		level = next
	}
	return nil
}

// back returns the route by which the search reached n; nil: it is too long.
func (w *Routes) back(n *fabric.Node) mad.DirectedRoute {
	var route mad.DirectedRoute
	for in := w.nodes[n.ID()].in; in != nil; in = w.nodes[in.Peer().Node().ID()].in {
		route = append(route, uint8(in.Peer().Num()))
	}
	slices.Reverse(route)
	if len(route) > mad.MaxHops {
		return nil
	}
	return append(mad.DirectedRoute{0}, route...)
}

// around returns, by node number, shortest directed routes to the nodes of f that cross
// none of the ports that a change takes down; nil: not found.
func around(f *fabric.Fabric, down map[*fabric.Port]bool) []mad.DirectedRoute {
	routes := make([]mad.DirectedRoute, len(f.Nodes()))
	from := f.From()
	if from == nil {
		return routes
	}
	start := from.Node()
	routes[start.ID()] = mad.DirectedRoute{0}
	for queue := []*fabric.Node{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		route := routes[at.ID()]
		if at != start && !at.IsSwitch() || len(route) > mad.MaxHops {
			continue
		}
		for p := range at.Ports() {
			peer := p.Peer()
			if peer == nil || down[p] || routes[peer.Node().ID()] != nil || at == start && !at.IsSwitch() && p != from {
				continue
			}
			routes[peer.Node().ID()] = append(slices.Clip(route), uint8(p.Num()))
			queue = append(queue, peer.Node())
		}
	}
	return routes
}
