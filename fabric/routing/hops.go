package routing

import (
	"context"
	"slices"
)

const (
	maxPorts = 255
	// maxDistance is the farthest that a switch may be from another. A
	// directed route has 63 hops at most (IBA 14.2.1.2).
	maxDistance = 125
	// Entries of Hops: a distance, with viaUp where the way to go is up.
	viaUp     = 0x80
	farAway   = 0x7f // no way
	lanes     = 64   // destinations that are searched for at once
	rowFilled = 64   // entries that rows are filled up to a multiple of
)

// Hops are the distances of all switches from all others, over links that are
// allowed: all of them, or those of up*/down*.
type Hops struct {
	graph  *Graph
	stride int
	d      []uint8 // from s to d: d[s*stride+d]
	up     []bool  // by neighbour, whether its links go up; nil: all are allowed
	place  []int32 // by switch: neighbours are preferred in this order; nil: by number
}

// Hops are the distances in links, or, where links have weights, in those.
func (g *Graph) Hops(ctx context.Context) (*Hops, error) {
	h := newHops(g)
	return h, h.search(ctx, h.spread)
}

// linkHops are the distances in links, whatever their weights.
func (g *Graph) linkHops(ctx context.Context) (*Hops, error) {
	if !g.weighted {
		return g.Hops(ctx)
	}
	plain := *g
	plain.weighted = false
	return plain.Hops(ctx)
}

func newHops(g *Graph) *Hops {
	h := &Hops{graph: g, stride: (len(g.switches) + rowFilled - 1) / rowFilled * rowFilled}
	h.d = slices.Repeat([]uint8{farAway}, h.stride*len(g.switches))
	return h
}

// Distance is how far it is from switch s to switch d, or -1 where there is no way.
func (h *Hops) Distance(s, d int) int {
	if x := h.d[s*h.stride+d] &^ viaUp; x != farAway {
		return int(x)
	}
	return -1
}

// Max is the longest distance there is.
func (h *Hops) Max() int {
	longest := uint8(0)
	for _, x := range h.d {
		if x &^= viaUp; x != farAway && x > longest {
			longest = x
		}
	}
	return int(longest)
}

// row has the distances from switch s, as they are stored.
func (h *Hops) row(s int) []uint8 { return h.d[s*h.stride:][:h.stride] }
