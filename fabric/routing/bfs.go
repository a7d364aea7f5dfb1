package routing

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"fabsh/fabric"
)

// searcher is the scratch of a worker. Bits of words are destinations.
type searcher struct {
	seen     []uint64   // by switch
	now      []uint64   // those found in the last step
	steps    [][]uint64 // and before, where they are needed
	buckets  [][]int32  // of Dial's algorithm
	distance []uint8
	beyond   []int32 // switches that some way to is too long
	err      *tooFar // the first
}

// tooFar is the error of switches that are farther apart than Hops can tell.
type tooFar struct {
	from, to *fabric.Node
	at       int // number of to
}

func (e *tooFar) Error() string {
	return fmt.Sprintf("from %s to %s it is more than %d, in hops or weights of links", e.from.Label(), e.to.Label(), maxDistance)
}

// tooFar: from s to d it is too far.
func (h *Hops) tooFar(w *searcher, s, d int) {
	w.err = &tooFar{h.graph.switches[s], h.graph.switches[d], d}
}

// search runs a search for each 64 destinations, or where links have weights,
// for each.
func (h *Hops) search(ctx context.Context, spread func(w *searcher, first int)) error {
	g := h.graph
	n, step := (len(g.switches)+lanes-1)/lanes, lanes
	if g.weighted {
		n, step, spread = len(g.switches), 1, h.dial
	}
	workers := make([]searcher, g.workers)
	err := g.each(ctx, n, func(worker, i int) {
		w := &workers[worker]
		if w.seen == nil {
			w.seen, w.now = make([]uint64, len(g.switches)), make([]uint64, len(g.switches))
		}
		if w.err == nil {
			spread(w, i*step)
		}
	})
	var far *tooFar
	for i := range workers {
		if e := workers[i].err; e != nil && (far == nil || e.at < far.at) {
			far = e
		}
	}
	if err == nil && far != nil {
		return far
	}
	return err
}

// spread is a breadth-first search from 64 destinations at once.
func (h *Hops) spread(w *searcher, first int) {
	all := w.begin(h, first)
	for step := uint8(1); ; step++ {
		next := w.step(0)
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
			h.lost(w, next, first)
			return
		}
		w.now, w.steps[0] = next, w.now
	}
}

// lost: in the last step switches were found for which it is too far.
func (h *Hops) lost(w *searcher, found []uint64, first int) {
	lanes := uint64(0)
	for _, fresh := range found {
		lanes |= fresh
	}
	lane := bits.TrailingZeros64(lanes)
	s := slices.IndexFunc(found, func(fresh uint64) bool { return fresh>>lane&1 != 0 })
	h.tooFar(w, s, first+lane)
}

// begin starts at the destinations themselves, and returns all of their bits.
func (w *searcher) begin(h *Hops, first int) (all uint64) {
	clear(w.seen)
	clear(w.now)
	for i := range min(lanes, len(w.seen)-first) {
		w.seen[first+i], w.now[first+i] = 1<<i, 1<<i
		h.d[(first+i)*h.stride+first+i] = 0
		all |= 1 << i
	}
	return all
}

// step is the i-th spare set.
func (w *searcher) step(i int) []uint64 {
	for len(w.steps) <= i {
		w.steps = append(w.steps, make([]uint64, len(w.seen)))
	}
	return w.steps[i]
}

// put writes the distance from s to some of the destinations.
func (h *Hops) put(s, first int, which uint64, distance uint8) {
	row := h.d[s*h.stride+first:]
	for ; which != 0; which &= which - 1 {
		row[bits.TrailingZeros64(which)] = distance
	}
}
