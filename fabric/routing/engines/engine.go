// Package engines has the routing engines, which compute forwarding tables.
//
//	engine.go   Engine, the list of all, and Compute
//	option.go   the options of engines
//	adaptive.go the ports that switches may choose from
//	basis.go    Basis: the input of an engine's tables
//
// The engines:
//
//	minhop.go updn.go dnup.go ftree.go dor.go sssp.go nue.go file.go
//	dfsssp.go lash.go dragonfly.go torus.go with virtual lanes; layer.go: lanes for any
//	            tables
//	oneroot.go  the roots of up*/down* on a tree
//
// The choice among next hops:
//
//	assign.go      Assign chooses by a policy; policy.go: which there are
//	leastloaded.go the policies by load; dmodk.go: by digits
//	balance.go     paths to one LID after the other, the least loaded first, in several
//	               passes; balanceswitch.go: to all LIDs of a switch; ahead.go: next hops, beforehand
//	shift.go       the same, where that spreads the flows of shifts; shifttree.go: of tables
//	               with detours; shiftmeasure.go: how they are spread; peak.go: the same, where
//	               that lowers the largest load
//	lowlane.go     such paths that need few lanes
//	separate.go    paths to the LIDs of one port, made disjoint
//	keep.go        entries that stay as they were
//
// The functions use all cores, and may run at the same time on the same graph. Tables that
// they return belong to the caller. Package graph explains the letters of times.
package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
)

// All are all routing engines, in the order in which lists show them. This
// is the one table of them: help, lists and error messages are made from it. A
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
	// Repair is how package repair makes tables of those of the engine.
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
	// still: for shortest paths to a LID that do not depend on those to others.
	KeepLIDs
	// Patch replaces the paths that the change breaks (search.PatchLIDs), and runs the engine
	// where that leaves gaps.
	Patch
	// PatchOnly does so without a run, as for tables of unknown origin.
	PatchOnly
	// KeepLanes replaces the entries that do not lead along shortest paths, and puts
	// the paths that change on the lanes of the others.
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

// Takes reports whether e has an option of that name.
func (e *Engine) Takes(option string) bool {
	return slices.ContainsFunc(e.Options, func(o Option) bool { return o.Name == option })
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
	madeBy(r, g, &e, &o)
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

// assigned makes tables of the next hops that h allows: by the policy of o, or else by
// DModK if l, the levels of g, are those of a fat tree that it suits. Repair can begin with them. ranks
// are those that h obeys; nil: none.
func assigned(ctx context.Context, g *graph.Graph, h *graph.Hops, l *graph.Levels, ranks *graph.Ranks, o *Options) (*routes.Routes, error) {
	h.Place = l.Places()
	choice := AssignOptions{Policy: o.Policy, Scope: o.Scope, Seed: o.Seed, Keep: o.Keep, levels: l}
	free := choice.Policy == "" && choice.Scope != PerSwitch && choice.Keep == nil
	if choice.Policy == "" && l.Check() == nil {
		choice.Policy = DModK
	}
	if choice.Policy == DModK {
		var err error
		if choice.aligned, err = isBetterAligned(ctx, g, h, choice); err != nil {
			return nil, err
		}
	}
	r := routes.New(g, 0)
	a, err := assign(ctx, r, h, choice)
	if err != nil {
		return nil, err
	}
	r.SetOrigin(a.basis(ranks))
	if !free || search.IsLarge(g) {
		return r, nil
	}
	load := int64(0)
	if choice.Policy == DModK {
		var skewed bool
		if load, skewed, err = isSkewed(ctx, r); err != nil || !skewed {
			return r, err
		}
		if ranks != nil {
			connected, err := graph.AllHops(ctx, g)
			if err != nil {
				return nil, err
			}
			if lack, _ := search.CountPairs(g, h, connected); lack > 0 {
				return r, nil // the paths that are added to it matter more
			}
		}
		choice.Policy = ""
	}
	even := routes.New(g, 0)
	if a, err = assign(ctx, even, h, choice); err != nil {
		return nil, err
	}
	if err := newBalancer(even, h).evenOut(ctx); err != nil {
		return nil, err
	}
	if err := a.separate(ctx); err != nil {
		return nil, err
	}
	if load > 0 {
		if better, err := isMoreEven(ctx, even, r, load); err != nil || !better {
			return r, err
		}
	}
	even.SetOrigin(a.basis(ranks))
	return even, nil
}

// skew is how much more load than the mean DModK may give a link: in trees that are not as regular
// as it expects, it can be several times as much. Its order of destinations is worth some: the
// largest load of others, divided by their bandwidth of shifts, is to be evenGain times less.
const (
	skew     = 1.4
	evenGain = 1.3
)

// isMoreEven reports whether even are better than r, tables of DModK with that largest load.
func isMoreEven(ctx context.Context, even, r *routes.Routes, load int64) (bool, error) {
	least, err := largestLoad(ctx, even)
	if err != nil {
		return false, err
	}
	before, err := shiftBandwidth(ctx, r)
	if err != nil {
		return false, err
	}
	after, err := shiftBandwidth(ctx, even)
	return float64(load)*after >= evenGain*float64(least)*before, err
}

// isSkewed reports whether some channel has more than skew times the mean load.
func isSkewed(ctx context.Context, r *routes.Routes) (most int64, skewed bool, err error) {
	load, err := verify.CountAllRoutes(ctx, r)
	if err != nil || len(load) == 0 {
		return 0, false, err
	}
	sum := int64(0)
	for _, x := range load {
		sum += x
		most = max(most, x)
	}
	return most, float64(most)*float64(len(load)) > skew*float64(sum), nil
}

// manyLIDs is from how many LIDs on no paths are added to tables that lack many: an engine that has
// another way is faster.
const manyLIDs = 2000

// completed adds to r, tables of up*/down* under ranks, the paths that are missing, and
// notes that in its basis.
func completed(ctx context.Context, r *routes.Routes, h *graph.Hops, ranks *graph.Ranks, keep *routes.Routes) error {
	if g := r.Graph(); len(g.Dests()) > manyLIDs && !reachesAll(g, h) {
		connected, err := graph.AllHops(ctx, g)
		if err != nil {
			return err
		}
		if lack, all := search.CountPairs(g, h, connected); lack*search.MaxLack > all {
			r.Notes = append(r.Notes, fmt.Sprintf("%d of %d pairs of switches with CAs have no path that goes up and then down", lack, all))
			AddGaps(r, lack)
			return nil
		}
	}
	gaps, missing, err := search.Complete(ctx, r, h, ranks, keep)
	if gaps {
		AddGaps(r, missing)
	}
	return err
}
