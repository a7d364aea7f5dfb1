// Package repair makes forwarding tables for a network that has changed a little from the
// tables before, so that few entries change.
//
// Tables repairs tables after links, switches or hosts were lost or came back; how depends on
// what made the tables: the next hops of a fat tree, paths by load, shortest paths on lanes, or
// an unknown origin. ComputeKeeping is a full run of an engine that stays close to the tables
// in force. Both compare the balance with a full run.
//
// The functions use all cores, and may run at the same time on the same tables, which must
// not change meanwhile. Tables that they return belong to the caller, but may share rows
// with the tables before until one of them is changed. Package graph explains the letters of
// times.
package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// Tables repairs r, the tables before: it makes tables for g, the graph of the subnet after a link,
// a switch or a host was lost or came back. Entries stay, unless the change breaks their paths, or
// the engine would choose differently because of what was gained. What the engine that made r
// promises holds for the new tables too: they reach all pairs that a full run reaches, and close no
// credit loop. Their balance is as good as after a run of the engine, or up to maxWorse worse; for
// this, entries of other LIDs may change. Engines that search for lanes, or for paths that need few,
// keep all other entries instead, and their lanes except for the number in a note, and accept the
// balance that results after a loss. Choices of adaptive routing come from the engine that made
// them; choices of unknown origin are left out, with a note.
//
// If the origin of r is unknown, as for tables from a file or changed by hand, paths that arrive
// stay, except a few to LIDs that lack paths, and broken paths are replaced by paths that close no
// credit loop, if r closes none. Shortest paths on several lanes are replaced by shortest paths, also
// where a link that is back makes them shorter, and no lane is added.
//
// Time: for DModK on a fat tree, O(S*L) to copy the tables, and what changes; else twice the time of
// the engine, and the time of traffic.MeasureBalance.
func Tables(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	if len(g.Switches()) == 0 {
		return nil, errors.New("repair: the fabric has no switch")
	}
	if r.HasChoices() {
		return repairChoices(ctx, r, g)
	}
	for _, way := range strategies {
		if !way.fits(r) {
			continue
		}
		if t, err := way.repair(ctx, r, g); t != nil || err != nil {
			return t, err
		}
	}
	return nil, errors.New("repair: no strategy made tables")
}

// strategy is one way to repair tables.
type strategy struct {
	name   string                      // what it tries
	fits   func(r *routes.Routes) bool // it is tried on such tables
	repair repairFunc
}

// repairFunc repairs r for g. Nil: it makes no tables.
type repairFunc func(ctx context.Context, r *routes.Routes, g *graph.Graph) (t *routes.Routes, err error)

// strategies are the ways to repair tables, in the order in which they are tried. The next one is tried if
// one does not fit the tables, or finds none.
var strategies = []strategy{
	// O(P) for each path that changes.
	{"keep shortest paths on lanes", fromUnknown, keepUnknown},
	// Searches for the LIDs with broken paths.
	{"replace broken paths", fromUnknown, search.Patch},
	// O(S*L) to copy the tables, and what changes; a full run of small networks.
	{"follow the rule of a fat tree", fromTree, treeThenEven},
	// O(P) for each path that changes, and the times of full runs, if these are needed.
	{"keep paths and their lanes", repairedBy(engines.KeepLanes), inLanes(withLanes)},
	{"keep places of the torus", repairedBy(engines.KeepPlaces), inLanes(engines.InPlaces)},
	{"replace broken paths on their lanes", repairedBy(engines.Patch), inLanes(patchLIDs)},
	// Up to twice the time of the engine.
	{"run the engine, and keep entries that its rule allows", func(*routes.Routes) bool { return true }, rerun},
}

func fromUnknown(r *routes.Routes) bool { return engines.BasisOf(r) == nil }

func fromTree(r *routes.Routes) bool {
	b := engines.BasisOf(r)
	return b != nil && b.Tree != nil && !b.Gaps
}

func repairedBy(how engines.RepairMethod) func(r *routes.Routes) bool {
	return func(r *routes.Routes) bool {
		b := engines.BasisOf(r)
		if b == nil {
			return false
		}
		e, _ := engines.Named(b.Engine)
		return e.Repair == how
	}
}

// treeThenEven repairs the tables of a fat tree, and evens out the load of small ones.
func treeThenEven(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	t, err := repairTree(ctx, r, g)
	if err == nil && t != nil && len(g.Switches())*int(t.Top()) <= fewEntries {
		err = evenTree(ctx, t)
	}
	return t, err
}

// rerun runs the engine that made r, and keeps what it can of r.
func rerun(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	b := engines.BasisOf(r)
	o := b.On(g)
	full, err := engines.Compute(ctx, g, b.Engine, o)
	if err != nil || r.SL != nil { // paths have lanes, beside which new paths must fit
		return full, err
	}
	t := full
	switch e, _ := engines.Named(b.Engine); e.Repair {
	case engines.KeepEntries:
		o.Keep = r
		t, err = engines.Compute(ctx, g, b.Engine, o)
	case engines.KeepLIDs:
		t, err = keepLIDs(ctx, r, full)
	}
	if err != nil || t == full {
		return t, err
	}
	if less, err := reachesLess(ctx, t, full); less || err != nil {
		return full, err
	}
	return t, evenOut(ctx, t, full)
}

// ComputeKeeping computes tables by the engine name, where old are the current tables: their
// entries stay where the engine allows it (Options.Keep), as long as no link gets more routes
// than by engines.Compute, or one in maxWorse more. A note has the number of changes. If the rule
// of the engine determines the next hop, as for DModK and for requested policies that are not by
// load, entries stay only if most choices in old follow it, as after a link was lost. kept
// reports whether the tables differ from the tables of Compute.
//
// Time: twice the time of Compute, and the time of traffic.MeasureBalance.
func ComputeKeeping(ctx context.Context, g *graph.Graph, name string, o engines.Options, old *routes.Routes) (r *routes.Routes, kept bool, err error) {
	o.Keep = nil
	full, err := engines.Compute(ctx, g, name, o)
	if err != nil {
		return nil, false, err
	}
	if e, _ := engines.Named(name); e.Repair != engines.KeepEntries {
		return full, false, nil
	}
	old = old.SeenOn(g)
	byLoad := []string{"", engines.LeastLoaded, engines.Scatter}
	if b := engines.BasisOf(full); b.Hops != nil && (b.Tree != nil || !slices.Contains(byLoad, o.Policy)) {
		if same, chance, all := countChoices(full, old); 2*(same-chance) < all-chance {
			full.Notes = append(full.Notes, fmt.Sprintf("the current tables follow another rule (%d of %d choices of a port are the same); no entry is kept", same, all))
			return full, false, nil
		}
	}
	o.Keep = old
	near, err := engines.Compute(ctx, g, name, o)
	if err != nil {
		return nil, false, err
	}
	if err := evenOut(ctx, near, full); err != nil {
		return nil, false, err
	}
	if few, many := near.Diff(old).Entries, full.Diff(old).Entries; few < many {
		changed, be := "no entry changes", "are"
		if few > 0 {
			changed = plural.Count(few, "entry changes", "entries change")
		}
		if many-few == 1 {
			be = "is"
		}
		near.Notes = append(near.Notes, fmt.Sprintf("%s; %s %s's choice but %s equally valid", changed, plural.Count(many-few, "entry differs from", "entries differ from"), name, be))
		return near, true, nil
	}
	return full, false, nil
}

// reachesLess reports whether t, tables of up*/down*, lack more paths than full: which of the paths that
// up*/down* does not have can be added depends on the entries that stay.
func reachesLess(ctx context.Context, t, full *routes.Routes) (bool, error) {
	b := engines.BasisOf(t)
	if b == nil || b.UpDownRanks() == nil || !slices.ContainsFunc(verify.SelectEndpoints(t.Graph(), 0).Sources, func(s int32) bool { return b.Hops.NextUnreachable(int(s), 0) >= 0 }) {
		return false, nil
	}
	v, err := verify.Tables(ctx, t, verify.Options{})
	if err != nil {
		return false, err
	}
	w, err := verify.Tables(ctx, full, verify.Options{})
	return err == nil && cmp.Or(cmp.Compare(v.Unreachable, w.Unreachable), cmp.Compare(v.UnreachableSwitches(), w.UnreachableSwitches())) > 0, err
}

// repairChoices repairs tables with choices of adaptive routing: an engine that made them makes
// them again, beside static ports that stay; tables of unknown origin keep no choices.
func repairChoices(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	static := r.StaticPart()
	if b := engines.BasisOf(r); b != nil {
		if o := b.On(g); o.Adaptive {
			o.Keep = static
			return engines.Compute(ctx, g, b.Engine, o)
		}
	}
	t, err := Tables(ctx, static, g)
	if err == nil {
		t.Notes = append(t.Notes, "the choices of adaptive routing, which no engine made, were left out")
	}
	return t, err
}

// inLanes returns a repair of tables with lanes by keep, or by a full run if keep finds none. If links
// were gained, a full run may use these better: then its tables are taken if the repaired tables have,
// on the busiest link, more routes by over one in maxWorse.
func inLanes(keep repairFunc) repairFunc {
	return func(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
		t, err := keep(ctx, r, g)
		if err != nil || t != nil && len(g.Gained(r.Graph())) == 0 {
			return t, err
		}
		b := engines.BasisOf(r)
		full, err := engines.Compute(ctx, g, b.Engine, b.On(g))
		if t == nil || err != nil {
			return full, err
		}
		load, err := verify.CountAllRoutes(ctx, t)
		if err != nil {
			return nil, err
		}
		best, err := verify.CountAllRoutes(ctx, full)
		if err != nil {
			return nil, err
		}
		if most := traffic.LargestLoad(g, best); traffic.LargestLoad(g, load) > most+most/maxWorse {
			return full, nil
		}
		return t, nil
	}
}

// patchLIDs is search.PatchLIDs where the verifier finds no gaps and no credit loop, else nil.
func patchLIDs(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	t, whole, err := search.PatchLIDs(ctx, r, g, max(1, engines.BasisOf(r).On(g).MaxVLs))
	if err != nil || !whole {
		return nil, err
	}
	parted, err := partedPairs(ctx, g)
	if err != nil {
		return nil, err
	}
	if v, err := verify.Tables(ctx, t, verify.Options{}); err != nil || v.Unreachable > parted || v.Loops > 0 || !v.Acyclic {
		return nil, err
	}
	return t, nil
}

// partedPairs counts the pairs of an endpoint and a LID of another that no path connects, including
// endpoints on no switch, as the verifier does.
func partedPairs(ctx context.Context, g *graph.Graph) (n int64, err error) {
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return 0, err
	}
	endpoints := verify.SelectEndpoints(g, 0)
	for _, wanted := range endpoints.Wanted {
		if wanted {
			n += int64(endpoints.All - 1)
		}
	}
	for d := range g.Switches() {
		others := int64(-1)
		for _, s := range endpoints.Sources {
			if h.Distance(int(s), d) >= 0 {
				others += int64(endpoints.On[s])
			}
		}
		for _, dest := range g.DestsOf(d) {
			if endpoints.Wanted[dest.LID] {
				n -= others
			}
		}
	}
	return n, nil
}

// fewEntries is the number of entries up to which a full run takes little time, and each
// repair of a tree is compared with one. In larger trees a few destinations weigh little.
const fewEntries = 1 << 20

// keepLIDs returns full, the tables of a full run, with the entries of r for each LID whose
// entries in r all are still next hops, as are those of the other LIDs of its port: beside new
// paths, the old paths of a port (LMC) would share links with them.
func keepLIDs(ctx context.Context, r, full *routes.Routes) (*routes.Routes, error) {
	g := full.Graph()
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	t, old := full.Clone(), r.SeenOn(g)
	for d := range g.Switches() {
		stays := func(dest graph.Dest) bool {
			for s := range g.Switches() {
				port := old.Row(s).Port(dest.LID)
				if s == d && port != dest.Out || s != d && !h.IsNextHop(s, d, port) && (h.Distance(s, d) >= 0 || port != routes.NoPort) {
					return false
				}
			}
			return true
		}
		changes := map[int32]bool{} // ports, by terminal
		for _, dest := range g.DestsOf(d) {
			changes[dest.Terminal] = changes[dest.Terminal] || !stays(dest)
		}
		for _, dest := range g.DestsOf(d) {
			for s := 0; !changes[dest.Terminal] && s < len(g.Switches()); s++ {
				t.Row(s)[dest.LID] = old.Row(s).Port(dest.LID)
			}
		}
	}
	return t, nil
}

// countChoices returns the number of entries that r, by next hops of its basis, had to choose, how
// many of them are equal in old, and how many would be equal by chance.
func countChoices(r *routes.Routes, old *routes.Routes) (same, chance, all int) {
	g := r.Graph()
	var next graph.NextHops
	likely := 0.0
	for s := range g.Switches() {
		next.Load(engines.BasisOf(r).Hops, s)
		was, row := old.Row(s), r.Row(s)
		for d := range g.Switches() {
			ports, _ := next.Ports(d)
			if len(ports) < 2 {
				continue
			}
			for _, dest := range g.DestsOf(d) {
				all++
				likely += 1 / float64(len(ports))
				if was.Port(dest.LID) == row[dest.LID] {
					same++
				}
			}
		}
	}
	return same, int(likely), all
}

// keepUnknown is keepLanes for tables of unknown origin, as from a file, whose paths are shortest paths
// on several lanes, as lash or dfsssp makes them, also in OpenSM. It adds no lane, because the lanes of
// ports are unknown. Nil: r has other paths, or its lanes are not enough.
//
// Time: the times of keepLanes, and of Hops on the graph of r.
func keepUnknown(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	upTo := uint16(1)<<bits.Len16(r.SL.Used()) - 1 // paths may move to any level below the highest
	if !r.SL.Any() || !r.SL2VL.DirectFor(upTo) {
		return nil, nil
	}
	if shortest, err := allShortest(ctx, r); !shortest || err != nil {
		return nil, err
	}
	like := *r
	like.SL2VL = routes.NewSL2VL(r.Graph())
	name := "dfsssp"
	if bothWays(r) {
		name = "lash"
	}
	like.SetOrigin(engines.NewBasis(name, r.Lanes()))
	t, err := keepLanes(ctx, &like, g, r.Lanes())
	if t == nil || err != nil {
		return nil, err
	}
	t.ForgetOrigin()
	t.SL2VL = r.On(g).SL2VL
	return t, nil
}

// allShortest reports whether each entry leads along a shortest path.
func allShortest(ctx context.Context, r *routes.Routes) (bool, error) {
	g := r.Graph()
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return false, err
	}
	var other atomic.Bool
	nexts := make([]graph.NextHops, g.Workers())
	err = graph.Each(ctx, g.Workers(), len(g.Switches()), func(worker, s int) {
		next, row := &nexts[worker], r.Row(s)
		next.Load(h, s)
		for d := range g.Switches() {
			ports, _ := next.Ports(d)
			for _, dest := range g.DestsOf(d) {
				if port := row.Port(dest.LID); s != d && len(ports) > 0 && !slices.Contains(ports, port) {
					other.Store(true)
				}
			}
		}
	})
	return !other.Load(), err
}

// bothWays reports whether, as with lash, the paths between two switches are on one lane both ways, and
// the paths from a switch to all CAs of another pass through equal switches.
func bothWays(r *routes.Routes) bool {
	g := r.Graph()
	first := make([]int, len(g.Switches())) // of the terminals on a switch
	for s := range first {
		first[s] = -1
		var before []int32
		for _, dest := range g.DestsOf(s) {
			if dest.Out == 0 {
				continue
			}
			ways := make([]int32, len(g.Switches()))
			for t := range g.Switches() {
				ways[t] = -1
				if c := g.Target(int32(t), r.Row(t).Port(dest.LID)).Channel(); c >= 0 {
					ways[t] = g.ChannelTo(c)
				}
			}
			if before != nil && !slices.Equal(before, ways) {
				return false
			}
			before = ways
			if first[s] < 0 {
				first[s] = int(dest.Terminal)
			}
		}
	}
	for s, t := range first {
		for d, u := range first[:s] {
			if t < 0 || u < 0 {
				continue
			}
			level := r.SL.Of(t, g.Terminals()[u].LID)
			for _, way := range [][2]int{{s, d}, {d, s}} {
				for _, dest := range g.DestsOf(way[1]) {
					if dest.Out > 0 && r.SL.Of(first[way[0]], dest.LID) != level {
						return false
					}
				}
			}
		}
	}
	return true
}

// withLanes is keepLanes on as many virtual lanes as the engine may use and all links have, but no fewer
// than r has. If more are needed, it tries a full run on these lanes, then keepLanes on lanes that links
// do not have, then a full run. Notes say so and, where lanes were added, whether a full run needs fewer.
func withLanes(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	b, has := engines.BasisOf(r), linkLanes(g)
	allowed := cmp.Or(b.On(g).MaxVLs, engines.DefaultLanes)
	most := max(r.Lanes(), min(allowed, has))
	attempts := []struct {
		lanes int
		full  bool
	}{{most, false}, {most, true}, {allowed, false}, {allowed, true}}
	if most >= allowed {
		attempts = slices.Delete(attempts, 1, 3)
	}
	for _, a := range attempts {
		if !a.full {
			t, err := keepLanes(ctx, r, g, a.lanes)
			if err != nil {
				return nil, err
			}
			if t != nil {
				return t, noteLanes(ctx, r, t, has)
			}
			continue
		}
		o := b.On(g)
		if a.lanes < allowed {
			o.MaxVLs = a.lanes
		}
		t, err := engines.Compute(ctx, g, b.Engine, o)
		switch {
		case err == nil:
			engines.AllowLanes(t, b.On(g).MaxVLs) // links may get more again
			t.Notes = append(t.Notes, fmt.Sprintf("repair: no tables found that keep other paths on %s; computed again by %s", plural.Count(a.lanes, "virtual lane", "virtual lanes"), t.Engine))
			return t, nil
		case a.lanes == allowed || !errors.As(err, new(*engines.Precondition)):
			return nil, err
		}
	}
	return nil, nil
}

// noteLanes notes on t, a repair of r, that lanes were added, and that links do not have as many.
func noteLanes(ctx context.Context, r, t *routes.Routes, has int) error {
	if err := noteAdded(ctx, r, t); err != nil {
		return err
	}
	if t.Lanes() > has {
		t.Notes = append(t.Notes, fmt.Sprintf("repair: some links have only %s (operational_vls); updn, ftree and nue find paths on one", plural.Count(has, "virtual lane", "virtual lanes")))
	}
	return nil
}

// linkLanes returns how many virtual lanes for data all links of switches have in use.
func linkLanes(g *graph.Graph) int {
	least := lanes.Max
	for _, s := range g.Switches() {
		for num := range s.NumPorts() + 1 {
			if p := s.Port(num); p != nil && p.Peer() != nil && p.Info() != nil {
				least = min(least, cmp.Or(p.Info().OperationalVLs.Count(), least))
			}
		}
	}
	return least
}

// noteAdded notes on t, a repair of r, that lanes were added, and whether a full run needs fewer.
func noteAdded(ctx context.Context, r, t *routes.Routes) error {
	before, now := r.Lanes(), t.Lanes()
	if now <= before {
		return nil
	}
	g, b := t.Graph(), engines.BasisOf(r)
	o := b.On(g)
	o.MaxVLs = now - 1
	note := fmt.Sprintf("repair: %d virtual lanes, %d before; ", now, before)
	fewer, err := engines.Compute(ctx, g, b.Engine, o)
	switch {
	case err == nil:
		old := r.On(g)
		note += fmt.Sprintf("a new run with max_vls=%d needs %d, but changes %s instead of %d", now-1, fewer.Lanes(), plural.Count(fewer.Diff(old).Blocks, "block", "blocks"), t.Diff(old).Blocks)
	case errors.As(err, new(*engines.Precondition)):
		note += "a new run found no fewer"
	default:
		return err
	}
	t.Notes = append(t.Notes, note)
	return nil
}
