package opensm

import (
	"bytes"
	"cmp"
	"slices"
)

// unranked is the rank of a switch that no search reaches.
const unranked = 1 << 30

// minTreeRanks and maxTreeRanks bound the ranks of switches of a fat tree (opensm
// osm_ucast_ftree.c, FAT_TREE_MIN_RANK, FAT_TREE_MAX_RANK).
const minTreeRanks, maxTreeRanks = 2, 8

// fatTree fills the tables of ftree, which fails if the network is not a fat tree (opensm
// osm_ucast_ftree.c, construct_fabric, do_routing).
func (r *routing) fatTree() error {
	switch {
	case r.lmc:
		return fails("LMC > 0")
	case len(r.Switches) < 2:
		return fails("less than 2 switches")
	}
	t := &tree{routing: r, switches: make([]treeSwitch, len(r.Switches))}
	if err := t.rank(); err != nil {
		return err
	}
	t.addGroups()
	if err := t.findLeaves(); err != nil {
		return err
	}
	if err := t.index(); err != nil {
		return err
	}
	if err := t.sortLeaves(); err != nil {
		return err
	}
	if r.Roots == nil {
		if err := t.validate(); err != nil {
			return err
		}
	}
	t.route()
	return nil
}

// tree is the memory of ftree.
type tree struct {
	*routing
	switches []treeSwitch
	leafRank int
	leaves   []int32 // by tuple; some may have no CA
	most     int     // CAs of a leaf
	tuples   map[tuple]bool
	target   int  // the LID that is being routed
	toSwitch bool // it is a switch's
}

// tuple is the index of a switch in the tree: its rank, and a digit for each rank. 0xff:
// not set.
type tuple [maxTreeRanks]uint8

// errIndices ends the engine, which has no more than 255 indices at a place.
var errIndices = fails("more than 255 switches with one prefix of indices")

var noTuple = tuple{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

type treeSwitch struct {
	rank              int
	leaf              bool
	tuple             tuple
	up, down, sibling []*portGroup
	hops              []uint8 // by LID
	changed           bool    // a counter of its groups down, since they were sorted
}

// portGroup is the cables of a switch to another switch, or its cable to a port of a CA.
type portGroup struct {
	from, to         int32 // to: less than 0 for a CA
	end              int32 // the port of the CA
	ports            []treePort
	counterUp, count int // routes upward; count: downward
}

type treePort struct {
	num, remote      uint8
	counterUp, count int
}

// rank ranks the switches from the roots.
func (t *tree) rank() error {
	var roots []int32
	if t.Roots != nil {
		roots = t.switchesOf(t.Roots)
	}
	highest := 0
	search := func(queue []int32) {
		highest = 0
		for ; len(queue) > 0; queue = queue[1:] {
			s := queue[0]
			for _, l := range t.Switches[s].Links {
				if l.Kind == ToSwitch && t.switches[l.To].rank > t.switches[s].rank+1 {
					t.switches[l.To].rank = t.switches[s].rank + 1
					highest = t.switches[l.To].rank
					queue = append(queue, l.To)
				}
			}
		}
	}
	for s := range t.switches {
		t.switches[s].rank, t.switches[s].tuple = unranked, noTuple
	}
	if len(roots) == 0 {
		var leaves []int32
		for i := range t.Ends {
			if at := t.Ends[i].Switch; at >= 0 && !t.Ends[i].Router && t.switches[at].rank != 0 {
				t.switches[at].rank = 0
				leaves = append(leaves, at)
			}
		}
		search(leaves)
		for s := range t.switches {
			switch sw := &t.switches[s]; {
			case sw.rank == unranked:
			case sw.rank == highest:
				roots = append(roots, int32(s))
				sw.rank = 0
			default:
				sw.rank = unranked
			}
		}
	}
	for _, s := range roots {
		t.switches[s].rank = 0
	}
	search(roots)
	if highest == 0 {
		return fails("all switches have the same rank")
	}
	t.leafRank = highest
	return nil
}

// addGroups groups the ports of the switches by what they lead to.
func (t *tree) addGroups() {
	for s := range t.Switches {
		sw := &t.switches[s]
		for p, l := range t.Switches[s].Links {
			groups, to := &sw.down, int32(-1)
			switch {
			case l.Kind == NoLink || l.Kind == ToEnd && t.Ends[l.To].Router:
				continue
			case l.Kind == ToSwitch:
				to = l.To
				switch cmp.Compare(sw.rank, t.switches[to].rank) {
				case 1:
					groups = &sw.up
				case 0:
					groups = &sw.sibling
				}
			}
			at := slices.IndexFunc(*groups, func(g *portGroup) bool { return g.to >= 0 && g.to == to })
			if at < 0 {
				g := &portGroup{from: int32(s), to: to, end: -1}
				if to < 0 {
					g.end = l.To
				}
				at, *groups = len(*groups), append(*groups, g)
			}
			g := (*groups)[at]
			g.ports = append(g.ports, treePort{num: uint8(p), remote: l.Port})
		}
		sw.hops = slices.Repeat([]uint8{noPort}, int(t.top)+1)
	}
}

// findLeaves marks the switches with CAs, which must all have the same rank.
func (t *tree) findLeaves() error {
	var cas []int32
	for i := range t.Ends {
		if e := &t.Ends[i]; e.Switch >= 0 && !e.Router {
			cas = append(cas, int32(i))
		}
	}
	if len(cas) < 2 {
		return fails("less than 2 CAs")
	}
	first := slices.MinFunc(cas, func(a, b int32) int {
		return cmp.Or(compareQ(t.Ends[a].Node, t.Ends[b].Node), cmp.Compare(t.Ends[a].Num, t.Ends[b].Num))
	})
	if t.Roots != nil {
		t.leafRank = t.switches[t.Ends[first].Switch].rank
	}
	if n := t.leafRank + 1; n < minTreeRanks || n > maxTreeRanks {
		return fails("%d ranks", n)
	}
	for _, i := range cas {
		sw := &t.switches[t.Ends[i].Switch]
		if sw.leaf = true; sw.rank != t.leafRank {
			return fails("a CA at a switch of rank %d; the leaves have rank %d", sw.rank, t.leafRank)
		}
	}
	return nil
}

// index gives switches their tuples, from the first leaf on, and sorts their groups by them.
func (t *tree) index() error {
	t.tuples = map[tuple]bool{}
	first := int32(slices.IndexFunc(t.switches, func(sw treeSwitch) bool { return sw.leaf }))
	start := noTuple
	start[0] = uint8(t.leafRank)
	for i := 1; i <= t.leafRank && i < len(start); i++ {
		start[i] = 0
	}
	t.assign(first, start)
	for queue := []int32{first}; len(queue) > 0; queue = queue[1:] {
		sw := &t.switches[queue[0]]
		if sw.rank < t.leafRank {
			for _, g := range sw.down {
				if g.to >= 0 && t.switches[g.to].tuple == noTuple {
					at := t.next(sw.tuple, int(sw.tuple[0])+1, 1)
					if at == noTuple {
						return errIndices
					}
					t.assign(g.to, at)
					queue = append(queue, g.to)
				}
			}
			t.sort(sw.down)
		}
		if sw.rank != 0 {
			for _, g := range sw.up {
				if t.switches[g.to].tuple == noTuple {
					at := t.next(sw.tuple, int(sw.tuple[0]), -1)
					if at == noTuple {
						return errIndices
					}
					t.assign(g.to, at)
					queue = append(queue, g.to)
				}
			}
			t.sort(sw.up)
		}
	}
	return nil
}

func (t *tree) assign(s int32, at tuple) {
	t.switches[s].tuple = at
	t.tuples[at] = true
}

// next returns the first free tuple beside one, at the rank below or above.
func (t *tree) next(from tuple, digit, rank int) tuple {
	to := from
	to[0] = uint8(int(to[0]) + rank)
	for i := range 0xff {
		if digit < len(to) {
			to[digit] = uint8(i)
		}
		if !t.tuples[to] {
			return to
		}
	}
	return noTuple
}

// compare compares groups by the tuples of what they lead to.
func (t *tree) compare(a, b *portGroup) int {
	if a.to < 0 || b.to < 0 { // OpenSM compares memory of another type here
		return 0
	}
	return bytes.Compare(t.switches[a.to].tuple[:], t.switches[b.to].tuple[:])
}

func (t *tree) sort(groups []*portGroup) { slices.SortStableFunc(groups, t.compare) }

// sortLeaves lists the leaves by their tuples, from the first to the last with CAs.
func (t *tree) sortLeaves() error {
	for s := range t.switches {
		if t.switches[s].rank == t.leafRank {
			t.leaves = append(t.leaves, int32(s))
		}
	}
	slices.SortStableFunc(t.leaves, func(a, b int32) int { return bytes.Compare(t.switches[a].tuple[:], t.switches[b].tuple[:]) })
	isLeaf := func(s int32) bool { return t.switches[s].leaf }
	first := slices.IndexFunc(t.leaves, isLeaf)
	last := len(t.leaves) - 1
	for last >= 0 && !isLeaf(t.leaves[last]) {
		last--
	}
	if first >= last {
		return fails("less than 2 leaves")
	}
	t.leaves = t.leaves[first : last+1]
	for _, s := range t.leaves {
		n := 0
		for _, g := range t.switches[s].down {
			if g.to < 0 {
				n++
			}
		}
		t.most = max(t.most, n)
	}
	return nil
}

// validate compares all switches of a rank with the first in order Q.
func (t *tree) validate() error {
	reference := make([]*treeSwitch, t.leafRank+1)
	for s := range t.switches {
		sw := &t.switches[s]
		if sw.rank > t.leafRank {
			continue
		}
		a := reference[sw.rank]
		if a == nil {
			reference[sw.rank] = sw
			continue
		}
		switch {
		case len(a.up) != len(sw.up):
			return fails("switches of rank %d with links up to %d and to %d switches", sw.rank, len(a.up), len(sw.up))
		case sw.rank != t.leafRank && len(a.down) != len(sw.down):
			return fails("switches of rank %d with links down to %d and to %d switches", sw.rank, len(a.down), len(sw.down))
		}
		for _, g := range sw.up {
			if len(g.ports) != len(a.up[0].ports) {
				return fails("%d and %d links up between two switches", len(a.up[0].ports), len(g.ports))
			}
		}
		if sw.rank != t.leafRank && len(sw.down) > 0 && len(a.down[0].ports) != len(sw.down[0].ports) {
			return fails("%d and %d links down between two switches", len(a.down[0].ports), len(sw.down[0].ports))
		}
	}
	return nil
}

// route fills the tables: first to the CAs of the leaves, as many for each leaf, then to the
// switches.
func (t *tree) route() {
	for _, s := range t.leaves {
		routed := 0
		for _, g := range slices.Clone(t.switches[s].down) {
			if g.to >= 0 {
				continue
			}
			if t.ctx.Err() != nil {
				return
			}
			t.target, t.toSwitch = int(t.Ends[g.end].LID), false
			t.tables[s][t.target] = g.ports[0].num
			t.switches[s].hops[t.target] = 1
			t.goUp(s, -1, true, 1)
			if routed++; t.differs(t.target) {
				return
			}
		}
		for ; routed < t.most; routed++ { // LID 0 stands for a CA that is missing
			t.target, t.toSwitch = 0, false
			t.switches[s].hops[0] = 1
			t.goUp(s, -1, true, 1)
			for i := range t.switches {
				t.switches[i].hops[0], t.tables[i][0] = noPort, noPort
			}
		}
	}
	for s := range t.switches {
		if t.ctx.Err() != nil {
			return
		}
		t.target, t.toSwitch = int(t.Switches[s].LID), true
		t.tables[s][t.target] = 0
		t.switches[s].hops[t.target] = 0
		t.goUp(int32(s), -1, false, 0)
	}
	if t.ConnectRoots {
		t.connect()
	}
}

// connect leads the LIDs of switches to which a switch above the leaves has no path to the last
// leaf (opensm osm_ucast_ftree.c, fabric_route_roots).
func (t *tree) connect() {
	leaf := t.leaves[len(t.leaves)-1]
	for s := range t.switches {
		if t.switches[s].rank >= t.leafRank {
			continue
		}
		for i := range t.Switches {
			if lid := t.Switches[i].LID; t.tables[s][lid] == noPort && t.switches[leaf].hops[lid] != noPort {
				t.tables[s][lid] = t.tables[s][t.Switches[leaf].LID]
			}
		}
	}
}

// leastUp and leastDown return the first port of least use.
func leastUp(g *portGroup) *treePort {
	best := &g.ports[0]
	for i := range g.ports[1:] {
		if p := &g.ports[1+i]; p.counterUp < best.counterUp {
			best = p
		}
	}
	return best
}

func leastDown(g *portGroup) *treePort {
	best := &g.ports[0]
	for i := range g.ports[1:] {
		if p := &g.ports[1+i]; p.count < best.count {
			best = p
		}
	}
	return best
}

// set makes the switch behind a port of g forward the target through it.
func (t *tree) set(g *portGroup, p *treePort, hops uint8) {
	t.tables[g.to][t.target] = p.remote
	t.switches[g.to].hops[t.target] = hops
}

// goDown gives the switches below s their ports up to the target, and reports whether one has
// CAs (opensm fabric_route_upgoing_by_going_down).
func (t *tree) goDown(s, from int32, hops uint8) (found bool) {
	sw := &t.switches[s]
	if len(sw.down) == 0 {
		return false
	}
	byCounter := func(a, b *portGroup) int { return cmp.Or(cmp.Compare(a.counterUp, b.counterUp), t.compare(a, b)) }
	if sw.changed {
		bubbleSort(sw.down, byCounter)
		sw.changed = false
	}
	bubbleSort(sw.sibling, byCounter)
	groups := len(sw.down)
	if t.target != 0 {
		groups += len(sw.sibling)
	}
	for k := range groups {
		var g *portGroup
		if k < len(sw.down) {
			g = sw.down[k]
		} else {
			g = sw.sibling[k-len(sw.down)]
		}
		switch {
		case g.to < 0:
			found = true
			continue
		case g.to == from:
			continue
		}
		if was := t.switches[g.to].hops[t.target]; was != noPort && hops+1 >= was {
			continue
		}
		p := leastUp(g)
		t.set(g, p, hops+1)
		if t.goDown(g.to, -1, hops+1) {
			found = true
			p.counterUp++
			g.counterUp++
			sw.changed = true
		}
	}
	return found
}

// goUp gives the switches above s their ports down to the target, by the least used
// way up if it counts (main), and to all others of these their ports (opensm
// fabric_route_downgoing_by_going_up).
func (t *tree) goUp(s, from int32, main bool, hops uint8) (found bool) {
	found = t.goDown(s, from, hops)
	sw := &t.switches[s]
	if sw.rank == 0 || len(sw.up) == 0 {
		return found
	}
	byCount := func(a, b *portGroup) int { return cmp.Or(cmp.Compare(a.count, b.count), t.compare(a, b)) }
	bubbleSort(sw.up, byCount)
	least := sw.up[0]
	port := leastDown(least)
	closer := func(g *portGroup) bool {
		return t.tables[g.to][t.target] == noPort || hops+1 < t.switches[g.to].hops[t.target]
	}
	others := sw.up
	if main {
		least.count++
		port.count++
		if closer(least) {
			t.set(least, port, hops+1)
		}
		found = t.goUp(least.to, s, true, hops+1) || found
		others = sw.up[1:]
	}
	for _, g := range others {
		if closer(g) {
			port = leastDown(g)
			t.set(g, port, hops+1)
			found = t.goUp(g.to, s, false, hops+1) || found
		}
	}
	bubbleSort(sw.sibling, byCount)
	for _, g := range sw.sibling {
		if closer(g) {
			port = leastDown(g)
			t.set(g, port, hops+1)
			if t.goUp(g.to, s, false, hops+1) {
				found = true
				least.count++
				port.count++
			}
		}
	}
	return found
}

// bubbleSort sorts a list that is nearly sorted, step for step as OpenSM does: its order is not
// always transitive.
func bubbleSort(list []*portGroup, compare func(a, b *portGroup) int) {
	for end := len(list); ; end-- {
		swapped := false
		for j := 1; j < end; j++ {
			if compare(list[j], list[j-1]) < 0 {
				list[j], list[j-1] = list[j-1], list[j]
				swapped = true
			}
		}
		if !swapped {
			return
		}
	}
}
