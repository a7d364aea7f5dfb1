package state

import (
	"fabsh/fabric"
)

// Switches of different planes are linked by FNM ports alone. Tables are computed for each
// plane by itself; a packet to another plane crosses at the first switch, and then follows
// the tables there, so planes add no credit loops.

// Planes is the number of planes that the ports of a node belong to: a switch is in one, and
// its device in as many as its FNM ports lead to, and its own.
func (n *Node) Planes() int {
	sw := n
	for i := range n.Ports[1:] {
		if p := &n.Ports[1+i]; !n.IsSwitch && p.Peer != nil {
			sw = p.Peer.Node
		}
	}
	planes := 1
	for i := range sw.Ports {
		if sw.Ports[i].FNM {
			planes++
		}
	}
	if n.Kind == fabric.KindAggregation {
		return 1
	}
	return planes
}

// planesOf returns the plane of each switch: switches that links join are in one.
// Without FNM ports, all are in plane 0.
func (s *Subnet) planesOf(switches []*Node) []int {
	plane := make([]int, len(switches))
	if !s.HasPlanes {
		return plane
	}
	number := map[*Node]int{} // from 1
	index := map[*Node]int{}
	for i, n := range switches {
		index[n] = i
	}
	for i, n := range switches {
		if number[n] != 0 {
			continue
		}
		number[n] = i + 1
		for queue := []*Node{n}; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			plane[index[at]] = i
			for j := range at.Ports[1:] {
				p := &at.Ports[1+j]
				if p.Up && !p.FNM && p.Peer.Node.IsSwitch && number[p.Peer.Node] == 0 {
					number[p.Peer.Node] = i + 1
					queue = append(queue, p.Peer.Node)
				}
			}
		}
	}
	return plane
}

// joinPlanes adds to the tables the routes to other planes.
func (s *Subnet) joinPlanes(switches []*Node, network []lftSwitch, plane []int) {
	if !s.HasPlanes {
		return
	}
	index := map[*Node]int{}
	for i, n := range switches {
		index[n] = i
	}
	for i, n := range switches {
		for j := range n.Ports[1:] {
			p := &n.Ports[1+j]
			if !p.Up || !p.FNM || !p.Peer.Node.IsSwitch || plane[index[p.Peer.Node]] == plane[i] {
				continue
			}
			for to := range network {
				if plane[to] != plane[index[p.Peer.Node]] {
					continue
				}
				for _, d := range network[to].Destinations {
					n.LFT[d.LID] = p.Num
				}
			}
		}
	}
}
