package routing

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Options are the options of engines; each says which it heeds. What is about
// links, ports and classes is in GraphOptions.
type Options struct {
	Roots  []int   // switches; nil: found
	Policy string  // of Assign; "": DModK on fat trees, else LeastLoaded
	Scope  string  // of Assign
	Seed   uint64  // of what goes by chance
	Keep   *Routes // entries that are kept where they are next hops still
	Given  *Routes // what the file engine takes
}

// Engine computes all tables of a graph.
type Engine struct {
	Name    string
	Doc     string
	Heeds   []string // names of Options, in lower case
	Minimal bool     // all paths are shortest ones
	Acyclic bool     // no credit loops on one virtual lane
	compute func(ctx context.Context, g *Graph, o *Options) (*Routes, error)
}

// Engines are all of them.
func Engines() []Engine {
	return []Engine{minhop, updn, dnup, ftree, dor, sssp, nue, file}
}

// Precondition is the error of an engine that does not apply.
type Precondition struct {
	Engine string
	Reason error // which condition fails, and where
}

func (e *Precondition) Error() string { return e.Engine + " does not apply: " + e.Reason.Error() }
func (e *Precondition) Unwrap() error { return e.Reason }

// Compute computes tables by the engine of that name. Where it does not apply,
// the error is a *Precondition.
func Compute(ctx context.Context, g *Graph, engine string, o Options) (*Routes, error) {
	all := Engines()
	i := slices.IndexFunc(all, func(e Engine) bool { return e.Name == engine })
	if i < 0 {
		var names []string
		for _, e := range all {
			names = append(names, e.Name)
		}
		return nil, fmt.Errorf("no engine %q; there are %s", engine, strings.Join(names, ", "))
	}
	if len(g.switches) == 0 {
		return nil, &Precondition{engine, fmt.Errorf("the fabric has no switch")}
	}
	for _, s := range o.Roots {
		if s < 0 || s >= len(g.switches) {
			return nil, fmt.Errorf("%s: root %d is no switch; there are 0 to %d", engine, s, len(g.switches)-1)
		}
	}
	o.Keep = o.Keep.seenOn(g)
	r, err := all[i].compute(ctx, g, &o)
	if err != nil {
		return nil, err
	}
	r.Engine = engine
	return r, nil
}

// assign is what o says about Assign, in a network of levels l.
func (o *Options) assign(l *levels) AssignOptions {
	a := AssignOptions{Policy: o.Policy, Scope: o.Scope, Seed: o.Seed, Keep: o.Keep, levels: l}
	if a.Policy == "" && l.check() == nil {
		a.Policy = DModK
	}
	return a
}
