package discover

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// fabric makes a Fabric of what was found, the same one whatever order the
// answers came in. ended is why the sweep was not done.
func (f *findings) fabric(o *Options, ended error, keyAdvice string) *fabric.Fabric {
	f.shortenRoutes()
	b := fabric.NewBuilder()
	for _, n := range f.nodes {
		h := b.AddNode(fabric.NodeSpec{Info: n.info, Name: n.name, Switch: n.sw, Route: n.route})
		n.handle = h
		for i := range n.ports {
			p := &n.ports[i]
			if p.known {
				b.SetPort(h, i, &p.info)
			}
			if p.guid != 0 && !n.isSwitch() {
				b.SetPortGUID(h, i, p.guid)
			}
			b.SetFDR10(h, i, p.fdr10)
		}
	}
	for _, n := range f.nodes {
		for i := range n.ports {
			p := &n.ports[i]
			if p.peer == nil {
				continue
			}
			if err := b.Link(n.handle, i, p.peer.handle, p.peerPort); err != nil {
				b.AddProblem(fabric.Problem{Kind: fabric.ProblemChanged, Text: err.Error() + "; discover again"})
			}
		}
	}
	b.SetFrom(f.nodes[0].handle, f.nodes[0].via())
	if o.Hops > 0 {
		b.SetScope(fmt.Sprintf("within %s of route %s", plural.Count(o.Hops, "hop", "hops"), o.Around))
	}
	f.report(b, ended, keyAdvice)
	return b.Build()
}

// shortenRoutes gives each node its shortest route, of those of equal length the
// one with the lowest ports, by a breadth-first search: the route that it was
// found on depends on the order of the answers.
func (f *findings) shortenRoutes() {
	var levels [mad.MaxHops + 1][]*found // by hops of the route
	for _, n := range f.nodes {
		if n.onStartRoute {
			levels[n.route.Hops()] = append(levels[n.route.Hops()], n)
			n.rerouted = true
		}
	}
	for hops := range levels {
		level := levels[hops]
		slices.SortFunc(level, func(n, m *found) int { return n.route.Compare(m.route) })
		for _, n := range level {
			for port := range n.ports {
				p := &n.ports[port]
				if p.peer == nil || p.peer.rerouted {
					continue
				}
				route := n.behind(port)
				if route.Hops() <= hops {
					continue
				}
				p.peer.rerouted = true
				p.peer.reroute(route, p.peerPort)
				levels[hops+1] = append(levels[hops+1], p.peer)
			}
		}
	}
}

// reroute makes what was answered on another route what would have been
// answered on this one.
func (n *found) reroute(route mad.DirectedRoute, via int) {
	n.route = route
	n.info.LocalPortNum = uint8(via)
	if !n.isSwitch() {
		n.info.PortGUID = n.ports[via].guid
	}
	for i := range n.ports {
		n.ports[i].info.LocalPortNum = uint8(via)
		if !n.isSwitch() {
			n.ports[i].info.LocalPortNum = uint8(i)
		}
	}
}
