package graph

import (
	"context"
	"fmt"
	"slices"
)

// Turn is the way of a packet through a switch: from a switch, at the next, to a third,
// by number. All parallel links count alike.
type Turn struct{ From, At, To int }

// Channels are the pairs of channels by which packets make the turn. It is an error if
// none exist.
func (t Turn) Channels(g *Graph) (pairs [][2]int32, err error) {
	for in := g.chanBase[t.From]; in < g.chanBase[t.From+1]; in++ {
		for out := g.chanBase[t.At]; int(g.chanTo[in]) == t.At && out < g.chanBase[t.At+1]; out++ {
			if int(g.chanTo[out]) == t.To {
				pairs = append(pairs, [2]int32{in, out})
			}
		}
	}
	if pairs == nil {
		err = fmt.Errorf("no packet can turn at %s from %s to %s: there are no such links", g.switches[t.At].Label(), g.switches[t.From].Label(), g.switches[t.To].Label())
	}
	return pairs, err
}

// turnedHop is a next hop to switch d, down to a neighbour of which the path goes up
// again.
type turnedHop struct{ d, neighbour int32 }

// UpDownTurns is UpDown with turns that are nevertheless allowed, for pairs that have
// no path up and then down: a path may go down to a switch from which it goes up, where
// the turn is one of these for each of its next hops. Whether turns close a credit loop
// is for Verify to say.
//
// Time: that of UpDown, and for each pair without a path O(N) a distance.
func UpDownTurns(ctx context.Context, g *Graph, r *Ranks, turns []Turn) (*Hops, error) {
	h, err := UpDown(ctx, g, r)
	if err != nil || len(turns) == 0 {
		return h, err
	}
	allowed := map[Turn]bool{}
	for _, t := range turns {
		if _, err := t.Channels(g); err != nil {
			return nil, fmt.Errorf("updown: %w", err)
		}
		allowed[t] = true
	}
	found := make([][][]turnedHop, len(g.switches)) // by destination, then switch; nil: none
	err = Each(ctx, g.workers, len(g.switches), func(_, d int) {
		found[d] = h.addTurned(d, allowed)
	})
	h.turned = make([][]turnedHop, len(g.switches))
	for _, of := range found {
		for s, hops := range of {
			h.turned[s] = append(h.turned[s], hops...)
		}
	}
	return h, err
}

// addTurned finds the distances to switch d of the switches that have no path, the
// shortest first, and returns the next hops that turns are needed behind.
func (h *Hops) addTurned(d int, allowed map[Turn]bool) (found [][]turnedHop) {
	var missing []int
	for s := range h.graph.switches {
		if h.d[s*h.stride+d] == noPath {
			missing = append(missing, s)
		}
	}
	for x := 1; x <= MaxDistance && len(missing) > 0; {
		next := MaxDistance + 1 // the next length there is
		reached := map[int]uint8{}
		for _, s := range missing {
			down, up := h.nearestTurned(s, d, allowed)
			switch {
			case down == x:
				reached[s] = uint8(x)
			case up == x:
				reached[s] = uint8(x) | viaUp
			default:
				next = min(next, down, up)
			}
		}
		for s, distance := range reached {
			h.d[s*h.stride+d] = distance
		}
		if len(reached) == 0 {
			x = next
			continue
		}
		missing = slices.DeleteFunc(missing, func(s int) bool { _, is := reached[s]; return is })
		for s, distance := range reached {
			if distance&viaUp == 0 {
				if found == nil {
					found = make([][]turnedHop, len(h.graph.switches))
				}
				found[s] = h.turnedTo(s, d, allowed)
			}
		}
	}
	return found
}

// nearestTurned is how far switch s is from switch d by way of a neighbour that has a
// path: down to it, with turns that are allowed, and up to it. More than MaxDistance:
// none exists.
func (h *Hops) nearestTurned(s, d int, allowed map[Turn]bool) (down, up int) {
	g := h.graph
	down, up = MaxDistance+1, MaxDistance+1
	for i, n := range g.Neighbours(s) {
		far := h.d[int(n.To)*h.stride+d]
		x := int(far&^viaUp) + int(n.Weight)
		switch {
		case far == noPath:
		case h.up[int(g.nbrBase[s])+i]:
			up = min(up, x)
		case far&viaUp == 0 || h.mayTurn(s, int(n.To), d, allowed):
			down = min(down, x)
		}
	}
	return down, up
}

// turnedTo are the next hops of switch s to switch d that go down to where the path goes
// up again.
func (h *Hops) turnedTo(s, d int, allowed map[Turn]bool) (list []turnedHop) {
	g := h.graph
	for i, n := range g.Neighbours(s) {
		far := h.d[int(n.To)*h.stride+d]
		if far != noPath && far&viaUp != 0 && far&^viaUp+n.Weight == h.d[s*h.stride+d] && !h.up[int(g.nbrBase[s])+i] && h.mayTurn(s, int(n.To), d, allowed) {
			list = append(list, turnedHop{int32(d), int32(i)})
		}
	}
	return list
}

// mayTurn says whether packets from switch s may turn at switch at to each of its next
// hops to switch d, which go up.
func (h *Hops) mayTurn(s, at, d int, allowed map[Turn]bool) bool {
	g := h.graph
	own := h.d[at*h.stride+d] &^ viaUp
	for i, n := range g.Neighbours(at) {
		far := h.d[int(n.To)*h.stride+d]
		if far != noPath && h.up[int(g.nbrBase[at])+i] && far&^viaUp+n.Weight == own && !allowed[Turn{s, at, int(n.To)}] {
			return false
		}
	}
	return true
}
