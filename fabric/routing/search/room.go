package search

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/cdg"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/walk"
	"fabsh/mad"
)

// makeRoom gives the LIDs that are open the paths of an escape tree, and keeps those of all other
// LIDs that close no cycle with these. The rest get other paths.
//
// Time: a cycle test for each dependency, and searches for the rest.
func (a *patching) makeRoom(ctx context.Context, lane, root int) error {
	g := a.r.Graph()
	n := newNueSearch(a.r, cdg.New(g, 1), cdg.UpDownOrder(g, graph.RanksFrom(g, []int{root})))
	n.load = slices.Clone(a.load)
	n.addTree(root)
	open := map[mad.LID]bool{}
	for _, x := range a.open {
		open[x.dest.LID] = true
		n.takeEscape(x.d, x.dest)
	}
	w := walk.New(g)
	var rest []gap
	for d := range g.Switches() {
		for _, dest := range g.DestsOf(d) {
			if dest.Out == 0 || open[dest.LID] || a.lane(dest.LID) != lane {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			entries := a.r.Column(dest.LID)
			w.Begin()
			for s, endpoints := range n.endpoints {
				if endpoints > 0 {
					w.From(int32(s), entries, dest.Terminal)
				}
			}
			fits := true
			for _, s := range w.Order {
				if c := w.Via[s]; c >= 0 && fits {
					next := w.Via[g.ChannelTo(c)]
					fits = next < 0 || n.order.TryAdd(c, next)
				}
			}
			if n.order.Commit(func(v, w int32) bool { return fits }); !fits {
				rest = append(rest, gap{d: d, dest: dest, old: entries})
			}
		}
	}
	for _, x := range rest {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for s := range g.Switches() {
			a.r.Row(s)[x.dest.LID] = routes.NoPort
		}
		a.dropped = append(a.dropped, x) // switches without CAs
		n.keep(x.old)
		n.bound = nil
		n.route(x.d, x.dest)
	}
	a.graphs[lane], a.toCAs.missing = n.order.Graph, 0
	a.r.Notes = append(a.r.Notes, fmt.Sprintf("repair: other paths were needed for %s, to leave room for those of %s", plural.Count(len(rest), "LID that used nothing that is gone", "LIDs that used nothing that is gone"), plural.Count(len(open), "other", "others")))
	return nil
}

// blank drops all packets to the LIDs of gaps, to search for paths from the start.
func (a *patching) blank(gaps []gap) (list []gap) {
	for _, x := range gaps {
		x.before = slices.Repeat([]uint8{routes.NoPort}, len(x.before))
		x.before[x.d] = x.dest.Out
		for s, port := range x.before {
			a.r.Row(s)[x.dest.LID] = port
		}
		list = append(list, x)
	}
	return list
}

// moveToLanes gives the LIDs that are open another lane, as far as these are allowed.
func (a *patching) moveToLanes() error {
	if a.allowed == 1 {
		return nil
	}
	r := a.r
	if r.SL == nil || r.SL.Pair != nil || !r.SL2VL.Direct() {
		if r.SL.Any() {
			return nil
		}
		r.SL = &routes.SL{}
	}
	r.SL2VL = routes.NewSL2VL(r.Graph())
	r.SL.Dest = append(r.SL.Dest, make([]uint8, max(0, int(r.Top())+1-len(r.SL.Dest)))...)
	a.toCAs.missing = 0
	for _, x := range a.blank(a.open) {
		var count tally
		for lane := range a.allowed {
			if lane == len(a.graphs) {
				a.graphs = append(a.graphs, cdg.New(r.Graph(), 1))
			}
			d := a.graphs[lane].Clone()
			n := newNueSearch(r, d, d.Positions())
			n.load = slices.Clone(a.load)
			if count = (tally{}); a.close(n, x, &count) {
				r.SL.Dest[x.dest.LID], a.graphs[lane] = uint8(lane), d
				break
			}
			a.blank([]gap{x})
		}
		a.toCAs.added += count.added
		a.toCAs.missing += count.missing
	}
	return nil
}
