package lanes

import (
	"math/bits"
	"slices"

	"fabsh/fabric/routing/graph"
)

// order is a layer to which paths are added, with a topological order of its vertices,
// which is changed as edges are added. A vertex is a channel and its lane in the layer.
type order struct {
	l        *Layering
	count    []int32  // by edge: its paths
	rejected []uint64 // by edge, a bit: it would close a cycle; as none is removed, it always will
	volatile bool     // edges are removed, so that is not remembered
	sorted   graph.TopologicalSort
	// The edges that have paths. Those out of a vertex lead to channels out of one switch, and
	// those into it come from channels to one, so both are bits by the places of these at the switch.
	out, in  bitRows
	forward  frontier
	backward frontier
}

// newOrder is a layer without paths.
func (l *Layering) newOrder() *order {
	n := len(l.Net.To) * int(l.shifts)
	o := &order{l: l, count: make([]int32, len(l.count)), rejected: make([]uint64, (len(l.count)+63)/64)}
	position := make([]int32, n)
	for v := range position {
		position[v] = int32(v)
	}
	o.sorted = graph.NewTopologicalSort(position)
	places := func(s int32) int32 { return (l.Net.Base[s+1] - l.Net.Base[s]) * l.shifts }
	o.out = newBitRows(n, func(v int32) int32 { return places(l.Net.To[v/l.shifts]) })
	o.in = newBitRows(n, func(v int32) int32 { return places(l.Net.From[v/l.shifts]) })
	o.forward.seen = newBitRows(l.Net.Switches(), places)
	o.backward.seen = newBitRows(l.Net.Switches(), places)
	o.forward.round, o.backward.round = make([]int32, l.Net.Switches()), make([]int32, l.Net.Switches())
	return o
}

// add adds the edges of a path, or none of them if they close a cycle.
func (o *order) add(trail []int32) bool {
	fresh := false // some edge of the path was not there before
	for at, e := range trail {
		if o.count[e] == 0 && !o.try(e, fresh) {
			o.remove(trail[:at])
			return false
		}
		fresh = fresh || o.count[e] == 0
		o.use(e)
	}
	return true
}

// use counts one path more over an edge.
func (o *order) use(e int32) {
	if o.count[e]++; o.count[e] == 1 {
		v, w := o.ends(e)
		o.out.set(v, o.placeOut(w))
		o.in.set(w, o.placeIn(v))
	}
}

// remove takes the edges of a path off.
func (o *order) remove(trail []int32) {
	for _, e := range trail {
		if o.count[e]--; o.count[e] == 0 {
			v, w := o.ends(e)
			o.out.unset(v, o.placeOut(w))
			o.in.unset(w, o.placeIn(v))
		}
	}
}

// ends are the vertices that an edge joins.
func (o *order) ends(e int32) (v, w int32) {
	l := o.l
	c, _ := slices.BinarySearch(l.edges, e/l.shifts+1)
	c-- // the last channel whose first edge is not behind
	degree := l.edges[c+1] - l.edges[c]
	in := e - l.edges[c]*l.shifts
	return int32(c)*l.shifts + in/degree, l.vertex(l.Net.Base[l.Net.To[c]]+in%degree, int32(c))
}

// placeOut is the place of a vertex among those of channels out of the same switch, and placeIn
// among those of channels into the same.
func (o *order) placeOut(w int32) int32 {
	return w - o.l.Net.Base[o.l.Net.From[w/o.l.shifts]]*o.l.shifts
}

func (o *order) placeIn(v int32) int32 {
	n, c := o.l.Net, v/o.l.shifts
	return (n.Reverse[c]-n.Base[n.To[c]])*o.l.shifts + v%o.l.shifts
}

// try reports whether an edge that is new closes no cycle. Where edges of the same path may
// be to blame, which go again, that is not remembered.
func (o *order) try(e int32, fresh bool) bool {
	if o.rejected[e/64]&(1<<(e%64)) != 0 {
		return false
	}
	if o.admits(o.ends(e)) {
		return true
	}
	if !fresh && !o.volatile {
		o.rejected[e/64] |= 1 << (e % 64)
	}
	return false
}

// vertex is channel d with the lane of packets that came by channel c.
func (l *Layering) vertex(d, c int32) int32 {
	if l.Shift == nil {
		return d
	}
	return d*2 + int32(l.Shift[c])
}

// admits reports whether an edge from v to w, which is new, closes no cycle, and makes room for it.
func (o *order) admits(v, w int32) bool {
	if o.sorted.Position[v] < o.sorted.Position[w] {
		return true
	}
	n, shifts := o.l.Net, o.l.shifts
	forward, backward := &o.forward, &o.backward
	forward.begin(w)
	for i := 0; i < len(forward.met); i++ {
		x := forward.met[i]
		s := n.To[x/shifts]
		edges, seen := o.out.of(x), forward.at(s)
		for k := range edges {
			for fresh := edges[k] &^ seen[k]; fresh != 0; fresh &= fresh - 1 {
				y := n.Base[s]*shifts + int32(k*64+bits.TrailingZeros64(fresh))
				if y == v {
					o.l.work -= len(forward.met)
					return false
				}
				if o.sorted.Position[y] < o.sorted.Position[v] {
					forward.met = append(forward.met, y)
				}
			}
			seen[k] |= edges[k]
		}
	}
	backward.begin(v)
	for i := 0; i < len(backward.met); i++ {
		x := backward.met[i]
		s := n.From[x/shifts]
		edges, seen := o.in.of(x), backward.at(s)
		for k := range edges {
			for fresh := edges[k] &^ seen[k]; fresh != 0; fresh &= fresh - 1 {
				at := int32(k*64 + bits.TrailingZeros64(fresh))
				y := n.Reverse[n.Base[s]+at/shifts]*shifts + at%shifts
				if o.sorted.Position[y] > o.sorted.Position[w] {
					backward.met = append(backward.met, y)
				}
			}
			seen[k] |= edges[k]
		}
	}
	o.l.work -= len(forward.met) + len(backward.met)
	o.sorted.Exchange(backward.met, forward.met)
	return true
}
