package routing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric/format"
)

// Engines are all routing engines, in the order in which lists show them. This
// is the one table of them: help, lists and error messages are made from it. A
// new engine is a file with a literal, and a line here.
func Engines() []Engine {
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
	Doc  string // one line, for people: what paths it makes
	// OpenSM is the name of OpenSM's engine of this kind; "": it has none.
	OpenSM string
	// Lanes reports whether the engine gives paths virtual lanes, and LanesNeed is the
	// option without which OpenSM's does not.
	Lanes     bool
	LanesNeed string
	// Options are the options it takes: names of fields of Options, in snake case.
	Options []string
	// Minimal promises shortest paths: each entry is a next hop of a path of the
	// least distance, as Graph.Hops counts it (in links, or in their weights).
	Minimal bool
	// Acyclic promises that there is no credit loop: on any fabric that the
	// engine applies to, the channel dependency graph of the paths between all
	// ports of CAs and routers has no cycle, on the virtual lanes of their service
	// levels, or on one if they have none.
	Acyclic bool
	// Repair is how Routes.Repair makes tables of those of the engine.
	Repair RepairMethod

	compute func(ctx context.Context, g *Graph, o *Options) (*Routes, error)
}

// RepairMethod is how Repair makes tables for a network that has changed.
type RepairMethod int

const (
	// Recompute runs the engine again.
	Recompute RepairMethod = iota
	// KeepEntries runs the engine with the old tables as Options.Keep.
	KeepEntries
	// KeepLIDs runs the engine, and keeps all entries of a LID if each is a next hop
	// still: for shortest paths to a LID that do not depend on those to others.
	KeepLIDs
	// Patch replaces the paths that the change breaks, and runs the engine where that
	// leaves gaps.
	Patch
	// PatchOnly does so without a run, as for tables of which nothing is known.
	PatchOnly
)

// Options are the options of all engines. Those about links, ports and classes
// are in GraphOptions.
type Options struct {
	Roots  []int   // switches at the top; nil: the engine finds them
	Policy string  // of Assign; "": DModK on fat trees, else LeastLoaded
	Scope  string  // of Assign
	Seed   uint64  // of the random choices of Assign
	Keep   *Routes // entries that stay where they are still next hops
	Given  *Routes // the tables that the engine file takes
	MaxVLs int     // virtual lanes that may be used; 0: DefaultLanes
	// TorusConfig has the shape, and where it begins; nil: torus-2qos finds that.
	TorusConfig *format.TorusConfig
}

// EngineNames are the names of Engines, in their order.
func EngineNames() []string {
	var names []string
	for _, e := range Engines() {
		names = append(names, e.Name)
	}
	return names
}

// EngineNamed returns the engine of that name, and reports whether there is one.
func EngineNamed(name string) (e Engine, ok bool) {
	all := Engines()
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
func Compute(ctx context.Context, g *Graph, engine string, o Options) (*Routes, error) {
	e, ok := EngineNamed(engine)
	if !ok {
		return nil, fmt.Errorf("no engine %q; there are %s", engine, strings.Join(EngineNames(), ", "))
	}
	if len(g.switches) == 0 {
		reason := "the fabric has no switch"
		if d := g.disguised(); d != "" {
			reason += "; " + d
		}
		return nil, &Precondition{engine, errors.New(reason)}
	}
	for _, s := range o.Roots {
		if s < 0 || s >= len(g.switches) {
			return nil, fmt.Errorf("%s: root %d is no switch; there are 0 to %d", engine, s, len(g.switches)-1)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o.Keep = o.Keep.seenOn(g)
	r, err := e.compute(ctx, g, &o)
	if err != nil && ctx.Err() != nil { // not that the engine does not apply
		return nil, context.Cause(ctx)
	}
	if p := new(Precondition); errors.As(err, &p) {
		p.Engine = engine
	}
	if err != nil {
		return nil, err
	}
	r.Engine, r.OpenSM = engine, e.lanesInOpenSM()
	r.madeBy(g, &e, &o)
	return r, nil
}

// lanesInOpenSM is how OpenSM is told to find lanes as e does; "": it cannot be.
func (e *Engine) lanesInOpenSM() string {
	switch {
	case !e.Lanes || e.OpenSM == "":
		return ""
	case e.LanesNeed != "":
		return e.OpenSM + ", with " + e.LanesNeed + ","
	}
	return e.OpenSM
}

// assigned makes tables of the next hops that h allows: by the policy of o, or else by
// DModK if l, the levels of g, are those of a fat tree. Repair can begin with them. ranks
// are those that h obeys; nil: none.
func (g *Graph) assigned(ctx context.Context, h *Hops, l *levels, ranks *Ranks, o *Options) (*Routes, error) {
	h.place = l.places()
	assign := AssignOptions{Policy: o.Policy, Scope: o.Scope, Seed: o.Seed, Keep: o.Keep, levels: l}
	if assign.Policy == "" && l.check() == nil {
		assign.Policy = DModK
	}
	r := NewRoutes(g, 0)
	a, err := r.assign(ctx, h, assign)
	if err != nil {
		return nil, err
	}
	r.basis = a.basis(ranks)
	return r, nil
}
