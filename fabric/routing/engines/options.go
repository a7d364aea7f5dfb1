package engines

import (
	"io"
	"strings"

	"fabsh/fabric/format"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
)

// Options are the options of all engines. Those about links, ports and classes
// are in GraphOptions.
type Options struct {
	Roots  []int          // switches at the top; nil: the engine finds them
	Policy string         // of Assign; "": DModK on fat trees, else LeastLoaded
	Scope  string         // of Assign
	Seed   uint64         // of the random choices of Assign
	Keep   *routes.Routes // entries that stay where they are still next hops
	Given  *routes.Routes // the tables that the engine file takes
	// Adaptive lets switches choose among all ports that keep what the engine promises.
	Adaptive bool
	MaxVLs   int         // virtual lanes that may be used; 0: the engine's default
	Effort   int         // how long to search for lanes: a multiple of the default; 0: 1
	search   *laneSearch // nil: Compute makes it
	// TorusConfig has the shape, and where it begins; nil: torus-2qos finds that.
	TorusConfig *format.TorusConfig
}

// MaxEffort is the largest Effort.
const MaxEffort = 1000

// Option declares an option of engines; each engine lists the options that it takes. From it
// come the parameter of graph.route() in scripts, the flag of the policy that fabsh route
// runs for an engine, and the help and checks of both.
type Option struct {
	Name     string // in snake case
	Doc      string // of the parameter
	Flag     string // name of the flag; "": Name
	FlagDoc  string // "": Doc
	FlagNote string // what it means for the engine
	Default  any    // of the flag, a string or an int; nil: no value
	Required string // the hint where the flag is missing; "": the flag is optional
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
		Doc:     "the switches at the top: nodes, GUIDs or names (default: found automatically)",
		FlagDoc: "a file of switch GUIDs, or names such as spine-* (default: found automatically)",
		Field:   func(o *Options) any { return &o.Roots },
	}
	policyOption = Option{
		Name:    "policy",
		Doc:     PolicyDoc + " (default: dmodk on fat trees, elsewhere least_loaded)",
		FlagDoc: "how to choose among the next hops: " + strings.Join(policies(), ", ") + " (default: dmodk on fat trees, elsewhere least_loaded)",
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
		Doc:     "seed of random choices",
		FlagDoc: "seed of random choices (scatter, hash)",
		Field:   func(o *Options) any { return &o.Seed },
	}
	keepOption = Option{
		Name:    "keep",
		Doc:     "routes whose entries are kept where they are still next hops",
		FlagDoc: "tables whose entries are kept where they are still next hops: a file, or live",
		Field:   func(o *Options) any { return &o.Keep },
	}
	givenOption = Option{
		Name:     "given",
		Doc:      `the routes that "file" takes`,
		Flag:     "lfts",
		FlagDoc:  "a file of forwarding tables in any dialect, or live for those that the switches have",
		Required: "missing tables;",
		Field:    func(o *Options) any { return &o.Given },
	}
	adaptiveOption = Option{
		Name:    "adaptive",
		Doc:     "let switches choose adaptively among all ports that keep what the engine promises: to be verified and simulated, not written",
		Flag:    "choices",
		FlagDoc: "let switches choose adaptively among all ports that keep what the engine promises, to be verified; a file or a plan has the static ports alone",
		Field:   func(o *Options) any { return &o.Adaptive },
	}
	maxVLsOption = Option{
		Name:    "max_vls",
		Doc:     "maximum number of virtual lanes",
		Default: DefaultLanes,
		Min:     1,
		Max:     lanes.Max,
		Field:   func(o *Options) any { return &o.MaxVLs },
	}
	effortOption = Option{
		Name:    "effort",
		Doc:     "how long to search for lanes, as a multiple of the default, which is some seconds",
		Default: 1,
		Min:     1,
		Max:     MaxEffort,
		Field:   func(o *Options) any { return &o.Effort },
	}
	torusConfigOption = Option{
		Name:    "torus_config",
		Doc:     "OpenSM's file of that name (torus-2QoS.conf): shape, seeds and datelines (default: found automatically)",
		FlagDoc: "OpenSM's file of that name (torus-2QoS.conf) with shape, seeds and datelines",
		Field: func(o *Options) any {
			return OptionReader(func(in io.Reader, name string) (err error) {
				o.TorusConfig, err = format.ReadTorusConfig(in, name)
				return err
			})
		},
	}

	// The options of the graph have no parameter of graph.route(): @std//lib/opensm.star
	// makes the graph by them.
	cnOption         = Option{Name: "cn", Doc: "a file of the port GUIDs of compute nodes"}
	ioOption         = Option{Name: "io", Doc: "a file of the port GUIDs of I/O nodes"}
	hopWeightsOption = Option{Name: "hop_weights", Doc: "a file of switch GUID, port and weight"}
	portOrderOption  = Option{Name: "port_order", Doc: "a file of switch GUID and its ports, preferred ones first"}
)

// AllOptions are the options that are fields of Options, in the order of the
// parameters of graph.route().
func AllOptions() []Option {
	return []Option{rootsOption, policyOption, scopeOption, seedOption, keepOption, givenOption, adaptiveOption, maxVLsOption, effortOption, torusConfigOption}
}

// by returns o for an engine that has another default, with a note on it.
func (o Option) by(value any, note string) Option {
	o.Default, o.FlagNote = value, note
	return o
}
