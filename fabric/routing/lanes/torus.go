package lanes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxDims is how many dimensions a torus may have.
const MaxDims = 3

// Point is a place in a torus, by dimension.
type Point [MaxDims]int32

// Torus is a torus or a mesh, or one in some of its dimensions, of which switches and
// links may be missing. A direction is twice the dimension, and 1 more for rising
// coordinates.
type Torus struct {
	Dims   []int   // how many switches there are along each dimension
	Open   []bool  // by dimension: no link leads from the last to the first
	Points []Point // by switch
	Placed []bool  // by switch: it has a place; others have no links
	Way    []int8  // by channel: its direction
	// Mirror requires that paths there and back are on one side of each ring.
	Mirror bool

	n    *Network
	at   []int32              // by index of a point: the switch, or -1
	next [][2 * MaxDims]int32 // by switch and direction: the first channel, or -1
}

// Torus finds the coordinates, from the links alone: no switch has to be named. At a
// switch whose surroundings are whole, two neighbours are opposite if no way of two
// links but the way over the switch joins them, or if they are linked; the neighbours in
// rings of four are all alike, and all pairs are tried. From there on, two links of
// different dimensions are sides of a square, whose other sides have their directions; and
// where one link and one direction are left, the link has that direction.
//
// Time: O(C) for each switch at which it tries to begin; mostly the first is enough.
func (n *Network) Torus(ctx context.Context) (*Torus, error) {
	e, err := n.embedding(MaxDims)
	if err != nil {
		return nil, err
	}
	var starts []int32
	for s := range int32(n.Switches()) {
		if len(e.links[s]) > 0 {
			starts = append(starts, s)
		}
	}
	if len(starts) == 0 {
		return nil, errors.New("no links between switches")
	}
	slices.SortStableFunc(starts, func(a, b int32) int { return cmp.Compare(len(e.links[b]), len(e.links[a])) })
	var reason error
	tries := 0
	for _, s := range starts {
		for dims := range e.pairings(s) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			t, err := e.grow(s, dims)
			if err == nil {
				return t, nil
			}
			if tries++; reason == nil {
				reason = err
			}
			if tries == maxTries {
				return nil, reason
			}
		}
	}
	if reason == nil {
		reason = &NoTorus{[]int32{starts[0]}, "opposite links can be identified at no switch, not even at %s"}
	}
	return nil, reason
}

// Seed is a switch of a torus whose neighbours are known, and the shape.
type Seed struct {
	Switch int32
	Dims   []SeedDim
}

// SeedDim is a dimension of a Seed.
type SeedDim struct {
	Name     string
	Size     int
	Open     bool
	Next     [2]int32 // the switches in the directions of falling and rising coordinates, or -1
	Dateline int      // where coordinate 0 is, from the switch
}

// TorusFrom finds the coordinates from a seed.
func (n *Network) TorusFrom(seed *Seed) (*Torus, error) {
	e, err := n.embedding(len(seed.Dims))
	if err != nil {
		return nil, err
	}
	e.seed = seed
	var dims []dimension
	for _, d := range seed.Dims {
		x := dimension{-1, -1, d.Size == 4 && !d.Open, d.Size == 2}
		for way, c := range []*int32{&x.down, &x.up} {
			if to := d.Next[way]; to >= 0 {
				if *c = e.link(seed.Switch, to); *c < 0 {
					return nil, &NoTorus{[]int32{seed.Switch, to}, "no link from %s to %s"}
				}
			}
		}
		dims = append(dims, x)
	}
	return e.grow(seed.Switch, dims)
}

// embedding returns an empty embedding in so many dimensions.
func (n *Network) embedding(dims int) (*embedding, error) {
	e := &embedding{n: n, links: make([][]int32, n.Switches())}
	for s := range int32(n.Switches()) {
		e.links[s] = n.neighbours(s)
		if k := len(e.links[s]); k > 2*dims {
			return nil, &NoTorus{[]int32{s}, fmt.Sprintf("%%s has links to %d switches; a torus of %d dimensions allows %d", k, dims, 2*dims)}
		}
	}
	return e, nil
}

// maxTries is the number of starts that are tried.
const maxTries = 200

// NoTorus is the reason why a network is not a torus.
type NoTorus struct {
	Switches []int32 // switches that the format names
	Format   string  // with %s for each
}

// Name returns the message, with names of switches.
func (e *NoTorus) Name(name func(s int32) string) string {
	var names []any
	for _, s := range e.Switches {
		names = append(names, name(s))
	}
	return fmt.Sprintf(e.Format, names...)
}

func (e *NoTorus) Error() string {
	return e.Name(func(s int32) string { return fmt.Sprintf("switch %d", s) })
}

// embedding is an attempt to find the coordinates.
type embedding struct {
	n     *Network
	links [][]int32 // by switch: the first channel to each neighbour
	way   []int8    // by channel: its direction, or -1; of parallel channels only the first
	todo  []int32
	dims  []dimension
	seed  *Seed // nil: unknown
}

// dimension is a dimension at the switch where the embedding begins: the channels in its two
// directions. In rings of four they may be of another dimension.
type dimension struct {
	down, up int32 // -1: missing or unknown
	four     bool
	two      bool // switches have only one neighbour
}

// neighbours are the first channels from s to each switch it has links to.
func (n *Network) neighbours(s int32) []int32 {
	var first []int32
	for c := n.Base[s]; c < n.Base[s+1]; c++ {
		if !slices.ContainsFunc(first, func(d int32) bool { return n.To[d] == n.To[c] }) {
			first = append(first, c)
		}
	}
	return first
}

// link is the first channel from s to t, or -1.
func (e *embedding) link(s, t int32) int32 {
	for _, c := range e.links[s] {
		if e.n.To[c] == t {
			return c
		}
	}
	return -1
}

// corner is the only switch besides s that has links to t and u, or -1.
func (e *embedding) corner(s, t, u int32) int32 {
	corner := int32(-1)
	for _, c := range e.links[t] {
		v := e.n.To[c]
		if v == s || e.link(u, v) < 0 {
			continue
		}
		if corner >= 0 {
			return -1
		}
		corner = v
	}
	return corner
}

// opposite reports whether channels c and d out of s seem to be of one dimension.
func (e *embedding) opposite(s, c, d int32) bool {
	t, u := e.n.To[c], e.n.To[d]
	return e.link(t, u) >= 0 || !slices.ContainsFunc(e.links[t], func(x int32) bool { return e.n.To[x] != s && e.link(u, e.n.To[x]) >= 0 })
}

// pairings yields the dimensions that the links of s may be of. None: links near s are
// missing, or this is not a torus.
func (e *embedding) pairings(s int32) func(yield func([]dimension) bool) {
	four := func(c int32) bool {
		return !slices.ContainsFunc(e.links[s], func(d int32) bool { return c != d && e.opposite(s, c, d) })
	}
	var pairs func(list []int32, dims []dimension, yield func([]dimension) bool) bool
	pairs = func(list []int32, dims []dimension, yield func([]dimension) bool) bool {
		switch {
		case len(list) == 0:
			return yield(slices.Clone(dims))
		case len(dims) == MaxDims:
			return true
		}
		c := list[0]
		alone := four(c)
		for i := 1; i < len(list); i++ {
			d := list[i]
			if alone && !four(d) || !alone && !e.opposite(s, c, d) {
				continue
			}
			if !pairs(slices.Delete(slices.Clone(list[1:]), i-1, i), append(dims, dimension{d, c, alone, false}), yield) {
				return false
			}
		}
		return !alone || len(list)%2 == 0 || pairs(list[1:], append(dims, dimension{-1, c, true, true}), yield)
	}
	return func(yield func([]dimension) bool) { pairs(e.links[s], nil, yield) }
}

// grow finds the directions of all links, and the coordinates, from one switch.
func (e *embedding) grow(s int32, dims []dimension) (*Torus, error) {
	e.dims = dims
	e.way = slices.Repeat([]int8{-1}, len(e.n.To))
	e.todo = e.todo[:0]
	for d, x := range dims {
		for way, c := range []int32{x.down, x.up} {
			if c < 0 {
				continue
			}
			if err := e.set(c, int8(2*d+way)); err != nil {
				return nil, err
			}
		}
	}
	for len(e.todo) > 0 {
		s := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		if err := e.infer(s); err != nil {
			return nil, err
		}
	}
	return e.place(s)
}

// set notes the direction of a channel, and the opposite direction of its reverse.
func (e *embedding) set(c int32, way int8) error {
	s, t := e.n.From[c], e.n.To[c]
	back := e.link(t, s)
	if e.way[c] == way && e.way[back] == way^1 {
		return nil
	}
	if e.way[c] >= 0 || e.has(s, way) || e.has(t, way^1) {
		return &NoTorus{[]int32{s, t}, "the link from %s to %s would have two directions, or two links one"}
	}
	e.way[c], e.way[back] = way, way^1
	e.todo = append(e.todo, s, t)
	return nil
}

// has reports whether s has a link in that direction.
func (e *embedding) has(s int32, way int8) bool {
	return slices.ContainsFunc(e.links[s], func(c int32) bool { return e.way[c] == way })
}

// infer finds further directions from the directions of the links of s.
func (e *embedding) infer(s int32) error {
	for i, c := range e.links[s] {
		for _, d := range e.links[s][:i] {
			x, y := e.way[c], e.way[d]
			if x < 0 || y < 0 || x/2 == y/2 {
				continue
			}
			t, u := e.n.To[c], e.n.To[d]
			v := e.corner(s, t, u)
			if v < 0 {
				continue
			}
			if err := e.set(e.link(t, v), y); err != nil {
				return err
			}
			if err := e.set(e.link(u, v), x); err != nil {
				return err
			}
		}
	}
	for _, c := range e.links[s] {
		if e.way[c] < 0 {
			if way := e.onlyDirection(s, c); way >= 0 {
				if err := e.set(c, way); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// onlyDirection is the only direction that channel c out of s may have, or -1.
func (e *embedding) onlyDirection(s, c int32) int8 {
	var out [MaxDims]bool // by dimension: c does not belong to it
	unknown := 0
	for _, d := range e.links[s] {
		switch {
		case e.way[d] < 0:
			unknown++
		case !e.dims[e.way[d]/2].four && !e.opposite(s, c, d):
			out[e.way[d]/2] = true
		}
	}
	only := int8(-1)
	for d, x := range e.dims {
		up, down := e.has(s, int8(2*d+1)), e.has(s, int8(2*d))
		if out[d] || up && down || x.two && (up || down) {
			continue
		}
		if !up && !down || only >= 0 || x.four && unknown > 1 {
			return -1
		}
		only = int8(2 * d)
		if down {
			only++
		}
	}
	return only
}

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
	if err := t.rollUp(e, turns); err != nil {
		return nil, err
	}
	if err := t.index(); err != nil {
		return nil, err
	}
	if err := e.placeRest(t); err != nil {
		return nil, err
	}
	return t, t.finish(e)
}

// step is the point next to p.
func (p Point) step(way int8) Point {
	p[way/2] += int32(way%2)*2 - 1
	return p
}

// rollUp finds the lengths of rings, unless a seed has them, and maps all points into them.
func (t *Torus) rollUp(e *embedding, turns []Point) error {
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

// placeRest places the switches whose links have no known directions, each at the only free
// place that is beside all its neighbours.
func (e *embedding) placeRest(t *Torus) error {
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

// On returns the torus with the places of t in network n, whose switch s was number was[s]
// before, or -1: parts may have been lost, or have come back. Nil: n has parts that t did not
// have.
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
