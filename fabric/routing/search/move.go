package search

import (
	"slices"

	"fabsh/fabric/routing/cdg"
	"fabsh/fabric/routing/routes"
)

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

// stillOn are those of gaps whose LIDs are on a lane.
func (a *patching) stillOn(lane int, gaps []gap) []gap {
	return slices.DeleteFunc(slices.Clone(gaps), func(x gap) bool { return a.lane(x.dest.LID) != lane })
}
