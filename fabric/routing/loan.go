package routing

import (
	"fabsh/fabric/routing/graph"
	"slices"
	"sync"
)

// loan says which rows of tables others may share, as those that Repair makes share
// nearly all with the ones before.
type loan struct {
	mu   sync.Mutex
	lent bool   // rows that are not mine may be shared
	mine []bool // by switch; nil: none
}

// cut makes the rows of all entries, which nobody shares.
func (r *Routes) cut(entries []uint8) {
	r.rows, r.loan = make([][]uint8, len(r.graph.Switches())), &loan{}
	for s := range r.rows {
		r.rows[s] = entries[s*r.stride:][:r.stride:r.stride]
	}
}

// borrow makes tables for g that share the rows of r; was is the number in r's graph of
// each switch, or -1, and r has all LIDs of g.
func (r *Routes) borrow(g *graph.Graph, was []int32) *Routes {
	r.loan.mu.Lock()
	r.loan.lent, r.loan.mine = true, nil
	r.loan.mu.Unlock()
	o := &Routes{Engine: r.Engine, RunInOpenSM: r.RunInOpenSM, ReadNotes: slices.Clone(r.ReadNotes), graph: g, top: r.top, stride: r.stride}
	o.rows, o.loan = make([][]uint8, len(was)), &loan{lent: true}
	for s, i := range was {
		if i >= 0 {
			o.rows[s] = r.rows[i]
		} else {
			o.rows[s] = slices.Repeat([]uint8{NoPort}, r.stride)
		}
	}
	return o
}

// Own is Row for writing: what shares it now does not see that.
func (r *Routes) Own(s int) Row {
	r.Edited()
	return r.own(s)
}

// own is Own for what keeps the promises of the engine that made r.
func (r *Routes) own(s int) Row {
	l := r.loan
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lent {
		if l.mine == nil {
			l.mine = make([]bool, len(r.rows))
		}
		if !l.mine[s] {
			r.rows[s], l.mine[s] = slices.Clone(r.rows[s]), true
		}
	}
	return r.Row(s)
}

// ownAll is own for all switches.
func (r *Routes) ownAll() {
	for s := range r.rows {
		r.own(s)
	}
}
