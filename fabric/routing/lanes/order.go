package lanes

import (
	"math/bits"
	"slices"

	"fabsh/fabric/routing/graph"
)

// order is a layer to which paths are added, with a topological order of its vertices,
// which changes as edges are added. A vertex is a channel and its lane in the layer.
type order struct {
	l        *Layering
	count    []int32  // by edge: its paths
	rejected []uint64 // by edge, a bit: it would close a cycle; as none is removed, it always will
	volatile bool     // edges are removed, so rejected is not used
	sorted   graph.TopologicalSort
	// The edges that have paths. Edges out of a vertex lead to channels out of one switch, and
	// edges into it come from channels to one, so both are bits by the places of the channels at
	// the switch.
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

// placeOut is the place of a vertex among the vertices of all channels out of its switch.
func (o *order) placeOut(w int32) int32 {
	return w - o.l.Net.Base[o.l.Net.From[w/o.l.shifts]]*o.l.shifts
}

// placeIn is the place of a vertex among the vertices of all channels into its switch.
func (o *order) placeIn(v int32) int32 {
	n, c := o.l.Net, v/o.l.shifts
	return (n.Reverse[c]-n.Base[n.To[c]])*o.l.shifts + v%o.l.shifts
}

// try reports whether a new edge closes no cycle. Where a new edge of its own path may have closed
// it (fresh), the rejection is not remembered: that edge is removed again.
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
	forward.start(w)
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
	backward.start(v)
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

// bitRows are rows of bits.
type bitRows struct {
	start []int32 // by row: its first word; and the end
	words []uint64
}

// newBitRows are n rows, each of as many bits as size says.
func newBitRows(n int, size func(row int32) int32) bitRows {
	b := bitRows{start: make([]int32, n+1)}
	for row := range int32(n) {
		b.start[row+1] = b.start[row] + (size(row)+63)/64
	}
	b.words = make([]uint64, b.start[n])
	return b
}

func (b *bitRows) of(row int32) []uint64 { return b.words[b.start[row]:b.start[row+1]] }

func (b *bitRows) set(row, bit int32)   { b.words[b.start[row]+bit/64] |= 1 << (bit % 64) }
func (b *bitRows) unset(row, bit int32) { b.words[b.start[row]+bit/64] &^= 1 << (bit % 64) }

// frontier has the vertices that a search has met. As vertices share their bits by switch, the
// search reads each once, however many edges lead there.
type frontier struct {
	met   []int32
	seen  bitRows // by switch, and place: the search has read the vertex
	round []int32 // by switch: the search that its row is of
	now   int32
}

// start starts a search at vertex x.
func (f *frontier) start(x int32) {
	f.now++
	f.met = append(f.met[:0], x)
}

// at is the row of switch s.
func (f *frontier) at(s int32) []uint64 {
	row := f.seen.of(s)
	if f.round[s] != f.now {
		f.round[s] = f.now
		clear(row)
	}
	return row
}

// sort makes the positions a topological order of the edges (Kahn, "Topological sorting of
// large networks", 1962), and reports whether there is one.
func (o *order) sort() bool {
	into := make([]int32, len(o.sorted.Position)) // edges, by vertex
	var queue []int32
	for v := range int32(len(into)) {
		for _, word := range o.in.of(v) {
			into[v] += int32(bits.OnesCount64(word))
		}
		if into[v] == 0 {
			queue = append(queue, v)
		}
	}
	n, shifts := o.l.Net, o.l.shifts
	for i := 0; i < len(queue); i++ {
		first := n.Base[n.To[queue[i]/shifts]] * shifts
		for k, word := range o.out.of(queue[i]) {
			for ; word != 0; word &= word - 1 {
				w := first + int32(k*64+bits.TrailingZeros64(word))
				if into[w]--; into[w] == 0 {
					queue = append(queue, w)
				}
			}
		}
	}
	for i, v := range queue {
		o.sorted.Position[v], o.sorted.Vertex[i] = int32(i), v
	}
	return len(queue) == len(into)
}

// blocking is Blocking for this layer.
func (o *order) blocking(trail []int32) (edges []int32) {
	for at, e := range trail {
		if o.count[e] == 0 && !o.try(e, true) {
			v, w := o.ends(e)
			edges = slices.DeleteFunc(o.path(w, v), func(e int32) bool { return slices.Contains(trail, e) })
			o.remove(trail[:at])
			return edges
		}
		o.use(e)
	}
	o.remove(trail)
	return nil
}

// path returns the edges of a shortest path from one vertex to another, which must exist.
func (o *order) path(from, to int32) (edges []int32) {
	l := o.l
	n, shifts := l.Net, l.shifts
	before := map[int32]int32{}
	o.forward.start(from)
	for i := 0; ; i++ {
		x := o.forward.met[i]
		s := n.To[x/shifts]
		out, seen := o.out.of(x), o.forward.at(s)
		for k := range out {
			for fresh := out[k] &^ seen[k]; fresh != 0; fresh &= fresh - 1 {
				y := n.Base[s]*shifts + int32(k*64+bits.TrailingZeros64(fresh))
				before[y] = x
				if y == to {
					l.work -= len(o.forward.met)
					for ; y != from; y = before[y] {
						x := before[y]
						edges = append(edges, l.edge(x/shifts, x%shifts, y/shifts))
					}
					return edges
				}
				if o.sorted.Position[y] < o.sorted.Position[to] {
					o.forward.met = append(o.forward.met, y)
				}
			}
			seen[k] |= out[k]
		}
	}
}
