package engines

import (
	"reflect"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// Basis is the input from which an engine made tables, as far as package repair needs it. It is
// immutable; a change of the tables by hand removes it (routes.ForgetOrigin).
type Basis struct {
	Engine  string
	options Options        // without Keep
	roots   []*fabric.Node // those of options
	Hops    *graph.Hops    // each entry is a next hop that these allow; nil: paths are of another kind
	Tree    *Tree          // of DModK; nil: another policy
	Ranks   *graph.Ranks   // of up*/down* on the tree; nil: all links are allowed
	Gaps    bool           // paths to CAs were added that Hops do not have
	leaf    *fabric.Node   // the only root of up*/down*, where it is a leaf; nil: others
	torus   *torusPlan     // of torus-2qos; nil: another engine
	Missing int            // entries that lead to CAs, which search.Complete could not add
}

// BasisOf is that of r; nil: its origin is unknown.
func BasisOf(r *routes.Routes) *Basis {
	b, _ := r.Origin().(*Basis)
	return b
}

// UpDownRanks are the ranks by which all paths go up and then down; nil: none.
func (b *Basis) UpDownRanks() *graph.Ranks {
	if b.Hops == nil {
		return nil
	}
	return b.Hops.Ranks()
}

// basis is that of the tables that a has filled in.
func (a *assigner) basis(ranks *graph.Ranks) *Basis {
	b := &Basis{Hops: a.h}
	if a.digits != nil && a.digits.tree.Number != nil {
		b.Tree = a.digits.tree
		b.Ranks = ranks
	}
	return b
}

// madeBy records what made r.
func madeBy(r *routes.Routes, g *graph.Graph, e *Engine, o *Options) {
	if e.Repair == PatchOnly {
		return
	}
	b := Basis{}
	if before := BasisOf(r); before != nil {
		b = *before
	}
	b.Engine, b.options = e.Name, *o
	b.options.Keep, b.options.search = nil, nil
	for _, s := range o.Roots {
		b.roots = append(b.roots, g.Switches()[s])
	}
	r.SetOrigin(&b)
}

// AsIf returns the basis of tables that an engine would have made with up to so many lanes.
func AsIf(engine string, lanes int) *Basis {
	return &Basis{Engine: engine, options: Options{MaxVLs: lanes}}
}

// On are the options on another graph: without roots that it does not have.
func (b *Basis) On(g *graph.Graph) Options {
	o := b.options
	o.Roots = nil
	for _, n := range b.roots {
		if s := g.SwitchByGUID(n.GUID()); s >= 0 {
			o.Roots = append(o.Roots, s)
		}
	}
	return o
}

// AllowLanes makes the basis of r, tables of an engine, that of a run with up to so many virtual lanes;
// 0: DefaultLanes.
func AllowLanes(r *routes.Routes, lanes int) {
	with := *BasisOf(r)
	with.options.MaxVLs = lanes
	r.SetOrigin(&with)
}

// AddGaps notes in the basis of r, if it has one, that next hops do not lead to all CAs, and how many
// entries that do could not be added.
func AddGaps(r *routes.Routes, missing int) {
	if b := BasisOf(r); b != nil {
		with := *b
		with.Gaps, with.Missing = true, missing
		r.SetOrigin(&with)
	}
}

// MadeBy reports whether an engine with these options made r, and nothing has changed it.
// Tables to be kept do not matter.
func MadeBy(r *routes.Routes, g *graph.Graph, engine string, o Options) bool {
	b := BasisOf(r)
	if b == nil || b.Engine != engine {
		return false
	}
	was := b.On(g)
	if o.Keep = nil; len(o.Roots) == 0 {
		o.Roots = nil
	}
	return o.Given == nil && reflect.DeepEqual(was, o)
}
