package routing

// keepOrChoose keeps the entries of switch s for dests[from:to] that are still next
// hops, and chooses the others.
func (a *assigner) keepOrChoose(w *assignWorker, s, from, to int, row Row, least *leastLoaded) {
	g := a.routes.graph
	old := a.keep.Row(s)
	if a.wanted == nil && !a.byLoad() && w.keepAll(g.dests[from:to], old, row) {
		return
	}
	w.kept = w.kept[:0]
	some := false // are not kept
	for i := from; i < to; i++ {
		lid := g.dests[i].lid
		port := old.Port(lid)
		stays := w.allowed[port] && (a.wanted == nil || a.wanted[i])
		w.kept = append(w.kept, stays)
		if !stays {
			some = true
			continue
		}
		row[lid] = port
		if a.byLoad() && a.weight[i] > 0 && a.passesThrough(s, i) {
			least.loads[port] += a.weight[i]
			a.markTransit(s, i, port)
		}
	}
	if some {
		least.reset(least.ports)
		a.choose(s, from, to, w.kept, row, least)
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
func (w *assignWorker) keepAll(dests []dest, old, row Row) bool {
	for _, d := range dests {
		port := old.Port(d.lid)
		if !w.allowed[port] {
			return false
		}
		row[d.lid] = port
	}
	return true
}
