package lanes

import (
	"context"
	"math/bits"
	"slices"
)

// Placing puts paths on the layers of others, which stay where they are. A path can be taken
// off again.
type Placing struct {
	l      *Layering
	orders []*order
}

// Place begins with the paths of l, each on its layer by switch and LID, and with copies on the layers
// in more, a bit each, if any. It leaves out paths that do not arrive, and the paths of switches for
// which layer is nil. Nil: a layer has a cycle.
//
// Time: O(P*H) for P paths of H channels, and O(E) for each layer of E edges.
func (l *Layering) Place(ctx context.Context, layer [][]uint8, more [][]uint16, layers int) (*Placing, error) {
	l.prepare()
	p := &Placing{l: l}
	for range layers {
		p.Grow()
	}
	for first := 0; first < len(l.Dests); first += block {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for _, s := range l.Sources {
			if layer[s] == nil {
				continue
			}
			for d := first; d < min(first+block, len(l.Dests)); d++ {
				if !l.follow(s, &l.Dests[d]) {
					continue
				}
				l.work -= len(l.trail)
				on := uint16(1) << layer[s][l.Dests[d].Index]
				if more != nil && more[s] != nil {
					on |= more[s][l.Dests[d].Index]
				}
				for ; on != 0; on &= on - 1 {
					o := p.orders[bits.TrailingZeros16(on)]
					for _, e := range l.trail {
						o.use(e)
					}
				}
			}
		}
	}
	for _, o := range p.orders {
		if !o.sort() {
			return nil, nil
		}
	}
	return p, nil
}

// Layers is the number of layers.
func (p *Placing) Layers() int { return len(p.orders) }

// Grow adds an empty layer.
func (p *Placing) Grow() {
	o := p.l.newOrder()
	o.volatile = true
	p.orders = append(p.orders, o)
}

// Trail appends the edges of the path from switch s to a destination, a place in Dests, and
// reports whether it arrives.
func (p *Placing) Trail(trail []int32, s int32, dest int) ([]int32, bool) {
	arrives := p.l.follow(s, &p.l.Dests[dest])
	p.l.work -= len(p.l.trail)
	return append(trail, p.l.trail...), arrives
}

// Add puts edges on a layer, or none of them if they close a cycle.
func (p *Placing) Add(layer int, trail []int32) bool {
	p.l.work -= len(trail)
	return p.orders[layer].add(trail)
}

// Blocking returns the edges of a layer that close a cycle with a path, except the edges of the path
// itself. Nil: there is no cycle, or the path alone closes one.
func (p *Placing) Blocking(layer int, trail []int32) []int32 { return p.orders[layer].blocking(trail) }

// Paths counts the paths over an edge of a layer.
func (p *Placing) Paths(layer int, edge int32) int { return int(p.orders[layer].count[edge]) }

// Through calls found for the paths over an edge, by source and place in Dests, whatever their layer.
func (p *Placing) Through(edge int32, found func(s int32, dest int)) {
	l := p.l
	v, w := p.orders[0].ends(edge)
	a, b := v/l.shifts, w/l.shifts
	l.eachThrough(a, b, func(i int32) bool {
		l.upstream(l.Net.From[a], i, func(s int32) {
			if l.source[s] >= 0 && l.follow(s, &l.Dests[i]) && slices.Contains(l.trail, edge) {
				found(s, int(i))
			}
		})
		return true
	})
}

// Work returns the number of edges of paths that were added or followed so far, and of vertices that
// searches went through.
func (p *Placing) Work() int { return -p.l.work }

// Remove takes edges off again.
func (p *Placing) Remove(layer int, trail []int32) { p.orders[layer].remove(trail) }
