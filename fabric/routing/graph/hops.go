package graph

import (
	"bytes"
	"context"
	"errors"
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
// allowed: all links, or only up and then down. They take a byte a pair.
type Hops struct {
	graph  *Graph
	stride int
	d      []uint8       // from s to d: d[s*stride+d]
	only   []int32       // the destinations, where they are not all: column i is for only[i]
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

// Distance is the distance from switch s to switch d, or -1 where there is no path.
func (h *Hops) Distance(s, d int) int {
	if x := h.d[s*h.stride+d] &^ viaUp; x != noPath {
		return int(x)
	}
	return -1
}

// IsOf reports whether h was computed for g.
func (h *Hops) IsOf(g *Graph) bool { return h.graph == g }

// Ranks are the ranks of up*/down*; nil: all links are allowed, or a HopsUpdate made the
// distances.
func (h *Hops) Ranks() *Ranks { return h.rank }

// IsUpDown reports whether the distances are of up*/down* paths.
func (h *Hops) IsUpDown() bool { return h.up != nil }

// GoesUp reports whether links to the neighbour at place i, as FirstNeighbour counts
// them, go up. The distances must be of up*/down* paths.
func (h *Hops) GoesUp(i int32) bool { return h.up[i] }

// SameDirections reports whether h and o, two of one graph, agree on which links go up.
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
	now      []uint64   // by switch: destinations whose search reached it in the last step, the frontier
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
// Dial's algorithm for each destination. Of several errors it returns the error of
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
	all := w.start(h, first)
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

// start makes the destinations themselves the frontier, and returns all of their
// bits.
func (w *searcher) start(h *Hops, first int) (all uint64) {
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
// twice: for the paths that only go down, then for the paths that go up to one of these.
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
// up*/down* only the links that go up, or only the others.
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
				// Links from t to s go up if the links from s to t go down.
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

// OlderNumbers has for each switch of g its number in o, or -1. Both have their switches
// by GUID. same: none differs.
func OlderNumbers(g, o *Graph) (was []int32, same bool) {
	was, same = make([]int32, len(g.switches)), true
	at := 0
	for s, n := range g.switches {
		for at < len(o.switches) && o.switches[at].GUID() < n.GUID() {
			at++
		}
		was[s] = -1
		if at < len(o.switches) && o.switches[at].GUID() == n.GUID() {
			was[s] = int32(at)
			at++
		}
		same = same && int(was[s]) == s
	}
	return was, same
}

// Gained lists the channels of g that o does not have: o has no channel from that port to
// that switch.
func (g *Graph) Gained(o *Graph) (list []int32) {
	was, _ := OlderNumbers(g, o)
	for i, c := range g.channels {
		from, to := was[c.From], was[c.To]
		if from >= 0 && to >= 0 {
			if before := o.Target(from, c.Port).Channel(); before >= 0 && o.ChannelTo(before) == to {
				continue
			}
		}
		list = append(list, int32(i))
	}
	return list
}

// HopsUpdate makes the distances of a graph from the distances of an older one, whose
// links differ a little. Neither has weights.
type HopsUpdate struct {
	Old   *Hops
	Was   []int32 // by switch: its number in the graph of Old, or -1
	Moved []bool  // by switch: its links to others differ
	Ranks *Ranks  // of up*/down*; nil: all links are allowed
}

// Run finds the distances of g, and by switch the destinations to which its own distance
// or a neighbour's differs. The distances to a destination do not change if each switch
// whose links differ gets its old distance from its neighbours' distances: the rest
// follows from these, link by link. Nil: there is a path that is too long.
//
// Time: O(S) for each neighbour of the switches whose links differ, and the time of
// AllHops for the destinations to which some distance differs.
func (u *HopsUpdate) Run(ctx context.Context, g *Graph) (h *Hops, differ [][]int32, err error) {
	if h = u.older(g); h == nil {
		return nil, nil, nil
	}
	row, differs := make([]uint8, h.stride), make([]bool, len(g.switches))
	for s, moved := range u.Moved {
		if moved {
			h.byNeighbours(s, row)
			for d, distance := range h.row(s)[:len(g.switches)] {
				differs[d] = differs[d] || row[d] != distance
			}
		}
	}
	var dests []int32
	for d := range g.switches {
		if differs[d] || u.Was[d] < 0 {
			dests = append(dests, int32(d))
		}
	}
	part := &Hops{graph: g, up: h.up, only: dests, stride: (len(dests) + rowFilled - 1) / rowFilled * rowFilled}
	part.d = slices.Repeat([]uint8{noPath}, part.stride*len(g.switches))
	search := part.bfs
	if part.up != nil {
		search = part.bfsUpDown
	}
	if len(dests) > 0 {
		if err := part.search(ctx, search); errors.As(err, new(*distanceError)) {
			return nil, nil, nil
		} else if err != nil {
			return nil, nil, err
		}
	}
	return h, h.replace(part), nil
}

// replace replaces distances of h by the distances of part, and returns by switch the
// destinations for which its own distance or a neighbour's differs.
func (h *Hops) replace(part *Hops) [][]int32 {
	g := h.graph
	differ := make([][]int32, len(g.switches))
	for i, d := range part.only {
		mark := func(s int32) {
			if n := len(differ[s]); n == 0 || differ[s][n-1] != d {
				differ[s] = append(differ[s], d)
			}
		}
		for s := range g.switches {
			at := &h.d[s*h.stride+int(d)]
			if now := part.d[s*part.stride+i]; *at != now {
				*at = now
				mark(int32(s))
				for _, t := range g.nbrTo[g.nbrBase[s]:g.nbrBase[s+1]] {
					mark(t)
				}
			}
		}
	}
	return differ
}

// older begins with the older distances; new switches begin with the distances that their
// neighbours give them. Nil: such a path is too long.
func (u *HopsUpdate) older(g *Graph) *Hops {
	h := &Hops{graph: g, stride: (len(g.switches) + rowFilled - 1) / rowFilled * rowFilled}
	if u.Ranks != nil {
		h.up = u.Ranks.ups(g)
	}
	old, same := u.Old, len(u.Was) == len(u.Old.graph.switches)
	for s, was := range u.Was {
		same = same && int(was) == s
	}
	if same {
		h.d = slices.Clone(old.d)
		return h
	}
	h.d = slices.Repeat([]uint8{noPath}, h.stride*len(g.switches))
	var added []int
	for s, was := range u.Was {
		if was < 0 {
			added = append(added, s)
			h.d[s*h.stride+s] = 0
			continue
		}
		row, from := h.row(s), old.row(int(was))
		for d, was := range u.Was {
			if was >= 0 {
				row[d] = from[was]
			}
		}
	}
	row := make([]uint8, h.stride)
	for again, rounds := true, 0; again && rounds <= len(added); rounds++ {
		again = false
		for _, s := range added {
			h.byNeighbours(s, row)
			if !slices.Equal(row, h.row(s)) {
				copy(h.row(s), row)
				again = true
			}
			if slices.ContainsFunc(row, func(d uint8) bool { return d != noPath && d&^viaUp > MaxDistance }) {
				return nil
			}
		}
	}
	return h
}

// byNeighbours puts the distances of switch s in row, as its neighbours' distances give
// them. Links must have no weights.
func (h *Hops) byNeighbours(s int, row []uint8) {
	g := h.graph
	for d := range row {
		row[d] = noPath
	}
	for _, up := range []bool{false, true} { // a path that goes down goes before one that goes up
		if up && h.up == nil {
			break
		}
		for i := g.nbrBase[s]; i < g.nbrBase[s+1]; i++ {
			if h.up != nil && h.up[i] != up {
				continue
			}
			for d, far := range h.row(int(g.nbrTo[i])) {
				switch {
				case far == noPath:
				case up:
					if own := row[d]; own == noPath || own&viaUp != 0 && far&^viaUp+1 < own&^viaUp {
						row[d] = (far&^viaUp + 1) | viaUp
					}
				case far < viaUp && far+1 < row[d]:
					row[d] = far + 1
				}
			}
		}
	}
	row[s] = 0
}
