package discover

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// fabric makes a Fabric of what was found, the same one whatever order the
// answers came in.
func (s *sweep) fabric() *fabric.Fabric {
	s.shortenRoutes()
	b := fabric.NewBuilder()
	handle := make(map[*found]int, len(s.nodes))
	for _, n := range s.nodes {
		h := b.AddNode(fabric.NodeSpec{Info: n.info, Name: n.name, Switch: n.sw, Route: n.route})
		handle[n] = h
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
	for _, n := range s.nodes {
		for i, p := range n.ports {
			if p.peer == nil {
				continue
			}
			if err := b.Link(handle[n], i, handle[p.peer], p.peerPort); err != nil {
				b.AddProblem(fabric.Problem{Kind: fabric.ProblemChanged, Text: err.Error() + "; discover again"})
			}
		}
	}
	b.SetFrom(handle[s.nodes[0]], s.nodes[0].via())
	if s.opt.Hops > 0 {
		b.SetScope(fmt.Sprintf("within %s of route %s", fabric.Plural(s.opt.Hops, "hop", "hops"), s.opt.Around))
	}
	s.report(b)
	return b.Build()
}

// shortenRoutes gives each node its shortest route, of those of equal length the
// one with the lowest ports, by a breadth-first search: the route that it was
// found on depends on the order of the answers.
func (s *sweep) shortenRoutes() {
	var levels [mad.MaxHops + 1][]*found // by hops of the route
	done := map[*found]bool{}
	for _, n := range s.nodes {
		if n.onStartRoute {
			levels[n.route.Hops()] = append(levels[n.route.Hops()], n)
			done[n] = true
		}
	}
	for hops := range levels {
		level := levels[hops]
		slices.SortFunc(level, func(n, m *found) int { return n.route.Compare(m.route) })
		for _, n := range level {
			for port, p := range n.ports {
				route := n.behind(port)
				if p.peer == nil || done[p.peer] || route.Hops() <= hops {
					continue
				}
				done[p.peer] = true
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
