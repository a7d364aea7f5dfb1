package graph

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
	"slices"

	"fabsh/fabric"
)

const (
	// MaxDistance is the greatest distance that Hops holds. A directed route
	// has 63 hops at most (IBA 14.2.1.2).
	MaxDistance = 125
	// Entries of Hops: a distance, with viaUp where the path begins upwards.
	viaUp  = 0x80
	noPath = 0x7f
	// rowFilled is the number of entries to a multiple of which rows are filled up.
	rowFilled = 64
)

// Hops are the distances between all pairs of switches, over the links that are
// allowed: all, or those of up*/down*. They take a byte a pair.
type Hops struct {
	graph  *Graph
	stride int
	d      []uint8       // from s to d: d[s*stride+d]
	only   []int32       // the destinations, where they are not all: column i is that of only[i]
	rank   *Ranks        // of up*/down*; nil: all links are allowed
	up     []bool        // by neighbour, whether its links go up; nil: all links are allowed
	turned [][]turnedHop // by switch: next hops that given turns allow beside; nil: none
	Place  []int32       // by switch: neighbours are preferred in this order; nil: by number
}

// AllHops are the distances in links, or, where links have weights, the least sums
// of weights.
//
// Without weights it is a breadth-first search from 64 destinations at once, a
// bit of a word each (Then et al., "The more the merrier: efficient multi-source
// graph traversal", 2014): O(D*S*(S + N)/64) time. With weights, it is Dial's
// algorithm from each destination: O(S*(S + N)) time.
func AllHops(ctx context.Context, g *Graph) (*Hops, error) {
	h := newHops(g)
	return h, h.search(ctx, h.bfs)
}

// LinkHops are the distances in links, whatever their weights.
func LinkHops(ctx context.Context, g *Graph) (*Hops, error) {
	if !g.weighted {
		return AllHops(ctx, g)
	}
	plain := *g
	plain.weighted = false
	return AllHops(ctx, &plain)
}

func newHops(g *Graph) *Hops {
	h := &Hops{graph: g, stride: (len(g.switches) + rowFilled - 1) / rowFilled * rowFilled}
	h.d = slices.Repeat([]uint8{noPath}, h.stride*len(g.switches))
	return h
}

// Distance is that from switch s to switch d, or -1 where there is no path.
func (h *Hops) Distance(s, d int) int {
	if x := h.d[s*h.stride+d] &^ viaUp; x != noPath {
		return int(x)
	}
	return -1
}

// IsOf reports whether the distances are those of g.
func (h *Hops) IsOf(g *Graph) bool { return h.graph == g }

// Ranks are those of up*/down*; nil: all links are allowed, or the distances are those
// of a HopsUpdate.
func (h *Hops) Ranks() *Ranks { return h.rank }

// IsUpDown reports whether the distances are those of up*/down*.
func (h *Hops) IsUpDown() bool { return h.up != nil }

// GoesUp reports whether links to the neighbour at place i, as FirstNeighbour counts
// them, go up. The distances must be those of up*/down*.
func (h *Hops) GoesUp(i int32) bool { return h.up[i] }

// SameDirections reports whether the same links go up as in o, of the same graph.
func (h *Hops) SameDirections(o *Hops) bool { return o != nil && slices.Equal(h.up, o.up) }

// NextUnreachable is the first switch from d on that s has no path to, or -1.
func (h *Hops) NextUnreachable(s, d int) int {
	i := bytes.IndexByte(h.row(s)[d:len(h.graph.switches)], noPath)
	if i < 0 {
		return -1
	}
	return d + i
}

// Max is the longest distance.
func (h *Hops) Max() int {
	longest := uint8(0)
	for _, x := range h.d {
		if x &^= viaUp; x != noPath && x > longest {
			longest = x
		}
	}
	return int(longest)
}

// row has the distances from switch s, as stored.
func (h *Hops) row(s int) []uint8 { return h.d[s*h.stride:][:h.stride] }

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

// distanceError is the error of switches that are farther apart than MaxDistance.
type distanceError struct {
	from, to *fabric.Node
	d        int // number of to
}

func (e *distanceError) Error() string {
	return fmt.Sprintf("from %s to %s it is more than %d, in hops or weights of links", e.from.Label(), e.to.Label(), MaxDistance)
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
	n, step := (h.columns()+batch-1)/batch, batch
	if g.weighted {
		n, step, bfs = len(g.switches), 1, h.dial
	}
	workers := make([]searcher, g.workers)
	err := Each(ctx, g.workers, n, func(worker, i int) {
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
		if step > MaxDistance {
			h.failAny(w, next, first)
			return
		}
		w.now, w.steps[0] = next, w.now
	}
}

// failAny is fail for the lowest destination of which found, the frontier of a
// step beyond MaxDistance, has a switch.
func (h *Hops) failAny(w *searcher, found []uint64, first int) {
	all := uint64(0)
	for _, fresh := range found {
		all |= fresh
	}
	bit := bits.TrailingZeros64(all)
	s := slices.IndexFunc(found, func(fresh uint64) bool { return fresh>>bit&1 != 0 })
	h.fail(w, s, h.column(first+bit))
}

// begin makes the destinations themselves the frontier, and returns all of their
// bits.
func (w *searcher) begin(h *Hops, first int) (all uint64) {
	clear(w.seen)
	clear(w.now)
	for i := range min(batch, h.columns()-first) {
		d := h.column(first + i)
		w.seen[d], w.now[d] = 1<<i, 1<<i
		h.d[d*h.stride+first+i] = 0
		all |= 1 << i
	}
	return all
}

// columns is the number of destinations.
func (h *Hops) columns() int {
	if h.only != nil {
		return len(h.only)
	}
	return len(h.graph.switches)
}

// column is the destination of column i.
func (h *Hops) column(i int) int {
	if h.only != nil {
		return int(h.only[i])
	}
	return i
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

// dial finds the distances to one destination by Dial's algorithm: Dijkstra's with
// buckets in place of a queue, for small integer weights (Dial, "Algorithm 360:
// shortest-path forest with topological ordering", 1969). With up*/down* it runs
// twice: for the paths that only go down, then for those that go up to one of these.
//
// Time: O(S + N + MaxDistance).
func (h *Hops) dial(w *searcher, d int) {
	g := h.graph
	if w.distance == nil {
		w.distance = make([]uint8, len(g.switches))
		w.buckets = make([][]int32, 2*MaxDistance+1)
	}
	for s := range w.distance {
		w.distance[s] = noPath
	}
	w.distance[d] = 0
	w.buckets[0] = append(w.buckets[0], int32(d))
	h.relax(w, false)
	if h.up != nil {
		for s, x := range w.distance {
			if x != noPath {
				w.buckets[x] = append(w.buckets[x], int32(s))
			}
		}
		h.relax(w, true)
	}
	for s, x := range w.distance {
		h.d[s*h.stride+d] = x
	}
	for _, s := range w.beyond {
		if w.distance[s] == noPath && w.err == nil {
			h.fail(w, int(s), d)
		}
	}
	w.beyond = w.beyond[:0]
}

// relax takes the buckets in order and relaxes the links into their switches: with
// up*/down* only those that go up, or only the others.
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
				if h.up != nil && h.up[j] == up || up && w.distance[s]&viaUp == 0 && w.distance[s] != noPath {
					continue
				}
				if distance+weight > MaxDistance {
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
