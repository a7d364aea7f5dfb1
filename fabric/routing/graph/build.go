package graph

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// addSwitches numbers the switches as in the fabric, which has them by GUID.
func (g *Graph) addSwitches() {
	nodes := g.fabric.Nodes()
	g.index = slices.Repeat([]int32{-1}, len(nodes))
	base := int32(0)
	for i := range nodes {
		if n := &nodes[i]; n.IsSwitch() {
			g.index[i] = int32(len(g.switches))
			g.switches = append(g.switches, n)
			g.portBase = append(g.portBase, base)
			base += int32(n.NumPorts()) + 1
		}
	}
	g.portBase = append(g.portBase, base)
	g.targets = slices.Repeat([]Target{NoTarget}, int(base))
}

// manyPorts is the most ports with links that a CA has.
const manyPorts = 8

// Disguised names CAs that are obviously switches, as in files of some old programs; "": none.
func (g *Graph) Disguised() string {
	var first *fabric.Node
	n := 0
	for i := range g.fabric.Nodes() {
		node := &g.fabric.Nodes()[i]
		if node.Type() != mad.NodeTypeCA || node.NumPorts() <= manyPorts {
			continue
		}
		linked := 0
		for p := range node.Ports() {
			if p.Peer() != nil {
				linked++
			}
		}
		if linked <= manyPorts {
			continue
		}
		if n++; first == nil {
			first = node
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf("%s with links at more than %d ports, as %s: these must be switches, but the source of the fabric calls them CAs (in a .lst file, replace CA by SW)", plural.Count(n, "CA", "CAs"), manyPorts, first.Label())
}

// addChannels numbers the channels by switch and port.
func (g *Graph) addChannels(usable func(*fabric.Port) bool, weight func(*fabric.Port) int) error {
	g.channels, g.chanTo = make([]Channel, 0, len(g.targets)), make([]int32, 0, len(g.targets))
	for s, n := range g.switches {
		g.chanBase = append(g.chanBase, int32(len(g.channels)))
		for p := range n.Ports() {
			if !usable(p) {
				continue
			}
			to := g.SwitchOf(p.Peer().Node())
			if to < 0 || to == s {
				continue
			}
			c := Channel{From: int32(s), To: int32(to), Port: uint8(p.Num()), PeerPort: uint8(p.Peer().Num()), Weight: 1}
			if weight != nil {
				w := weight(p)
				if w < 1 || w > MaxDistance {
					return fmt.Errorf("weight %d of %s: it must be from 1 to %d", w, p.Label(), MaxDistance)
				}
				c.Weight = uint8(w)
				g.weighted = g.weighted || w != 1
			}
			g.targets[int(g.portBase[s])+p.Num()] = Target(len(g.channels))
			g.channels = append(g.channels, c)
			g.chanTo = append(g.chanTo, c.To)
		}
	}
	g.chanBase = append(g.chanBase, int32(len(g.channels)))
	for i := range g.channels {
		c := &g.channels[i]
		c.Reverse = g.targets[g.portBase[c.To]+int32(c.PeerPort)].Channel()
	}
	return nil
}

// setOrder makes ranks of the PortOrder of switch s.
func (g *Graph) setOrder(s int, ports []int) error {
	if len(ports) == 0 {
		return nil
	}
	n := g.switches[s]
	rank := slices.Repeat([]int16{256}, n.NumPorts()+1)
	for i, num := range ports {
		if num < 1 || num > n.NumPorts() {
			return fmt.Errorf("port order of %s: no port %d", n.Label(), num)
		}
		if rank[num] == 256 {
			rank[num] = int16(i)
		}
	}
	g.order[s] = rank
	return nil
}

// addNeighbours groups the channels of each switch by the switch they lead to.
func (g *Graph) addNeighbours() {
	ports := make([]uint8, 0, len(g.channels))
	g.neighbours, g.nbrTo = make([]Neighbour, 0, len(g.channels)), make([]int32, 0, len(g.channels))
	sorted := make([]uint64, 0, 255) // ports of a switch, by neighbour, weight, rank and number
	for s := range g.switches {
		g.nbrBase = append(g.nbrBase, int32(len(g.neighbours)))
		sorted = sorted[:0]
		for _, c := range g.channels[g.chanBase[s]:g.chanBase[s+1]] {
			sorted = append(sorted, uint64(c.To)<<32|uint64(c.Weight)<<24|uint64(g.rank(s, c.Port))<<8|uint64(c.Port))
		}
		slices.Sort(sorted)
		for i := 0; i < len(sorted); {
			first := sorted[i]
			from := len(ports)
			for ; i < len(sorted) && sorted[i]>>32 == first>>32; i++ {
				if sorted[i]>>24 == first>>24 {
					ports = append(ports, uint8(sorted[i]))
				}
			}
			g.nbrTo = append(g.nbrTo, int32(first>>32))
			g.neighbours = append(g.neighbours, Neighbour{To: int32(first >> 32), Weight: uint8(first >> 24), Ports: ports[from:len(ports):len(ports)]})
		}
	}
	g.nbrBase = append(g.nbrBase, int32(len(g.neighbours)))
	if !g.weighted {
		return
	}
	g.nbrBack = make([]uint8, len(g.neighbours))
	for s := range g.switches {
		for i := g.nbrBase[s]; i < g.nbrBase[s+1]; i++ {
			back := g.Neighbours(int(g.nbrTo[i]))
			if j, ok := slices.BinarySearchFunc(back, int32(s), func(n Neighbour, s int32) int { return cmp.Compare(n.To, s) }); ok {
				g.nbrBack[i] = back[j].Weight
			}
		}
	}
}

// rank is the position of port p of switch s in the PortOrder; 0 without one.
func (g *Graph) rank(s int, p uint8) int16 {
	if g.order == nil || g.order[s] == nil {
		return 0
	}
	return g.order[s][p]
}

// addTerminals finds the ports that have LIDs, or gives LIDs where no port has one.
func (g *Graph) addTerminals(usable func(*fabric.Port) bool, lids func(*fabric.Port) (mad.LID, int), rules []Rule) {
	var noLID, detached int
	g.terminals = make([]Terminal, 0, len(g.fabric.Nodes()))
	for i := range g.fabric.Ports() {
		p := &g.fabric.Ports()[i]
		isSwitch := p.Node().IsSwitch()
		if isSwitch && p.Num() > 0 || !isSwitch && p.Peer() == nil {
			continue
		}
		lid, lmc := lids(p)
		t := Terminal{Port: p, LID: lid, Count: 1 << lmc, Switch: -1, Class: Classify(rules, p)}
		switch {
		case isSwitch:
			t.Switch = g.SwitchOf(p.Node())
		case usable(p) && p.Peer().Node().IsSwitch():
			t.Switch, t.Out = g.SwitchOf(p.Peer().Node()), uint8(p.Peer().Num())
		}
		if t.LID == 0 {
			noLID++
		}
		if t.Switch < 0 {
			detached++
		}
		g.terminals = append(g.terminals, t)
	}
	switch {
	case noLID == 0:
	case noLID == len(g.terminals):
		g.note("no port has a LID; LIDs are assigned from 1, in the order of the fabric")
		for i := range g.terminals {
			g.terminals[i].LID = mad.LID(i + 1)
			if i+1 > int(mad.MaxUnicastLID) {
				g.terminals[i].LID = 0
			}
		}
	default:
		g.note("ports without a LID: %d of %d: nothing is routed there; a subnet manager must assign LIDs first", noLID, len(g.terminals))
		for i := range g.terminals {
			if t := &g.terminals[i]; t.LID == 0 && t.Class&ClassSwitch == 0 {
				g.leaveOut("%s has no LID: nothing is routed to it; a subnet manager must assign one first", t.Port.Label())
			}
		}
	}
	if detached > 0 {
		g.note("%d ports of CAs and routers are on no switch", detached)
	}
	g.addLIDs()
}

// addLIDs indexes the terminals by LID and by switch.
func (g *Graph) addLIDs() {
	g.byLID = append(g.byLID, -1)
	of := make([][]Dest, len(g.switches))
	for i := range g.terminals {
		t := &g.terminals[i]
		if t.Out > 0 {
			g.targets[g.portBase[t.Switch]+int32(t.Out)] = ToTerminal(int32(i))
		} else if t.Switch >= 0 {
			g.targets[g.portBase[t.Switch]] = ToTerminal(int32(i))
		}
		if t.LID == 0 {
			t.Count = 0
		}
		if int(t.LID)%max(1, t.Count) != 0 {
			g.leaveOut("LID %d of %s is not a multiple of %d: with LMC %d the port masks the low bits", t.LID, t.Port.Label(), t.Count, bits.Len(uint(t.Count))-1)
		}
		if last := int(t.LID) + t.Count - 1; last > int(mad.MaxUnicastLID) {
			g.leaveOut("LID %d of %s is beyond %d, the highest unicast LID", last, t.Port.Label(), mad.MaxUnicastLID)
		}
		t.Count = max(0, min(t.Count, int(mad.MaxUnicastLID)-int(t.LID)+1))
		for j := range t.Count {
			lid := int(t.LID) + j
			for len(g.byLID) <= lid {
				g.byLID = append(g.byLID, -1)
			}
			if other := g.byLID[lid]; other >= 0 {
				g.leaveOut("LID %d of %s also belongs to %s, which gets it", lid, t.Port.Label(), g.terminals[other].Port.Label())
				t.Count = j
				break
			}
			g.byLID[lid] = int32(i)
			if t.Switch >= 0 {
				of[t.Switch] = append(of[t.Switch], Dest{mad.LID(lid), t.Out, int32(i)})
			}
		}
	}
	for _, d := range of {
		slices.SortFunc(d, func(a, b Dest) int { return cmp.Or(cmp.Compare(a.Out, b.Out), cmp.Compare(a.LID, b.LID)) })
		g.destBase = append(g.destBase, int32(len(g.dests)))
		g.dests = append(g.dests, d...)
	}
	g.destBase = append(g.destBase, int32(len(g.dests)))
}
