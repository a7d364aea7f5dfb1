package routing

import (
	"context"
	"slices"
)

const (
	// maxDistance is the greatest distance that Hops holds. A directed route
	// has 63 hops at most (IBA 14.2.1.2).
	maxDistance = 125
	// Entries of Hops: a distance, with viaUp where the path begins upwards.
	viaUp  = 0x80
	noPath = 0x7f
	// rowFilled: rows are filled up to a multiple of so many entries.
	rowFilled = 64
)

// Hops are the distances between all pairs of switches, over the links that are
// allowed: all, or those of up*/down*. They take a byte a pair.
type Hops struct {
	graph  *Graph
	stride int
	d      []uint8 // from s to d: d[s*stride+d]
	only   []int32 // the destinations, where they are not all: column i is that of only[i]
	rank   *Ranks  // of up*/down*; nil: all links are allowed
	up     []bool  // by neighbour, whether its links go up; nil: all links are allowed
	place  []int32 // by switch: neighbours are preferred in this order; nil: by number
}

// Hops are the distances in links, or, where links have weights, the least sums
// of weights.
//
// Without weights it is a breadth-first search from 64 destinations at once, a
// bit of a word each (Then et al., "The more the merrier: efficient multi-source
// graph traversal", 2014): O(D*S*(S + N)/64) time. With weights, it is Dial's
// algorithm from each destination: O(S*(S + N)) time.
func (g *Graph) Hops(ctx context.Context) (*Hops, error) {
	h := newHops(g)
	return h, h.search(ctx, h.bfs)
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
	h.d = slices.Repeat([]uint8{noPath}, h.stride*len(g.switches))
	return h
}

// Distance is that from switch s to switch d, or -1 where there is no path.
func (h *Hops) Distance(s, d int) int {
	if x := h.d[s*h.stride+d] &^ viaUp; x != noPath {
		return int(x)
	}
	return -1
}

// Max is the longest distance.
func (h *Hops) Max() int {
	longest := uint8(0)
	for _, x := range h.d {
		if x &^= viaUp; x != noPath && x > longest {
			longest = x
		}
	}
	return int(longest)
}

// agrees says whether up*/down* allows the first link of a path from s by way of to:
// one that goes down all the way, or the links up before.
func (h *Hops) agrees(s, to, d int) bool {
	own, far := h.d[s*h.stride+d], h.d[to*h.stride+d]
	if h.rank.Up(s, to) {
		return own&viaUp != 0
	}
	return own&viaUp == 0 && far&viaUp == 0
}

// row has the distances from switch s, as they are stored.
func (h *Hops) row(s int) []uint8 { return h.d[s*h.stride:][:h.stride] }
