package traffic

import (
	"context"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// chosenPaths are the paths to a LID that switches may choose, of packets of any kind: the
// memory of a worker.
type chosenPaths struct {
	x      *reroute
	kinds  []verify.PacketKind
	plfts  [][]uint8 // by switch: the private LFTs that packets may follow
	state  []chosen  // by switch
	differ []func(lid mad.LID) bool
}

// chosen is what may become of packets from a switch on.
type chosen uint8

const (
	chosenKnown   chosen = 1 << iota
	chosenOpen           // on the path that is followed now
	chosenDiffers        // some switch has other choices than before
	chosenLost           // some packets do not arrive
)

// countChoices is count where switches of one of the Routes route adaptively: a pair counts
// if any switch that its packets may pass has another static port or other choices, and is
// broken if some packets do not arrive. Loads are those of static ports.
//
// Time: O(C) for each LID.
func (x *reroute) countChoices(ctx context.Context) (Rerouted, error) {
	x.compare() // finds the LIDs that both have
	g := x.new.Graph()
	kinds := verify.PacketKinds(x.new)
	before, now := routes.ActiveSwitches(x.old), routes.ActiveSwitches(x.new)
	plfts := make([][]uint8, len(now))
	for s, a := range now {
		plfts[s] = usedPLFTs(a)
	}
	found := make([]Rerouted, g.Workers())
	paths := make([]*chosenPaths, g.Workers())
	err := graph.Each(ctx, g.Workers(), len(x.was), func(worker, lid int) {
		if x.was[lid] < 0 {
			return
		}
		p := paths[worker]
		if p == nil {
			p = &chosenPaths{x: x, kinds: kinds, plfts: plfts, state: make([]chosen, len(now)), differ: make([]func(lid mad.LID) bool, len(now))}
			for s, a := range now {
				if was := x.switches[s]; was >= 0 {
					p.differ[s] = adaptive.Differ(before[was], a)
				}
			}
			paths[worker] = p
		}
		if p.any(mad.LID(lid), now) {
			p.count(mad.LID(lid), now, &found[worker])
		}
	})
	if err != nil {
		return Rerouted{}, err
	}
	var sum Rerouted
	for _, f := range found {
		sum.add(f)
	}
	if sum.Pairs == 0 {
		return sum, nil
	}
	for _, t := range []struct {
		r  *routes.Routes
		to *int64
	}{{x.old, &sum.Before}, {x.new, &sum.After}} {
		load, err := verify.CountAllRoutes(ctx, t.r)
		if err != nil {
			return sum, err
		}
		*t.to = DistributionOf(load).Max
	}
	return sum, nil
}

// usedPLFTs are the private LFTs that some packets follow.
func usedPLFTs(a *adaptive.Switch) []uint8 {
	list := []uint8{0}
	if a == nil {
		return list
	}
	var known [256]bool
	known[0] = true
	for _, row := range a.Private {
		for _, plft := range row {
			if !known[plft] {
				known[plft] = true
				list = append(list, plft)
			}
		}
	}
	return list
}

// count adds the pairs whose destination is lid.
func (p *chosenPaths) count(lid mad.LID, now []*adaptive.Switch, found *Rerouted) {
	g := p.x.new.Graph()
	clear(p.state)
	home := g.Terminals()[g.TerminalByLID(lid)].Switch
	for s, n := range p.x.on {
		if n == 0 {
			continue
		}
		if s == home {
			n-- // not to itself
		}
		state := p.follow(int32(s), lid, now)
		if state&chosenDiffers == 0 {
			continue
		}
		found.Pairs += n
		if state&chosenLost != 0 {
			found.Broken += n
		}
	}
}

// any reports whether some switch does something else with packets to lid than before.
func (p *chosenPaths) any(lid mad.LID, now []*adaptive.Switch) bool {
	for s := range now {
		if p.differs(int32(s), lid) || p.x.ports[s] != nil {
			return true
		}
	}
	return false
}

// differs reports whether switch s has another static port for lid, or other choices.
func (p *chosenPaths) differs(s int32, lid mad.LID) bool {
	return p.x.hopDiffers(s, int(lid), int(p.x.was[lid])) || p.differ[s] != nil && p.differ[s](lid)
}

// follow is what may become of packets from switch s on.
func (p *chosenPaths) follow(s int32, lid mad.LID, now []*adaptive.Switch) chosen {
	if p.state[s]&chosenKnown != 0 {
		return p.state[s]
	}
	if p.state[s]&chosenOpen != 0 {
		return chosenLost // they may loop
	}
	p.state[s] |= chosenOpen
	g, x := p.x.new.Graph(), p.x
	var state chosen
	if p.differs(s, lid) {
		state |= chosenDiffers
	}
	ports := p.ports(s, lid, now[s])
	if ports.Empty() {
		state |= chosenLost
	}
	for port := range ports.All() {
		if x.ports[s] != nil && int(port) < len(x.ports[s]) && x.ports[s][port] {
			state |= chosenDiffers
		}
		switch target := g.Target(s, port); {
		case target.IsChannel():
			state |= p.follow(g.ChannelTo(target.Channel()), lid, now) & (chosenDiffers | chosenLost)
		case target != graph.ToTerminal(int32(g.TerminalByLID(lid))):
			state |= chosenLost
		}
	}
	p.state[s] = state | chosenKnown
	return p.state[s]
}

// ports are those that packets of any kind may take.
func (p *chosenPaths) ports(s int32, lid mad.LID, a *adaptive.Switch) adaptive.Ports {
	if a == nil {
		return adaptive.Single(p.x.new.Entry(s, lid)).Ports
	}
	var all adaptive.Ports
	down := routes.Down(p.x.new.Graph(), int(s))
	for _, plft := range p.plfts[s] {
		for i := range p.kinds {
			all = all.Union(a.PortsOf(plft, p.kinds[i].Packet(0), lid, down))
		}
	}
	return all
}
