package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Ranks give links a direction: up is towards the switch of the lower rank or, where the
// ranks are equal, of the lower number. So no directed cycle goes up all the way.
type Ranks struct {
	Rank []int // by switch; -1: no path to any switch of rank 0
}

// RanksFrom are the distances from the nearest of the roots, in links: a breadth-first
// search, O(S + N).
func RanksFrom(g *Graph, roots []int) *Ranks {
	return &Ranks{DistancesFrom(g, roots)}
}

// DistancesFrom is a breadth-first search: the distance from the nearest of the
// switches, in links, whatever their weights; -1: no path.
func DistancesFrom(g *Graph, from []int) []int {
	distance := slices.Repeat([]int{-1}, len(g.switches))
	var queue []int
	for _, s := range from {
		if distance[s] < 0 {
			distance[s] = 0
			queue = append(queue, s)
		}
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		for _, t := range g.nbrTo[g.nbrBase[s]:g.nbrBase[s+1]] {
			if distance[t] < 0 {
				distance[t] = distance[s] + 1
				queue = append(queue, int(t))
			}
		}
	}
	return distance
}

// Reverse turns all directions around between ranks: the highest becomes 0.
func (r *Ranks) Reverse() *Ranks {
	highest := slices.Max(append([]int{0}, r.Rank...))
	o := &Ranks{slices.Clone(r.Rank)}
	for s, rank := range o.Rank {
		if rank >= 0 {
			o.Rank[s] = highest - rank
		}
	}
	return o
}

// Up reports whether links from s to t go up.
func (r *Ranks) Up(s, t int) bool {
	if r.Rank[s] != r.Rank[t] {
		return r.Rank[t] < r.Rank[s]
	}
	return t < s
}

// ups reports for each neighbour of each switch whether the links to it go up.
func (r *Ranks) ups(g *Graph) []bool {
	up := make([]bool, len(g.neighbours))
	for s := range g.switches {
		for i := g.nbrBase[s]; i < g.nbrBase[s+1]; i++ {
			up[i] = r.Up(s, int(g.nbrTo[i]))
		}
	}
	return up
}

// UpDown are the distances of up*/down* routing (Schroeder et al., "Autonet",
// 1991), where no path goes up after it went down. A forwarding table knows only
// the destination, not where a packet came from. So a switch from which a path
// leads down all the way takes such a path, even where one that begins upwards is
// shorter, and all others go up. Then every pair that has a legal path has one.
//
// Time: twice the time of AllHops.
func UpDown(ctx context.Context, g *Graph, r *Ranks) (*Hops, error) {
	h := newHops(g)
	h.rank, h.up = r, r.ups(g)
	return h, h.search(ctx, h.bfsUpDown)
}

// bfsUpDown is bfs for UpDown: first over the links that go down, then over the links that
// go up.
func (h *Hops) bfsUpDown(w *searcher, first int) {
	g := h.graph
	w.start(h, first)
	copy(w.spare(0), w.now)
	// Switches whose path goes down. The frontiers of all steps are kept.
	last := 0
	for step := 1; ; step++ {
		now, next := w.steps[step-1], w.spare(step)
		found := uint64(0)
		for s := range w.seen {
			fresh := uint64(0)
			for i := g.nbrBase[s]; i < g.nbrBase[s+1]; i++ {
				if !h.up[i] {
					fresh |= now[g.nbrTo[i]]
				}
			}
			fresh &^= w.seen[s]
			next[s] = fresh
			found |= fresh
			h.put(s, first, fresh, uint8(min(step, MaxDistance)))
		}
		for s, fresh := range next {
			w.seen[s] |= fresh
		}
		if found == 0 {
			last = step
			break
		}
		if step > MaxDistance {
			h.failAny(w, next, first)
			return
		}
	}
	// Switches whose path goes up, to a switch whose path goes down or up: w.now has both
	// kinds.
	clear(w.now)
	next := make([]uint64, len(w.seen))
	for step := 1; ; step++ {
		if step-1 < last {
			for s, more := range w.steps[step-1] {
				w.now[s] |= more
			}
		}
		found := uint64(0)
		for s := range w.seen {
			fresh := uint64(0)
			for i := g.nbrBase[s]; i < g.nbrBase[s+1]; i++ {
				if h.up[i] {
					fresh |= w.now[g.nbrTo[i]]
				}
			}
			fresh &^= w.seen[s]
			next[s] = fresh
			found |= fresh
			h.put(s, first, fresh, uint8(min(step, MaxDistance))|viaUp)
		}
		for s, fresh := range next {
			w.seen[s] |= fresh
		}
		if found == 0 && step >= last {
			return
		}
		if step > MaxDistance && found != 0 {
			h.failAny(w, next, first)
			return
		}
		w.now, next = next, w.now
	}
}

// Turn is the way of a packet through a switch: from a switch, at the next, to a third,
// by number. All parallel links count alike.
type Turn struct{ From, At, To int }

// Channels are the pairs of channels by which packets make the turn. It is an error if
// none exist.
func (t Turn) Channels(g *Graph) (pairs [][2]int32, err error) {
	for in := g.chanBase[t.From]; in < g.chanBase[t.From+1]; in++ {
		for out := g.chanBase[t.At]; int(g.chanTo[in]) == t.At && out < g.chanBase[t.At+1]; out++ {
			if int(g.chanTo[out]) == t.To {
				pairs = append(pairs, [2]int32{in, out})
			}
		}
	}
	if pairs == nil {
		err = fmt.Errorf("no packet can turn at %s from %s to %s: there are no such links", g.switches[t.At].Label(), g.switches[t.From].Label(), g.switches[t.To].Label())
	}
	return pairs, err
}

// turnedHop is a next hop to switch d, down to a neighbour from which the path goes up
// again.
type turnedHop struct{ d, neighbour int32 }

// UpDownTurns is UpDown with turns that are nevertheless allowed, for pairs that have
// no path up and then down: a path may go down to a switch from which it goes up, where
// the turn is one of these for each of its next hops. Whether turns close a credit loop
// is for Verify to say.
//
// Time: the time of UpDown, and for each pair without a path O(N) a distance.
func UpDownTurns(ctx context.Context, g *Graph, r *Ranks, turns []Turn) (*Hops, error) {
	h, err := UpDown(ctx, g, r)
	if err != nil || len(turns) == 0 {
		return h, err
	}
	allowed := map[Turn]bool{}
	for _, t := range turns {
		if _, err := t.Channels(g); err != nil {
			return nil, fmt.Errorf("updown: %w", err)
		}
		allowed[t] = true
	}
	found := make([][][]turnedHop, len(g.switches)) // by destination, then switch; nil: none
	err = Each(ctx, g.workers, len(g.switches), func(_, d int) {
		found[d] = h.addTurned(d, allowed)
	})
	h.turned = make([][]turnedHop, len(g.switches))
	for _, of := range found {
		for s, hops := range of {
			h.turned[s] = append(h.turned[s], hops...)
		}
	}
	return h, err
}

// addTurned finds the distances to switch d of the switches that have no path, the
// shortest first, and returns the next hops that turns are needed behind.
func (h *Hops) addTurned(d int, allowed map[Turn]bool) (found [][]turnedHop) {
	var missing []int
	for s := range h.graph.switches {
		if h.d[s*h.stride+d] == noPath {
			missing = append(missing, s)
		}
	}
	for x := 1; x <= MaxDistance && len(missing) > 0; {
		next := MaxDistance + 1 // the next length there is
		reached := map[int]uint8{}
		for _, s := range missing {
			down, up := h.nearestTurned(s, d, allowed)
			switch {
			case down == x:
				reached[s] = uint8(x)
			case up == x:
				reached[s] = uint8(x) | viaUp
			default:
				next = min(next, down, up)
			}
		}
		for s, distance := range reached {
			h.d[s*h.stride+d] = distance
		}
		if len(reached) == 0 {
			x = next
			continue
		}
		missing = slices.DeleteFunc(missing, func(s int) bool { _, is := reached[s]; return is })
		for s, distance := range reached {
			if distance&viaUp == 0 {
				if found == nil {
					found = make([][]turnedHop, len(h.graph.switches))
				}
				found[s] = h.turnedTo(s, d, allowed)
			}
		}
	}
	return found
}

// nearestTurned is how far switch s is from switch d by way of a neighbour that has a
// path: down to it, with turns that are allowed, and up to it. More than MaxDistance:
// none exists.
func (h *Hops) nearestTurned(s, d int, allowed map[Turn]bool) (down, up int) {
	g := h.graph
	down, up = MaxDistance+1, MaxDistance+1
	for i, n := range g.Neighbours(s) {
		far := h.d[int(n.To)*h.stride+d]
		x := int(far&^viaUp) + int(n.Weight)
		switch {
		case far == noPath:
		case h.up[int(g.nbrBase[s])+i]:
			up = min(up, x)
		case far&viaUp == 0 || h.mayTurn(s, int(n.To), d, allowed):
			down = min(down, x)
		}
	}
	return down, up
}

// turnedTo are the next hops of switch s to switch d that go down to where the path goes
// up again.
func (h *Hops) turnedTo(s, d int, allowed map[Turn]bool) (list []turnedHop) {
	g := h.graph
	for i, n := range g.Neighbours(s) {
		far := h.d[int(n.To)*h.stride+d]
		if far != noPath && far&viaUp != 0 && far&^viaUp+n.Weight == h.d[s*h.stride+d] && !h.up[int(g.nbrBase[s])+i] && h.mayTurn(s, int(n.To), d, allowed) {
			list = append(list, turnedHop{int32(d), int32(i)})
		}
	}
	return list
}

// mayTurn reports whether packets from switch s may turn at switch at to each of its next
// hops to switch d, which go up.
func (h *Hops) mayTurn(s, at, d int, allowed map[Turn]bool) bool {
	g := h.graph
	own := h.d[at*h.stride+d] &^ viaUp
	for i, n := range g.Neighbours(at) {
		far := h.d[int(n.To)*h.stride+d]
		if far != noPath && h.up[int(g.nbrBase[at])+i] && far&^viaUp+n.Weight == own && !allowed[Turn{s, at, int(n.To)}] {
			return false
		}
	}
	return true
}

// rootMethods are the methods of FindRoots.
func rootMethods() []string { return []string{"color", "farthest", "histogram", "center"} }

// FindRoots finds the switches at the top of a tree. All methods but the last fail
// if there is no top, with the reason.
//
//	color      switches without a link to a switch farther from compute nodes;
//	           links between switches at one distance are not allowed
//	farthest   switches farthest from compute nodes
//	histogram  switches with nearly all CAs at one distance, as OpenSM's updn finds
//	           them: more than 90% at one distance, more than 5% at no other
//	center     the one switch with the least sum of distances to CAs and routers
//
// Time: O(S + N) for the first two; the time of AllHops, and O(S*S), for the others.
func FindRoots(ctx context.Context, g *Graph, method string) ([]int, error) {
	switch method {
	case "color", "farthest":
		l := FindLevels(g)
		if err := l.Check(); err != nil {
			if l.Height > 0 {
				err = fmt.Errorf("%w; where hosts are on top switches, find roots by histogram", err)
			}
			return nil, fmt.Errorf("roots by %s: %w", method, err)
		}
		var roots []int
		for s, level := range l.Level {
			top := level == l.Height-1
			if method == "color" {
				top = !slices.ContainsFunc(g.Neighbours(s), func(n Neighbour) bool { return l.Level[n.To] > level })
			}
			if top {
				roots = append(roots, s)
			}
		}
		return roots, nil
	case "histogram":
		return histogramRoots(ctx, g)
	case "center":
		return Center(ctx, g)
	}
	return nil, fmt.Errorf("unknown method %q to find roots; supported: %s", method, strings.Join(rootMethods(), ", "))
}

func histogramRoots(ctx context.Context, g *Graph) ([]int, error) {
	h, err := AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	endpoints, all := g.Endpoints(), int64(0)
	for _, n := range endpoints {
		all += n
	}
	var roots []int
	for s := range g.switches {
		var count [MaxDistance + 1]int64
		for d, n := range endpoints {
			if x := h.Distance(s, d); x >= 0 {
				count[x] += n
			}
		}
		many, some := 0, 0
		for _, n := range count {
			if 10*n > 9*all {
				many++
			}
			if 20*n > all {
				some++
			}
		}
		if many == 1 && some == 1 {
			roots = append(roots, s)
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("roots by histogram: no switch has more than 90%% of the %d CA ports at one distance and no other 5%%", all)
	}
	return roots, nil
}

// Center finds the switch with the least sum of distances to CAs and routers, the lowest
// of equal ones.
//
// Time: the time of AllHops, and O(S*S).
func Center(ctx context.Context, g *Graph) ([]int, error) {
	h, err := AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	endpoints := g.Endpoints()
	best, at := int64(-1), -1
	for s := range g.switches {
		sum := int64(0)
		for d, n := range endpoints {
			if x := h.Distance(s, d); x >= 0 {
				sum += n * int64(x)
			} else {
				sum += n * 2 * MaxDistance
			}
		}
		if at < 0 || sum < best {
			best, at = sum, s
		}
	}
	if at < 0 {
		return nil, fmt.Errorf("roots by center: no switch")
	}
	return []int{at}, nil
}
