package routing

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// Near is Compute where old are the tables in force: entries of theirs stay where the
// engine allows it (Options.Keep), as long as no link gets more routes than by Compute
// alone, or maxWorse more. Its notes tell how many. Where the rule is the very choice of
// the next hop, as of DModK and of policies that were asked for and are not by load, they
// do only if most choices in old are the same, as after a link was lost.
//
// Time: that of Compute, twice, and of Balance.
func Near(ctx context.Context, g *graph.Graph, engine string, o Options, old *routes.Routes) (*routes.Routes, error) {
	o.Keep = nil
	full, err := Compute(ctx, g, engine, o)
	if err != nil {
		return nil, err
	}
	if e, _ := EngineNamed(engine); e.Repair != KeepEntries {
		return full, nil
	}
	old = old.SeenOn(g)
	byLoad := []string{"", LeastLoaded, Scatter}
	if b := basisOf(full); b.hops != nil && (b.tree != nil || !slices.Contains(byLoad, o.Policy)) {
		if same, chance, all := countChoices(full, old); 2*(same-chance) < all-chance {
			full.Notes = append(full.Notes, fmt.Sprintf("the tables in force are by another rule (%d of %d choices of a port are the same), so no entry is kept", same, all))
			return full, nil
		}
	}
	o.Keep = old
	near, err := Compute(ctx, g, engine, o)
	if err != nil {
		return nil, err
	}
	if err := evenOut(ctx, near, full); err != nil {
		return nil, err
	}
	if few, many := near.Diff(old).Entries, full.Diff(old).Entries; few < many {
		near.Notes = append(near.Notes, fmt.Sprintf("%d entries change, and %d stay that %s by itself would choose anew", few, many-few, engine))
		return near, nil
	}
	return full, nil
}

// countChoices are the entries that r, by next hops of its basis, had to choose, how many of
// them are the same in old, and how many would be by chance.
func countChoices(r *routes.Routes, old *routes.Routes) (same, chance, all int) {
	g := r.Graph()
	var next graph.NextHops
	likely := 0.0
	for s := range g.Switches() {
		next.Load(basisOf(r).hops, s)
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

// keepOrChoose keeps the entries for dests that are still next hops, and chooses the
// others.
func (a *assigner) keepOrChoose(f *rowFill, dests destRange) {
	g := a.routes.Graph()
	w, row, old := f.w, f.row, a.keep.Row(f.s)
	if a.wanted == nil && !a.byLoad() && w.keepAll(g.Dests()[dests.from:dests.to], old, row) {
		return
	}
	w.kept = w.kept[:0]
	some := false // are not kept
	for i := dests.from; i < dests.to; i++ {
		lid := g.Dests()[i].LID
		port := old.Port(lid)
		stays := w.allowed[port] && a.wants(i)
		w.kept = append(w.kept, stays)
		if !stays {
			some = true
			continue
		}
		row[lid] = port
		if a.byLoad() && a.weight[i] > 0 && a.passesThrough(f.s, i) {
			f.least.loads[port] += a.weight[i]
			a.markTransit(f.s, i, port)
		}
	}
	if some {
		f.least.reset(f.least.ports)
		a.choose(f, dests, w.kept)
	}
}

// allow makes ports the next hops.
func (w *assignWorker) allow(ports []uint8) {
	for _, p := range w.last {
		w.allowed[p] = false
	}
	w.last = append(w.last[:0], ports...)
	for _, p := range w.last {
		w.allowed[p] = true
	}
}

// keepAll keeps entries until it meets one that is no next hop any more. In most
// cases there is none, and it has kept all.
func (w *assignWorker) keepAll(dests []graph.Dest, old, row routes.Row) bool {
	for _, d := range dests {
		port := old.Port(d.LID)
		if !w.allowed[port] {
			return false
		}
		row[d.LID] = port
	}
	return true
}
