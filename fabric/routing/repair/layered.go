package repair

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// keepLanes repairs r for g, where an engine of shortest paths on lanes made r. Only entries that
// do not lead along shortest paths are replaced. Only paths that use these are put on a lane
// again: on the lane that they had if that closes no credit loop, or on another that is in use. If
// that is impossible, rearrange moves a few other paths, or a lane is added: between two switches
// there may be one shortest path now, which closes a credit loop on each lane with the paths that
// stay. Nil: more lanes are needed than are allowed, or r has service levels that the engine does
// not make.
//
// Time: the times of Hops, lanes.Place, verify.Tables and rearrange, and O(P) for each path that
// changes and each port by which it may leave the switch of the broken entry.
func keepLanes(ctx context.Context, r *routes.Routes, g *graph.Graph, limit int) (*routes.Routes, error) {
	x, err := newLayered(ctx, r, g)
	if x == nil || err != nil {
		return nil, err
	}
	x.limit = limit
	if !x.readLayers(r) {
		return nil, nil
	}
	if err := x.findBroken(ctx, r.Graph()); err != nil {
		return nil, err
	}
	if x.load, err = verify.CountAllRoutes(ctx, x.t); err != nil {
		return nil, err
	}
	if x.p, err = x.l.Place(ctx, x.layer, x.more, x.used); x.p == nil {
		return nil, err
	}
	x.edges = x.p.Work()
	if ok, err := x.placeAll(ctx); !ok {
		return nil, err
	}
	x.keepOthers()
	x.write(r)
	v, err := verify.Tables(ctx, x.t, verify.Options{})
	if err == nil && !v.Acyclic && v.Unreachable > 0 {
		x.dropCut()
		v, err = verify.Tables(ctx, x.t, verify.Options{})
	}
	if err != nil || v.Loops > 0 || !v.Acyclic {
		return nil, err
	}
	return x.t, nil
}

// dropCut makes all switches drop packets to destinations that they do not reach. They would be
// dropped on the way, where the network is cut, but before that they close a credit loop: they
// are on no lane of their own.
func (x *layered) dropCut() {
	for s := range x.g.Switches() {
		for d := range x.g.Switches() {
			if x.h.Distance(s, d) >= 0 {
				continue
			}
			for _, dest := range x.g.DestsOf(d) {
				x.t.Row(s)[dest.LID] = routes.NoPort
			}
		}
	}
}

// layered is the state of keepLanes.
type layered struct {
	g      *graph.Graph
	t      *routes.Routes
	h      *graph.Hops
	l      *lanes.Layering
	p      *lanes.Placing
	layer  [][]uint8       // by switch and LID; nil: it had no CAs
	more   [][]uint16      // by switch and LID: other layers, a bit each, of paths from further ports; nil: none
	differ []bool          // by switch: levels of its ports do
	kept   map[pair]uint16 // the layers of more that paths which change keep
	used   int             // layers
	limit  int             // as many are allowed
	load   []int64         // routes, by channel
	on     []int64         // ports of CAs and routers, by switch
	place  []int           // by switch: its place among the destinations of l, with Both
	units  []unit

	paths   map[pair]*path    // the paths that change
	touched []pair            // in the order in which they were placed first
	extra   []entries         // entries that change beside broken ones, as they were
	blocks  map[blockKey]bool // that change
	spare   int               // how many other blocks may change
	edges   int               // of all paths

	// Of the present unit:
	order  []int32   // switches, nearest first
	broken []bool    // by switch
	behind [][]int32 // by switch: the switches whose packets come to it before any other that chooses
	first  []int32   // by switch: the switch that it is behind, or -1
}

// unit is one LID, or with Both the LIDs of all CAs of a switch: switches send packets to all of
// them to one neighbour.
type unit struct {
	at     int // place among the destinations of l; -1: the LID of a switch
	home   int
	dests  []graph.Dest
	broken []int32 // switches whose entries must change
	// affected are the switches, by number, whose packets passed through broken.
	affected []bool
}

// pair is a switch and a place among the destinations. A path from further ports of the switch, which
// is on another layer and used nothing that was lost, is a pair of its own.
type pair struct {
	from  int32
	to    int
	other uint8 // its layer before the repair, and 1; 0: the path from the first port
}

// path is the path of a pair, with the path back if both are on one layer.
type path struct {
	layer, was int
	trail      []int32 // on layer at present
	given      []int32 // its edges on layer was before the repair; they stay there until it is put elsewhere
	stays      bool    // it used nothing that was lost
	displaced  int     // how often it displaced others
	off        bool    // taken off its lane while a cost is computed
}

// newLayered begins with r on g. Nil: lanes depend on more than the level.
func newLayered(ctx context.Context, r *routes.Routes, g *graph.Graph) (*layered, error) {
	if !r.SL2VL.Direct() {
		return nil, nil
	}
	plain := *r
	plain.SL, plain.SL2VL = nil, nil
	x := &layered{g: g, t: plain.On(g), on: g.Endpoints(), used: 1, paths: map[pair]*path{}}
	x.t.SetOrigin(r.Origin())
	x.t.Notes = nil
	n := len(g.Switches())
	x.broken, x.first, x.behind = make([]bool, n), make([]int32, n), make([][]int32, n)
	var err error
	if x.h, err = graph.AllHops(ctx, g); err != nil {
		return nil, err
	}
	x.l = engines.LayeringOf(x.t)
	x.place = slices.Repeat([]int{-1}, n)
	for i, s := range x.l.Sources {
		x.place[s] = i
	}
	return x, nil
}

// findBroken finds the entries that do not lead along shortest paths, and makes them drop packets until others
// are chosen.
func (x *layered) findBroken(ctx context.Context, old *graph.Graph) error {
	g := x.g
	var list []unit
	for d := range g.Switches() {
		for _, dest := range g.DestsOf(d) {
			switch {
			case dest.Out == 0:
				list = append(list, unit{at: -1, home: d, dests: []graph.Dest{dest}})
			case x.l.Both && len(list) > 0 && list[len(list)-1].home == d && list[len(list)-1].at >= 0:
				u := &list[len(list)-1]
				u.dests = append(u.dests, dest)
			default:
				list = append(list, unit{home: d, dests: []graph.Dest{dest}})
			}
		}
	}
	at := 0
	for i := range list {
		if list[i].at == 0 {
			list[i].at = at
			at++
		}
	}
	was, _ := graph.OlderNumbers(g, old)
	found := make([][]int, len(g.Switches())) // units, by switch
	nexts := make([]graph.NextHops, g.Workers())
	err := graph.Each(ctx, g.Workers(), len(g.Switches()), func(worker, s int) {
		next, row := &nexts[worker], x.t.Row(s)
		next.Load(x.h, s)
		before := x.portsBefore(old, s, was)
		for i := range list {
			u := &list[i]
			ports, _ := next.Ports(u.home)
			switch {
			case s == u.home:
				for _, dest := range u.dests {
					row[dest.LID] = dest.Out
				}
			case len(ports) == 0: // packets are dropped where the way is cut
				for _, dest := range u.dests {
					if x.leadsTo(s, row[dest.LID]) < 0 {
						row[dest.LID] = routes.NoPort
					}
				}
			case !x.keep(s, u, before, ports):
				found[s] = append(found[s], i)
				for _, dest := range u.dests {
					row[dest.LID] = routes.NoPort
				}
			}
		}
	})
	if err != nil {
		return err
	}
	for s, units := range found {
		for _, i := range units {
			list[i].broken = append(list[i].broken, int32(s))
		}
	}
	fresh := slices.ContainsFunc(x.l.Sources, func(s int32) bool { return x.layer[s] == nil })
	for _, u := range list {
		if len(u.broken) > 0 || fresh && u.at >= 0 {
			x.units = append(x.units, u)
		}
	}
	// Units of switches last: no lane depends on them.
	slices.SortStableFunc(x.units, func(a, b unit) int { return cmp.Compare(min(b.at, 0), min(a.at, 0)) })
	return nil
}

// portsBefore returns the switches that the ports of s led to, by port; -1: no switch, or it is
// gone.
func (x *layered) portsBefore(old *graph.Graph, s int, was []int32) *[256]int32 {
	to := new([256]int32)
	for p := range to {
		to[p] = -1
		if was[s] < 0 || p > old.Switches()[was[s]].NumPorts() {
			continue
		}
		if c := old.Target(was[s], uint8(p)).Channel(); c >= 0 {
			to[p] = int32(x.g.SwitchByGUID(old.Switches()[old.ChannelTo(c)].GUID()))
		}
	}
	return to
}

// keep reports whether the entries of s for a unit stay next hops, which are ports. With Both, all
// lead to one switch, over any of the links to it.
func (x *layered) keep(s int, u *unit, before *[256]int32, ports []uint8) bool {
	row := x.t.Row(s)
	if !x.l.Both || u.at < 0 {
		p := row[u.dests[0].LID]
		return slices.Contains(ports, p) && x.leadsTo(s, p) == before[p]
	}
	to := int32(-1)
	for _, dest := range u.dests {
		to = max(to, before[row[dest.LID]])
	}
	var parallel []uint8
	for _, p := range ports {
		if to >= 0 && x.leadsTo(s, p) == to {
			parallel = append(parallel, p)
		}
	}
	if len(parallel) > 0 {
		x.set(s, u, parallel)
	}
	return len(parallel) > 0
}

// leadsTo returns the switch that a port of s leads to, or -1.
func (x *layered) leadsTo(s int, p uint8) int32 {
	if c := x.g.Target(int32(s), p).Channel(); c >= 0 {
		return x.g.ChannelTo(c)
	}
	return -1
}

// set makes s send a unit over ports. Entries that are among them stay.
func (x *layered) set(s int, u *unit, ports []uint8) {
	row := x.t.Row(s)
	for _, dest := range u.dests {
		if !slices.Contains(ports, row[dest.LID]) {
			row[dest.LID] = ports[int(dest.LID)%len(ports)]
		}
	}
}

// write gives the tables the lanes that were found, in place of those of r.
func (x *layered) write(r *routes.Routes) {
	moved := 0
	for _, s := range x.l.Sources {
		if x.layer[s] == nil {
			x.layer[s] = make([]uint8, int(x.t.Top())+1)
		}
	}
	for k, p := range x.paths {
		to := &x.l.Dests[k.to]
		if k.other == 0 {
			x.layer[k.from][to.Index] = uint8(p.layer)
		}
		if x.l.Both {
			x.layer[to.Home][x.l.Dests[x.place[k.from]].Index] = uint8(p.layer)
		}
		if p.layer != p.was || !p.stays && x.others(k)&^x.kept[k] != 0 {
			moved++
		}
	}
	engines.SetLayers(x.t, x.l, x.layer)
	x.setOthers(r)
	if moved > 0 {
		x.t.Notes = append(x.t.Notes, fmt.Sprintf("repair: %s another service level; hosts read path records again", plural.Count(moved, "path between switches has", "paths between switches have")))
	}
	x.noteMoved()
}

// readLayers reads the layers of r. If paths from two ports of a switch to one LID have different layers,
// as OpenSM's dfsssp spreads paths over the lanes that it does not need, layer has the layer of the first
// port. False: they differ, but with Both must not.
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

// readOthers reads the layers of paths from a further port of s, and reports whether they equal the
// layers of the first port. Paths between ports of one switch take no link.
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

// others returns the layers of the paths of a pair from further ports, a bit each.
func (x *layered) others(k pair) uint16 {
	if x.more[k.from] == nil {
		return 0
	}
	return x.more[k.from][x.l.Dests[k.to].Index]
}

// keepOthers leaves paths that change from further ports on the layers that they had, as far as they fit there.
// All others are put on the layer of the path from the first port.
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

// setOthers gives the paths from further ports their layers: paths that used nothing that was lost keep the layers
// that they had in r, unless they were moved.
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

// representOld gives the LIDs that represent all LIDs of their switch the layers of a LID that the switch had
// before: they may belong to hosts that are new.
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
