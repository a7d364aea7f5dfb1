package lanes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// MaxDims is how many dimensions a torus may have.
const MaxDims = 3

// Point is a place in a torus, by dimension.
type Point [MaxDims]int32

// Torus is a torus or a mesh, or one in some of its dimensions, of which switches and
// links may be missing. A direction is twice the dimension, and 1 more if it is that of
// rising coordinates.
type Torus struct {
	Dims   []int   // how many switches there are along each dimension
	Open   []bool  // by dimension: no link leads from the last to the first
	Points []Point // by switch
	Placed []bool  // by switch: it has a place; others have no links
	Way    []int8  // by channel: its direction
	// Mirror requires that paths there and back are on the same side of each ring.
	Mirror bool

	n    *Network
	at   []int32              // by index of a point: the switch, or -1
	next [][2 * MaxDims]int32 // by switch and direction: the first channel, or -1
}

// Torus finds the coordinates, from the links alone: no switch has to be named. At a
// switch whose surroundings are whole, two neighbours are opposite if no way of two
// links but that over it joins them, or if they are linked; of those in rings of four
// all pairs are alike, and are tried. From there on, two links of different dimensions
// are sides of a square, whose other sides have their directions; and where one link is
// left for one direction, it has that.
//
// Time: O(C) for each switch that is tried to begin at, of which the first will mostly do.
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

// SeedDim is a dimension of it.
type SeedDim struct {
	Name     string
	Size     int
	Open     bool
	Next     [2]int32 // the switches in the directions of falling and rising coordinates, or -1
	Dateline int      // where coordinate 0 is, from the switch
}

// TorusFrom is Torus from a seed.
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

// embedding is the beginning of one in so many dimensions.
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
	Switches []int32 // those that the format names
	Format   string  // with %s for each
}

// Name is the message, with names of switches.
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

// embedding is a try to find the coordinates.
type embedding struct {
	n     *Network
	links [][]int32 // by switch: the first channel to each neighbour
	way   []int8    // by channel: its direction, or -1; of parallel ones only the first
	todo  []int32
	dims  []dimension
	seed  *Seed // nil: unknown
}

// dimension is one, at the switch where the embedding begins: the channels in its two
// directions. Those of rings of four may be of another dimension.
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

// corner is the one switch besides s that has links to t and u, or -1.
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

// opposite reports whether channels out of s seem to be those of one dimension.
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
		if err := e.look(s); err != nil {
			return nil, err
		}
	}
	return e.place(s)
}

// set notes the direction of a channel, and that of its reverse.
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

// look finds directions from those of the links of s.
func (e *embedding) look(s int32) error {
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
			if way := e.only(s, c); way >= 0 {
				if err := e.set(c, way); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// only is the one direction that channel c out of s may have, or -1.
func (e *embedding) only(s, c int32) int8 {
	var out [MaxDims]bool // it is not of that dimension
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
