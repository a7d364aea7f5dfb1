package routing

import (
	"reflect"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// basis is what an engine made tables of, as far as Repair needs it. It is immutable;
// a script that changes the tables takes it away (Edited).
type basis struct {
	engine  string
	options Options        // without Keep
	roots   []*fabric.Node // those of options
	hops    *graph.Hops    // each entry is a next hop that these allow; nil: paths are of another kind
	tree    *treeBasis     // of DModK; nil: another policy
	gaps    bool           // paths to CAs were added that hops do not have
	missing int            // entries that lead to CAs, which complete could not add
}

// basisOf is that of r; nil: nothing is known of what made it.
func basisOf(r *routes.Routes) *basis {
	b, _ := r.Origin().(*basis)
	return b
}

// UpDownRanks are the ranks by which all paths go up and then down; nil: none.
func (b *basis) UpDownRanks() *graph.Ranks {
	if b.hops == nil {
		return nil
	}
	return b.hops.Ranks()
}

// treeBasis is the tree by whose digits DModK has chosen, as it was at first: what it
// has lost since then keeps its place.
type treeBasis struct {
	graph   *graph.Graph
	ranks   *graph.Ranks // of up*/down*; nil: all links are allowed
	place   []int32
	parents [][]int32
	number  []int // by LID
	divider []int
}

// basis is that of the tables that a has filled in.
func (a *assigner) basis(ranks *graph.Ranks) *basis {
	b := &basis{hops: a.h}
	if a.byLID != nil {
		b.tree = &treeBasis{a.routes.Graph(), ranks, a.h.Place, a.parents, a.byLID, a.divider}
	}
	return b
}

// madeBy notes what made r.
func madeBy(r *routes.Routes, g *graph.Graph, e *Engine, o *Options) {
	if e.Repair == PatchOnly {
		return
	}
	b := basis{}
	if before := basisOf(r); before != nil {
		b = *before
	}
	b.engine, b.options = e.Name, *o
	b.options.Keep = nil
	for _, s := range o.Roots {
		b.roots = append(b.roots, g.Switches()[s])
	}
	r.SetOrigin(&b)
}

// on are the options on another graph: without roots that it does not have.
func (b *basis) on(g *graph.Graph) Options {
	o := b.options
	o.Roots = nil
	for _, n := range b.roots {
		if s := g.SwitchByGUID(n.GUID()); s >= 0 {
			o.Roots = append(o.Roots, s)
		}
	}
	return o
}

// addGaps notes that next hops do not lead to all CAs, and how many entries that do could
// not be added.
func (b *basis) addGaps(missing int) {
	if b != nil {
		b.gaps, b.missing = true, missing
	}
}

// MadeBy says whether an engine with these options made r, and nothing has changed it.
// Tables to be kept are no matter.
func MadeBy(r *routes.Routes, g *graph.Graph, engine string, o Options) bool {
	b := basisOf(r)
	if b == nil || b.engine != engine {
		return false
	}
	was := b.on(g)
	if o.Keep = nil; len(o.Roots) == 0 {
		o.Roots = nil
	}
	return o.Given == nil && reflect.DeepEqual(was, o)
}
