package engines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestPolicies: whatever a policy chooses is a next hop, and nothing else is
// written.
func TestPolicies(t *testing.T) {
	for _, spec := range []string{"fattree:k=8,levels=3,remove_links=6%", "hyperx:dims=3/4,hosts=3,links=2", "random:n=20,degree=4,hosts=3"} {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		plain, err := graph.AllHops(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		legal, err := graph.UpDown(t.Context(), g, graph.RanksFrom(g, []int{0}))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []*graph.Hops{plain, legal} {
			for _, policy := range policies() {
				for _, scope := range scopes() {
					lids := g.LIDs(0)
					if scope == PerSwitch {
						lids = lids[:len(lids)/2]
					}
					r := routes.New(g, 0)
					if err := Assign(t.Context(), r, h, AssignOptions{Policy: policy, Scope: scope, LIDs: lids, Seed: 9}); err != nil {
						t.Fatal(err)
					}
					for s := range g.Switches() {
						for _, d := range g.Dests() {
							to := g.Terminals()[d.Terminal].Switch
							port := r.Row(s)[d.LID]
							switch next := h.Next(s, to); {
							case !slices.Contains(lids, d.LID):
								if port != routes.NoPort {
									t.Fatalf("%s, %s: LID %d was not to be assigned", spec, policy, d.LID)
								}
							case s == to && port != d.Out, s != to && len(next) > 0 && !slices.Contains(next, port), s != to && len(next) == 0 && port != routes.NoPort:
								t.Fatalf("%s, %s: switch %d sends LID %d to port %d, not one of %v", spec, policy, s, d.LID, port, next)
							}
						}
					}
				}
			}
		}
	}
}

// TestPolicyChoice: what they choose where all ways are equal: one leaf with
// four hosts, as seen from another.
func TestPolicyChoice(t *testing.T) {
	g := routingtest.Graph(t, "pgft:m=4/2,w=1/4,p=1/1", graph.BuildOptions{})
	h, err := graph.AllHops(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	leaf := routingtest.SwitchNamed(t, g, "leaf-1")
	far := g.LIDs(graph.ClassCN)[4:]
	keep := routes.New(g, 0)
	keep.Row(leaf)[far[0]], keep.Row(leaf)[far[1]] = 7, 7
	for _, x := range []struct {
		o    AssignOptions
		want []uint8
	}{
		{AssignOptions{}, []uint8{5, 6, 7, 8}},
		{AssignOptions{Policy: RoundRobin}, []uint8{6, 7, 8, 5}}, // the leaf's own LID is first
		{AssignOptions{Policy: DModK}, []uint8{5, 6, 7, 8}},
		{AssignOptions{Policy: DModK, Number: func(lid mad.LID) int { return int(lid-far[0]) * 3 }}, []uint8{5, 8, 7, 6}},
		{AssignOptions{Policy: DModK, Number: func(lid mad.LID) int { return int(lid - far[0]) }, Divider: func(int) int { return 2 }}, []uint8{5, 5, 6, 6}},
		{AssignOptions{Policy: First}, []uint8{5, 5, 5, 5}},
		{AssignOptions{Weight: func(lid mad.LID) int {
			return routingtest.Count(lid >= far[0]) * (1 + 2*routingtest.Count(lid == far[0]))
		}}, []uint8{5, 6, 7, 8}},
		{AssignOptions{Weight: func(lid mad.LID) int {
			return routingtest.Count(lid >= far[0]) * (1 + 2*routingtest.Count(lid == far[0]))
		}, Prefer: func(s, d int, _ mad.LID, ports []uint8) []uint8 { return ports[:min(2, len(ports))] }}, []uint8{5, 6, 6, 6}},
		{AssignOptions{Keep: keep}, []uint8{7, 7, 5, 6}},
		{AssignOptions{Prefer: func(s, d int, _ mad.LID, ports []uint8) []uint8 {
			slices.Reverse(ports)
			return ports[:min(2, len(ports))]
		}}, []uint8{8, 7, 8, 7}},
		{AssignOptions{Policy: DModK, Prefer: func(s, d int, _ mad.LID, ports []uint8) []uint8 {
			slices.Reverse(ports)
			return ports[:min(3, len(ports))]
		}}, []uint8{7, 6, 8, 7}},
	} {
		r := routes.New(g, 0)
		if err := Assign(t.Context(), r, h, x.o); err != nil {
			t.Fatal(err)
		}
		var got []uint8
		for _, lid := range far {
			got = append(got, r.Row(leaf)[lid])
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s %v: %v, want %v", x.o.Policy, x.o, got, x.want)
		}
	}
	for _, policy := range []string{Hash, Scatter} {
		chosen := func(seed uint64) string {
			r := routes.New(g, 0)
			if err := Assign(t.Context(), r, h, AssignOptions{Policy: policy, Seed: seed}); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(routingtest.Tables(r))
		}
		if one := chosen(1); one != chosen(1) || one == chosen(2) {
			t.Errorf("%s does not go by the seed", policy)
		}
	}
}

func TestAssignErrors(t *testing.T) {
	g, other := routingtest.Graph(t, "ring", graph.BuildOptions{}), routingtest.Graph(t, "ring", graph.BuildOptions{})
	h, err := graph.AllHops(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	for _, x := range []struct {
		ctx  context.Context
		g    *graph.Graph
		o    AssignOptions
		want string
	}{
		{t.Context(), g, AssignOptions{Policy: "best"}, `assign: unknown policy "best"; supported: least_loaded, scatter, round_robin, dmodk, hash, first`},
		{t.Context(), g, AssignOptions{Scope: "all"}, `assign: unknown scope "all"; supported: global, switch`},
		{t.Context(), other, AssignOptions{}, `assign: the distances are those of another graph`},
		{t.Context(), g, AssignOptions{Prefer: func(_, _ int, _ mad.LID, _ []uint8) []uint8 { return []uint8{1} }}, `assign: preferred port 1 of "switch-1" (0x0002c90300100000) leads no nearer to "switch-3" (0x0002c90300100020); these do: [3 2]`},
		{cancelled, g, AssignOptions{}, `enough`},
	} {
		if err := Assign(x.ctx, routes.New(x.g, 0), h, x.o); err == nil || err.Error() != x.want {
			t.Errorf("got %v\nwant %s", err, x.want)
		}
	}
	for _, e := range All() {
		if _, err := Compute(cancelled, routingtest.Graph(t, "fattree:k=8", graph.BuildOptions{}), e.Name, Options{Given: routes.New(g, 0)}); !errors.Is(err, why) {
			t.Errorf("%s, cancelled: %v", e.Name, err)
		}
	}
}

// TestLMC: the LIDs of a port take different ways.
func TestLMC(t *testing.T) {
	f := routingtest.Draw(t, 2,
		[4]any{"A", 1, "a", 1}, [4]any{"A", 2, "S", 1}, [4]any{"A", 3, "T", 1}, [4]any{"A", 4, "U", 1},
		[4]any{"B", 1, "b", 1}, [4]any{"B", 2, "S", 2}, [4]any{"B", 3, "T", 2}, [4]any{"B", 4, "U", 2})
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	base := routingtest.LID(t, g, "b")
	for _, engine := range []string{"minhop", "updn", "ftree", "sssp", "nue"} {
		r := compute(t, g, engine, Options{})
		v := routingtest.Verified(t, r, verify.Options{})
		if !v.OK() || v.Pairs != 8 {
			t.Errorf("%s: %+v", engine, v)
		}
		ways := map[uint8]int{}
		for i := range 4 {
			ways[r.Row(0)[int(base)+i]]++
		}
		if len(ways) != 3 {
			t.Errorf("%s: the four LIDs take %v", engine, ways)
		}
	}
	r := compute(t, g, "minhop", Options{Policy: LeastLoaded})
	if row := r.Row(0); row[base] == row[base+1] || row[base+1] == row[base+2] || row[base] == row[base+2] {
		t.Errorf("least loaded: %v", row[base:base+4])
	}
}

// TestWeights: heavy links are avoided, and of parallel ones the light taken.
func TestWeights(t *testing.T) {
	f := routingtest.Draw(t, 0,
		[4]any{"A", 1, "a", 1}, [4]any{"B", 1, "b", 1}, [4]any{"A", 2, "B", 2}, [4]any{"A", 3, "B", 3},
		[4]any{"A", 4, "C", 1}, [4]any{"C", 2, "B", 4})
	for _, x := range []struct {
		weights map[string]int
		want    uint8
	}{
		{nil, 2},
		{map[string]int{"A/2": 2}, 3},
		{map[string]int{"A/2": 3, "A/3": 3}, 4},
		{map[string]int{"A/2": 3, "A/3": 3, "C/2": 5}, 2},
	} {
		g, err := graph.New(f, graph.BuildOptions{Weight: func(p *fabric.Port) int { return max(1, x.weights[p.Name()]) }})
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range []string{"minhop", "sssp", "nue"} {
			r := compute(t, g, engine, Options{})
			if got := r.Row(0)[routingtest.LID(t, g, "b")]; got != x.want && !(x.want == 2 && x.weights["A/2"] == x.weights["A/3"] && got == 3) {
				t.Errorf("%v, %s: port %d, want %d", x.weights, engine, got, x.want)
			}
		}
	}
}

// TestPortOrder: preferred ports first.
func TestPortOrder(t *testing.T) {
	f := routingtest.Topology(t, "pgft:m=2/2,w=1/2,p=1/2")
	for _, x := range []struct {
		order []int
		want  string
	}{
		{nil, "[3 4 5 6]"},
		{[]int{6, 5, 4, 3}, "[6 5 4 3]"},
		{[]int{5, 5}, "[5 4 3 6]"},
	} {
		g, err := graph.New(f, graph.BuildOptions{PortOrder: func(n *fabric.Node) []int {
			if n.NumPorts() < 6 {
				return nil
			}
			return x.order
		}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := graph.AllHops(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(h.Next(routingtest.SwitchNamed(t, g, "leaf-1"), routingtest.SwitchNamed(t, g, "leaf-2"))); got != x.want {
			t.Errorf("%v: %s, want %s", x.order, got, x.want)
		}
		r := compute(t, g, "dor", Options{})
		first := r.Row(routingtest.SwitchNamed(t, g, "leaf-1"))[routingtest.LID(t, g, "node-0003 HCA-1")]
		if want := map[string][]uint8{"[3 4 5 6]": {3, 5}, "[6 5 4 3]": {6, 4}, "[5 4 3 6]": {5, 3}}[x.want]; !slices.Contains(want, first) {
			t.Errorf("%v: dor takes port %d, not one of %v", x.order, first, want)
		}
	}
}

// TestScope: each switch alone spreads its LIDs evenly, which as a whole is not even
// at all; where the LIDs count that pass through, the links get as many routes as with ftree.
func TestScope(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=8,levels=3", graph.BuildOptions{})
	h, err := graph.AllHops(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	busiest := map[string]traffic.Distribution{}
	for _, scope := range scopes() {
		r := routes.New(g, 0)
		if err := Assign(t.Context(), r, h, AssignOptions{Scope: scope}); err != nil {
			t.Fatal(err)
		}
		for s := range g.Switches() {
			up := map[uint8]int{}
			for _, d := range g.Dests() {
				if next := h.Next(s, g.Terminals()[d.Terminal].Switch); d.Out > 0 && len(next) > 1 {
					for _, p := range next {
						up[p] += routingtest.Count(p == r.Row(s)[d.LID])
					}
				}
			}
			counts := slices.Sorted(maps.Values(up))
			if scope == PerSwitch && len(counts) > 0 && counts[len(counts)-1]-counts[0] > 1 {
				t.Errorf("%s spreads LIDs over its ports up unevenly: %v", g.Switches()[s].Label(), up)
			}
		}
		b, err := traffic.MeasureBalance(t.Context(), r, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		busiest[scope] = b.Routes
	}
	best, err := traffic.MeasureBalance(t.Context(), compute(t, g, "ftree", Options{}), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if busiest[Global] != best.Routes {
		t.Errorf("global: %+v, ftree %+v", busiest[Global], best.Routes)
	}
	if busiest[PerSwitch].Max < 2*busiest[Global].Max {
		t.Errorf("%+v", busiest)
	}
}
