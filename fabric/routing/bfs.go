package routing

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"fabsh/fabric"
)

// batch is the number of destinations of one breadth-first search: a bit of a
// word each.
const batch = 64

// searcher is the memory of a worker, which goes from search to search. Sets of
// destinations are words.
type searcher struct {
	seen     []uint64   // by switch: destinations whose search has reached it
	now      []uint64   // by switch: those that did in the last step, the frontier
	steps    [][]uint64 // spare frontiers
	buckets  [][]int32  // of Dial's algorithm: switches by distance
	distance []uint8    // of Dial's algorithm, by switch
	beyond   []int32    // of Dial's algorithm: switches to which some path is too long
	err      *distanceError
}

// distanceError is the error of switches that are farther apart than maxDistance.
type distanceError struct {
	from, to *fabric.Node
	d        int // number of to
}

func (e *distanceError) Error() string {
	return fmt.Sprintf("from %s to %s it is more than %d, in hops or weights of links", e.from.Label(), e.to.Label(), maxDistance)
}

// fail notes that the distance from s to d is too great.
func (h *Hops) fail(w *searcher, s, d int) {
	w.err = &distanceError{h.graph.switches[s], h.graph.switches[d], d}
}

// search runs bfs for each batch of destinations, or, where links have weights,
// Dial's algorithm for each destination. Of several errors it returns the one of
// the lowest destination, whatever the number of workers.
func (h *Hops) search(ctx context.Context, bfs func(w *searcher, first int)) error {
	g := h.graph
	n, step := (len(g.switches)+batch-1)/batch, batch
	if g.weighted {
		n, step, bfs = len(g.switches), 1, h.dial
	}
	workers := make([]searcher, g.workers)
	err := g.each(ctx, n, func(worker, i int) {
		w := &workers[worker]
		if w.seen == nil {
			w.seen, w.now = make([]uint64, len(g.switches)), make([]uint64, len(g.switches))
		}
		if w.err == nil {
			bfs(w, i*step)
		}
	})
	var far *distanceError
	for i := range workers {
		if e := workers[i].err; e != nil && (far == nil || e.d < far.d) {
			far = e
		}
	}
	if err == nil && far != nil {
		return far
	}
	return err
}

// bfs is a breadth-first search from a batch of destinations.
func (h *Hops) bfs(w *searcher, first int) {
	all := w.begin(h, first)
	for step := uint8(1); ; step++ {
		next := w.spare(0)
		found := uint64(0)
		for s := range w.seen {
			if w.seen[s] == all {
				next[s] = 0
				continue
			}
			fresh := uint64(0)
			for _, t := range h.graph.nbrTo[h.graph.nbrBase[s]:h.graph.nbrBase[s+1]] {
				fresh |= w.now[t]
			}
			fresh &^= w.seen[s]
			next[s] = fresh
			w.seen[s] |= fresh
			found |= fresh
			h.put(s, first, fresh, step)
		}
		if found == 0 {
			return
		}
		if step > maxDistance {
			h.failAny(w, next, first)
			return
		}
		w.now, w.steps[0] = next, w.now
	}
}

// failAny is fail for the lowest destination of which found, the frontier of a
// step beyond maxDistance, has a switch.
func (h *Hops) failAny(w *searcher, found []uint64, first int) {
	all := uint64(0)
	for _, fresh := range found {
		all |= fresh
	}
	bit := bits.TrailingZeros64(all)
	s := slices.IndexFunc(found, func(fresh uint64) bool { return fresh>>bit&1 != 0 })
	h.fail(w, s, first+bit)
}

// begin makes the destinations themselves the frontier, and returns all of their
// bits.
func (w *searcher) begin(h *Hops, first int) (all uint64) {
	clear(w.seen)
	clear(w.now)
	for i := range min(batch, len(w.seen)-first) {
		w.seen[first+i], w.now[first+i] = 1<<i, 1<<i
		h.d[(first+i)*h.stride+first+i] = 0
		all |= 1 << i
	}
	return all
}

// spare is the i-th spare frontier.
func (w *searcher) spare(i int) []uint64 {
	for len(w.steps) <= i {
		w.steps = append(w.steps, make([]uint64, len(w.seen)))
	}
	return w.steps[i]
}

// put writes the distance from s to the destinations of a set.
func (h *Hops) put(s, first int, which uint64, distance uint8) {
	row := h.d[s*h.stride+first:]
	for ; which != 0; which &= which - 1 {
		row[bits.TrailingZeros64(which)] = distance
	}
}
