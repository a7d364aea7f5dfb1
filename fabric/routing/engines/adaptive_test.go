package engines

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestAdaptiveWithoutChoices: tables and verdict report that adaptive routing has no choice of ports,
// or none to some LIDs.
func TestAdaptiveWithoutChoices(t *testing.T) {
	leaves := [][4]any{{"A", 1, "a", 1}, {"A", 2, "b", 1}, {"B", 1, "c", 1}, {"A", 3, "S", 1}, {"A", 4, "T", 1}, {"B", 3, "S", 2}, {"B", 4, "T", 2}}
	const judged = "forwarding tables with adaptive routing on and no choice of ports, all service levels on VL 0"
	for _, x := range []struct {
		name, engine string
		cables       [][4]any
		note, judged string
	}{
		{"two leaves", "updn", leaves, "", "forwarding tables with all choices of adaptive routing, all service levels on VL 0"},
		{"a part without cables to the rest", "updn", append(slices.Clone(leaves), [4]any{"X", 1, "x", 1}),
			"adaptive routing: no switch has a choice of ports; to 9 of 9 LIDs some switch with CAs has no path", judged},
		{"no parallel links", "dor", leaves, "adaptive routing: no switch has a choice of ports", judged},
	} {
		g, err := graph.New(routingtest.Draw(t, 0, x.cables...), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Compute(t.Context(), g, x.engine, Options{Adaptive: true})
		if err != nil {
			t.Fatal(err)
		}
		v := routingtest.Verified(t, r, verify.Options{})
		if note := strings.Join(slices.DeleteFunc(slices.Clone(v.Notes), func(n string) bool { return !strings.HasPrefix(n, "adaptive routing: ") }), "\n"); note != x.note || v.Judged != x.judged {
			t.Errorf("%s, %s: judged %q, note %q; want %q, %q", x.name, x.engine, v.Judged, note, x.judged, x.note)
		}
	}
}

// TestAdaptive: on all networks, the choices that engines give switches keep what the engines
// promise, are as many as there are next hops, and equal sets of ports share a group.
func TestAdaptive(t *testing.T) {
	applied, refused, wider := map[string]int{}, 0, map[string]int{}
	for _, net := range routingtest.FewNets() {
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
