package repair

import (
	"math/bits"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// readLayers reads the layers of r. Where those of paths from two ports of a switch to one LID differ,
// as OpenSM's dfsssp spreads paths over the lanes that it does not need, the first port is that of
// layer. False: they differ, but with Both must not.
func (x *layered) readLayers(r *routes.Routes) bool {
	n := len(x.g.Switches())
	x.layer, x.more, x.differ = make([][]uint8, n), make([][]uint16, n), make([]bool, n)
	old := r.Graph()
	from := make([]int, len(x.g.Switches()))
	for i, t := range old.Terminals() {
		if t.Switch < 0 || !t.IsEndpoint(0) {
			continue
		}
		s := x.g.SwitchByGUID(old.Switches()[t.Switch].GUID())
		switch {
		case s < 0:
			continue
		case x.layer[s] != nil:
			if x.differ[s] = x.differ[s] || !r.SL.SameFrom(from[s], i); x.differ[s] && !x.readOthers(r, s, i) && x.l.Both {
				return false
			}
			continue
		}
		from[s], x.layer[s] = i, make([]uint8, int(x.t.Top())+1)
		for lid := range x.layer[s] {
			x.layer[s][lid] = r.SL.Of(i, mad.LID(lid))
			x.used = max(x.used, int(x.layer[s][lid])+1)
		}
	}
	if x.l.Both {
		x.representOld(old)
	}
	return true
}

// readOthers reads the layers of paths from a further port of s, and reports whether they are those of
// the first. Paths between ports of one switch take no link.
func (x *layered) readOthers(r *routes.Routes, s, terminal int) (same bool) {
	same = true
	for i := range x.l.Dests {
		d := &x.l.Dests[i]
		level := r.SL.Of(terminal, mad.LID(d.Index))
		if int(d.Home) == s || level == x.layer[s][d.Index] {
			continue
		}
		if same = false; x.more[s] == nil {
			x.more[s] = make([]uint16, int(x.t.Top())+1)
		}
		x.more[s][d.Index] |= 1 << level
		x.used = max(x.used, int(level)+1)
	}
	return same
}

// others are the layers of the paths of a pair from further ports, a bit each.
func (x *layered) others(k pair) uint16 {
	if x.more[k.from] == nil {
		return 0
	}
	return x.more[k.from][x.l.Dests[k.to].Index]
}

// keepOthers leaves paths that change from further ports on the layers that they had, as far as they fit there.
// The others are on that of the path from the first port.
func (x *layered) keepOthers() {
	x.kept = map[pair]uint16{}
	for _, k := range x.touched {
		p := x.paths[k]
		for left := x.others(k); left != 0 && !p.stays; left &= left - 1 {
			if x.p.Add(bits.TrailingZeros16(left), p.trail) {
				x.kept[k] |= left & -left
			}
		}
	}
}

// setOthers gives the paths from further ports their layers: those that used nothing that was lost the ones that
// they had in r, unless these moved.
func (x *layered) setOthers(r *routes.Routes) {
	t := x.t
	if x.l.Both || !slices.Contains(x.differ, true) {
		return
	}
	if t.SL == nil { // the first ports have no other level than 0
		t.SL, t.SL2VL = &routes.SL{Pair: make([][]uint8, len(x.g.Terminals()))}, routes.NewSL2VL(x.g)
	}
	for i, to := range x.g.Terminals() {
		was := r.Graph().TerminalByLID(to.LID)
		if to.Switch < 0 || to.Out == 0 || was < 0 || !x.differ[to.Switch] {
			continue
		}
		if at := r.Graph().Terminals()[was].Switch; at < 0 || x.g.SwitchByGUID(r.Graph().Switches()[at].GUID()) != int(to.Switch) {
			continue
		}
		row := slices.Clone(x.layer[to.Switch])
		for d := range x.l.Dests {
			lid := x.l.Dests[d].Index
			level := r.SL.Of(was, mad.LID(lid))
			k := pair{from: int32(to.Switch), to: d}
			p := x.paths[k]
			levels := x.others(k)
			if p != nil && !p.stays {
				levels = x.kept[k]
			}
			if levels>>level&1 == 0 && int(x.l.Dests[d].Home) != to.Switch {
				continue
			}
			k.other = level + 1
			if row[lid] = level; x.paths[k] != nil {
				row[lid] = uint8(x.paths[k].layer)
			}
		}
		t.SL.Pair[i] = row
	}
}

// representOld gives the LIDs that stand for all of their switch the layers of one that it had before:
// they may be those of hosts that are new.
func (x *layered) representOld(old *graph.Graph) {
	for _, d := range x.l.Dests {
		known := slices.IndexFunc(x.g.DestsOf(int(d.Home)), func(dest graph.Dest) bool {
			t := old.TerminalByLID(dest.LID)
			return dest.Out > 0 && t >= 0 && old.Terminals()[t].Switch >= 0 && x.g.SwitchByGUID(old.Switches()[old.Terminals()[t].Switch].GUID()) == int(d.Home)
		})
		if known < 0 { // all its hosts are new, so its paths are too
			x.layer[d.Home] = nil
			continue
		}
		for _, layer := range x.layer {
			if layer != nil {
				layer[d.Index] = layer[x.g.DestsOf(int(d.Home))[known].LID]
			}
		}
	}
}
