package routing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
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
	// Repair is how Routes.Repair makes tables of those of the engine.
	Repair RepairMethod

	compute func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error)
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
	e, ok := EngineNamed(engine)
	if !ok {
		return nil, fmt.Errorf("no engine %q; there are %s", engine, strings.Join(EngineNames(), ", "))
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
			return nil, fmt.Errorf("%s: root %d is no switch; there are 0 to %d", engine, s, len(g.Switches())-1)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o.Keep = o.Keep.SeenOn(g)
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
	r.Engine, r.RunInOpenSM = engine, e.runInOpenSM()
	madeBy(r, g, &e, &o)
	return r, nil
}

// runInOpenSM is the advice to let OpenSM find the lanes that e gives paths; "": it cannot.
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
// DModK if l, the levels of g, are those of a fat tree. Repair can begin with them. ranks
// are those that h obeys; nil: none.
func assigned(ctx context.Context, g *graph.Graph, h *graph.Hops, l *graph.Levels, ranks *graph.Ranks, o *Options) (*routes.Routes, error) {
	h.Place = l.Places()
	choice := AssignOptions{Policy: o.Policy, Scope: o.Scope, Seed: o.Seed, Keep: o.Keep, levels: l}
	if choice.Policy == "" && l.Check() == nil {
		choice.Policy = DModK
	}
	r := routes.New(g, 0)
	a, err := assign(ctx, r, h, choice)
	if err != nil {
		return nil, err
	}
	r.SetOrigin(a.basis(ranks))
	return r, nil
}

// Options are the options of all engines. Those about links, ports and classes
// are in GraphOptions.
type Options struct {
	Roots  []int          // switches at the top; nil: the engine finds them
	Policy string         // of Assign; "": DModK on fat trees, else LeastLoaded
	Scope  string         // of Assign
	Seed   uint64         // of the random choices of Assign
	Keep   *routes.Routes // entries that stay where they are still next hops
	Given  *routes.Routes // the tables that the engine file takes
	MaxVLs int            // virtual lanes that may be used; 0: the engine's default
	// TorusConfig has the shape, and where it begins; nil: torus-2qos finds that.
	TorusConfig *format.TorusConfig
}

// Option declares an option of engines, each of which lists those that it takes. From it
// come the parameter of graph.route() in scripts, the flag of the policy that fabsh route
// runs for an engine, and the help and checks of both.
type Option struct {
	Name     string // in snake case
	Doc      string // of the parameter
	Flag     string // the name of the flag; "": Name
	FlagDoc  string // "": Doc
	FlagNote string // what it means for the engine
	Default  any    // of the flag, a string or an int; nil: nothing is given
	Required string // the question that is asked where the flag is missing; "": it may be
	Min, Max int    // of a number; 0, 0: any is possible

	// Field returns what takes the value: a pointer to a field of o, or, where the value
	// is the name of a file, an OptionReader. Nil: the option is one of the graph.
	Field func(o *Options) any
}

// OptionReader sets an option from a file of that name.
type OptionReader func(in io.Reader, name string) error

var (
	rootsOption = Option{
		Name:    "roots",
		Doc:     "the switches at the top: nodes, GUIDs or names; else they are found",
		FlagDoc: "a file of switch GUIDs, or names such as spine-*; without it they are found",
		Field:   func(o *Options) any { return &o.Roots },
	}
	policyOption = Option{
		Name:    "policy",
		Doc:     PolicyDoc + "; else dmodk on fat trees, elsewhere least_loaded",
		FlagDoc: "how to choose among the next hops: " + strings.Join(Policies(), ", ") + "; without it dmodk on fat trees, elsewhere least_loaded",
		Field:   func(o *Options) any { return &o.Policy },
	}
	scopeOption = Option{
		Name:    "scope",
		Doc:     ScopeDoc,
		FlagDoc: "what counts as load: global, or switch as in OpenSM",
		Default: Global,
		Field:   func(o *Options) any { return &o.Scope },
	}
	seedOption = Option{
		Name:    "seed",
		Doc:     "of what goes by chance",
		FlagDoc: "of what goes by chance (scatter, hash)",
		Field:   func(o *Options) any { return &o.Seed },
	}
	keepOption = Option{
		Name:    "keep",
		Doc:     "routes whose entries stay where they are next hops still",
		FlagDoc: "tables whose entries stay where they are next hops still: a file, or live",
		Field:   func(o *Options) any { return &o.Keep },
	}
	givenOption = Option{
		Name:     "given",
		Doc:      `the routes that "file" takes`,
		Flag:     "lfts",
		FlagDoc:  "a file of forwarding tables in any dialect, or live for those that the switches have",
		Required: "which tables?",
		Field:    func(o *Options) any { return &o.Given },
	}
	maxVLsOption = Option{
		Name:    "max_vls",
		Doc:     "how many virtual lanes may be used",
		Default: DefaultLanes,
		Min:     1,
		Max:     MaxLanes,
		Field:   func(o *Options) any { return &o.MaxVLs },
	}
	torusConfigOption = Option{
		Name:    "torus_config",
		Doc:     "OpenSM's file of that name (torus-2QoS.conf): shape, seeds and datelines; without it they are found",
		FlagDoc: "OpenSM's file of that name (torus-2QoS.conf), whose shape, seeds and datelines hold then",
		Field: func(o *Options) any {
			return OptionReader(func(in io.Reader, name string) (err error) {
				o.TorusConfig, err = format.ReadTorusConfig(in, name)
				return err
			})
		},
	}

	// Those of the graph have no parameter of graph.route(): @std//lib/opensm.star makes
	// the graph by them.
	cnOption         = Option{Name: "cn", Doc: "a file of the port GUIDs of compute nodes"}
	ioOption         = Option{Name: "io", Doc: "a file of the port GUIDs of I/O nodes"}
	hopWeightsOption = Option{Name: "hop_weights", Doc: "a file of switch GUID, port and weight"}
	portOrderOption  = Option{Name: "port_order", Doc: "a file of switch GUID and its ports, preferred ones first"}
)

// EngineOptions are the options that are fields of Options, in the order of the
// parameters of graph.route().
func EngineOptions() []Option {
	return []Option{rootsOption, policyOption, scopeOption, seedOption, keepOption, givenOption, maxVLsOption, torusConfigOption}
}

// by returns o for an engine that has another default, with a note on it.
func (o Option) by(value any, note string) Option {
	o.Default, o.FlagNote = value, note
	return o
}
