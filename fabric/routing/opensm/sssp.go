package opensm

import (
	"math"

	"fabsh/mad"
)

// shortestPaths fills the tables of sssp and dfsssp: the cheapest paths from each destination
// on; each path then makes its links dearer (opensm osm_ucast_dfsssp.c, dfsssp_build_graph,
// dfsssp_do_dijkstra_routing).
func (r *routing) shortestPaths() error {
	x := newCheapest(r.network)
	if d, ok := r.destinationOf(r.SM); ok {
		x.from(&d)
		for v := range r.Switches {
			if x.used[v] < 0 && int32(v) != d.home {
				return fails("a switch is not reached")
			}
		}
	}
	for s := range r.Switches {
		r.tables[s][r.Switches[s].LID] = 0
	}
	order := r.byLoad(func(s int32) int { return int(x.lids[s]) })
	var list []destination
	for _, s := range order {
		list = r.endsBehind(list, s)
	}
	for _, s := range order {
		list = append(list, r.switchDestination(s))
	}
	for i := range list {
		d := &list[i]
		if !d.isSwitch && r.Ends[-1-r.byLID[d.lid]].Router {
			continue
		}
		for offset := range d.count {
			if r.ctx.Err() != nil {
				return nil
			}
			x.from(d)
			for v := range r.Switches {
				port := x.portTo(int32(v), d)
				if port < 0 {
					continue
				}
				r.tables[v][int(d.lid)+offset] = uint8(port)
				if !d.isSwitch {
					r.counts[r.base[v]+int32(port)]++
				}
			}
			if r.differs(int(d.lid) + offset) {
				return nil
			}
			x.addWeights(d)
		}
	}
	return nil
}

// destinationOf returns the destination with a LID.
func (r *routing) destinationOf(lid mad.LID) (destination, bool) {
	if int(lid) >= len(r.byLID) {
		return destination{}, false
	}
	switch at := r.byLID[lid]; {
	case at > 0:
		return r.switchDestination(at - 1), true
	case at < 0:
		return r.endDestination(-1 - at), true
	}
	return destination{}, false
}

// cheapest finds the cheapest paths from a destination to all switches.
type cheapest struct {
	*network
	weight []uint64 // of the link out of a port, over all switches
	lids   []uint64 // that each switch stands for: its own and those of its CAs

	used     []int16 // by switch: its port on the path; -1: none, or it is the end of the path
	distance []uint64
	done     []bool

	heap []heapItem
	at   []int32 // the place in the heap, by switch; the last is a CA's
}

type heapItem struct {
	key    uint64
	vertex int32
}

// infinite is the distance of what was not reached yet.
const infinite = math.MaxInt64

func newCheapest(w *network) *cheapest {
	n := len(w.Switches)
	x := &cheapest{network: w, weight: make([]uint64, w.base[n]), lids: make([]uint64, n), used: make([]int16, n), distance: make([]uint64, n+1), done: make([]bool, n+1), at: make([]int32, n+1)}
	total := uint64(n)
	for s := range w.Switches {
		x.lids[s] = 1
		for _, l := range w.Switches[s].Links {
			if l.Kind == ToEnd {
				x.lids[s] += uint64(w.Ends[l.To].Count)
			}
		}
	}
	for i := range w.Ends {
		if !w.Ends[i].Router {
			total += uint64(w.Ends[i].Count)
		}
	}
	for i := range x.weight {
		x.weight[i] = total * total // so that shorter paths are cheaper
	}
	return x
}

// from finds the cheapest paths from d. Ties depend on the order in the heap.
func (x *cheapest) from(d *destination) {
	n := int32(len(x.Switches))
	x.heap = x.heap[:0]
	for v := range n {
		x.used[v], x.distance[v], x.done[v] = -1, infinite, false
		x.at[v] = v
		x.heap = append(x.heap, heapItem{infinite, v})
	}
	source := d.home
	if !d.isSwitch {
		source = n
		x.distance[n], x.done[n], x.at[n] = infinite, false, n
		x.heap = append(x.heap, heapItem{infinite, n})
	}
	x.distance[source], x.done[source] = 0, true
	x.decrease(source)
	for len(x.heap) > 0 {
		v := x.extract()
		x.done[v] = true
		if v == n {
			if d.home >= 0 && !x.done[d.home] && x.distance[v]+1 < x.distance[d.home] {
				x.distance[d.home] = x.distance[v] + 1
				x.decrease(d.home)
			}
			continue
		}
		if x.distance[v] == infinite {
			continue
		}
		for p, l := range x.Switches[v].Links {
			if l.Kind != ToSwitch || x.done[l.To] {
				continue
			}
			if far := x.distance[v] + x.weight[x.base[v]+int32(p)]; far < x.distance[l.To] {
				x.distance[l.To], x.used[l.To] = far, int16(l.Port)
				x.decrease(l.To)
			}
		}
	}
}

// portTo returns the port of switch v on the path to d, less than 0 without one.
func (x *cheapest) portTo(v int32, d *destination) int {
	switch {
	case v != d.home:
		return int(x.used[v])
	case d.isSwitch:
		return -1
	}
	return int(d.port)
}

// addWeights makes all links on the paths dearer, by the LIDs of each switch.
func (x *cheapest) addWeights(d *destination) {
	for v := range x.Switches {
		for at := int32(v); at != d.home && x.used[at] >= 0; {
			l := x.Switches[at].Links[x.used[at]]
			x.weight[x.base[l.To]+int32(l.Port)] += x.lids[v]
			at = l.To
		}
	}
}

// The heap is OpenSM's (complib cl_heap.c), with four children: of equal children the last one
// moves up.

const children = 4

func (x *cheapest) place(i int, item heapItem) {
	x.heap[i] = item
	x.at[item.vertex] = int32(i)
}

// decrease moves a vertex up to the place of its smaller distance.
func (x *cheapest) decrease(v int32) {
	i := int(x.at[v])
	item := heapItem{x.distance[v], v}
	for i > 0 && item.key < x.heap[(i-1)/children].key {
		x.place(i, x.heap[(i-1)/children])
		i = (i - 1) / children
	}
	x.place(i, item)
}

// extract removes the nearest vertex.
func (x *cheapest) extract() int32 {
	root := x.heap[0].vertex
	last := len(x.heap) - 1
	item := x.heap[last]
	x.heap = x.heap[:last]
	if last == 0 {
		return root
	}
	i := 0
	for i*children+1 < last {
		least := i*children + 1
		for c := least + 1; c < min(i*children+1+children, last); c++ {
			if x.heap[c].key <= x.heap[least].key {
				least = c
			}
		}
		if item.key <= x.heap[least].key {
			break
		}
		x.place(i, x.heap[least])
		i = least
	}
	x.place(i, item)
	return root
}
