package routing

// prepare makes ready for other next hops.
func (a *assigner) prepare(w *assignWorker, s int, ports []uint8) {
	if a.Policy == DModK {
		a.findParents(s, ports)
	}
	if a.keep == nil {
		return
	}
	for _, p := range w.last {
		w.allowed[p] = false
	}
	w.last = append(w.last[:0], ports...)
	for _, p := range w.last {
		w.allowed[p] = true
	}
}

// chooseAnew is choose for those entries that cannot be kept.
func (a *assigner) chooseAnew(w *assignWorker, s, from, to int, row Row, f *filler) {
	g := a.routes.graph
	old := a.keep.Row(s)
	if a.wanted == nil && !a.counts() && w.keep(g.dests[from:to], old, row) {
		return
	}
	w.kept = w.kept[:0]
	anew := false
	for i := from; i < to; i++ {
		lid := g.dests[i].lid
		port := old.Port(lid)
		stays := w.allowed[port] && (a.wanted == nil || a.wanted[i])
		w.kept = append(w.kept, stays)
		if !stays {
			anew = true
			continue
		}
		row[lid] = port
		if a.counts() && a.weight[i] > 0 && a.comesThrough(s, i) {
			f.loads[port] += a.weight[i]
			a.mark(s, i, port)
		}
	}
	if anew {
		f.start(f.ports)
		a.choose(s, from, to, w.kept, row, f)
	}
}

// keep keeps entries as long as they can be, which may be all of them.
func (w *assignWorker) keep(dests []dest, old, row Row) bool {
	for _, d := range dests {
		port := old.Port(d.lid)
		if !w.allowed[port] {
			return false
		}
		row[d.lid] = port
	}
	return true
}
