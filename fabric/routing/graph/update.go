package graph

import (
	"context"
	"errors"
	"slices"
)

// OlderNumbers has for each switch of g its number in o, or -1. Both have their switches
// by GUID. same: none differs.
func OlderNumbers(g, o *Graph) (was []int32, same bool) {
	was, same = make([]int32, len(g.switches)), true
	at := 0
	for s, n := range g.switches {
		for at < len(o.switches) && o.switches[at].GUID() < n.GUID() {
			at++
		}
		was[s] = -1
		if at < len(o.switches) && o.switches[at].GUID() == n.GUID() {
			was[s] = int32(at)
			at++
		}
		same = same && int(was[s]) == s
	}
	return was, same
}

// Gained lists the channels of g that o does not have between the same switches, from the same port.
func (g *Graph) Gained(o *Graph) (list []int32) {
	was, _ := OlderNumbers(g, o)
	for i, c := range g.channels {
		from, to := was[c.From], was[c.To]
		if from >= 0 && to >= 0 {
			if before := o.Target(from, c.Port).Channel(); before >= 0 && o.ChannelTo(before) == to {
				continue
			}
		}
		list = append(list, int32(i))
	}
	return list
}

// HopsUpdate makes distances for a graph of those of another, whose links differ a
// little. Neither has weights.
type HopsUpdate struct {
	Old   *Hops
	Was   []int32 // by switch: its number in the graph of Old, or -1
	Moved []bool  // by switch: its links to others differ
	Ranks *Ranks  // of up*/down*; nil: all links are allowed
}

// Run finds the distances of g, and by switch the destinations to which its own distance
// or a neighbour's differs. Those to a destination are as before if each switch whose
// links differ has one by its neighbours' as it had: the rest follows from these, link
// by link. Nil: there is a path that is too long.
//
// Time: O(S) for each neighbour of the switches whose links differ, and that of Hops
// for the destinations to which some distance differs.
func (u *HopsUpdate) Run(ctx context.Context, g *Graph) (h *Hops, differ [][]int32, err error) {
	if h = u.older(g); h == nil {
		return nil, nil, nil
	}
	row, differs := make([]uint8, h.stride), make([]bool, len(g.switches))
	for s, moved := range u.Moved {
		if moved {
			h.byNeighbours(s, row)
			for d, distance := range h.row(s)[:len(g.switches)] {
				differs[d] = differs[d] || row[d] != distance
			}
		}
	}
	var dests []int32
	for d := range g.switches {
		if differs[d] || u.Was[d] < 0 {
			dests = append(dests, int32(d))
		}
	}
	part := &Hops{graph: g, up: h.up, only: dests, stride: (len(dests) + rowFilled - 1) / rowFilled * rowFilled}
	part.d = slices.Repeat([]uint8{noPath}, part.stride*len(g.switches))
	search := part.bfs
	if part.up != nil {
		search = part.bfsUpDown
	}
	if len(dests) > 0 {
		if err := part.search(ctx, search); errors.As(err, new(*distanceError)) {
			return nil, nil, nil
		} else if err != nil {
			return nil, nil, err
		}
	}
	return h, h.take(part), nil
}

// take takes the distances of part, and returns by switch the destinations for which its
// own or a neighbour's differ.
func (h *Hops) take(part *Hops) [][]int32 {
	g := h.graph
	differ := make([][]int32, len(g.switches))
	for i, d := range part.only {
		mark := func(s int32) {
			if n := len(differ[s]); n == 0 || differ[s][n-1] != d {
				differ[s] = append(differ[s], d)
			}
		}
		for s := range g.switches {
			at := &h.d[s*h.stride+int(d)]
			if now := part.d[s*part.stride+i]; *at != now {
				*at = now
				mark(int32(s))
				for _, t := range g.nbrTo[g.nbrBase[s]:g.nbrBase[s+1]] {
					mark(t)
				}
			}
		}
	}
	return differ
}

// older begins with the older distances; where there are new switches, with those that
// their neighbours give them. Nil: such a path is too long.
func (u *HopsUpdate) older(g *Graph) *Hops {
	h := &Hops{graph: g, stride: (len(g.switches) + rowFilled - 1) / rowFilled * rowFilled}
	if u.Ranks != nil {
		h.up = u.Ranks.ups(g)
	}
	old, same := u.Old, len(u.Was) == len(u.Old.graph.switches)
	for s, was := range u.Was {
		same = same && int(was) == s
	}
	if same {
		h.d = slices.Clone(old.d)
		return h
	}
	h.d = slices.Repeat([]uint8{noPath}, h.stride*len(g.switches))
	var added []int
	for s, was := range u.Was {
		if was < 0 {
			added = append(added, s)
			h.d[s*h.stride+s] = 0
			continue
		}
		row, from := h.row(s), old.row(int(was))
		for d, was := range u.Was {
			if was >= 0 {
				row[d] = from[was]
			}
		}
	}
	row := make([]uint8, h.stride)
	for again, rounds := true, 0; again && rounds <= len(added); rounds++ {
		again = false
		for _, s := range added {
			h.byNeighbours(s, row)
			if !slices.Equal(row, h.row(s)) {
				copy(h.row(s), row)
				again = true
			}
			if slices.ContainsFunc(row, func(d uint8) bool { return d != noPath && d&^viaUp > MaxDistance }) {
				return nil
			}
		}
	}
	return h
}

// byNeighbours puts the distances of switch s in row as those of its neighbours give
// them. Links must have no weights.
func (h *Hops) byNeighbours(s int, row []uint8) {
	g := h.graph
	for d := range row {
		row[d] = noPath
	}
	for _, up := range []bool{false, true} { // a path that goes down goes before one that goes up
		if up && h.up == nil {
			break
		}
		for i := g.nbrBase[s]; i < g.nbrBase[s+1]; i++ {
			if h.up != nil && h.up[i] != up {
				continue
			}
			for d, far := range h.row(int(g.nbrTo[i])) {
				switch {
				case far == noPath:
				case up:
					if own := row[d]; own == noPath || own&viaUp != 0 && far&^viaUp+1 < own&^viaUp {
						row[d] = (far&^viaUp + 1) | viaUp
					}
				case far < viaUp && far+1 < row[d]:
					row[d] = far + 1
				}
			}
		}
	}
	row[s] = 0
}
