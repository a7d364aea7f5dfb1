package engines

import (
	"errors"
	"slices"
	"testing"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestAdaptive: on all networks, the choices that engines give switches keep what the engines
// promise, are as many as there are next hops, and equal sets of ports share a group.
func TestAdaptive(t *testing.T) {
	applied, refused, wider := map[string]int{}, 0, map[string]int{}
	for _, net := range routingtest.SmallNets() {
		g := routingtest.Graph(t, net, graph.BuildOptions{})
		for _, name := range []string{"updn", "ftree", "minhop", "dor"} {
			r, err := Compute(t.Context(), g, name, Options{Adaptive: true})
			if p := new(Precondition); errors.As(err, &p) {
				refused++
				continue
			}
			if err != nil {
				t.Fatal(net, name, err)
			}
			applied[name]++
			static, err := Compute(t.Context(), g, name, Options{})
			if err != nil {
				t.Fatal(net, name, err)
			}
			v, err := verify.Tables(t.Context(), r, verify.Options{})
			if err != nil {
				t.Fatal(net, name, err)
			}
			before, err := verify.Tables(t.Context(), static, verify.Options{})
			if err != nil {
				t.Fatal(net, name, err)
			}
			if v.Unreachable != before.Unreachable || v.Loops > 0 || name != "dor" && !v.Acyclic || v.Acyclic && !before.Acyclic {
				t.Errorf("%s on %s: %d unreachable, %d loop, acyclic %t; static: %d unreachable, acyclic %t", name, net, v.Unreachable, v.Loops, v.Acyclic, before.Unreachable, before.Acyclic)
			}
			if wide := checkGroups(t, r, name+" on "+net, name != "dor"); wide {
				wider[name]++
			}
		}
	}
	for _, name := range []string{"updn", "ftree", "minhop", "dor"} {
		if applied[name] < 5 || wider[name] < 2 {
			t.Errorf("%s applies to %d networks, and has choices in %d", name, applied[name], wider[name])
		}
	}
	if refused == 0 {
		t.Error("minhop has choices on networks where these can close credit loops")
	}
}

// checkGroups checks the choices of each entry: where it is not static they are the next hops,
// if all is true, or else links to one switch. It reports whether some entry has choices.
func checkGroups(t *testing.T, r *routes.Routes, where string, all bool) (wide bool) {
	g := r.Graph()
	for s := range g.Switches() {
		a := r.Adaptive(s)
		groups := a.Table(0).Groups
		var sets []adaptive.Ports
		for group := range groups.Len() {
			if ports := groups.All(group); slices.Contains(sets, ports) || ports.Len() < 2 {
				t.Errorf("%s: group %d of switch %d occurs twice, or has fewer than two ports", where, group, s)
			} else {
				sets = append(sets, ports)
			}
		}
		for _, d := range g.Dests() {
			c := a.Choose(adaptive.Packet{LID: d.LID, Transport: adaptive.RC}, nil)
			if c.State == adaptive.Static {
				continue
			}
			wide = true
			home := g.Terminals()[d.Terminal].Switch
			var want adaptive.Ports
			if b := BasisOf(r); all && b != nil && b.Hops != nil {
				want = adaptive.PortSet(b.Hops.Next(s, home)...)
			} else {
				for _, n := range g.Neighbours(s) {
					if slices.Contains(n.Ports, c.Port) {
						want = adaptive.PortSet(n.Ports...)
					}
				}
			}
			if c.Ports != want || !want.Has(c.Port) {
				t.Fatalf("%s: switch %d chooses among %s for LID %d, want %s, with the static port %d", where, s, c.Ports, d.LID, want, c.Port)
			}
		}
	}
	return wide
}
