package opensm

import (
	"context"

	"fabsh/fabric"
	"fabsh/mad"
)

// Of returns the network of a fabric, and the number of each of its switches in it, by node
// ID, -1 for other nodes. usable reports whether a port of a switch has a link in it, and lids
// returns the LIDs of an end port, from the first.
func Of(f *fabric.Fabric, sm mad.LID, usable func(*fabric.Port) bool, lids func(*fabric.Port) (first mad.LID, count int)) (n *Network, number []int32) {
	n = &Network{SM: sm}
	number = make([]int32, len(f.Nodes()))
	for i := range f.Nodes() {
		node := &f.Nodes()[i]
		if number[i] = -1; !node.IsSwitch() {
			continue
		}
		number[i] = int32(len(n.Switches))
		sw := Switch{GUID: node.GUID(), System: node.Info().SystemImageGUID, Links: make([]Link, node.NumPorts()+1)}
		if p := node.Port(0); p != nil {
			sw.LID, _ = lids(p)
		}
		n.Switches = append(n.Switches, sw)
	}
	end := map[*fabric.Port]int32{}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if p.Node().IsSwitch() {
			continue
		}
		e := End{Node: p.Node().GUID(), GUID: p.GUID(), Num: uint8(p.Num()), Router: p.Node().Type() == mad.NodeTypeRouter, Switch: -1}
		if e.LID, e.Count = lids(p); e.Count == 0 {
			continue
		}
		if peer := p.Peer(); peer != nil && peer.Node().IsSwitch() && usable(peer) {
			e.Switch, e.Port = number[peer.Node().ID()], uint8(peer.Num())
		}
		end[p] = int32(len(n.Ends))
		n.Ends = append(n.Ends, e)
	}
	for i := range f.Nodes() {
		if number[i] < 0 {
			continue
		}
		links := n.Switches[number[i]].Links
		for p := range f.Nodes()[i].Ports() {
			peer := p.Peer()
			if peer == nil || p.Num() >= len(links) || !usable(p) || peer.Node() == p.Node() {
				continue
			}
			if to := number[peer.Node().ID()]; to >= 0 {
				links[p.Num()] = Link{Kind: ToSwitch, To: to, Port: uint8(peer.Num())}
			} else if at, ok := end[peer]; ok {
				links[p.Num()] = Link{Kind: ToEnd, To: at, Port: uint8(peer.Num())}
			}
		}
	}
	return n, number
}

// Roots returns the switches that a root_guid_file would have: those farthest from the switches
// with ends, if all links lead to a neighbouring distance, as in a fat tree; nil: not such a
// network.
func (n *Network) Roots() (roots []mad.GUID) {
	r := newRouting(context.Background(), newNetwork(n), nil, Settings{})
	leaves, err := r.leaves()
	if err != nil {
		return nil
	}
	rank := r.ranks(leaves)
	highest := int32(0)
	for s := range r.Switches {
		for _, l := range r.Switches[s].Links {
			if l.Kind != ToSwitch {
				continue
			}
			if d := rank[s] - rank[l.To]; d != 1 && d != -1 {
				return nil
			}
		}
		highest = max(highest, rank[s])
	}
	for s := range r.Switches {
		if highest > 0 && rank[s] == highest {
			roots = append(roots, r.Switches[s].GUID)
		}
	}
	return roots
}

// ByDimension reports whether tables are like those of dor: nine of ten switches or more use one
// next switch for all LIDs behind another switch.
func (n *Network) ByDimension(tables [][]uint8) bool {
	w := newNetwork(n)
	same, all := 0, 0
	for s := range w.Switches {
		table, links := tables[w.was[s]], w.Switches[s].Links
		next := make([]int32, len(w.Switches)) // 1 + the next switch, by the switch of a LID; -1: several
		for lid := range w.byLID {
			home, port, ok := w.home(mad.LID(lid))
			if !ok || port == 0 || home == int32(s) || lid >= len(table) || int(table[lid]) >= len(links) || links[table[lid]].Kind != ToSwitch {
				continue
			}
			switch to := links[table[lid]].To + 1; next[home] {
			case 0, to:
				next[home] = to
			default:
				next[home] = -1
			}
		}
		for _, to := range next {
			if to != 0 {
				all++
			}
			if to > 0 {
				same++
			}
		}
	}
	return 10*same >= 9*all
}
