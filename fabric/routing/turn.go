package routing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/mad"
)

// Turn is the way of a packet through a switch: from a switch, at the next, to a third,
// by number. All parallel links count alike.
type Turn struct{ From, At, To int }

// turnGraph is the channel dependency graph of turns.
func (g *Graph) turnGraph(turns []Turn) (*CDG, error) {
	d := NewCDG(g, 1)
	for _, t := range turns {
		n := 0
		for in := g.chanBase[t.From]; in < g.chanBase[t.From+1]; in++ {
			for out := g.chanBase[t.At]; int(g.chanTo[in]) == t.At && out < g.chanBase[t.At+1]; out++ {
				if int(g.chanTo[out]) == t.To {
					d.Use(in)
					d.Use(out)
					d.Add(in, out)
					n++
				}
			}
		}
		if n == 0 {
			return nil, fmt.Errorf("no packet can turn at %s from %s to %s: there are no such links", g.switches[t.At].Label(), g.switches[t.From].Label(), g.switches[t.To].Label())
		}
	}
	return d, nil
}

// Nue gives lids (nil: all) paths as the engine nue, such that all of them together
// close no cycle in the channel dependency graph with turns; nil: with the turns of the
// paths to the other LIDs in r. It returns how many of the LIDs some switch with CAs
// has no such path to, which get no entries: none, where turns is empty, but not nil, as for LIDs that have a
// virtual lane of their own, and the network is connected.
//
// Time: that of the engine nue.
func (r *Routes) Nue(ctx context.Context, lids []mad.LID, turns []Turn) (unreached int, err error) {
	g := r.graph
	if len(g.switches) == 0 {
		return 0, errors.New("nue: the fabric has no switch")
	}
	if lids == nil {
		lids = g.LIDs(0)
	}
	wanted := make([]bool, len(g.byLID))
	for _, lid := range lids {
		t := g.TerminalByLID(lid)
		if t < 0 || g.terminals[t].Switch < 0 {
			return 0, fmt.Errorf("nue: no port on a switch has LID %d", lid)
		}
		wanted[lid] = true
	}
	r.Edited()
	r.ownAll()
	var given *CDG
	if turns == nil {
		given, err = r.dependencies(ctx, wanted)
	} else {
		given, err = g.turnGraph(turns)
	}
	if err != nil {
		return 0, err
	}
	if cycle := given.Cycle(); cycle != nil {
		return 0, fmt.Errorf("nue: the turns that there are close a credit loop already, by way of %s", g.ChannelPort(int(cycle[0])).Label())
	}
	n, err := r.newNueBeside(ctx, given)
	if err != nil {
		return 0, err
	}
	for _, toSwitches := range []bool{false, true} {
		if toSwitches {
			n.order.budget = testsOfLast * len(g.channels)
		}
		for d := range g.switches {
			for _, dest := range g.destsOf(d) {
				if !wanted[dest.lid] || (dest.out == 0) != toSwitches {
					continue
				}
				if ctx.Err() != nil {
					return 0, context.Cause(ctx)
				}
				for s := range g.switches {
					r.rows[s][dest.lid] = NoPort
				}
				n.avoidSiblings(dest)
				if !n.route(d, dest) {
					unreached++
				}
			}
		}
	}
	return unreached, r.fillSome(ctx, wanted)
}

// newNueBeside begins a search beside given dependencies. Without any it has an escape
// tree, so that it finds a path to every LID.
func (r *Routes) newNueBeside(ctx context.Context, given *CDG) (*nueSearch, error) {
	if _, edges := given.Size(); edges > 0 {
		return newNueSearch(r, given, given.order()), nil
	}
	root, ranks, err := r.graph.escapeRoot(ctx, nil)
	if err != nil {
		return nil, err
	}
	n := newNueSearch(r, given, r.graph.upDownOrder(ranks))
	n.addTree(root)
	return n, nil
}

// fillSome gives switches without CAs, from which only their own management packets
// come, shortest paths to the LIDs that are wanted, where they have none.
func (r *Routes) fillSome(ctx context.Context, wanted []bool) error {
	g := r.graph
	connected, err := g.Hops(ctx)
	if err != nil {
		return err
	}
	endpoints := g.endpointsOn()
	return g.each(ctx, len(g.switches), func(_, s int) {
		for d := range g.switches {
			if endpoints[s] > 0 || connected.Distance(s, d) < 0 || s == d {
				continue
			}
			var ports []uint8
			for _, dest := range g.destsOf(d) {
				if !wanted[dest.lid] || r.rows[s][dest.lid] != NoPort {
					continue
				}
				if ports == nil {
					ports = connected.Next(s, d)
				}
				r.rows[s][dest.lid] = ports[int(dest.lid)%len(ports)]
			}
		}
	})
}

// turnedHop is a next hop to switch d, down to a neighbour of which the path goes up
// again.
type turnedHop struct{ d, neighbour int32 }

// UpDownTurns is UpDown with turns that may be taken all the same, for pairs that have
// no path up and then down: a path may go down to a switch from which it goes up, where
// the turn is one of these for each of its next hops. Whether turns close a credit loop
// is for Verify to say.
//
// Time: that of UpDown, and for each pair without a path O(N) a distance.
func (g *Graph) UpDownTurns(ctx context.Context, r *Ranks, turns []Turn) (*Hops, error) {
	h, err := g.UpDown(ctx, r)
	if err != nil || len(turns) == 0 {
		return h, err
	}
	if _, err := g.turnGraph(turns); err != nil {
		return nil, fmt.Errorf("updown: %w", err)
	}
	allowed := map[Turn]bool{}
	for _, t := range turns {
		allowed[t] = true
	}
	found := make([][][]turnedHop, len(g.switches)) // by destination, then switch; nil: none
	err = g.each(ctx, len(g.switches), func(_, d int) {
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
	for x := 1; x <= maxDistance && len(missing) > 0; {
		next := maxDistance + 1 // the next length there is
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
// path: down to it, with turns that are allowed, and up to it. More than maxDistance:
// there is none.
func (h *Hops) nearestTurned(s, d int, allowed map[Turn]bool) (down, up int) {
	g := h.graph
	down, up = maxDistance+1, maxDistance+1
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
