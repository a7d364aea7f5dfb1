package routing

import (
	"context"
	"slices"
)

// repair is the state of a Repair of a tree. Numbers are those of the newer graph,
// where nothing else is said.
type repair struct {
	g, o *Graph
	old  *Routes
	new  *Routes
	was  []int32 // by switch: the older number, or -1
	same bool    // all switches have their older numbers
	in   []int32 // by switch: the number in the graph of the basis
	rank *Ranks  // of up*/down*; nil: all links are allowed
	h    *Hops
	// Switches whose next hops may be others than before: to any destination, and to
	// which, one by one.
	whole []bool
	parts [][]int32
	way   []Neighbour // memory of attach
}

// pair finds the older numbers of switches: both graphs have them by GUID.
func (x *repair) pair() {
	x.was, x.same = olderNumbers(x.g, x.o)
	x.same = x.same && len(x.g.switches) == len(x.o.switches)
}

// olderNumbers are, by switch of g, its number in o, or -1; same: none differs.
func olderNumbers(g, o *Graph) (was []int32, same bool) {
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

// findChanged finds the switches whose cables to others differ.
func (x *repair) findChanged() {
	x.whole = make([]bool, len(x.g.switches))
	for s, was := range x.was {
		x.whole[s] = was < 0 || !slices.EqualFunc(x.g.Neighbours(s), x.o.Neighbours(int(was)), func(a, b Neighbour) bool {
			return x.was[a.To] == b.To && a.Weight == b.Weight && slices.Equal(a.Ports, b.Ports)
		})
	}
}

// findDistances finds the distances, and whose next hops change with them. Those to a
// destination are as before if each switch whose links differ has one by its
// neighbours' as it had: the rest follows from these, link by link. False: there is a
// path that is too long.
//
// Time: O(S) for each neighbour of the switches whose cables differ, and that of Hops
// for the destinations to which some distance differs.
func (x *repair) findDistances(ctx context.Context) (bool, error) {
	if !x.olderDistances() {
		return false, nil
	}
	g := x.g
	row, differ := make([]uint8, x.h.stride), make([]bool, len(g.switches))
	for s, changed := range x.whole {
		if changed {
			x.h.byNeighbours(s, row)
			for d, distance := range x.h.row(s)[:len(g.switches)] {
				differ[d] = differ[d] || row[d] != distance
			}
		}
	}
	var dests []int32
	for d := range g.switches {
		if differ[d] || x.was[d] < 0 {
			dests = append(dests, int32(d))
		}
	}
	part := &Hops{graph: g, up: x.h.up, only: dests, stride: (len(dests) + rowFilled - 1) / rowFilled * rowFilled}
	part.d = slices.Repeat([]uint8{noPath}, part.stride*len(g.switches))
	search := part.bfs
	if part.up != nil {
		search = part.bfsUpDown
	}
	if len(dests) > 0 {
		if err := part.search(ctx, search); err != nil {
			return false, ignoreDistance(err)
		}
	}
	x.take(part)
	return true, nil
}

// ignoreDistance is err, unless that is a *distanceError, which the engine itself finds
// and explains.
func ignoreDistance(err error) error {
	if _, far := err.(*distanceError); far {
		return nil
	}
	return err
}

// take takes the distances of part, and marks the switches for which they differ, and
// their neighbours.
func (x *repair) take(part *Hops) {
	g := x.g
	x.parts = make([][]int32, len(g.switches))
	for i, d := range part.only {
		mark := func(s int32) {
			if n := len(x.parts[s]); n == 0 || x.parts[s][n-1] != d {
				x.parts[s] = append(x.parts[s], d)
			}
		}
		for s := range g.switches {
			at := &x.h.d[s*x.h.stride+int(d)]
			if now := part.d[s*part.stride+i]; *at != now {
				*at = now
				mark(int32(s))
				for _, t := range g.nbrTo[g.nbrBase[s]:g.nbrBase[s+1]] {
					mark(t)
				}
			}
		}
	}
}

// olderDistances begins with the older distances; where there are new switches, with
// those that their neighbours give them. False: such a path is too long.
func (x *repair) olderDistances() bool {
	g, old := x.g, x.old.basis.hops
	x.h = &Hops{graph: g, stride: (len(g.switches) + rowFilled - 1) / rowFilled * rowFilled}
	if x.rank != nil {
		x.h.up = make([]bool, len(g.neighbours))
		for s := range g.switches {
			for i := g.nbrBase[s]; i < g.nbrBase[s+1]; i++ {
				x.h.up[i] = x.rank.Up(s, int(g.nbrTo[i]))
			}
		}
	}
	if x.same {
		x.h.d = slices.Clone(old.d)
		return true
	}
	x.h.d = slices.Repeat([]uint8{noPath}, x.h.stride*len(g.switches))
	var added []int
	for s, was := range x.was {
		if was < 0 {
			added = append(added, s)
			x.h.d[s*x.h.stride+s] = 0
			continue
		}
		row, from := x.h.row(s), old.row(int(was))
		for d, was := range x.was {
			if was >= 0 {
				row[d] = from[was]
			}
		}
	}
	row := make([]uint8, x.h.stride)
	for again, rounds := true, 0; again && rounds <= len(added); rounds++ {
		again = false
		for _, s := range added {
			x.h.byNeighbours(s, row)
			if !slices.Equal(row, x.h.row(s)) {
				copy(x.h.row(s), row)
				again = true
			}
			if slices.ContainsFunc(row, func(d uint8) bool { return d != noPath && d&^viaUp > maxDistance }) {
				return false
			}
		}
	}
	return true
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
