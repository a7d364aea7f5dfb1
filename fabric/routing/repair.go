package routing

import (
	"context"
	"errors"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
	"slices"
)

// Repair makes tables for g, the graph of the same subnet after a link, a switch or a
// host is lost or back, of r, those before. Entries stay where they are, but for those
// whose paths the change breaks, or that an engine would choose anew for what is gained.
// What the engine that made r promises holds for the new tables too: they reach the
// same pairs, and close no credit loop. Their balance is that of a run of the engine,
// or up to maxWorse worse. Where nothing is known of what made r, as of tables from a
// file or changed by hand, all paths that arrive stay, and the others are replaced by
// ones that close no credit loop, if r closes none.
//
// Time: for DModK on a fat tree, O(S*L) to copy the tables, and what changes; else
// that of the engine, twice, and of Balance.
func (r *Routes) Repair(ctx context.Context, g *graph.Graph) (*Routes, error) {
	if len(g.Switches()) == 0 {
		return nil, errors.New("repair: the fabric has no switch")
	}
	b := r.basis
	if b == nil {
		t, _, err := r.patch(ctx, g)
		return t, err
	}
	if b.tree != nil && !b.gaps {
		t, err := r.repairTree(ctx, g)
		if err == nil && t != nil && len(t.rows)*t.stride <= fewEntries {
			err = t.evenTree(ctx)
		}
		if t != nil || err != nil {
			return t, err
		}
	}
	e, _ := EngineNamed(b.engine)
	switch {
	case r.SL != nil: // lanes of paths that others go beside
	case e.Repair == KeepEntries:
		return r.repairKept(ctx, g)
	case e.Repair == KeepLIDs:
		return r.repairColumns(ctx, g)
	case e.Repair == Patch:
		return r.repairPatched(ctx, g)
	}
	return Compute(ctx, g, b.engine, b.on(g))
}

// repairKept is Repair by KeepEntries.
func (r *Routes) repairKept(ctx context.Context, g *graph.Graph) (*Routes, error) {
	b := r.basis
	o := b.on(g)
	full, err := Compute(ctx, g, b.engine, o)
	if err != nil {
		return nil, err
	}
	o.Keep = r
	t, err := Compute(ctx, g, b.engine, o)
	if err != nil {
		return nil, err
	}
	return t, t.evenOut(ctx, full)
}

// repairPatched is Repair by Patch.
func (r *Routes) repairPatched(ctx context.Context, g *graph.Graph) (*Routes, error) {
	full, err := Compute(ctx, g, r.basis.engine, r.basis.on(g))
	if err != nil {
		return nil, err
	}
	t, whole, err := r.patch(ctx, g)
	if err != nil || !whole {
		return full, err
	}
	b := *full.basis
	b.gaps = true // its paths go together with no others
	t.basis = &b
	return t, t.evenOut(ctx, full)
}

// fewEntries: where there are so many at most, a full run takes little time, and each
// repair of a tree is compared with one. In larger trees a few destinations weigh little.
const fewEntries = 1 << 20

// evenTree is evenOut for tables that repairTree has made.
func (r *Routes) evenTree(ctx context.Context) error {
	g := r.graph
	full, err := Compute(ctx, g, r.basis.engine, r.basis.on(g))
	if p := new(Precondition); errors.As(err, &p) {
		return nil // it would refuse the tree as it is now
	} else if err != nil {
		return err
	}
	if h := r.basis.hops; h.IsUpDown() && !h.SameDirections(full.basis.hops) {
		full.basis.addGaps() // other ranks: its paths do not go together with r's
	}
	return r.evenOut(ctx, full)
}

// maxWorse is by how much the most routes on a link may exceed those of a full run
// after a repair: one in so many.
const maxWorse = 50

// repairColumns is Repair by KeepLIDs.
func (r *Routes) repairColumns(ctx context.Context, g *graph.Graph) (*Routes, error) {
	full, err := Compute(ctx, g, r.basis.engine, r.basis.on(g))
	if err != nil {
		return nil, err
	}
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	t, old := full.Clone(), r.seenOn(g)
	for d := range g.Switches() {
		for _, dest := range g.DestsOf(d) {
			stays := true
			for s := range g.Switches() {
				port := old.Row(s).Port(dest.LID)
				stays = stays && (s == d && port == dest.Out || s != d && (h.IsNextHop(s, d, port) || h.Distance(s, d) < 0 && port == NoPort))
			}
			for s := 0; stays && s < len(g.Switches()); s++ {
				t.Row(s)[dest.LID] = old.Row(s).Port(dest.LID)
			}
		}
	}
	return t, t.evenOut(ctx, full)
}

// evenOut takes the entries of LIDs from full, all that a LID has, until no link has
// more routes than full allows: those of the LIDs on the busiest link, whose entries
// differ. Where up*/down* has gaps, paths of different tables do not go together, and
// it is all entries or none.
//
// Time: that of Balance, and O(S) for each LID.
func (r *Routes) evenOut(ctx context.Context, full *Routes) error {
	g := r.graph
	load, err := r.load(ctx)
	if err != nil {
		return err
	}
	best, err := full.load(ctx)
	if err != nil {
		return err
	}
	most := distributionOf(best).Max
	most += most / maxWorse
	if distributionOf(load).Max <= most {
		return nil
	}
	if r.basis != nil && r.basis.gaps || full.basis != nil && full.basis.gaps {
		r.take(full)
		return nil
	}
	e := evening{r: r, full: full, load: load, on: g.Endpoints(), walk: newWalk(g), taken: make([]bool, int(g.Top())+1)}
	for ctx.Err() == nil {
		busiest := distributionOf(load)
		if busiest.Max <= most || !e.relieve(g.Channels()[busiest.Busiest]) {
			break
		}
	}
	if ctx.Err() != nil || r.basis == nil || r.basis.hops == nil || !r.basis.hops.IsUpDown() {
		return context.Cause(ctx)
	}
	// Paths to switches that up*/down* does not have were made for the entries before.
	graph, err := r.dependencies(ctx, nil)
	if err != nil {
		return err
	}
	all, err := r.withSwitches(ctx, graph)
	if all == graph {
		r.take(full)
	}
	return err
}

// take makes r the tables of full.
func (r *Routes) take(full *Routes) {
	r.rows, r.loan, r.Notes, r.basis = full.rows, full.loan, full.Notes, full.basis
}

// evening is the state of evenOut.
type evening struct {
	r, full *Routes
	load    []int64
	on      []int64 // ports of CAs and routers, by switch
	walk    *walk
	flow    []int64
	taken   []bool // by LID: its entries are those of full
}

// relieve takes from full the entries of a LID that comes over channel c, one that does
// not do so in full if there is any. False: there is none left.
func (e *evening) relieve(c graph.Channel) bool {
	g := e.r.graph
	row, other := e.r.Row(int(c.From)), e.full.Row(int(c.From))
	found := -1
	for _, d := range g.Dests() {
		if row[d.LID] != c.Port || d.Out == 0 || e.taken[d.LID] {
			continue
		}
		if found < 0 {
			found = int(d.LID)
		}
		if other[d.LID] != c.Port {
			found = int(d.LID)
			break
		}
	}
	if found < 0 {
		return false
	}
	e.taken[found] = true
	e.count(e.r, found, -1)
	for s := range g.Switches() {
		if port := e.full.Row(s)[found]; e.r.Row(s)[found] != port {
			e.r.own(s)[found] = port
		}
	}
	e.count(e.r, found, 1)
	return true
}

// count adds the routes of a LID to the load, or takes them off.
func (e *evening) count(r *Routes, lid int, sign int64) {
	w, t := e.walk, int32(e.r.graph.TerminalByLID(mad.LID(lid)))
	ports := w.rows[:len(w.state)]
	for s := range ports {
		ports[s] = r.Row(s)[lid]
	}
	w.begin()
	if e.flow == nil {
		e.flow = make([]int64, len(e.on))
	}
	clear(e.flow)
	for s, n := range e.on {
		if n > 0 {
			w.from(int32(s), ports, t)
			e.flow[s] = n
		}
	}
	for _, s := range slices.Backward(w.order) {
		if c := w.via[s]; c >= 0 && w.state[s] >= 0 {
			e.load[c] += sign * e.flow[s]
			e.flow[w.g.ChannelTo(c)] += e.flow[s]
		}
	}
}
