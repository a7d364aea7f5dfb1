package lanes

import (
	"cmp"
	"slices"
)

// order is a layer to which paths are added, with a topological order of its vertices,
// which is changed as edges are added (Pearce, Kelly, "A dynamic topological sort
// algorithm for directed acyclic graphs", 2006). A vertex is a channel and its lane in
// the layer.
type order struct {
	l        *Layering
	count    []int32  // by edge: its paths
	rejected []uint64 // by edge, a bit: it would close a cycle; as none is removed, it always will
	volatile bool     // edges are removed, so that is not remembered
	position []int32  // by vertex
	met      []int32  // by vertex: the last search that did
	search   int32
	forward  []int32
	backward []int32
	slots    []int32
}

// newOrder is a layer without paths.
func (l *Layering) newOrder() *order {
	n := len(l.Net.To) * int(l.shifts)
	o := &order{l: l, count: make([]int32, len(l.count)), rejected: make([]uint64, (len(l.count)+63)/64), position: make([]int32, n), met: make([]int32, n)}
	for v := range o.position {
		o.position[v] = int32(v)
	}
	return o
}

// add adds the edges of a path, or none of them if they close a cycle.
func (o *order) add(trail []int32) bool {
	fresh := false // some edge of the path was not there before
	for at, e := range trail {
		if o.count[e] == 0 && !o.try(e, fresh) {
			for _, e := range trail[:at] {
				o.count[e]--
			}
			return false
		}
		fresh = fresh || o.count[e] == 0
		o.count[e]++
	}
	return true
}

// try reports whether an edge that is new closes no cycle. Where edges of the same path may
// be to blame, which go again, that is not remembered.
func (o *order) try(e int32, fresh bool) bool {
	if o.rejected[e/64]&(1<<(e%64)) != 0 {
		return false
	}
	if o.admits(e) {
		return true
	}
	if !fresh && !o.volatile {
		o.rejected[e/64] |= 1 << (e % 64)
	}
	return false
}

// next is the next vertex that v has an edge to, or -1. at begins with 0.
func (o *order) next(v int32, at *int32) int32 {
	l := o.l
	c, shift := v/l.shifts, v%l.shifts
	degree := l.edges[c+1] - l.edges[c]
	first := l.edges[c]*l.shifts + shift*degree
	for *at < degree {
		k := *at
		*at++
		if o.count[first+k] > 0 {
			return l.vertex(l.Net.Base[l.Net.To[c]]+k, c)
		}
	}
	return -1
}

// vertex is channel d with the lane of packets that came by channel c.
func (l *Layering) vertex(d, c int32) int32 {
	if l.Shift == nil {
		return d
	}
	return d*2 + int32(l.Shift[c])
}

// admits reports whether an edge that is new closes no cycle, and makes room for it.
func (o *order) admits(e int32) bool {
	l := o.l
	c, _ := slices.BinarySearch(l.edges, e/l.shifts+1)
	c-- // the last channel whose first edge is not behind
	degree := l.edges[c+1] - l.edges[c]
	in := e - l.edges[c]*l.shifts
	v := int32(c)*l.shifts + in/degree
	w := l.vertex(l.Net.Base[l.Net.To[c]]+in%degree, int32(c))
	if o.position[v] < o.position[w] {
		return true
	}
	o.search++
	o.forward = append(o.forward[:0], w)
	o.met[w] = o.search
	for i := 0; i < len(o.forward); i++ {
		at := int32(0)
		for x := o.next(o.forward[i], &at); x >= 0; x = o.next(o.forward[i], &at) {
			if x == v {
				o.l.work -= len(o.forward)
				return false
			}
			if o.met[x] != o.search && o.position[x] < o.position[v] {
				o.met[x] = o.search
				o.forward = append(o.forward, x)
			}
		}
	}
	o.backward = append(o.backward[:0], v)
	o.met[v] = o.search
	for i := 0; i < len(o.backward); i++ {
		o.before(o.backward[i], o.position[w])
	}
	l.work -= len(o.forward) + len(o.backward)
	o.deal()
	return true
}

// before adds to backward what has an edge to vertex x, and lies behind a position.
func (o *order) before(x, behind int32) {
	l := o.l
	d := x / l.shifts
	s := l.Net.From[d]
	for out := l.Net.Base[s]; out < l.Net.Base[s+1]; out++ {
		c := l.Net.Reverse[out]
		if l.vertex(d, c) != x {
			continue
		}
		for shift := range l.shifts {
			y := c*l.shifts + shift
			if o.met[y] != o.search && o.position[y] > behind && o.count[l.edge(c, shift, d)] > 0 {
				o.met[y] = o.search
				o.backward = append(o.backward, y)
			}
		}
	}
}

// deal gives the positions of backward and forward to backward first.
func (o *order) deal() {
	byPosition := func(a, b int32) int { return cmp.Compare(o.position[a], o.position[b]) }
	slices.SortFunc(o.backward, byPosition)
	slices.SortFunc(o.forward, byPosition)
	all := append(o.backward, o.forward...)
	o.slots = o.slots[:0]
	for _, x := range all {
		o.slots = append(o.slots, o.position[x])
	}
	slices.Sort(o.slots)
	for i, x := range all {
		o.position[x] = o.slots[i]
	}
}
