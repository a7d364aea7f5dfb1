package routing

import (
	"cmp"
	"slices"
)

// order keeps the channels of a dependency graph without cycles in topological
// order while edges are added, and refuses those that would close one (Pearce
// and Kelly, "A dynamic topological sort algorithm for directed acyclic
// graphs", 2006). Taking edges away leaves the order as good as it was.
type order struct {
	*cdg
	place []int32 // of a channel
	mark  []int32 // by channel: the search it was met in
	stamp int32
	ahead []int32 // met on the way on, and on the way back
	back  []int32
	stack []int32
	slots []int32
	from  []int32    // by channel: the one before it in the search on
	added [][2]int32 // edges since the last commit, which may be taken back
	loose *cdg       // the same

	// Edges that were refused, and those of them that need not be any more
	// when loose ones are taken back.
	barred   *cdg
	doubtful [][2]int32
}

// newOrder begins with the edges of d, which must all lead to a later place.
func newOrder(d *cdg, place []int32) *order {
	return &order{cdg: d, place: place, mark: make([]int32, len(place)), from: make([]int32, len(place)), loose: newCDG(d.g, d.vls), barred: newCDG(d.g, d.vls)}
}

// upDownOrder are places in which all turns of up*/down* lead on.
func (g *Graph) upDownOrder(r *Ranks) []int32 {
	list := make([]int32, len(g.channels))
	for c := range list {
		list[c] = int32(c)
	}
	// Up from the lowest switches first, then down from the highest.
	slices.SortFunc(list, func(i, j int32) int {
		a, b := &g.channels[i], &g.channels[j]
		up, alsoUp := r.Up(int(a.From), int(a.To)), r.Up(int(b.From), int(b.To))
		switch {
		case up && !alsoUp:
			return -1
		case !up && alsoUp:
			return 1
		}
		c := cmp.Or(cmp.Compare(r.Rank[a.From], r.Rank[b.From]), cmp.Compare(a.From, b.From))
		if up {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(i, j))
	})
	place := make([]int32, len(list))
	for i, c := range list {
		place[c] = int32(i)
	}
	return place
}

// try adds the edge from v to w unless that closes a cycle.
func (o *order) try(v, w int32) bool {
	if o.has(v, w) {
		return true
	}
	if o.place[v] >= o.place[w] {
		if o.barred.has(v, w) {
			return false
		}
		if !o.reorder(v, w) {
			o.barred.add(v, w)
			return false
		}
	}
	o.add(v, w)
	o.loose.add(v, w)
	o.added = append(o.added, [2]int32{v, w})
	return true
}

// reorder makes room for an edge that leads back: v and what comes before it
// get the earlier of the places of all that are involved. False: w leads to v.
func (o *order) reorder(v, w int32) bool {
	o.stamp++
	o.ahead, o.back = o.ahead[:0], o.back[:0]
	o.mark[w] = o.stamp
	o.stack = append(o.stack[:0], w)
	for len(o.stack) > 0 {
		x := o.stack[len(o.stack)-1]
		o.stack = o.stack[:len(o.stack)-1]
		o.ahead = append(o.ahead, x)
		for y, at := o.next(x, 0); y >= 0; y, at = o.next(x, at) {
			if y == v {
				if o.isLoose(w, x, v) {
					o.doubtful = append(o.doubtful, [2]int32{v, w})
				}
				return false
			}
			if o.mark[y] != o.stamp && o.place[y] < o.place[v] {
				o.mark[y], o.from[y] = o.stamp, x
				o.stack = append(o.stack, y)
			}
		}
	}
	o.mark[v] = o.stamp
	o.stack = append(o.stack, v)
	for len(o.stack) > 0 {
		x := o.stack[len(o.stack)-1]
		o.stack = o.stack[:len(o.stack)-1]
		o.back = append(o.back, x)
		from := o.g.channels[x].From
		for c := o.g.chanBase[from]; c < o.g.chanBase[from+1]; c++ {
			y := o.g.channels[c].Reverse
			if o.mark[y] != o.stamp && o.place[y] > o.place[w] && o.has(y, x) {
				o.mark[y] = o.stamp
				o.stack = append(o.stack, y)
			}
		}
	}
	byPlace := func(a, b int32) int { return cmp.Compare(o.place[a], o.place[b]) }
	slices.SortFunc(o.back, byPlace)
	slices.SortFunc(o.ahead, byPlace)
	o.slots = o.slots[:0]
	for _, x := range o.back {
		o.slots = append(o.slots, o.place[x])
	}
	for _, x := range o.ahead {
		o.slots = append(o.slots, o.place[x])
	}
	slices.Sort(o.slots)
	for i, x := range o.back {
		o.place[x] = o.slots[i]
	}
	for i, x := range o.ahead {
		o.place[x] = o.slots[len(o.back)+i]
	}
	return true
}

// isLoose: there is a loose edge on the way that was found from w over x to v.
func (o *order) isLoose(w, x, v int32) bool {
	for !o.loose.has(x, v) {
		if x == w {
			return false
		}
		x, v = o.from[x], x
	}
	return true
}

// commit keeps those of the edges added since the last commit that keep says.
func (o *order) commit(keep func(v, w int32) bool) {
	for _, e := range o.added {
		o.loose.remove(e[0], e[1])
		if !keep(e[0], e[1]) {
			o.remove(e[0], e[1])
		}
	}
	for _, e := range o.doubtful {
		o.barred.remove(e[0], e[1])
	}
	o.added, o.doubtful = o.added[:0], o.doubtful[:0]
}
