package repair

import (
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// split lets switches whose paths come by s and fit on no lane choose another entry themselves, as
// far as that changes few blocks, and returns the paths of the others.
func (x *layered) split(u *unit, s int32, open []pair) (left []pair) {
	for _, k := range open {
		at := k.from
		switch {
		case x.first[at] != s: // it comes by one that chooses again
		case x.broken[at] || x.layer[at] == nil || !x.mayChange(u, at):
			left = append(left, k)
		default:
			x.extra = append(x.extra, entries{u.dests, at, x.column(u, at)})
			x.broken[at] = true
			for i, from := range x.behind[s] {
				if x.passes(u, from, at) {
					x.count(u, from, -1)
					x.detach(from, u.at)
					x.first[from] = at
					x.behind[at] = append(x.behind[at], x.behind[s][i])
				}
			}
			x.behind[s] = slices.DeleteFunc(x.behind[s], func(from int32) bool { return x.first[from] == at })
		}
	}
	return left
}

// mayChange reports whether s may choose another entry for a unit, and notes that it does.
func (x *layered) mayChange(u *unit, s int32) bool {
	if !x.canChange(u, s) {
		return false
	}
	x.noteChange(u, s)
	return true
}

// canChange reports whether s may choose another entry for a unit: it has a choice, and not
// more than twice as many blocks change as must.
func (x *layered) canChange(u *unit, s int32) bool {
	return len(x.h.Next(int(s), u.home)) > 1 && x.moreBlocks(u, s) <= x.spare
}

// moreBlocks is how many blocks change if s chooses another entry for a unit.
func (x *layered) moreBlocks(u *unit, s int32) (more int) {
	last := -1
	for _, dest := range u.dests {
		if b := blockOf(s, dest.LID); b.i != last && !x.blocks[b] {
			more++
			last = b.i
		}
	}
	return more
}

// noteChange notes that s chooses another entry for a unit.
func (x *layered) noteChange(u *unit, s int32) {
	x.spare -= x.moreBlocks(u, s)
	for _, dest := range u.dests {
		x.blocks[blockOf(s, dest.LID)] = true
	}
}

// passes reports whether packets of a unit from a switch pass through s.
func (x *layered) passes(u *unit, from, s int32) bool {
	for from >= 0 && from != s {
		from = x.leadsTo(int(from), x.t.Row(int(from))[u.dests[0].LID])
	}
	return from == s
}

// detach takes a path off its lane, but with Both not the path back.
func (x *layered) detach(from int32, to int) {
	home := x.l.Dests[to].Home
	p := x.paths[x.pairOf(from, to)]
	var back []int32
	if x.l.Both {
		if trail, arrives := x.p.Trail(nil, home, x.place[from]); arrives {
			back = trail
		}
	}
	x.p.Remove(p.layer, p.trail)
	if p.trail = back; !x.p.Add(p.layer, back) {
		p.trail = nil // it fits nowhere so far
	}
}

// column are the entries of a switch for a unit.
func (x *layered) column(u *unit, s int32) (ports []uint8) {
	for _, dest := range u.dests {
		ports = append(ports, x.t.Row(int(s))[dest.LID])
	}
	return ports
}

// entries are those of a switch for some LIDs.
type entries struct {
	dests []graph.Dest
	s     int32
	ports []uint8
}

// putBack makes a switch use entries again.
func (x *layered) putBack(e entries) {
	for i, dest := range e.dests {
		x.t.Row(int(e.s))[dest.LID] = e.ports[i]
	}
}

// blockKey is a block of a switch.
type blockKey struct {
	s int32
	i int
}

func blockOf(s int32, lid mad.LID) blockKey { return blockKey{s, int(lid) / mad.LFTBlock} }

// countBlocks notes the blocks that must change. Twice as many others may.
func (x *layered) countBlocks() {
	x.blocks = map[blockKey]bool{}
	for _, u := range x.units {
		for _, s := range u.broken {
			for _, dest := range u.dests {
				x.blocks[blockOf(s, dest.LID)] = true
			}
		}
	}
	x.spare = 2 * len(x.blocks)
}
