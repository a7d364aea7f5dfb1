package routes

import (
	"fabsh/fabric/routing/graph"
	"slices"
	"sync"
)

// sharedRows says which rows of tables others may share, as repaired tables share nearly all
// with those before.
type sharedRows struct {
	mu     sync.Mutex
	shared bool   // rows that are not own may be shared
	own    []bool // by switch; nil: none
}

// cut makes the rows of all entries, which no other tables share.
func (r *Routes) cut(entries []uint8) {
	r.rows, r.shared = make([][]uint8, len(r.graph.Switches())), &sharedRows{}
	for s := range r.rows {
		r.rows[s] = entries[s*r.stride:][:r.stride:r.stride]
	}
}

// ShareRows makes tables for g that share the rows of r; was is the number in r's graph of
// each switch, or -1, and r has all LIDs of g.
func (r *Routes) ShareRows(g *graph.Graph, was []int32) *Routes {
	r.shared.mu.Lock()
	r.shared.shared, r.shared.own = true, nil
	r.shared.mu.Unlock()
	o := &Routes{Engine: r.Engine, RunInOpenSM: r.RunInOpenSM, ReadNotes: slices.Clone(r.ReadNotes), graph: g, top: r.top, stride: r.stride}
	o.rows, o.shared = make([][]uint8, len(was)), &sharedRows{shared: true}
	for s, i := range was {
		if i >= 0 {
			o.rows[s] = r.rows[i]
		} else {
			o.rows[s] = slices.Repeat([]uint8{NoPort}, r.stride)
		}
	}
	o.adaptive = r.adaptive.share(len(was), func(s int) int { return int(was[s]) })
	return o
}

// EditRow is Row for changes by hand: it forgets the origin of r. Tables that share the row
// do not see the changes.
func (r *Routes) EditRow(s int) Row {
	r.ForgetOrigin()
	return r.WritableRow(s)
}

// WritableRow is Row for writing what keeps the promises of the engine that made r. Tables
// that share the row do not see it.
func (r *Routes) WritableRow(s int) Row {
	l := r.shared
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared {
		if l.own == nil {
			l.own = make([]bool, len(r.rows))
		}
		if !l.own[s] {
			r.rows[s], l.own[s] = slices.Clone(r.rows[s]), true
		}
	}
	return r.Row(s)
}

// CopyShared makes all rows writable.
func (r *Routes) CopyShared() {
	for s := range r.rows {
		r.WritableRow(s)
	}
}

// Replace gives r the entries, the adaptive routing, the notes and the origin of full, which is not used afterwards.
func (r *Routes) Replace(full *Routes) {
	r.rows, r.shared, r.Notes, r.origin, r.adaptive = full.rows, full.shared, full.Notes, full.origin, full.adaptive
}
