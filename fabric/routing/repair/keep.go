package repair

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// ComputeKeeping is engines.Compute by the engine of that name, where old are the current
// tables: their entries stay where the engine allows it (Options.Keep), as long as no
// link gets more routes than by Compute alone, or one in maxWorse more. Its notes say how
// many. Where the rule is the very choice of the next hop, as of DModK and of requested
// policies that are not by load, entries stay only if most choices in old are the same, as
// after a link was lost. kept reports whether the tables are others than those of Compute.
//
// Time: that of Compute, twice, and of traffic.MeasureBalance.
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

// countChoices are the entries that r, by next hops of its basis, had to choose, how many of
// them are the same in old, and how many would be by chance.
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
