// Package engines has the routing engines, which compute forwarding tables.
//
// All lists the engines, Compute computes the tables of one by its name with Options, and
// ComputeChain the tables of a routing chain of several. The Basis of tables is the input
// from which an engine made them; package repair begins with it.
//
// An engine finds the distances that its paths may have, as graph.Hops, and chooses among
// the next hops: by Assign with a policy, such as the digits of d-mod-k, or one LID after the
// other over the least loaded links. Some then move paths, so that the flows of shifts spread
// or the largest load falls. Engines with virtual lanes put the paths on lanes at the end:
// Layer does it for any tables.
//
// The functions use all cores, and may run concurrently on a shared graph. Tables that they
// return belong to the caller. Package graph explains the letters of times.
package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
)

// All are all routing engines, in the order in which lists show them. This
// is the only table of them: help, lists and error messages are made from it. A
// new engine is a file with a literal, and a line here.
func All() []Engine {
	return []Engine{
		minhop,
		updn,
		dnup,
		ftree,
		dor,
		sssp,
		nue,
		dfsssp,
		lash,
		dragonfly,
		torus2QoS,
		file,
	}
}

// Engine computes all forwarding tables of a graph.
type Engine struct {
	Name string
	Doc  string // one line: the paths that it makes
	// OpenSM is the name of OpenSM's engine of this kind; "": no such engine.
	OpenSM string
	// Lanes reports whether the engine gives paths virtual lanes. OpenSMNeeds is what
	// OpenSM's must be given to do so.
	Lanes       bool
	OpenSMNeeds string
	// Options are the options it takes.
	Options []Option
	// Minimal promises shortest paths: each entry is a next hop of a path of the
	// least distance, as Graph.Hops counts it (in links, or in their weights).
	Minimal bool
	// Acyclic promises that there is no credit loop: on any fabric that the
	// engine applies to, the channel dependency graph of the paths between all
	// ports of CAs and routers has no cycle, on the virtual lanes of their service
	// levels, or on one if they have none.
	Acyclic bool
	// Repair is how package repair makes new tables from tables of the engine.
	Repair RepairMethod

	layering func(g *graph.Graph) *lanes.Layering // of KeepLanes: what Layer is given
	compute  func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error)
}

// RepairMethod is how package repair makes tables for a network that has changed.
type RepairMethod int

const (
	// Recompute runs the engine again.
	Recompute RepairMethod = iota
	// KeepEntries runs the engine with the old tables as Options.Keep.
	KeepEntries
	// KeepLIDs runs the engine, and keeps all entries of a LID if each is a next hop
	// still: for shortest paths to a LID that do not depend on the paths to others.
	KeepLIDs
	// Patch replaces the paths that the change breaks (search.PatchLIDs), and runs the engine
	// where that leaves gaps.
	Patch
	// PatchOnly is Patch without a run, as for tables of unknown origin.
	PatchOnly
	// KeepLanes replaces the entries that do not lead along shortest paths, and puts the
	// paths that change on the lanes of the paths that stay.
	KeepLanes
	// KeepPlaces runs torus-2qos with the places of switches that it had found before: InPlaces.
	KeepPlaces
)

// Names are the names of Engines, in their order.
func Names() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
	}
	return names
}

// Named returns the engine of that name, and reports whether there is one.
func Named(name string) (e Engine, ok bool) {
	all := All()
	i := slices.IndexFunc(all, func(e Engine) bool { return e.Name == name })
	if i < 0 {
		return e, false
	}
	return all[i], true
}

// Precondition is the error of an engine that does not apply to a graph.
type Precondition struct {
	Engine string // Compute sets it
	Reason error  // which condition does not hold, and where
}

func (e *Precondition) Error() string { return e.Engine + " does not apply: " + e.Reason.Error() }
func (e *Precondition) Unwrap() error { return e.Reason }

// Compute computes tables by the engine of that name. If the engine does not
// apply, the error is a *Precondition.
func Compute(ctx context.Context, g *graph.Graph, engine string, o Options) (*routes.Routes, error) {
	e, ok := Named(engine)
	if !ok {
		return nil, fmt.Errorf("unknown engine %q; supported: %s", engine, strings.Join(Names(), ", "))
	}
	if len(g.Switches()) == 0 {
		reason := "the fabric has no switch"
		if d := g.Disguised(); d != "" {
			reason += "; " + d
		}
		return nil, &Precondition{engine, errors.New(reason)}
	}
	for _, s := range o.Roots {
		if s < 0 || s >= len(g.Switches()) {
			return nil, fmt.Errorf("%s: root %d is not a switch; switches: 0 to %d", engine, s, len(g.Switches())-1)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o.Keep, o.search = o.Keep.SeenOn(g), cmp.Or(o.search, &laneSearch{work: lanes.DefaultWork})
	r, err := e.compute(ctx, g, &o)
	if err != nil && ctx.Err() != nil { // not that the engine does not apply
		return nil, context.Cause(ctx)
	}
	if p := new(Precondition); errors.As(err, &p) {
		p.Engine = engine
	}
	if few := new(TooFewLanes); errors.As(err, &few) {
		few.GaveUp = o.search.gaveUp()
	}
	if err != nil {
		return nil, err
	}
	o.search.note(r)
	r.Engine, r.RunInOpenSM = engine, e.runInOpenSM()
	recordBasis(r, g, &e, &o)
	return r, nil
}

// runInOpenSM is the advice to let OpenSM find the lanes that e gives paths; "": OpenSM cannot.
func (e *Engine) runInOpenSM() string {
	switch {
	case !e.Lanes || e.OpenSM == "":
		return ""
	case e.OpenSMNeeds != "":
		return fmt.Sprintf("opensm -Q -R %s, with %s, finds lanes of its own", e.OpenSM, e.OpenSMNeeds)
	}
	return fmt.Sprintf("opensm -Q -R %s finds lanes of its own", e.OpenSM)
}

// Basis is the input from which an engine made tables, as far as package repair needs it. It is
// immutable; a change of the tables by hand removes it (routes.ForgetOrigin).
type Basis struct {
	Engine  string
	options Options        // without Keep
	roots   []*fabric.Node // the roots of options
	Hops    *graph.Hops    // each entry is a next hop that these allow; nil: paths are of another kind
	Tree    *Tree          // of DModK; nil: another policy
	Ranks   *graph.Ranks   // of up*/down* on the tree; nil: all links are allowed
	Gaps    bool           // paths to CAs were added that Hops do not have
	leaf    *fabric.Node   // the only root of up*/down*, where it is a leaf; nil: others
	torus   *torusPlan     // of torus-2qos; nil: another engine
	Missing int            // entries that lead to CAs, which search.Complete could not add
}

// BasisOf returns the basis of r; nil: its origin is unknown.
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

// basis is the basis of the tables that a has filled in.
func (a *assigner) basis(ranks *graph.Ranks) *Basis {
	b := &Basis{Hops: a.h}
	if a.digits != nil && a.digits.tree.Number != nil {
		b.Tree = a.digits.tree
		b.Ranks = ranks
	}
	return b
}

// recordBasis records what made r.
func recordBasis(r *routes.Routes, g *graph.Graph, e *Engine, o *Options) {
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

// NewBasis returns the basis of tables that an engine would have made with up to so many lanes.
func NewBasis(engine string, lanes int) *Basis {
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

// AllowLanes changes the basis of r, tables of an engine, to a run with up to so many virtual lanes;
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

// file takes existing tables, as OpenSM's file does: of a file, or of the switches. It
// promises nothing of their paths.
//
// Time: O(S*L).
var file = Engine{
	Name:    routes.FromFile,
	Doc:     "Tables from a file, unchanged: to verify, compare, or write in another format.",
	OpenSM:  "file",
	Options: []Option{givenOption},
	Repair:  PatchOnly,
	compute: func(_ context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		if o.Given == nil {
			return nil, &Precondition{Reason: errors.New("no tables given")}
		}
		return o.Given.On(g), nil
	},
}
