package topology

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Resolver resolves the targets of one call.
type Resolver struct {
	Call  *lang.Call
	local *engine.Port // read when first needed
}

// Targets resolves the argument `target`. many reports whether it was an iterable, so
// that the result is a list. Errors of the script are returned; a target that does not
// exist has Err set.
func (r *Resolver) Targets(v starlark.Value) (list []Target, many bool, err error) {
	it, ok := v.(starlark.Iterable)
	if !ok {
		t, err := r.target(v)
		if err != nil {
			return nil, false, lang.ParamError("target", "%w", err)
		}
		return []Target{t}, false, nil
	}
	values := lang.Collect(it)
	list = make([]Target, 0, len(values))
	for i, v := range values {
		t, err := r.target(v)
		if err != nil {
			return nil, true, lang.ParamError("target", "element %d: %w", i, err)
		}
		list = append(list, t)
	}
	return list, true, nil
}

// target resolves one target.
func (r *Resolver) target(v starlark.Value) (Target, error) {
	switch v := v.(type) {
	case starlark.Int:
		n, err := lang.ToInt(v)
		switch {
		case err != nil || n < 0 || n > 0xffff:
			return Target{}, fmt.Errorf("LID %s is out of range, 1..%d%s", v, mad.MaxUnicastLID, asGUID(v))
		case n == 0:
			return Target{}, fmt.Errorf("invalid LID 0; a port without a LID is reached by a directed route")
		case n > int(mad.MaxUnicastLID):
			return Target{}, fmt.Errorf("LID %d is not a unicast LID, 1..%d", n, mad.MaxUnicastLID)
		}
		t := Target{Label: fmt.Sprintf("LID %d", n), LID: mad.LID(n), Port: NoPortGiven}
		if f := EnvOf(r.Call.Runtime()).Current; f != nil {
			p := f.PortByLID(t.LID)
			t.guard = guardOf(p)
			if local, err := r.LocalPort(); err == nil && local.Planarized && p != nil {
				t.Route = p.Route() // required for SMPs (rdma-core infiniband-diags/ibdiag_dr.c)
			}
		}
		return t, nil
	case route:
		if err := r.checkRoute(v.directed()); err != nil {
			return Target{}, err
		}
		t := Target{Label: "route " + v.directed().String(), Route: v.directed(), Port: NoPortGiven}
		if f := EnvOf(r.Call.Runtime()).Current; f != nil {
			t.guard = guardOf(f.PortAt(t.Route))
		}
		return t, nil
	case Node:
		return NodeTarget(v.Node), nil
	case Port:
		return portTarget(v.Port), nil
	case starlark.String:
		t := r.named(string(v))
		t.name = string(v)
		return t, nil
	case *lang.Failure:
		return Target{Label: v.Target, Port: NoPortGiven, Err: v.Err}, nil
	}
	return Target{}, fmt.Errorf("got %s, want a LID, a GUID or GID, a node name, NAME/PORT, dr(...), a node or a port", v.Type())
}

// asGUID returns advice for a number that is too large for a LID: GUIDs are texts.
func asGUID(v starlark.Int) string {
	if g, ok := v.Uint64(); ok && g > 0xffff_ffff {
		return fmt.Sprintf("; GUIDs are texts: write %q", mad.GUID(g).String())
	}
	return ""
}

// checkRoute checks that the first hop leaves through the local port; otherwise the SMP
// would not leave the node (IBA 14.2.2).
func (r *Resolver) checkRoute(route mad.DirectedRoute) error {
	if route.Hops() == 0 {
		return nil
	}
	p, err := r.LocalPort()
	if err != nil {
		return err
	}
	if p.Num != 0 && route[1] != p.Num { // 0: the session is on a switch
		return fmt.Errorf("route %v leaves the local node through port %d, but this session is on port %d of %s; begin with 0,%d",
			route, route[1], p.Num, p.Device, p.Num)
	}
	return nil
}

// LocalPort returns the session's local port, read once for each call.
func (r *Resolver) LocalPort() (*engine.Port, error) {
	if r.local != nil {
		return r.local, nil
	}
	p, err := LocalPort(r.Call)
	if err != nil {
		return nil, err
	}
	r.local = &p
	return r.local, nil
}
