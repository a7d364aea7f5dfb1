package engines

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// addChoices lets the switches choose among all next hops that h allows, for adaptive
// routing. LIDs to which some switch with CAs has no next hop stay static: the paths that
// are added for them are found among static ones; a note counts them. Equal sets of ports share
// a group.
//
// Time: O(S*C + S*L).
func addChoices(ctx context.Context, r *routes.Routes, h *graph.Hops) error {
	g := r.Graph()
	endpoints := g.Endpoints()
	gaps := make([]bool, len(g.Switches()))
	for s, n := range endpoints {
		for d := range gaps {
			gaps[d] = gaps[d] || n > 0 && s != d && h.Distance(s, d) < 0
		}
	}
	without := 0
	for d, gap := range gaps {
		if gap {
			without += len(g.DestsOf(d))
		}
	}
	next := make([]graph.NextHops, g.Workers())
	return setGroups(ctx, r, func(worker, s int) func(d int, row routes.Row) []uint8 {
		x := &next[worker]
		x.Load(h, s)
		return func(d int, row routes.Row) []uint8 {
			if gaps[d] {
				return nil
			}
			ports, _ := x.Ports(d)
			return ports
		}
	}, without)
}

// addParallel lets the switches choose among parallel links.
func addParallel(ctx context.Context, r *routes.Routes) error {
	g := r.Graph()
	return setGroups(ctx, r, func(_, s int) func(d int, row routes.Row) []uint8 {
		var to [256][]uint8 // by port
		for _, n := range g.Neighbours(s) {
			for _, p := range n.Ports {
				to[p] = n.Ports
			}
		}
		return func(d int, row routes.Row) []uint8 {
			for _, dest := range g.DestsOf(d) {
				return to[row.Port(dest.LID)]
			}
			return nil
		}
	}, 0)
}

// setGroups sets the groups of all switches. choose is called for each switch, and returns
// what finds the ports to a switch d; with fewer than two, and where the port of an
// entry is not among them, it is static. without is to how many LIDs none may choose, because
// some switch has no path; a note reports it.
func setGroups(ctx context.Context, r *routes.Routes, choose func(worker, s int) func(d int, row routes.Row) []uint8, without int) error {
	g := r.Graph()
	var chosen atomic.Bool
	switches := make([]*adaptive.Switch, len(g.Switches()))
	err := graph.Each(ctx, g.Workers(), len(switches), func(worker, s int) {
		portsTo := choose(worker, s)
		row := r.Row(s)
		groups := adaptive.NewGroups(1)
		table := adaptive.NewTable(r.Top(), groups).WithPorts(row)
		known := map[adaptive.Ports]int{}
		for d := range switches {
			if s == d || g.FirstDest(d) == g.FirstDest(d+1) {
				continue
			}
			ports := adaptive.PortSet(portsTo(d, row)...)
			if ports.Len() < 2 {
				continue
			}
			group, ok := known[ports]
			if !ok {
				group = groups.Len()
				if groups.Set(group, 0, ports) != nil {
					continue // more sets than a switch has groups: static
				}
				known[ports] = group
			}
			for _, dest := range g.DestsOf(d) {
				if p := row.Port(dest.LID); ports.Has(p) {
					table.SetChoice(dest.LID, adaptive.Bounded, uint16(group))
					chosen.Store(true)
				}
			}
		}
		switches[s] = &adaptive.Switch{Enabled: true, SLs: adaptive.AllSLs, Static: adaptive.OpenSMStatic, Tables: []*adaptive.Table{table}}
	})
	if err != nil {
		return err
	}
	for s, a := range switches {
		r.SetAdaptive(s, a)
	}
	lack := fmt.Sprintf("to %d of %s some switch with CAs has no path", without, plural.Count(len(g.Dests()), "LID", "LIDs"))
	switch {
	case !chosen.Load() && without > 0:
		r.Notes = append(r.Notes, "adaptive routing: no switch has a choice of ports; "+lack)
	case !chosen.Load():
		r.Notes = append(r.Notes, "adaptive routing: no switch has a choice of ports")
	case without > 0:
		r.Notes = append(r.Notes, "adaptive routing: "+lack+"; switches have no choice of ports to these")
	}
	return nil
}

// checkChoices is an error if the choices of r can close a credit loop.
func checkChoices(ctx context.Context, r *routes.Routes) error {
	g := r.Graph()
	d, err := verify.Dependencies(ctx, r, verify.SelectEndpoints(g, 0))
	if err != nil {
		return err
	}
	cycle := d.Cycle()
	if cycle == nil {
		return nil
	}
	var names []string
	for _, c := range cycle[:min(len(cycle), 6)] {
		names = append(names, g.ChannelPort(int(c)).Name())
	}
	if len(cycle) > 6 {
		names = append(names, "...")
	}
	return &Precondition{Reason: fmt.Errorf("adaptive routing over all shortest paths can close a credit loop: %s; updn has none", strings.Join(names, ", "))}
}
