package search

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestStrategies: each strategy by itself, where it closes the gaps of LIDs of CAs, reaches all of these
// without a credit loop, and each closes some.
func TestStrategies(t *testing.T) {
	closed := map[string]int{}
	for _, net := range []string{"torus:dims=4/4,hosts=1", "random:n=16,degree=3,hosts=2,seed=2"} {
		whole := routingtest.Graph(t, net, graph.BuildOptions{})
		connected, err := graph.AllHops(t.Context(), whole)
		if err != nil {
			t.Fatal(err)
		}
		root, ranks, err := EscapeRoot(t.Context(), whole, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := InLanes(t.Context(), whole, []int{root}, ranks, connected)
		if err != nil {
			t.Fatal(err)
		}
		for c := 0; c < len(whole.Channels()); c += 5 {
			cut := whole.ChannelPort(c)
			g, err := graph.New(whole.Fabric(), graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == cut }})
			if err != nil {
				t.Fatal(err)
			}
			a := patching{addition: addition{r: list[0].On(g)}, allowed: 1}
			if a.connected, err = graph.AllHops(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			if err := a.countLeast(t.Context(), whole); err != nil {
				t.Fatal(err)
			}
			if _, err := a.begin(t.Context(), whole); err != nil {
				t.Fatal(err)
			}
			if a.load, err = verify.CountAllRoutes(t.Context(), a.r); err != nil {
				t.Fatal(err)
			}
			given, err := verify.WithSwitches(t.Context(), a.r, a.graphs[0])
			if err != nil {
				t.Fatal(err)
			}
			both := closing{gaps: a.cas, given: given, alone: a.graphs[0]}
			for _, s := range toCAs {
				p := a.clone()
				done, err := s.close(t.Context(), p, &both, s.settings)
				if err != nil {
					t.Fatal(err)
				}
				if !done || len(a.cas) == 0 {
					continue
				}
				closed[s.name]++
				if v := routingtest.Verified(t, p.r, verify.Options{}); v.Unreachable > 0 || !v.Acyclic {
					t.Errorf("%s without %s, %s: %d pairs are not reached, acyclic: %t", net, cut.Label(), s.name, v.Unreachable, v.Acyclic)
				}
			}
		}
	}
	for _, s := range toCAs {
		if closed[s.name] == 0 {
			t.Errorf("%s: it closes no gaps", s.name)
		}
	}
}
