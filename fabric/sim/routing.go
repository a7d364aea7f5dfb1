package sim

import (
	"slices"

	"fabsh/mad"
)

// router fills the forwarding tables.
//
// The rank of a switch is its distance from the nearest switch with hosts. If
// every link between switches joins neighbouring ranks, the network is a fat
// tree or similar, and gets up*/down* routes, which are free of credit loops:
// up by the destination's number (d-mod-k), then down to the destination. Other
// networks get minimal routes, through the port that is least loaded.
type router struct {
	switches     []*node
	links        [][]switchLink // of each switch, by port
	rank         []int          // nil: the links do not join neighbouring ranks
	stride       []int          // of d-mod-k, by rank
	destinations [][]destination
	loads        [][]int32 // routes through each port of each switch

	// For one destination switch at a time:
	dist  []int32    // length of the route to it; -1: none yet
	path  []pathType // type of this route
	order []int      // switches by falling rank
	queue []int
}

// pathType is the type of a route.
type pathType uint8

const (
	minimalPath pathType = iota
	downPath             // down only
	upDownPath           // up first, then down
)

// switchLink is a link from one switch to another.
type switchLink struct {
	port uint8
	to   int
}

// destination is a LID of a switch, or of a host at a switch.
type destination struct {
	lid    mad.LID
	port   uint8
	number int // among hosts
}

// fillTables computes the tables of all switches, over the links that are up.
func (s *Subnet) fillTables() {
	r := s.newRouter()
	top := s.topLID()
	for _, n := range r.switches {
		n.lft = slices.Repeat([]uint8{mad.NoPort}, (int(top)/mad.LFTBlock+1)*mad.LFTBlock)
		n.setTop(top)
	}
	for d := range r.switches {
		r.computeDistances(d)
		for at := range r.switches {
			r.fillEntries(at, d)
		}
	}
}

func (s *Subnet) newRouter() *router {
	r := &router{}
	index := map[*node]int{}
	for i := range s.nodes {
		if n := &s.nodes[i]; n.isSwitch {
			index[n] = len(r.switches)
			r.switches = append(r.switches, n)
		}
	}
	r.links = make([][]switchLink, len(r.switches))
	r.destinations = make([][]destination, len(r.switches))
	r.loads = make([][]int32, len(r.switches))
	for i, n := range r.switches {
		r.destinations[i] = []destination{{lid: n.ports[0].lid, number: i}}
		r.loads[i] = make([]int32, len(n.ports))
		for j := range n.ports[1:] {
			p := &n.ports[1+j]
			if p.up && p.peer.node.isSwitch && p.peer.node != n {
				r.links[i] = append(r.links[i], switchLink{p.num, index[p.peer.node]})
			}
		}
	}
	hosts := 0
	for i := range s.ports {
		p := &s.ports[i]
		if p.node.isSwitch || p.lid == 0 || !p.up || !p.peer.node.isSwitch {
			continue
		}
		sw := index[p.peer.node]
		for l := range 1 << p.lmc {
			r.destinations[sw] = append(r.destinations[sw], destination{p.lid + mad.LID(l), p.peer.num, hosts})
		}
		hosts++
	}
	r.dist = make([]int32, len(r.switches))
	r.path = make([]pathType, len(r.switches))
	r.rankSwitches()
	return r
}

// rankSwitches ranks the switches. It sets rank only if all links join neighbouring
// ranks.
func (r *router) rankSwitches() {
	rank := slices.Repeat([]int{-1}, len(r.switches))
	var queue []int
	for i := range r.switches {
		if len(r.destinations[i]) > 1 {
			rank[i] = 0
			queue = append(queue, i)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, h := range r.links[at] {
			if rank[h.to] < 0 {
				rank[h.to] = rank[at] + 1
				queue = append(queue, h.to)
			}
		}
	}
	highest := 0
	for i := range r.switches {
		for _, h := range r.links[i] {
			if d := rank[i] - rank[h.to]; rank[i] < 0 || d != 1 && d != -1 {
				return
			}
		}
		highest = max(highest, rank[i])
	}
	r.rank = rank
	r.order = make([]int, len(rank))
	for i := range r.order {
		r.order[i] = i
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return rank[b] - rank[a] })
	// d-mod-k: rank i chooses its up port by the digit of the destination's
	// number that the ranks below have not used.
	ups := make([]int, highest+1)
	for i := range r.switches {
		n := 0
		for _, h := range r.links[i] {
			if rank[h.to] > rank[i] {
				n++
			}
		}
		if rank[i] >= 0 {
			ups[rank[i]] = max(ups[rank[i]], n)
		}
	}
	stride := 1
	for _, n := range ups {
		r.stride = append(r.stride, stride)
		stride *= max(1, n)
	}
}

// computeDistances computes the distances to switch d.
func (r *router) computeDistances(d int) {
	for i := range r.dist {
		r.dist[i], r.path[i] = -1, minimalPath
	}
	r.dist[d] = 0
	r.queue = append(r.queue[:0], d)
	if r.rank != nil {
		r.bfs(func(from, to int) bool { return r.rank[to] > r.rank[from] })
		for i, dist := range r.dist {
			if dist >= 0 {
				r.path[i] = downPath
			}
		}
		// A switch without a way down goes up, to the nearest switch that has a
		// route; from the highest rank on, so that the switches above have theirs.
		for _, at := range r.order {
			if r.dist[at] >= 0 {
				continue
			}
			for _, h := range r.links[at] {
				if r.rank[h.to] > r.rank[at] && r.dist[h.to] >= 0 &&
					(r.dist[at] < 0 || r.dist[h.to] < r.dist[at]-1) {
					r.dist[at], r.path[at] = r.dist[h.to]+1, upDownPath
				}
			}
		}
		// The remaining switches, such as roots, reach the destination only by a
		// route that turns up again. Only their own packets take it.
		r.queue = r.queue[:0]
		for i, dist := range r.dist {
			if dist >= 0 {
				r.queue = append(r.queue, i)
			}
		}
		if len(r.queue) == len(r.dist) {
			return
		}
		slices.SortStableFunc(r.queue, func(a, b int) int { return int(r.dist[a] - r.dist[b]) })
	}
	r.bfs(func(int, int) bool { return true })
}

// bfs is a breadth-first search from the switches in the queue over the links
// that ok allows, to switches without a distance.
func (r *router) bfs(ok func(from, to int) bool) {
	for i := 0; i < len(r.queue); i++ {
		at := r.queue[i]
		for _, h := range r.links[at] {
			if r.dist[h.to] < 0 && ok(at, h.to) {
				r.dist[h.to] = r.dist[at] + 1
				r.queue = append(r.queue, h.to)
			}
		}
	}
}

// fillEntries writes the entries of switch at for all LIDs behind switch d.
func (r *router) fillEntries(at, d int) {
	lft := r.switches[at].lft
	if at == d {
		for _, t := range r.destinations[d] {
			lft[t.lid] = t.port
		}
		return
	}
	if r.dist[at] < 0 {
		return
	}
	var choice [256]uint8
	ports := choice[:0]
	for _, h := range r.links[at] {
		switch {
		case r.dist[h.to] != r.dist[at]-1:
		case r.path[at] == upDownPath && r.rank[h.to] < r.rank[at]:
		default:
			ports = append(ports, h.port)
		}
	}
	load := r.loads[at]
	for _, t := range r.destinations[d] {
		port := ports[0]
		if r.path[at] == upDownPath {
			port = ports[t.number/r.stride[r.rank[at]]%len(ports)]
		} else {
			for _, p := range ports[1:] {
				if load[p] < load[port] {
					port = p
				}
			}
		}
		load[port]++
		lft[t.lid] = port
	}
}

// topLID is the highest LID in use.
func (s *Subnet) topLID() mad.LID {
	top := len(s.lids) - 1
	for top > 0 && s.lids[top] == nil {
		top--
	}
	return mad.LID(top)
}

// setTop sets the LinearFDBTop of switch n.
func (n *node) setTop(top mad.LID) {
	var sw mad.SwitchInfo
	sw.Decode(n.sw[:])
	sw.LinearFDBTop = uint16(top)
	sw.Encode(n.sw[:])
	n.fdbTop = top
}
