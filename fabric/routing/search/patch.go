package search

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Patch returns r for g: paths that arrive in g are unchanged, and paths that do not are replaced. The
// new paths close no credit loop, unless the paths that arrive already have one: then they are the
// shortest ways to a switch from which packets arrive. Entries change as little as possible. If r has a
// lane for each LID, paths stay on it. If lanes depend on more, the new paths close no credit loop even
// if all paths were on one lane; if there are no such paths, they are the shortest, and a note states
// whether the verifier finds that they close one.
//
// Time: O(L*S), and searches of nue for the LIDs with a path that does not arrive.
func Patch(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	t, _, err := patch(ctx, r, g, 0)
	return t, err
}

// PatchLIDs is Patch, but LIDs with a path that does not arrive may change all their paths, and their
// lanes, of which so many are allowed, if nothing else helps; other LIDs may change if there is no room
// for them. whole: no credit loop is in the tables, and all switches with CAs have all paths.
func PatchLIDs(ctx context.Context, r *routes.Routes, g *graph.Graph, lanes int) (t *routes.Routes, whole bool, err error) {
	return patch(ctx, r, g, lanes)
}

func patch(ctx context.Context, r *routes.Routes, g *graph.Graph, lanes int) (t *routes.Routes, whole bool, err error) {
	t = r.On(g)
	t.SetOrigin(r.Origin())
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, false, err
	}
	if sl, sl2vl := t.SL, t.SL2VL; lanes == 0 && sl.Any() && sl2vl.DirectFor(sl.Used()) {
		if byLID := levelByLID(t, r.Graph()); byLID != nil { // no lane changes
			t.SL, t.SL2VL = byLID, routes.NewSL2VL(g)
			defer func(t *routes.Routes) { t.SL, t.SL2VL = sl, sl2vl }(t)
		}
	}
	a := patching{addition: addition{r: t, connected: connected}, allowed: lanes}
	if lanes > 0 {
		if err := a.countLeast(ctx, r.Graph()); err != nil {
			return nil, false, err
		}
	}
	judged := a.lanes() > 1 || t.Lanes() == 1
	loop, err := a.begin(ctx, r.Graph())
	if err == nil && loop && judged && a.dropStale(r.Graph()) {
		loop, err = a.begin(ctx, r.Graph())
	}
	if err != nil {
		return nil, false, err
	}
	if loop && !judged {
		t, err = a.shortestInLanes(ctx, true)
		return t, false, err
	}
	var begun *patching
	if !judged {
		begun = a.clone()
	}
	if loop {
		note := "repair: the remaining paths already have a credit loop, so the new paths are the shortest ones"
		if r.Origin() == nil && r.SL == nil && r.SL2VL == nil {
			note += "; if paths have service levels, read these and their virtual lanes too: load_routes(sl=, sl2vl=)"
		}
		t.Notes = append(t.Notes, note)
	} else if err := a.closeAll(ctx); err != nil {
		return nil, false, err
	}
	if !judged && a.toCAs.missing > 0 { // as if all were on one lane
		if t, err := begun.shortestInLanes(ctx, false); t != nil || err != nil {
			return t, false, err
		}
	}
	a.noteMoved(r)
	return t, !loop && a.toCAs.missing+a.toSwitches.missing == 0, a.shortest(ctx, loop)
}

// shortestInLanes returns the tables with the shortest paths, for lanes that depend on more than the
// destination, if necessary with other service levels, if the verifier finds no credit loop, or if they
// must be taken. Nil: it finds one.
func (a *patching) shortestInLanes(ctx context.Context, must bool) (*routes.Routes, error) {
	if err := a.shortest(ctx, true); err != nil {
		return nil, err
	}
	v, err := verify.Tables(ctx, a.r, verify.Options{})
	if err == nil && !v.Acyclic {
		if t, err := a.relevelled(ctx); t != nil || err != nil {
			return t, err
		}
	}
	switch {
	case err != nil || !v.Acyclic && !must:
		return nil, err
	case !v.Acyclic:
		a.r.Notes = append(a.r.Notes, "repair: the new paths are the shortest ones, and close a credit loop on the virtual lanes in use, which depend on more than the destination; graph.route() computes all tables again")
	}
	return a.r, nil
}

// levelByLID returns the service levels of tables that have one for all paths to a LID; nil: there are
// several. Paths from ports that the older graph does not have get these levels too.
func levelByLID(t *routes.Routes, old *graph.Graph) *routes.SL {
	g := t.Graph()
	var known, fresh []int // terminals
	for i := range g.Terminals() {
		switch x := &g.Terminals()[i]; {
		case !x.IsEndpoint(0):
		case old.TerminalByLID(x.LID) < 0:
			fresh = append(fresh, i)
		default:
			known = append(known, i)
		}
	}
	by := t.SL.ByLID(g, known)
	if by != nil && t.SL.Pair != nil {
		for _, i := range fresh {
			t.SL.Pair[i] = slices.Clone(by.Dest)
		}
	}
	return by
}

// begin finds the paths that do not arrive, and reports whether all other paths close a credit loop.
func (a *patching) begin(ctx context.Context, old *graph.Graph) (loop bool, err error) {
	a.cas, a.switches, a.dropped, a.graphs = nil, nil, nil, nil
	if err := a.findBroken(ctx, old); err != nil {
		return false, err
	}
	a.changed = newBlockSet(a.r)
	a.changed.addLost(&a.addition, a.dropped)
	a.least = max(a.least, a.changed.size)
	for lane := range a.lanes() {
		d, err := verify.Dependencies(ctx, a.r, a.onLane(lane))
		if err != nil {
			return false, err
		}
		a.graphs = append(a.graphs, d)
		loop = loop || !d.Acyclic()
	}
	return loop, nil
}

// dropStale drops the packets to LIDs and over links that the older graph does not have, and reports
// whether there were any. Entries for these are from before they were lost; other paths may have been
// found since that close a credit loop with theirs.
func (a *patching) dropStale(old *graph.Graph) (any bool) {
	g := a.r.Graph()
	drop := func(s int32, lid mad.LID) {
		entry := &a.r.Row(int(s))[lid]
		any = any || *entry != routes.NoPort
		*entry = routes.NoPort
	}
	for _, d := range g.Dests() {
		for s := range int32(len(g.Switches())) {
			if old.TerminalByLID(d.LID) < 0 {
				drop(s, d.LID)
			}
		}
	}
	for _, c := range g.Gained(old) {
		ch := &g.Channels()[c]
		for lid, port := range a.r.Row(int(ch.From)) {
			if port == ch.Port {
				drop(ch.From, mad.LID(lid))
			}
		}
	}
	return any
}

// patching is the state of patch.
type patching struct {
	addition
	changed *blockSet // blocks of tables that change
	least   int
	allowed int                       // lanes that LIDs may change to; 0: they change no path that arrives
	graphs  []*verify.DependencyGraph // by lane: the dependencies of paths to CAs
	load    []int64                   // routes, by channel
}

// lanes returns how many lanes are in use.
func (a *patching) lanes() int {
	if sl := a.r.SL; sl != nil && sl.Pair == nil && a.r.SL2VL.Direct() && len(sl.Dest) > 0 {
		return int(slices.Max(sl.Dest)) + 1
	}
	return 1
}

// lane returns the lane of the paths to a LID.
func (a *patching) lane(lid mad.LID) int {
	if a.lanes() == 1 {
		return 0
	}
	return int(a.r.SL.Of(-1, lid))
}

// onLane returns the endpoints with the LIDs on a lane.
func (a *patching) onLane(lane int) *verify.Endpoints {
	e := verify.SelectEndpoints(a.r.Graph(), 0)
	if a.lanes() == 1 {
		return e
	}
	set := make([]bool, len(e.Wanted))
	for lid := range set {
		set[lid] = a.lane(mad.LID(lid)) == lane
	}
	return e.Only(set)
}

// closeAll searches for the paths that are missing from switches with CAs.
func (a *patching) closeAll(ctx context.Context) (err error) {
	t := a.r
	if a.load, err = verify.CountAllRoutes(ctx, t); err != nil {
		return err
	}
	before := a.toCAs
	byLane := make([][]gap, len(a.graphs)) // now, for closeLane moves LIDs to other lanes
	for _, x := range a.cas {
		byLane[a.lane(x.dest.LID)] = append(byLane[a.lane(x.dest.LID)], x)
	}
	for lane, cas := range byLane {
		if err := a.closeLane(ctx, lane, cas); err != nil {
			return err
		}
		before.added += a.toCAs.added
		before.missing += a.toCAs.missing
	}
	a.toCAs = before
	if n := a.toCAs.missing; n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("repair: packets are dropped by %s of switches with CAs: no path was found that closes no credit loop", plural.Count(n, "entry", "entries")))
	}
	return a.closeSwitches(ctx)
}

// findBroken drops the entries for packets that do not arrive, of all switches, and
// lists the LIDs that have such entries, LIDs of CAs and of switches. Entries that no packets of CAs
// take count as dropped in the gaps, because their dependencies are in no graph. So do the entries of
// a switch that had no CAs in the older graph.
func (a *patching) findBroken(ctx context.Context, old *graph.Graph) error {
	g := a.r.Graph()
	endpoints, w := g.Endpoints(), verify.NewWalk(g)
	fresh := g.Endpoints()
	for s, n := range old.Endpoints() {
		if now := g.SwitchByGUID(old.Switches()[s].GUID()); n > 0 && now >= 0 {
			fresh[now] = 0
		}
	}
	for d := range g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, dest := range g.DestsOf(d) {
			a.r.Row(d)[dest.LID] = dest.Out
			entries := a.r.Column(dest.LID)
			x := gap{d: d, dest: dest, before: slices.Repeat([]uint8{routes.NoPort}, len(g.Switches())), old: slices.Clone(entries)}
			dropped, ofCAs := false, false
			w.Begin()
			for _, withCAs := range []bool{true, false} {
				for s, n := range fresh {
					if !withCAs && n > 0 && s != d && w.State[s] == verify.Unknown {
						entries[s] = routes.NoPort
					}
				}
				for s, n := range endpoints {
					if (n > 0 && fresh[s] == 0) != withCAs {
						continue
					}
					if w.From(int32(s), entries, dest.Terminal); w.State[s] < 0 {
						lost := a.connected.Distance(s, d) >= 0
						if lost || w.State[s] == verify.Looping || !g.Target(int32(s), entries[s]).IsChannel() {
							a.r.Row(s)[dest.LID] = routes.NoPort // else they are dropped where the way is cut
						}
						dropped, ofCAs = dropped || lost, ofCAs || lost && n > 0
					}
				}
				for _, s := range w.Order {
					if withCAs && w.State[s] >= 0 {
						x.before[s] = entries[s]
					}
				}
			}
			switch {
			case ofCAs && dest.Out > 0:
				a.cas = append(a.cas, x)
			case ofCAs:
				a.switches = append(a.switches, x)
			}
			if dropped {
				a.dropped = append(a.dropped, x)
			}
		}
	}
	return nil
}

// shortest gives what is still dropped the shortest way to a switch from which packets
// arrive: on all switches, or on those without CAs alone, which forward no other
// packets; or to LIDs of switches, where paths that close no loop are all that is missing.
func (a *patching) shortest(ctx context.Context, all bool) error {
	g := a.r.Graph()
	endpoints := g.Endpoints()
	var queue graph.CostHeap
	var behind []int32
	for _, x := range a.dropped {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		behind = linksBehind(g, x, behind)
		queue = queue[:0]
		from := func(t int32) {
			for c := g.FirstChannel(int(t)); c < g.FirstChannel(int(t+1)); c++ {
				s, back := g.ChannelTo(c), g.Channels()[c].Reverse
				if a.r.Row(int(s))[x.dest.LID] != routes.NoPort || !(all || endpoints[s] == 0 || a.allowed > 0 && x.dest.Out == 0) {
					continue
				}
				item := graph.CostItem{Channel: back, Bound: int32(a.connected.Distance(int(t), x.d))}
				if x.old[s] != g.Channels()[back].Port {
					item.Cost = int64(1 + behind[s])
				}
				queue.Push(item)
			}
		}
		for s := range g.Switches() {
			if a.r.Row(s)[x.dest.LID] != routes.NoPort && a.connected.Distance(s, x.d) >= 0 {
				from(int32(s))
			}
		}
		for len(queue) > 0 {
			ch := &g.Channels()[queue.Pop().Channel]
			if entry := &a.r.Row(int(ch.From))[x.dest.LID]; *entry == routes.NoPort {
				*entry = ch.Port
				from(ch.From)
			}
		}
	}
	return nil
}

// maxLevelled is the number of paths up to which levels are chosen again.
const maxLevelled = 1 << 22

// relevelled returns the tables with other service levels for paths that changed, if the verifier then
// finds no credit loop; else nil.
func (a *patching) relevelled(ctx context.Context) (*routes.Routes, error) {
	x := *a
	x.r = a.r.Clone()
	moved, ok, err := x.relevel(ctx)
	if !ok || err != nil {
		return nil, err
	}
	v, err := verify.Tables(ctx, x.r, verify.Options{})
	if err != nil || !v.Acyclic {
		return nil, err
	}
	x.r.Notes = append(x.r.Notes, fmt.Sprintf("repair: %s another service level; hosts read path records again", plural.Count(moved, "path has", "paths have")))
	return x.r, nil
}

// relevel gives paths that changed other service levels among the levels in use, if they close a credit
// loop with the levels that they had, and returns how many. Lanes may depend on ports of switches.
// False: one of them closes a loop with each level.
//
// Time: O(P*H) for P paths of H links, and a search of the dependency graph for each dependency of paths
// that changed.
func (a *patching) relevel(ctx context.Context) (moved int, ok bool, err error) {
	g, t := a.r.Graph(), a.r
	if len(g.Terminals())*len(g.Dests()) > maxLevelled || !t.SL.Any() {
		return 0, false, nil
	}
	changed := map[mad.LID][]bool{} // by switch: the entry
	for _, x := range a.dropped {
		entries := make([]bool, len(g.Switches()))
		for s, port := range t.Column(x.dest.LID) {
			entries[s] = port != x.old[s]
		}
		changed[x.dest.LID] = entries
	}
	type open struct {
		from int
		lid  mad.LID
	}
	var list []open
	d := verify.NewDependencyGraph(g, t.Lanes())
	for i := range g.Terminals() {
		if ctx.Err() != nil {
			return 0, false, context.Cause(ctx)
		}
		if x := &g.Terminals()[i]; x.Switch < 0 || !x.IsEndpoint(0) {
			continue
		}
		for _, dest := range g.Dests() {
			if dest.Out == 0 || int(dest.Terminal) == i {
				continue
			}
			edges, by, _ := a.dependencies(d, i, dest.LID, t.SL.Of(i, dest.LID), changed[dest.LID])
			if by {
				list = append(list, open{i, dest.LID})
				continue
			}
			for _, e := range edges {
				d.Add(e[0], e[1])
			}
		}
	}
	for _, o := range list {
		if ctx.Err() != nil {
			return 0, false, context.Cause(ctx)
		}
		was, fits := t.SL.Of(o.from, o.lid), false
		levels := []uint8{was}
		for left := t.SL.Used(); left != 0; left &= left - 1 {
			levels = append(levels, uint8(bits.TrailingZeros16(left)))
		}
		for _, level := range levels {
			edges, _, arrives := a.dependencies(d, o.from, o.lid, level, nil)
			if fits = arrives && addAll(d, edges); !fits {
				continue
			}
			if level != was {
				moved++
				if err := t.SetSL([]int{o.from}, []mad.LID{o.lid}, level); err != nil {
					return 0, false, err
				}
			}
			break
		}
		if !fits {
			return 0, false, nil
		}
	}
	return moved, true, nil
}

// dependencies returns the dependencies of a path with a service level, whether it uses an entry that
// changed, and whether no switch drops its packets.
func (a *patching) dependencies(d *verify.DependencyGraph, from int, lid mad.LID, sl uint8, changed []bool) (edges [][2]int32, by, arrives bool) {
	g, t := a.r.Graph(), a.r
	at, in, last := int32(g.Terminals()[from].Switch), g.Terminals()[from].Out, int32(-1)
	for range g.Switches() {
		port := t.Row(int(at)).Port(lid)
		by = by || changed != nil && changed[at]
		c := g.Target(at, port).Channel()
		if c < 0 {
			return edges, by, g.Target(at, port) != graph.NoTarget
		}
		vl := t.SL2VL.VL(int(at), in, port, sl)
		if int(vl) >= t.Lanes() {
			return edges, by, false
		}
		v := d.Vertex(c, vl)
		if last >= 0 {
			edges = append(edges, [2]int32{last, v})
		}
		at, in, last = g.ChannelTo(c), g.Channels()[g.Channels()[c].Reverse].Port, v
	}
	return edges, by, false
}

// addAll adds edges to d, or none of them if they close a cycle.
func addAll(d *verify.DependencyGraph, edges [][2]int32) bool {
	for i, e := range edges {
		switch {
		case d.Has(e[0], e[1]):
			edges[i][0] = -1 // it stays
		case d.Path(e[1], e[0]) != nil:
			for _, e := range edges[:i] {
				if e[0] >= 0 {
					d.Remove(e[0], e[1])
				}
			}
			return false
		default:
			d.Add(e[0], e[1])
		}
	}
	return true
}

// blockSet is a set of blocks of forwarding tables: of a switch, the entries of LFTBlock LIDs. A
// table is written by blocks, so another change in one that changes already costs nothing.
type blockSet struct {
	each int // blocks of a switch
	in   []bool
	size int
}

func newBlockSet(r *routes.Routes) *blockSet {
	each := int(r.Top())/mad.LFTBlock + 1
	return &blockSet{each: each, in: make([]bool, each*len(r.Graph().Switches()))}
}

func (b *blockSet) clone() *blockSet {
	c := *b
	c.in = slices.Clone(b.in)
	return &c
}

// has reports whether the block of an entry is in the set. A nil set is empty.
func (b *blockSet) has(s int, lid mad.LID) bool {
	return b != nil && b.in[s*b.each+int(lid)/mad.LFTBlock]
}

// add adds the block of an entry.
func (b *blockSet) add(s int, lid mad.LID) {
	if i := s*b.each + int(lid)/mad.LFTBlock; !b.in[i] {
		b.in[i] = true
		b.size++
	}
}

// addLost adds the blocks that change whatever is done: where an entry leads nowhere.
func (b *blockSet) addLost(a *addition, gaps []gap) {
	g := a.r.Graph()
	for _, x := range gaps {
		for s, port := range x.old {
			if port != routes.NoPort && g.Target(int32(s), port) == graph.NoTarget && a.connected.Distance(s, x.d) >= 0 {
				b.add(s, x.dest.LID)
			}
		}
	}
}

// addChanged adds the blocks of entries of gaps that differ from the entries before.
func (b *blockSet) addChanged(r *routes.Routes, gaps []gap) {
	for _, x := range gaps {
		for s, port := range r.Column(x.dest.LID) {
			if port != x.old[s] && port != routes.NoPort {
				b.add(s, x.dest.LID)
			}
		}
	}
}
