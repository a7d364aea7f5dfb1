package repair

import (
	"cmp"
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// placeAll chooses the entries that are broken, and the lanes of the paths that use them. If the
// lanes are not enough, it adds lanes one by one. False: more are needed than are allowed.
func (x *layered) placeAll(ctx context.Context) (bool, error) {
	load := slices.Clone(x.load)
	for x.countBlocks(); ; x.spare = 0 { // with another lane, no more blocks change than must
		if open, err := x.chooseUnits(ctx); len(open) == 0 || err != nil {
			return err == nil, err
		}
		if done, err := x.rearrange(ctx); done || err != nil {
			return done, err
		}
		if x.p.Layers() == x.limit {
			return false, nil
		}
		x.restart(load)
		x.p.Grow()
	}
}

// chooseUnits chooses the entries of all units, and returns the paths that fit on no lane. Their
// units are the first afterwards.
func (x *layered) chooseUnits(ctx context.Context) (open []pair, err error) {
	var bad, good []unit
	for i := range x.units {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		u := &x.units[i]
		left := x.chooseAll(u)
		if open = append(open, left...); len(left) > 0 {
			bad = append(bad, *u)
		} else {
			good = append(good, *u)
		}
	}
	x.units = append(bad, good...)
	return open, nil
}

// restart takes back all that chooseAll did.
func (x *layered) restart(load []int64) {
	copy(x.load, load)
	for _, k := range x.touched {
		x.p.Remove(x.paths[k].layer, x.paths[k].trail)
	}
	for _, k := range x.touched {
		p := x.paths[k]
		x.p.Add(p.was, p.given)
	}
	x.touched = x.touched[:0]
	clear(x.paths)
	for _, e := range slices.Backward(x.extra) {
		x.putBack(e)
	}
	x.extra = x.extra[:0]
	x.countBlocks()
	for _, u := range x.units {
		for _, s := range u.broken {
			for _, dest := range u.dests {
				x.t.Row(int(s))[dest.LID] = routes.NoPort
			}
		}
	}
}

// chooseAll chooses the entries of a unit, of near switches first, and returns the paths that
// fit on no lane.
func (x *layered) chooseAll(u *unit) (open []pair) {
	x.nearest(u.home)
	for _, s := range u.broken {
		x.broken[s] = true
	}
	u.affected = make([]bool, len(x.first))
	for _, s := range x.order {
		x.behind[s] = x.behind[s][:0]
		switch {
		case int(s) == u.home:
			x.first[s] = -1
		case x.broken[s]:
			x.first[s] = s
		default:
			x.first[s] = x.first[x.leadsTo(int(s), x.t.Row(int(s))[u.dests[0].LID])]
		}
		u.affected[s] = x.first[s] >= 0
		switch {
		case int(s) == u.home || u.at < 0 || x.place[s] < 0: // no path begins here
		case x.first[s] >= 0:
			x.behind[x.first[s]] = append(x.behind[x.first[s]], s)
		case x.layer[s] == nil: // this path alone is new
			x.behind[s] = append(x.behind[s], s)
		}
	}
	for _, s := range x.order {
		if x.broken[s] || len(x.behind[s]) > 0 {
			open = append(open, x.split(u, s, x.choose(u, s))...)
		}
	}
	for _, s := range x.order {
		x.broken[s] = false
	}
	return open
}

// nearest puts the switches that have a path to d in order, nearest first.
func (x *layered) nearest(d int) {
	if len(x.order) > 0 && int(x.order[0]) == d {
		return
	}
	x.order = x.order[:0]
	for s := range x.g.Switches() {
		if x.h.Distance(s, d) >= 0 {
			x.order = append(x.order, int32(s))
		}
	}
	slices.SortStableFunc(x.order, func(a, b int32) int { return x.h.Distance(int(a), d) - x.h.Distance(int(b), d) })
}

// choose chooses the entry of a switch, if it is broken: the least loaded with which all paths that
// use it fit on lanes, or as many as possible. It returns the paths that do not fit.
func (x *layered) choose(u *unit, s int32) (open []pair) {
	var best []uint8
	if x.broken[s] {
		least := -1
		for _, ports := range x.candidates(u, s) {
			x.clear(u, s)
			x.set(int(s), u, ports)
			var log []movedPath
			misfits := 0
			for _, from := range x.behind[s] {
				if !x.put(from, u.at, &log) {
					misfits++
				}
			}
			if least < 0 || misfits < least {
				best, least = ports, misfits
			}
			for _, c := range slices.Backward(log) {
				x.p.Remove(c.path.layer, c.path.trail)
				c.path.layer, c.path.trail = c.layer, c.trail
				x.p.Add(c.layer, c.trail)
			}
			if misfits == 0 {
				break
			}
		}
		x.clear(u, s)
		x.set(int(s), u, best)
	}
	for _, from := range x.behind[s] {
		if !x.put(from, u.at, nil) {
			open = append(open, pair{from: from, to: u.at})
		}
		x.count(u, from, 1)
	}
	return open
}

// clear makes s drop a unit.
func (x *layered) clear(u *unit, s int32) {
	for _, dest := range u.dests {
		x.t.Row(int(s))[dest.LID] = routes.NoPort
	}
}

// candidates returns the ports of next hops, the least loaded first; if a unit needs that, ports to
// one switch are one candidate.
func (x *layered) candidates(u *unit, s int32) (list [][]uint8) {
	type candidate struct {
		ports     []uint8
		most, sum int64 // routes on a link of the path, and on all
	}
	var all []candidate
	for _, n := range x.h.Next(int(s), u.home) {
		together := -1
		if x.l.Both && u.at >= 0 {
			together = slices.IndexFunc(all, func(c candidate) bool { return x.leadsTo(int(s), c.ports[0]) == x.leadsTo(int(s), n) })
		}
		if together >= 0 {
			all[together].ports = append(all[together].ports, n)
			continue
		}
		c := candidate{ports: []uint8{n}}
		for at, port := s, n; ; port = x.t.Row(int(at))[u.dests[0].LID] {
			channel := x.g.Target(at, port).Channel()
			if channel < 0 {
				break
			}
			c.most = max(c.most, x.load[channel])
			c.sum += x.load[channel]
			at = x.g.ChannelTo(channel)
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.most, b.most), cmp.Compare(a.sum, b.sum))
	})
	for _, c := range all {
		list = append(list, c.ports)
	}
	return list
}

// count adds n times the routes from the CAs of a switch to a unit to the load.
func (x *layered) count(u *unit, from int32, n int64) {
	for _, dest := range u.dests {
		for at := from; ; {
			c := x.g.Target(at, x.t.Row(int(at))[dest.LID]).Channel()
			if c < 0 {
				break
			}
			x.load[c] += n * x.on[from]
			at = x.g.ChannelTo(c)
		}
	}
}

// movedPath is a path that was put elsewhere, and where it was before.
type movedPath struct {
	path  *path
	layer int
	trail []int32
}

// put puts the path from a switch to a destination on a lane, with Both together with the path back
// as far as that has been chosen: on the lane that it had if it fits there. It reports whether it
// fits on a lane.
func (x *layered) put(from int32, to int, log *[]movedPath) bool {
	home := x.l.Dests[to].Home
	k := x.pairOf(from, to)
	p := x.paths[k]
	if p == nil {
		p = x.newPath(from, to)
		x.paths[k] = p
		x.touched = append(x.touched, k)
	}
	trail, _ := x.p.Trail(nil, from, to)
	if x.l.Both {
		if with, arrives := x.p.Trail(trail, home, x.place[from]); arrives {
			trail = with
		}
	}
	x.p.Remove(p.layer, p.trail)
	for i := range x.p.Layers() + 1 {
		layer := p.layer
		if i > 0 {
			layer = i - 1
		}
		if i > 0 && layer == p.layer || !x.p.Add(layer, trail) {
			continue
		}
		if log != nil {
			*log = append(*log, movedPath{p, p.layer, p.trail})
		}
		p.layer, p.trail = layer, trail
		return true
	}
	x.p.Add(p.layer, p.trail)
	return false
}

// newPath returns a path that is put on a lane for the first time.
func (x *layered) newPath(from int32, to int) *path {
	p := &path{}
	d := &x.l.Dests[to]
	if row := x.layer[from]; row != nil {
		p.was = int(row[d.Index])
	}
	if x.l.Both {
		back := x.place[from]
		if row := x.layer[d.Home]; row != nil {
			p.was = int(row[x.l.Dests[back].Index])
			if trail, arrives := x.p.Trail(nil, d.Home, back); arrives {
				p.given = trail
			}
		}
	}
	p.layer, p.trail = p.was, p.given
	return p
}

// pairOf returns the pair of a path; with Both, the path back has this pair too.
func (x *layered) pairOf(from int32, to int) pair {
	if home := x.l.Dests[to].Home; x.l.Both && home < from {
		return pair{from: home, to: x.place[from]}
	}
	return pair{from: from, to: to}
}

// split lets switches whose paths pass through s and fit on no lane choose another entry themselves,
// as far as that changes few blocks, and returns the paths of switches that cannot.
func (x *layered) split(u *unit, s int32, open []pair) (left []pair) {
	for _, k := range open {
		at := k.from
		switch {
		case x.first[at] != s: // its path passes through a switch that chooses again
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

// moreBlocks returns how many more blocks change if s chooses another entry for a unit.
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

// column returns the entries of a switch for a unit.
func (x *layered) column(u *unit, s int32) (ports []uint8) {
	for _, dest := range u.dests {
		ports = append(ports, x.t.Row(int(s))[dest.LID])
	}
	return ports
}

// entries are the entries of a switch for some LIDs.
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

// countBlocks notes the blocks that must change. Twice as many other blocks may change.
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
