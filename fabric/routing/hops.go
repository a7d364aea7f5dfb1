package routing

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"fabsh/fabric"
)

const (
	maxPorts = 255
	// maxDistance is the farthest that a switch may be from another. A
	// directed route has 63 hops at most (IBA 14.2.1.2).
	maxDistance = 125
	// Entries of Hops: a distance, with viaUp where the way to go is up.
	viaUp     = 0x80
	farAway   = 0x7f // no way
	lanes     = 64   // destinations that are searched for at once
	rowFilled = 64   // entries that rows are filled up to a multiple of
)

// Hops are the distances of all switches from all others, over links that are
// allowed: all of them, or those of up*/down*.
type Hops struct {
	graph  *Graph
	stride int
	d      []uint8 // from s to d: d[s*stride+d]
	up     []bool  // by neighbour, whether its links go up; nil: all are allowed
	place  []int32 // by switch: neighbours are preferred in this order; nil: by number
}

// Hops are the distances in links, or, where links have weights, in those.
func (g *Graph) Hops(ctx context.Context) (*Hops, error) {
	h := newHops(g)
	return h, h.search(ctx, h.spread)
}

// linkHops are the distances in links, whatever their weights.
func (g *Graph) linkHops(ctx context.Context) (*Hops, error) {
	if !g.weighted {
		return g.Hops(ctx)
	}
	plain := *g
	plain.weighted = false
	return plain.Hops(ctx)
}

func newHops(g *Graph) *Hops {
	h := &Hops{graph: g, stride: (len(g.switches) + rowFilled - 1) / rowFilled * rowFilled}
	h.d = slices.Repeat([]uint8{farAway}, h.stride*len(g.switches))
	return h
}

// Distance is how far it is from switch s to switch d, or -1 where there is no way.
func (h *Hops) Distance(s, d int) int {
	if x := h.d[s*h.stride+d] &^ viaUp; x != farAway {
		return int(x)
	}
	return -1
}

// Max is the longest distance there is.
func (h *Hops) Max() int {
	longest := uint8(0)
	for _, x := range h.d {
		if x &^= viaUp; x != farAway && x > longest {
			longest = x
		}
	}
	return int(longest)
}

// row has the distances from switch s, as they are stored.
func (h *Hops) row(s int) []uint8 { return h.d[s*h.stride:][:h.stride] }

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

// dial is Dial's algorithm from one destination: Dijkstra's, for small weights.
// With up*/down*, first all that go down, then those that go up to one of them.
func (h *Hops) dial(w *searcher, d int) {
	g := h.graph
	if w.distance == nil {
		w.distance = make([]uint8, len(g.switches))
		w.buckets = make([][]int32, 2*maxDistance+1)
	}
	for s := range w.distance {
		w.distance[s] = farAway
	}
	w.distance[d] = 0
	w.buckets[0] = append(w.buckets[0], int32(d))
	h.relax(w, false)
	if h.up != nil {
		for s, x := range w.distance {
			if x != farAway {
				w.buckets[x] = append(w.buckets[x], int32(s))
			}
		}
		h.relax(w, true)
	}
	for s, x := range w.distance {
		h.d[s*h.stride+d] = x
	}
	for _, s := range w.beyond {
		if w.distance[s] == farAway && w.err == nil {
			h.tooFar(w, int(s), d)
		}
	}
	w.beyond = w.beyond[:0]
}

// relax settles what the buckets lead to, over links that go up or do not.
func (h *Hops) relax(w *searcher, up bool) {
	g := h.graph
	mark := uint8(0)
	if up {
		mark = viaUp
	}
	for distance := 0; distance < len(w.buckets); distance++ {
		for i := 0; i < len(w.buckets[distance]); i++ {
			t := w.buckets[distance][i]
			if int(w.distance[t]&^viaUp) != distance {
				continue
			}
			for j := g.nbrBase[t]; j < g.nbrBase[t+1]; j++ {
				s, weight := g.nbrTo[j], int(g.nbrBack[j])
				// Links from t to s go up if those from s to t go down.
				if h.up != nil && h.up[j] == up || up && w.distance[s]&viaUp == 0 && w.distance[s] != farAway {
					continue
				}
				if distance+weight > maxDistance {
					w.beyond = append(w.beyond, s)
					continue
				}
				if distance+weight >= int(w.distance[s]&^viaUp) {
					continue
				}
				w.distance[s] = uint8(distance+weight) | mark
				w.buckets[distance+weight] = append(w.buckets[distance+weight], s)
			}
		}
		w.buckets[distance] = w.buckets[distance][:0]
	}
}
