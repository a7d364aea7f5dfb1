package builtins

import (
	"context"
	"fmt"
	"path"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing"
)

// Policy is a routing policy: a script that defines route(fabric, *, ...), which
// returns routes, with its options.
type Policy struct {
	// Help is what the policy says of itself. It is set if the options ask for
	// it; then the policy must not be run.
	Help string

	s      *Session
	script string
	fn     *starlark.Function
	args   starlark.Tuple
	kwargs []starlark.Tuple
}

// LoadPolicy runs the top level of a policy and reads the words of its options.
// name is a .star file or the name of a shipped policy. flags are those of the
// command that runs it: of a misspelt one the error names the nearest.
func (s *Session) LoadPolicy(ctx context.Context, name string, words, flags []string) (*Policy, error) {
	script, err := PolicyPath(name)
	if err != nil {
		return nil, err
	}
	src, err := s.readScript(ctx, script)
	if err != nil {
		return nil, err
	}
	p := &Policy{s: s, script: script}
	t, release := s.mainThread(ctx, script)
	defer release()
	err = finish(ctx, script, func() error {
		if err := p.load(t, src); err != nil {
			return err
		}
		return p.parse(words, flags)
	})
	return p, err
}

// Compute runs the policy on a fabric.
func (p *Policy) Compute(ctx context.Context, f *fabric.Fabric) (*routing.Routes, error) {
	return p.run(ctx, f, func(*starlark.Thread) {})
}

// Near is Compute where live are the tables in force, of which engines keep what their
// rules allow.
func (p *Policy) Near(ctx context.Context, f *fabric.Fabric, live *routing.Routes) (*routing.Routes, error) {
	return p.run(ctx, f, func(t *starlark.Thread) { values.StayNear(t, live) })
}

// Repair is Compute where old are the policy's tables for the fabric as it was: what
// engines made of it, they repair, and the policy does with that what it does with new
// tables.
func (p *Policy) Repair(ctx context.Context, f *fabric.Fabric, old *routing.Routes) (*routing.Routes, error) {
	return p.run(ctx, f, func(t *starlark.Thread) { values.StartWith(t, old) })
}

func (p *Policy) run(ctx context.Context, f *fabric.Fabric, prepare func(*starlark.Thread)) (r *routing.Routes, err error) {
	t, release := p.s.mainThread(ctx, p.script)
	defer release()
	prepare(t)
	err = finish(ctx, p.script, func() error {
		v, err := starlark.Call(t, p.fn, append(starlark.Tuple{p.s.valueOf(f)}, p.args...), p.kwargs)
		if err != nil {
			return p.notExit(err)
		}
		routes, ok := v.(*values.Routes)
		if !ok {
			return fmt.Errorf("%s: route() returned %s, want routes", p.script, v.Type())
		}
		r = routes.Tables
		if name := strings.TrimSuffix(path.Base(p.script), ".star"); name != r.Engine {
			r.Engine, r.RunInOpenSM = name, ""
		}
		return nil
	})
	return r, err
}

// valueOf is the value of f, of which there is one as long as f is the latest.
func (s *Session) valueOf(f *fabric.Fabric) *topology.Fabric {
	if s.env.Fabric() == f {
		return s.env.Current
	}
	return topology.NewFabric(f)
}

// load runs the script's top level and finds its route().
func (p *Policy) load(t *starlark.Thread, src string) error {
	fn, _, _, err := p.s.function(t, p.script, src, "route")
	if err != nil {
		return p.notExit(err)
	}
	if fn == nil {
		return fmt.Errorf("%s is no routing policy: it defines no route(fabric, ...)", p.script)
	}
	p.fn = fn
	return nil
}

// parse reads the policy's options. Files that they name may be read wherever
// they lie.
func (p *Policy) parse(words, flags []string) (err error) {
	name := path.Base(p.script)
	e := newEntry(name, p.fn)
	e.own, e.before = flags, p.s.flags
	if !e.fabric {
		return fmt.Errorf("%s: the first parameter of route() must be fabric", name)
	}
	var help bool
	p.args, p.kwargs, help, err = e.parse(words)
	if err != nil {
		return fmt.Errorf("%s: %w\nusage: %s", name, err, e.usage())
	}
	if help {
		p.Help = e.Help()
		return nil
	}
	p.s.allow(p.args, p.kwargs)
	return nil
}

// allow lets scripts read the files that words of the command line name.
func (s *Session) allow(args starlark.Tuple, kwargs []starlark.Tuple) {
	for _, v := range args {
		s.Files.Allow(v)
	}
	for _, kv := range kwargs {
		s.Files.Allow(kv[1])
	}
}

// ShippedPolicies are those of @std//routing/, by name.
func ShippedPolicies() []ShippedDoc { return shipped(policyFolder) }

// PolicyPath is the script of a policy.
func PolicyPath(name string) (string, error) {
	return shippedPath(policyFolder, "routing policy", name)
}

// notExit is err of the policy's code.
func (p *Policy) notExit(err error) error {
	return lang.NotExit(err, "and "+p.script+" gives no routes: fail(TEXT) says why there are none")
}
