package repair

import (
	"cmp"
	"context"
	"slices"

	"fabsh/fabric/routing/routes"
)

// placeAll chooses the entries that are broken, and the lanes of the paths that come by them. Where
// these are not enough, it adds one after the other. False: more are needed than are allowed.
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
// come by it fit on lanes, or else most. It returns the others.
func (x *layered) choose(u *unit, s int32) (open []pair) {
	var best []uint8
	if x.broken[s] {
		least := -1
		for _, ports := range x.candidates(u, s) {
			x.clear(u, s)
			x.set(int(s), u, ports)
			var log []change
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

// candidates are the ports of next hops, those to one switch together if a unit needs that, the
// least loaded first.
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

// change is a path that was put elsewhere, and where it was before.
type change struct {
	path  *path
	layer int
	trail []int32
}

// put puts the path from a switch to a destination on a lane, with Both together with the path
// back as far as that has been chosen: on that which it had if it fits there. It reports
// whether there is one.
func (x *layered) put(from int32, to int, log *[]change) bool {
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
			*log = append(*log, change{p, p.layer, p.trail})
		}
		p.layer, p.trail = layer, trail
		return true
	}
	x.p.Add(p.layer, p.trail)
	return false
}

// newPath is a path that is put on a lane for the first time.
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

// pairOf is the pair of a path, with Both that of the path back too.
func (x *layered) pairOf(from int32, to int) pair {
	if home := x.l.Dests[to].Home; x.l.Both && home < from {
		return pair{from: home, to: x.place[from]}
	}
	return pair{from: from, to: to}
}
