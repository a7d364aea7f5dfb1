package routing

import (
	"context"
	"errors"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
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
func Repair(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	if len(g.Switches()) == 0 {
		return nil, errors.New("repair: the fabric has no switch")
	}
	b := basisOf(r)
	if b == nil {
		t, _, err := patch(ctx, r, g)
		return t, err
	}
	if b.tree != nil && !b.gaps {
		t, err := repairTree(ctx, r, g)
		if err == nil && t != nil && len(g.Switches())*int(t.Top()) <= fewEntries {
			err = evenTree(ctx, t)
		}
		if t != nil || err != nil {
			return t, err
		}
	}
	o := b.on(g)
	full, err := Compute(ctx, g, b.engine, o)
	if err != nil || r.SL != nil { // lanes of paths that others go beside
		return full, err
	}
	t := full
	switch e, _ := EngineNamed(b.engine); e.Repair {
	case KeepEntries:
		o.Keep = r
		t, err = Compute(ctx, g, b.engine, o)
	case KeepLIDs:
		t, err = keepLIDs(ctx, r, full)
	case Patch:
		t, err = patchOr(ctx, r, full)
	}
	if err != nil || t == full {
		return t, err
	}
	return t, evenOut(ctx, t, full)
}

// patchOr is patch where that leaves no gaps, else full, the tables of a full run.
func patchOr(ctx context.Context, r, full *routes.Routes) (*routes.Routes, error) {
	t, whole, err := patch(ctx, r, full.Graph())
	if err != nil || !whole {
		return full, err
	}
	b := *basisOf(full)
	b.gaps = true // its paths go together with no others
	t.SetOrigin(&b)
	return t, nil
}

// fewEntries: where there are so many at most, a full run takes little time, and each
// repair of a tree is compared with one. In larger trees a few destinations weigh little.
const fewEntries = 1 << 20

// evenTree is evenOut for tables that repairTree has made.
func evenTree(ctx context.Context, r *routes.Routes) error {
	g := r.Graph()
	full, err := Compute(ctx, g, basisOf(r).engine, basisOf(r).on(g))
	if p := new(Precondition); errors.As(err, &p) {
		return nil // it would refuse the tree as it is now
	} else if err != nil {
		return err
	}
	if h := basisOf(r).hops; h.IsUpDown() && !h.SameDirections(basisOf(full).hops) {
		basisOf(full).addGaps(0) // other ranks: its paths do not go together with r's
	}
	return evenOut(ctx, r, full)
}

// maxWorse is by how much the most routes on a link may exceed those of a full run
// after a repair: one in so many.
const maxWorse = 50

// keepLIDs is full, the tables of a full run, with the entries of those LIDs of r that all
// are next hops still.
func keepLIDs(ctx context.Context, r, full *routes.Routes) (*routes.Routes, error) {
	g := full.Graph()
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	t, old := full.Clone(), r.SeenOn(g)
	for d := range g.Switches() {
		for _, dest := range g.DestsOf(d) {
			stays := true
			for s := range g.Switches() {
				port := old.Row(s).Port(dest.LID)
				stays = stays && (s == d && port == dest.Out || s != d && (h.IsNextHop(s, d, port) || h.Distance(s, d) < 0 && port == routes.NoPort))
			}
			for s := 0; stays && s < len(g.Switches()); s++ {
				t.Row(s)[dest.LID] = old.Row(s).Port(dest.LID)
			}
		}
	}
	return t, nil
}

// evenOut takes the entries of LIDs from full, all that a LID has, until no link has
// more routes than full allows: those of the LIDs on the busiest link, whose entries
// differ. Where up*/down* has gaps, paths of different tables do not go together, and
// it is all entries or none.
//
// Time: that of Balance, and O(S) for each LID.
func evenOut(ctx context.Context, r *routes.Routes, full *routes.Routes) error {
	g := r.Graph()
	load, err := routesLoad(ctx, r)
	if err != nil {
		return err
	}
	best, err := routesLoad(ctx, full)
	if err != nil {
		return err
	}
	most := distributionOf(best).Max
	most += most / maxWorse
	if distributionOf(load).Max <= most {
		return nil
	}
	if basisOf(r) != nil && basisOf(r).gaps || basisOf(full) != nil && basisOf(full).gaps {
		r.Replace(full)
		return nil
	}
	e := evening{r: r, full: full, load: load, on: g.Endpoints(), walk: newWalk(g), taken: make([]bool, int(g.Top())+1)}
	for ctx.Err() == nil {
		busiest := distributionOf(load)
		if busiest.Max <= most || !e.relieve(g.Channels()[busiest.Busiest]) {
			break
		}
	}
	if ctx.Err() != nil || basisOf(r) == nil || basisOf(r).hops == nil || !basisOf(r).hops.IsUpDown() {
		return context.Cause(ctx)
	}
	// Paths to switches that up*/down* does not have were made for the entries before.
	graph, err := dependencies(ctx, r, SelectEndpoints(g, 0))
	if err != nil {
		return err
	}
	all, err := withSwitches(ctx, r, graph)
	if all == graph {
		r.Replace(full)
	}
	return err
}

// evening is the state of evenOut.
type evening struct {
	r, full *routes.Routes
	load    []int64
	on      []int64 // ports of CAs and routers, by switch
	walk    *walk
	flow    []int64
	taken   []bool // by LID: its entries are those of full
}

// relieve takes from full the entries of a LID that comes over channel c, one that does
// not do so in full if there is any. False: there is none left.
func (e *evening) relieve(c graph.Channel) bool {
	g := e.r.Graph()
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
			e.r.WritableRow(s)[found] = port
		}
	}
	e.count(e.r, found, 1)
	return true
}

// count adds the routes of a LID to the load, or takes them off.
func (e *evening) count(r *routes.Routes, lid int, sign int64) {
	w, t := e.walk, int32(e.r.Graph().TerminalByLID(mad.LID(lid)))
	ports := w.column(0)
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
