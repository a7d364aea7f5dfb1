package state

import (
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// Where switches route adaptively, a flow is one of RC. It takes the port of the group with
// the least load, of the flows so far, in relation to its capacity; of equal ones the lowest.
// Secondary sub-groups are taken if the ports of those before are down, or full: how real
// switches compare them is not public. A bounded flow keeps its ports while they may be
// chosen: its packets follow each other. A free one is split into parts, each of which
// chooses for itself, as its packets do.

// freeParts is the number of parts of a free flow.
const freeParts = 16

// split returns a flow, or the parts of a free one.
func (t *Traffic) split(f flow) []flow {
	if a := t.subnet.Adaptive; a == nil || a.State != adaptive.Free {
		return []flow{f}
	}
	parts := make([]flow, freeParts)
	f.Rate /= freeParts
	for i := range parts {
		parts[i] = f
		parts[i].part = i > 0
	}
	return parts
}

// loads are the rates of flows by port.
type loads map[*Port]float64

func (l loads) add(ports []*Port, rate float64) {
	for _, p := range ports {
		l[p] += rate
	}
}

// loadsOf are the loads of the flows on the ports that they have chosen before.
func (t *Traffic) loadsOf() loads {
	if t.subnet.Adaptive == nil {
		return nil
	}
	l := loads{}
	for i := range t.flows {
		l.add(t.flows[i].chosen, t.flows[i].Rate)
	}
	return l
}

// chooseWay is wayOf the flow with a number, whose load moves to the ports that it chooses.
func (t *Traffic) chooseWay(i int, l loads) way {
	f := &t.flows[i]
	if l == nil {
		return t.wayOf(*f, nil)
	}
	l.add(f.chosen, -f.Rate)
	w := t.wayOf(*f, l)
	f.chosen = make([]*Port, len(w.hops))
	for h := range w.hops {
		f.chosen[h] = w.hops[h].out
	}
	l.add(f.chosen, f.Rate)
	return w
}

// nextHop is Port.NextHop of a packet of a flow.
func (f *flow) nextHop(at *Port, dlid mad.LID, l loads) (out *Port, arrived bool) {
	n := at.Node
	n.Subnet.EnsureTables()
	if l == nil || !n.IsSwitch || !n.Adaptive.Active() {
		return at.NextHop(dlid, at == f.from)
	}
	c := n.Choose(adaptive.Packet{In: at.Num, SL: f.SL, LID: dlid, Transport: adaptive.RC}, (*Port).Active)
	switch {
	case c.Adaptive:
		return n.Leave(f.leastLoaded(n, &c, l), dlid)
	case c.Hashed:
		return n.Leave(n.Hash(&c, uint64(f.from.EndPort().LID)<<32|uint64(dlid)<<8|uint64(f.SL)), dlid)
	case c.Ports.Has(c.Port) || c.Ports.Empty():
		return n.Leave(c.Port, dlid)
	}
	return n.Leave(c.Ports.First(), dlid) // fast recovery
}

// leastLoaded is the port that an adaptively routed flow takes at a switch.
func (f *flow) leastLoaded(n *Node, c *adaptive.Choice, l loads) uint8 {
	for _, p := range f.chosen {
		if p.Node == n && c.State == adaptive.Bounded && c.Ports.Has(p.Num) {
			return p.Num
		}
	}
	best, least := uint8(mad.NoPort), 0.0
	for _, group := range c.SubGroups {
		for num := range group.All() {
			if !c.Ports.Has(num) || int(num) >= len(n.Ports) {
				continue
			}
			p := &n.Ports[num]
			if load := l[p] / max(p.Capacity(), 1); best == mad.NoPort || load < least-1e-9 { // sums of rates are not exact
				best, least = num, load
			}
		}
		if best != mad.NoPort && least < 1 {
			return best
		}
	}
	return best
}
