package lanes

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// maxPoints bounds the points of a torus: no subnet has as many LIDs.
const maxPoints = 1 << 17

// place gives all switches coordinates by the directions of links: first as if the torus
// was unrolled, with home at 0; links that lead back then show how long its rings are.
func (e *embedding) place(home int32) (*Torus, error) {
	n := e.n
	t := &Torus{Points: make([]Point, n.Switches()), Placed: make([]bool, n.Switches()), Way: e.way, n: n}
	t.Placed[home] = true
	queue := []int32{home}
	var turns []Point // how far paths that lead back to their start have gone
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		for _, c := range e.links[s] {
			if e.way[c] < 0 {
				continue
			}
			p, to := t.Points[s].step(e.way[c]), n.To[c]
			if !t.Placed[to] {
				t.Placed[to], t.Points[to] = true, p
				queue = append(queue, to)
			} else if p != t.Points[to] {
				for d := range p {
					p[d] -= t.Points[to][d]
				}
				turns = append(turns, p)
			}
		}
	}
	if err := t.close(e, turns); err != nil {
		return nil, err
	}
	if err := t.index(); err != nil {
		return nil, err
	}
	if err := e.rest(t); err != nil {
		return nil, err
	}
	return t, t.finish(e)
}

// step is the point next to p.
func (p Point) step(way int8) Point {
	p[way/2] += int32(way%2)*2 - 1
	return p
}

// close finds the lengths of rings, unless a seed has them, and rolls the torus up.
func (t *Torus) close(e *embedding, turns []Point) error {
	t.Dims, t.Open = make([]int, len(e.dims)), make([]bool, len(e.dims))
	for _, p := range turns {
		if d := slices.IndexFunc(p[:], func(x int32) bool { return x != 0 }); e.seed == nil && slices.IndexFunc(p[d+1:], func(x int32) bool { return x != 0 }) < 0 {
			t.Dims[d] = gcd(t.Dims[d], int(max(p[d], -p[d])))
		}
	}
	for d := range t.Dims {
		if t.Open[d] = t.Dims[d] == 0; e.seed != nil {
			t.Dims[d], t.Open[d] = e.seed.Dims[d].Size, e.seed.Dims[d].Open
		}
	}
	for _, p := range turns {
		for d, x := range p {
			switch {
			case x == 0 || !t.Open[d] && int(x)%t.Dims[d] == 0:
			case e.seed != nil:
				return fmt.Errorf("paths lead back to their start after %d switches along %s, which is impossible in a %v", max(x, -x), e.seed.Dims[d].Name, t)
			default:
				return errors.New("its rings do not close at their start: it is twisted")
			}
		}
	}
	points := 1
	for d := range t.Dims {
		low, high := int32(math.MaxInt32), int32(math.MinInt32)
		for s, p := range t.Points {
			if t.Placed[s] {
				low, high = min(low, p[d]), max(high, p[d])
			}
		}
		switch {
		case e.seed != nil && !t.Open[d]:
			low = int32(e.seed.Dims[d].Dateline) // the seed is at 0
		case e.seed != nil && int(high-low) >= t.Dims[d]:
			return fmt.Errorf("%d switches along %s are too many for a %v", high-low+1, e.seed.Dims[d].Name, t)
		case e.seed != nil:
		case t.Open[d]:
			t.Dims[d] = int(high-low) + 1
		default:
			low = t.Points[slices.Index(t.Placed, true)][d] // the dateline is below the first switch
		}
		if points *= t.Dims[d]; points > maxPoints {
			return errors.New("too many points")
		}
		for s := range t.Points {
			n := int32(t.Dims[d])
			t.Points[s][d] = ((t.Points[s][d]-low)%n + n) % n
		}
	}
	t.at = slices.Repeat([]int32{-1}, points)
	return nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// number is the index of a point.
func (t *Torus) number(p Point) int {
	i := 0
	for d, n := range t.Dims {
		i = i*n + int(p[d])
	}
	return i
}

// beside is the point next to p, if there is one.
func (t *Torus) beside(p Point, way int8) (Point, bool) {
	d := way / 2
	p = p.step(way)
	n := int32(t.Dims[d])
	if t.Open[d] {
		return p, p[d] >= 0 && p[d] < n
	}
	p[d] = (p[d] + n) % n
	return p, true
}

// index notes which switch is where.
func (t *Torus) index() error {
	for s, p := range t.Points {
		if t.Placed[s] {
			at := &t.at[t.number(p)]
			if *at >= 0 {
				return &NoTorus{[]int32{*at, int32(s)}, "%s and %s would be at one place"}
			}
			*at = int32(s)
		}
	}
	return nil
}

// rest places switches of whose links the directions are not known, each at the only free
// place that is beside all its neighbours.
func (e *embedding) rest(t *Torus) error {
	for again := true; again; {
		again = false
		for s := range int32(len(t.Placed)) {
			if t.Placed[s] || len(e.links[s]) == 0 {
				continue
			}
			if p, ok := e.free(t, s); ok {
				t.Placed[s], t.Points[s] = true, p
				t.at[t.number(p)] = s
				again = true
			}
		}
	}
	for s := range int32(len(t.Placed)) {
		if !t.Placed[s] && len(e.links[s]) > 0 {
			return &NoTorus{[]int32{s}, "the place of %s cannot be determined from its links"}
		}
	}
	return nil
}

// free is the only free point beside all neighbours of s that have a place.
func (e *embedding) free(t *Torus, s int32) (Point, bool) {
	var found []Point
	begun := false
	for _, c := range e.links[s] {
		to := e.n.To[c]
		if !t.Placed[to] {
			continue
		}
		var around []Point
		for way := range int8(2 * len(t.Dims)) {
			p, ok := t.beside(t.Points[to], way)
			if ok && t.at[t.number(p)] < 0 && (!begun || slices.Contains(found, p)) && !slices.Contains(around, p) {
				around = append(around, p)
			}
		}
		begun, found = true, around
	}
	if len(found) != 1 {
		return Point{}, false
	}
	return found[0], true
}

// finish gives all channels their directions, by the places of their ends.
func (t *Torus) finish(e *embedding) error {
	n := t.n
	t.next = make([][2 * MaxDims]int32, n.Switches())
	for s := range t.next {
		for way := range t.next[s] {
			t.next[s][way] = -1
		}
		for _, c := range e.links[s] {
			way := t.between(t.Points[s], t.Points[n.To[c]], e.way[c])
			if way < 0 {
				return &NoTorus{[]int32{int32(s), n.To[c]}, "the link from %s to %s does not join neighbours"}
			}
			t.next[s][way] = c
		}
		for c := n.Base[s]; c < n.Base[s+1]; c++ {
			t.Way[c] = t.Way[e.link(int32(s), n.To[c])]
			if t.Way[c] < 0 {
				t.Way[c] = t.between(t.Points[s], t.Points[n.To[c]], -1)
			}
		}
	}
	return nil
}

// between is the direction from p to q, known or not; -1: they are not neighbours.
func (t *Torus) between(p, q Point, known int8) int8 {
	for way := range int8(2 * len(t.Dims)) {
		if known >= 0 && way != known {
			continue
		}
		if r, ok := t.beside(p, way); ok && r == q {
			return way
		}
	}
	return -1
}

// On are the same places in n, whose switch s was number was[s] before, or -1: parts may have
// been lost, or have come back. Nil: n has what t did not have.
func (t *Torus) On(n *Network, was []int32) *Torus {
	o := &Torus{Dims: t.Dims, Open: t.Open, Mirror: t.Mirror, n: n}
	o.Points, o.Placed = make([]Point, len(was)), make([]bool, len(was))
	o.at, o.next = slices.Repeat([]int32{-1}, len(t.at)), make([][2 * MaxDims]int32, len(was))
	for s, i := range was {
		for way := range o.next[s] {
			o.next[s][way] = -1
		}
		if i >= 0 && t.Placed[i] {
			o.Points[s], o.Placed[s] = t.Points[i], true
			o.at[o.number(o.Points[s])] = int32(s)
		} else if n.Base[s] < n.Base[s+1] {
			return nil
		}
	}
	o.Way = make([]int8, len(n.To))
	for c := range o.Way {
		a, b := n.From[c], n.To[c]
		way := int8(-1)
		for old := t.n.Base[was[a]]; old < t.n.Base[was[a]+1]; old++ {
			if t.n.To[old] == was[b] {
				way = t.Way[old]
			}
		}
		if way = o.between(o.Points[a], o.Points[b], way); way < 0 {
			return nil
		}
		if o.Way[c] = way; o.next[a][way] < 0 {
			o.next[a][way] = int32(c)
		}
	}
	return o
}
