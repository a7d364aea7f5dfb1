package graph

import (
	"context"
	"slices"
)

// Ranks give links a direction: up is towards the switch of the lower rank, or, of
// the same rank, of the lower number. So no directed cycle goes up all the way.
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

// Up says whether links from s to t go up.
func (r *Ranks) Up(s, t int) bool {
	if r.Rank[s] != r.Rank[t] {
		return r.Rank[t] < r.Rank[s]
	}
	return t < s
}

// ups says of each neighbour of each switch whether the links to it go up.
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
// Time: twice that of Hops.
func UpDown(ctx context.Context, g *Graph, r *Ranks) (*Hops, error) {
	h := newHops(g)
	h.rank, h.up = r, r.ups(g)
	return h, h.search(ctx, h.bfsUpDown)
}

// bfsUpDown is bfs for UpDown: first over the links that go down, then over those
// that go up.
func (h *Hops) bfsUpDown(w *searcher, first int) {
	g := h.graph
	w.begin(h, first)
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
	// Switches whose path goes up, to one of those, or to one that goes up itself:
	// w.now has both kinds.
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
