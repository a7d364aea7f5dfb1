package lanes

import (
	"fmt"
	"slices"
)

// TorusRoutes are the paths in a torus in dimension order (Dally and Seitz, "Deadlock-free
// message routing in multiprocessor interconnection networks", 1987), with a dateline on
// each ring between its last point and its first, and around parts that are missing, as
// OpenSM's torus-2QoS has them (torus-2QoS(8)): on a ring that a missing link has opened,
// the other way round; and where the switch is missing at which the path would turn, it
// goes as near to it as it can, and turns there.
type TorusRoutes struct {
	t     *Torus
	order []int     // of dimensions
	ways  [][]uint8 // by dimension, switch and coordinate: bit 0, it can be reached by falling coordinates, 1: by rising ones
}

// Routes returns the paths in an order of dimensions.
//
// Time: O(S*n) for rings of n.
func (t *Torus) Routes(order []int) *TorusRoutes {
	r := &TorusRoutes{t: t, order: order, ways: make([][]uint8, len(t.Dims))}
	for d, n := range t.Dims {
		r.ways[d] = make([]uint8, n*len(t.Points))
		for s := range int32(len(t.Points)) {
			for up := range 2 {
				for c := t.step(s, d, up); c >= 0 && t.n.To[c] != s; c = t.step(t.n.To[c], d, up) {
					r.ways[d][int(s)*n+int(t.Points[t.n.To[c]][d])] |= 1 << up
				}
			}
		}
	}
	return r
}

// step is the first channel from s along dimension d, or -1.
func (t *Torus) step(s int32, d, up int) int32 {
	if !t.Placed[s] {
		return -1
	}
	return t.next[s][2*d+up]
}

// Next is the direction in which packets leave switch s for another; -1: none.
//
// Time: O(1).
func (r *TorusRoutes) Next(s, to int32) int {
	t := r.t
	if !t.Placed[s] || !t.Placed[to] {
		return -1
	}
	for _, d := range r.order { // the first in which they differ, unless it leads nowhere
		if t.Points[s][d] == t.Points[to][d] {
			continue
		}
		if up := r.along(d, s, to); up >= 0 {
			return 2*d + up
		}
	}
	return -1
}

// along is the way along dimension d: 1 for rising coordinates, 0, or -1.
func (r *TorusRoutes) along(d int, s, to int32) int {
	t := r.t
	p, q := t.Points[s], t.Points[to]
	up := t.shorter(d, p, q)
	turn := p
	turn[d] = q[d]
	if t.at[t.number(turn)] < 0 {
		if t.next[s][2*d+up] >= 0 {
			return up
		}
		return -1
	}
	switch ways := r.ways[d][int(s)*t.Dims[d]+int(q[d])]; {
	case ways>>up&1 > 0:
		return up
	case ways > 0:
		return 1 - up
	}
	return -1
}

// shorter is the way from p to q along dimension d if nothing is missing. Half way round
// both ways are equally long: then half of the paths go either way, by their end in the other
// dimensions or, with Mirror, so that the way back takes the links of the way there.
func (t *Torus) shorter(d int, p, q Point) int {
	n, by := int32(t.Dims[d]), q[d]-p[d]
	if t.Open[d] {
		return positive(by)
	}
	by = (by + n) % n
	if 2*by == n {
		if t.Mirror {
			return positive(q[d]-p[d]) ^ int(min(p[d], q[d])&1)
		}
		sum := p[d]
		for i, x := range q {
			if i != d {
				sum += x
			}
		}
		return int(sum+1) & 1
	}
	return positive(n - 2*by)
}

func positive(x int32) int {
	if x > 0 {
		return 1
	}
	return 0
}

// Level is the service level of paths between two switches: bit d is set if the path
// crosses the dateline of dimension d where nothing is missing. So it does not change
// where something fails.
func (t *Torus) Level(s, to int32) uint8 {
	level := uint8(0)
	for d := range t.Dims {
		p, q := t.Points[s], t.Points[to]
		if t.Dateline(d) && p[d] != q[d] && (t.shorter(d, p, q) == 1) == (q[d] < p[d]) {
			level |= 1 << d
		}
	}
	return level
}

// Dateline reports whether the rings of dimension d need a dateline: paths on shorter rings
// cross one link at most, if none is missing.
func (t *Torus) Dateline(d int) bool { return !t.Open[d] && t.Dims[d] > 3 }

// OnRing reports whether two switches differ in one dimension.
func (t *Torus) OnRing(a, b int32) bool {
	differ := 0
	for d := range t.Dims {
		if t.Points[a][d] != t.Points[b][d] {
			differ++
		}
	}
	return differ == 1
}

// Illegal reports whether a turn between two dimensions goes back in the order of dimensions:
// paths make such turns only around missing switches.
func (r *TorusRoutes) Illegal(from, to int) bool {
	return slices.Index(r.order, from) > slices.Index(r.order, to)
}

// Missing counts the points without a switch, and the missing links between the switches
// that exist.
func (t *Torus) Missing() (switches, links int) {
	for _, s := range t.at {
		if s < 0 {
			switches++
			continue
		}
		for d := range t.Dims {
			p, ok := t.beside(t.Points[s], int8(2*d+1))
			if ok && p != t.Points[s] && t.at[t.number(p)] >= 0 && t.next[s][2*d+1] < 0 {
				links++
			}
		}
	}
	return switches, links
}

// Orders are all orders of the dimensions, the given one first.
func (t *Torus) Orders() [][]int {
	orders := [][]int{{}}
	for range t.Dims {
		var longer [][]int
		for _, o := range orders {
			for d := range t.Dims {
				if !slices.Contains(o, d) {
					longer = append(longer, append(slices.Clone(o), d))
				}
			}
		}
		orders = longer
	}
	return orders
}

// String is the shape: "torus 4x4x4", "mesh 3x4", "torus 5x4, open along the 4".
func (t *Torus) String() string {
	size, open := "", 0
	for d, n := range t.Dims {
		if d > 0 {
			size += "x"
		}
		size += fmt.Sprint(n)
		if t.Open[d] {
			open++
		}
	}
	if open == len(t.Dims) {
		return "mesh " + size
	}
	for d, n := range t.Dims {
		if t.Open[d] {
			size += fmt.Sprintf(", open along the %d", n)
		}
	}
	return "torus " + size
}
