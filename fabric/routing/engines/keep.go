package engines

import (
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

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

// keepAll keeps entries until it meets one whose port no longer is a next hop. In most cases
// there is no such entry, and it has kept all.
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
