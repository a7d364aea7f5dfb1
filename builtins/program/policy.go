package program

import (
	"context"
	"fmt"
	"path"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/routes"
)

// Policy is a routing policy: a script that defines route(fabric, *, ...), which
// returns routes, with its options.
type Policy struct {
	// Help is the help of the policy, set if the options request it; then the policy must
	// not run.
	Help string

	in     *script.Interpreter
	script string
	fn     *starlark.Function
	args   script.Arguments
}

// LoadPolicy runs the top level of a policy and reads the words of its options.
// name is a .star file or the name of a shipped policy.
func LoadPolicy(ctx context.Context, in *script.Interpreter, name string, words []string) (*Policy, error) {
	path, err := script.Policies.Locate(name)
	if err != nil {
		return nil, err
	}
	p := &Policy{in: in, script: path}
	return p, in.Open(ctx, path, func(t *starlark.Thread, src string) error {
		s, err := in.Run(t, path, src)
		if err != nil {
			return p.notExit(err)
		}
		if p.fn = s.Function("route"); p.fn == nil {
			return fmt.Errorf("%s: not a routing policy; it does not define route(fabric, ...)", path)
		}
		return p.parse(words)
	})
}

// Compute runs the policy on a fabric.
func (p *Policy) Compute(ctx context.Context, f *fabric.Fabric) (*routes.Routes, error) {
	return p.run(ctx, f, func(*starlark.Thread) {})
}

// ComputeKeeping runs the policy like Compute. Engines keep entries of live, the tables in force,
// as far as their rules allow. kept reports whether any entries were kept that they would choose
// otherwise.
func (p *Policy) ComputeKeeping(ctx context.Context, f *fabric.Fabric, live *routes.Routes) (r *routes.Routes, kept bool, err error) {
	keptAny := func() bool { return false }
	r, err = p.run(ctx, f, func(t *starlark.Thread) { keptAny = values.KeepEntries(t, live) })
	return r, keptAny(), err
}

// Repair runs the policy with old, its tables for the earlier fabric: engines repair them instead
// of a new run, and the policy treats the result like new tables.
func (p *Policy) Repair(ctx context.Context, f *fabric.Fabric, old *routes.Routes) (*routes.Routes, error) {
	return p.run(ctx, f, func(t *starlark.Thread) { values.StartWith(t, old) })
}

// run calls route() on a thread that prepare has prepared.
func (p *Policy) run(ctx context.Context, f *fabric.Fabric, prepare func(*starlark.Thread)) (r *routes.Routes, err error) {
	err = p.in.Runtime.Evaluate(ctx, p.script, func(t *starlark.Thread) error {
		prepare(t)
		v, err := starlark.Call(t, p.fn, append(starlark.Tuple{topology.EnvOf(p.in.Runtime).ValueOf(f)}, p.args.Positional...), p.args.Keywords)
		if err != nil {
			return p.notExit(err)
		}
		routes, ok := v.(*values.Routes)
		if !ok {
			return fmt.Errorf("%s: route() returned %s; want routes", p.script, v.Type())
		}
		r = routes.Tables
		if name := nameOf(p.script); name != r.Engine {
			r.Engine, r.RunInOpenSM = name, ""
		}
		return nil
	})
	return r, err
}

// nameOf returns the name of a script in messages.
func nameOf(script string) string { return strings.TrimSuffix(path.Base(script), ".star") }

// parse reads the options of the policy. Files that they name may be read from any directory.
func (p *Policy) parse(words []string) (err error) {
	e := script.NewEntry(path.Base(p.script), p.fn, "")
	e.ProgramFlags = p.in.Flags
	if !e.Fabric {
		return fmt.Errorf("%s: invalid parameters of route(); the first must be fabric", e.Name)
	}
	if p.args, err = e.Parse(words); err != nil {
		return fmt.Errorf("%s: %w\nusage: %s", e.Name, err, e.Usage())
	}
	if p.args.Help {
		p.Help = e.Help()
		return nil
	}
	p.args.Allow(p.in.Runtime.Files)
	return nil
}

// notExit returns err of the policy's code.
func (p *Policy) notExit(err error) error {
	return lang.NotExit(err, p.script+" must return routes; use fail(TEXT) to report an error")
}
