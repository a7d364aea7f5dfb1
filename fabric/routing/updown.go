package routing

import (
	"context"
	"slices"
)

// Ranks order switches: links go up to switches of a lower rank, or of the same
// rank and a lower number.
type Ranks struct {
	Rank []int // by switch; -1: cut off from all of rank 0
}

// Ranks are the distances from the nearest of the roots.
func (g *Graph) Ranks(roots []int) *Ranks {
	return &Ranks{g.distancesFrom(roots)}
}

// distancesFrom counts links, whatever their weights; -1 is out of reach.
func (g *Graph) distancesFrom(from []int) []int {
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

// Reverse makes the highest rank 0.
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

// Up: links from s to t go up.
func (r *Ranks) Up(s, t int) bool {
	if r.Rank[s] != r.Rank[t] {
		return r.Rank[t] < r.Rank[s]
	}
	return t < s
}

// UpDown are the distances of up*/down* routing, where no path goes up after
// it went down. Tables know destinations only, not where a packet comes from:
// so whoever can reach a destination by going down alone does that, even where
// going up first were shorter, and all others go up. Then all pairs that have a
// legal path at all have one.
func (g *Graph) UpDown(ctx context.Context, r *Ranks) (*Hops, error) {
	h := newHops(g)
	h.up = make([]bool, len(g.neighbours))
	for s := range g.switches {
		for i := g.nbrBase[s]; i < g.nbrBase[s+1]; i++ {
			h.up[i] = r.Up(s, int(g.nbrTo[i]))
		}
	}
	return h, h.search(ctx, h.spreadUpDown)
}

// spreadUpDown is the search for 64 destinations at once.
func (h *Hops) spreadUpDown(w *searcher, first int) {
	g := h.graph
	w.begin(h, first)
	copy(w.step(0), w.now)
	// Those that go down. Sets of all steps are kept.
	last := 0
	for step := 1; ; step++ {
		now, next := w.steps[step-1], w.step(step)
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
			h.put(s, first, fresh, uint8(min(step, maxDistance)))
		}
		for s, fresh := range next {
			w.seen[s] |= fresh
		}
		if found == 0 {
			last = step
			break
		}
		if step > maxDistance {
			h.lost(w, next, first)
			return
		}
	}
	// And those that go up to them, or to one that does: w.now are these.
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
			h.put(s, first, fresh, uint8(min(step, maxDistance))|viaUp)
		}
		for s, fresh := range next {
			w.seen[s] |= fresh
		}
		if found == 0 && step >= last {
			return
		}
		if step > maxDistance && found != 0 {
			h.lost(w, next, first)
			return
		}
		w.now, next = next, w.now
	}
}
