package lanes

import (
	"context"
	"math/bits"
)

// Placing puts paths on the layers of others, which stay where they are. A path can be taken
// off again.
type Placing struct {
	l      *Layering
	orders []*order
}

// Place begins with the paths of l, each on its layer by switch and LID, of so many. Those that
// do not arrive are left out, and those of switches for which layer is nil. Nil: a layer has a
// cycle.
//
// Time: O(P*H) for P paths of H channels, and O(E) for each layer of E edges.
func (l *Layering) Place(ctx context.Context, layer [][]uint8, layers int) (*Placing, error) {
	l.begin()
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
				o := p.orders[layer[s][l.Dests[d].Index]]
				for _, e := range l.trail {
					o.use(e)
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

// Layers is their number.
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
	return append(trail, p.l.trail...), arrives
}

// Add puts edges on a layer, or none of them if they close a cycle.
func (p *Placing) Add(layer int, trail []int32) bool { return p.orders[layer].add(trail) }

// Remove takes edges off again.
func (p *Placing) Remove(layer int, trail []int32) { p.orders[layer].remove(trail) }

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
