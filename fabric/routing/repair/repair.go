// Package repair makes tables for a network that has changed a little, of those before.
//
//	repair.go  Tables: by what made the tables
//	tree.go    the tables of d-mod-k on a fat tree; gap.go: pairs that up*/down* has no
//	           path to
//	evenout.go no link gets many more routes than by a full run
//	layered.go shortest paths on lanes: what a change breaks, and the lanes of the others;
//	level.go   these where they differ between ports of a switch
//	placing.go other entries and lanes; split.go, for more paths than must
//	limit.go   lanes that links have, and notes on ones that are added
//	rearrange.go lanes in use for paths that fit on none; reroute.go: by other entries
//	unknown.go the same for tables of unknown origin
//	keep.go    ComputeKeeping: a full run that stays close to the tables in force
//
// The functions use all cores, and may run at the same time on the same tables, which must
// not change meanwhile. Tables that they return belong to the caller, but may share rows
// with those before until one of them is changed. Package graph explains the letters of
// times.
package repair

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// Tables repairs r: it makes tables for g, the graph of the same subnet after a link, a switch or a
// host is lost or back, of r, those before. Entries stay where they are, but for those
// whose paths the change breaks, or that an engine would choose differently for what is gained.
// What the engine that made r promises holds for the new tables too: they reach the
// same pairs, and close no credit loop. Their balance is that of a run of the engine,
// or up to maxWorse worse; for this, entries of other LIDs may change. Engines that search for
// lanes, or for paths that need few, keep all other entries instead, and their lanes, but for
// those that a note counts, and after a loss whatever balance results. Choices of adaptive
// routing come from the engine that made them; others are left out, with a note.
//
// Where the origin of r is unknown, as of tables from a file or changed by hand, paths that arrive
// stay, but for a few to LIDs that lack others, and the others are replaced by ones that close no
// credit loop, if r closes none. Shortest paths on several lanes are replaced by shortest ones, also
// where a link that is back makes them shorter, and no lane is added.
//
// Time: for DModK on a fat tree, O(S*L) to copy the tables, and what changes; else
// that of the engine, twice, and of traffic.MeasureBalance.
func Tables(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	if len(g.Switches()) == 0 {
		return nil, errors.New("repair: the fabric has no switch")
	}
	if r.HasChoices() {
		return repairChoices(ctx, r, g)
	}
	b := engines.BasisOf(r)
	if b == nil {
		if t, err := keepUnknown(ctx, r, g); t != nil || err != nil {
			return t, err
		}
		return search.Patch(ctx, r, g)
	}
	if b.Tree != nil && !b.Gaps {
		t, err := repairTree(ctx, r, g)
		if err == nil && t != nil && len(g.Switches())*int(t.Top()) <= fewEntries {
			err = evenTree(ctx, t)
		}
		if t != nil || err != nil {
			return t, err
		}
	}
	e, _ := engines.Named(b.Engine)
	switch e.Repair {
	case engines.KeepLanes:
		return inLanes(ctx, r, g, withLanes)
	case engines.KeepPlaces:
		return inLanes(ctx, r, g, engines.InPlaces)
	case engines.Patch:
		return inLanes(ctx, r, g, patchLIDs)
	}
	o := b.On(g)
	full, err := engines.Compute(ctx, g, b.Engine, o)
	if err != nil || r.SL != nil { // lanes of paths that others go beside
		return full, err
	}
	t := full
	switch e.Repair {
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

// reachesLess reports whether t, tables of up*/down*, lack more of the paths that up*/down* does not have
// than full does: which of these can be added depends on the entries that stay.
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

// repairChoices repairs tables with choices of adaptive routing: those of an engine get them
// from it, beside static ports that stay; others keep none.
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

// inLanes repairs tables with lanes by keep, or by a full run where that finds none. Where links
// have come, a full run may use these better: then its tables are taken if the others have more
// than one in maxWorse routes more on a link.
func inLanes(ctx context.Context, r *routes.Routes, g *graph.Graph, keep func(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error)) (*routes.Routes, error) {
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
	if most := traffic.DistributionOf(best).Max; traffic.DistributionOf(load).Max > most+most/maxWorse {
		return full, nil
	}
	return t, nil
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

// partedPairs counts the pairs of an endpoint and a LID of another that no path connects, those of
// endpoints on no switch included, as the verifier does.
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
