package routing

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
)

// TestEnginePolicy compares policies with all kinds of options.
func TestEnginePolicy(t *testing.T) {
	for name, want := range map[string]string{
		"updn": `"""Up*/down*, from the roots: no credit loops."""

load("@std//lib/opensm.star", "graph", "switches", "tables")

def route(fabric, *, roots = "", policy = "", scope = "global", seed = 0, keep = "", cn = "", io = "", choices = False, hop_weights = "", port_order = ""):
    """Up*/down*, from the roots: no credit loops.

    roots: a file of switch GUIDs, or names such as spine-* (default: found automatically)
    policy: how to choose among the next hops: least_loaded, scatter, round_robin, dmodk, hash, first (default: dmodk on fat trees, elsewhere least_loaded)
    scope: what counts as load: global, or switch as in OpenSM
    seed: seed of random choices (scatter, hash)
    keep: tables whose entries are kept where they are still next hops: a file, or live
    cn: a file of the port GUIDs of compute nodes
    io: a file of the port GUIDs of I/O nodes
    choices: let switches choose adaptively among all ports that keep what the engine promises, to be verified; a file or a plan has the static ports alone
    hop-weights: a file of switch GUID, port and weight
    port-order: a file of switch GUID and its ports, preferred ones first
    """
    g = graph(fabric, cn = cn, io = io, hop_weights = hop_weights, port_order = port_order)
    return g.route("updn", roots = switches(fabric, roots), policy = policy or None, scope = scope, seed = seed, keep = tables(fabric, keep), adaptive = choices)
`,
		"torus-2qos": `"""Dimension order on a torus or mesh, with datelines, and around missing links and switches."""

def route(fabric, *, max_vls = 8, torus_config = ""):
    """Dimension order on a torus or mesh, with datelines, and around missing links and switches.

    max-vls: maximum number of virtual lanes, 1 to 15
    torus-config: OpenSM's file of that name (torus-2QoS.conf) with shape, seeds and datelines
    """
    return fabric.graph().route("torus-2qos", max_vls = max_vls, torus_config = torus_config or None)
`,
		"file": `"""Tables from a file, unchanged: to verify, compare, or write in another format."""

load("@std//lib/opensm.star", "tables")

def route(fabric, *, lfts = ""):
    """Tables from a file, unchanged: to verify, compare, or write in another format.

    lfts: a file of forwarding tables in any dialect, or live for those that the switches have
    """
    if not lfts:
        fail("missing tables; use --lfts FILE")
    return fabric.graph().route("file", given = tables(fabric, lfts))
`,
	} {
		e, _ := engines.Named(name)
		if diff := cmp.Diff(want, EnginePolicy(&e)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	if diff := cmp.Diff("\"\"\"Fast.\"\"\"\n\ndef route(fabric):\n    \"\"\"Fast.\"\"\"\n    return fabric.graph().route(\"fast\")\n", EnginePolicy(&engines.Engine{Name: "fast", Doc: "Fast."})); diff != "" {
		t.Errorf("without options: -want +got\n%s", diff)
	}
}

// TestRouteOptions: each option of engines is a parameter of graph.route() that sets it.
func TestRouteOptions(t *testing.T) {
	for i, option := range engines.AllOptions() {
		p := &routeMethod.Params[1+i]
		if p.Name != option.Name || p.Doc == "" {
			t.Errorf("parameter %d is %s, %q, want %s", 1+i, p.Name, p.Doc, option.Name)
		}
		values := []any{[]starlark.Value{}, new(routes.Routes), "", 0, false}
		if !slices.ContainsFunc(values, func(v any) bool { return reflect.TypeOf(v) == p.Kind.Type }) {
			t.Errorf("%s makes a %v, which setOption does not take", p.Name, p.Kind.Type)
		}
		var o engines.Options
		switch option.Field(&o).(type) {
		case *string:
			setOption(nil, &option, &o, "hash")
		case *bool:
			setOption(nil, &option, &o, true)
		case *int, *uint64:
			setOption(nil, &option, &o, 3)
		case **routes.Routes:
			setOption(nil, &option, &o, new(routes.Routes))
		default: // takes a graph, or a file
			continue
		}
		if reflect.ValueOf(o).IsZero() {
			t.Errorf("%s sets nothing", option.Name)
		}
	}
}
