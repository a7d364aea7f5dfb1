package engines

import (
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// explained explains the path between two LIDs, and checks what holds for all tables.
func explained(t *testing.T, r *routes.Routes, src, dst mad.LID) *Explanation {
	t.Helper()
	e, err := Explain(t.Context(), r, src, dst)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Trace(src, dst)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Hops) != len(p.Hops) {
		t.Fatalf("%d hops, the trace has %d", len(e.Hops), len(p.Hops))
	}
	for i, h := range e.Hops {
		if h.Hop != p.Hops[i] || h.Rule == "" {
			t.Fatalf("hop %d: %+v, the trace has %+v", i, h, p.Hops[i])
		}
	}
	return e
}

// TestExplain: on each network, hops are those of the trace, alternatives are the ports by which the distance
// falls, as the engine counts it, and rules of tables that nothing has changed give each port.
func TestExplain(t *testing.T) {
	nets := []string{
		"fattree:k=4,levels=3", "pgft:m=4/4,w=1/2,p=1/3", "mesh:dims=3/4,hosts=2", "torus:dims=4/4,hosts=2", "hyperx:dims=3/4,hosts=2", "dragonfly:a=4,p=2,h=1", "random:n=20,degree=4,hosts=2",
		"fattree:k=8,levels=3,remove_links=4%,seed=1", "fattree:k=6,levels=3,remove_links=23%,seed=9", "torus:dims=4/4,hosts=2,remove_links=4,remove_switches=1,seed=1", "random:n=24,degree=3,hosts=2,remove_links=20%,seed=2",
	}
	seen := map[string]int{}
	for _, net := range nets {
		g := routingtest.Graph(t, net, graph.BuildOptions{})
		all, err := graph.AllHops(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		ends := g.LIDs(0)
		for _, e := range All() {
			r, err := Compute(t.Context(), g, e.Name, Options{})
			if err != nil {
				continue // it does not apply
			}
			loads, err := verify.CountAllRoutes(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 60 {
				src, dst := ends[i*7%len(ends)], ends[(i*11+3)%len(ends)]
				x := explained(t, r, src, dst)
				if x.Loads != nil && !slices.EqualFunc(x.Loads, loads, func(a float64, b int64) bool { return a == float64(b) }) {
					t.Fatalf("%s, %s: other loads than verify counts", net, e.Name)
				}
				home := g.Terminals()[g.TerminalByLID(dst)].Switch
				for _, h := range x.Hops {
					seen[strings.FieldsFunc(h.Rule, func(r rune) bool { return r == ':' || r == ';' })[0]]++
					if e.Name != "file" && (strings.Contains(h.Rule, "not port") || strings.Contains(h.Rule, "not by") || strings.Contains(h.Rule, "unknown")) {
						t.Errorf("%s, %s, LID %d to %d, switch %d port %d: %s", net, e.Name, src, dst, h.Switch, h.Out, h.Rule)
					}
					want := nextByDistance(g, BasisOf(r), all, h.Switch, home)
					got := slices.Sorted(slices.Values(h.Next))
					if e.Name != "dragonfly" && !slices.Equal(got, want) {
						t.Errorf("%s, %s, switch %d to %d: next hops %v, want %v", net, e.Name, h.Switch, home, got, want)
					}
				}
			}
		}
	}
	for _, rule := range []string{"d-mod-k up", "d-mod-k down", "the only next hop up", "added", "a detour", "search of nue", "dimension order", "first port of the next hops", "packets stop", "the destination is on this switch"} {
		if seen[rule] == 0 {
			t.Errorf("no hop has the rule %q", rule)
		}
	}
}

// TestExplainRates: the least loaded port is so per capacity.
func TestExplainRates(t *testing.T) {
	said := 0
	for seed := range uint64(6) {
		g, err := graph.New(routingtest.MixedRates(t, routingtest.Topology(t, "torus:dims=3/3,hosts=2"), seed), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		capacity, ends := g.Capacity(), g.LIDs(0)
		for _, engine := range []string{"minhop", "sssp", "dfsssp"} {
			r := compute(t, g, engine, Options{})
			loads, err := verify.CountAllRoutes(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			of := func(s int, port uint8) float64 {
				c := g.Target(int32(s), port).Channel()
				return float64(loads[c]) * capacity.Fastest / capacity.Rates[c]
			}
			for _, src := range ends {
				for _, h := range explained(t, r, src, ends[len(ends)/2]).Hops {
					if !strings.Contains(h.Rule, "least loaded") {
						continue
					}
					said++
					for _, p := range h.Next {
						if of(h.Switch, p) < of(h.Switch, h.Out)-1e-9 {
							t.Errorf("seed %d, %s, switch %d port %d: %s; port %d has %v", seed, engine, h.Switch, h.Out, h.Rule, p, of(h.Switch, p))
						}
					}
				}
			}
		}
	}
	if said == 0 {
		t.Error("no port is least loaded")
	}
}

// TestExplainNoSwitch: a destination that is on no switch is not explained, and ends are checked.
func TestExplainNoSwitch(t *testing.T) {
	f := routingtest.Draw(t, 0, [4]any{"S1", 1, "a", 1}, [4]any{"S1", 2, "b", 1}, [4]any{"c", 1, "d", 1})
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := compute(t, g, "minhop", Options{})
	a, c := routingtest.LID(t, g, "a"), routingtest.LID(t, g, "c")
	if x := explained(t, r, a, c); len(x.Hops) != 1 || !strings.HasPrefix(x.Hops[0].Rule, "packets stop") {
		t.Errorf("to a port on no switch: %+v", x.Hops)
	}
	for _, src := range []mad.LID{c, a} {
		if x := explained(t, r, src, src); len(x.Hops) != 0 {
			t.Errorf("to itself: %+v", x.Hops)
		}
	}
	if x := explained(t, r, c, a); len(x.Hops) != 0 || x.Path.Broken == "" {
		t.Errorf("from a port on no switch: %+v", x)
	}
	if _, err := Explain(t.Context(), r, a, 999); err == nil {
		t.Error("LID 999 is no error")
	}
}

// nextByDistance are the ports of switch s by which the distance to home falls by the weight of a link; of
// up*/down*, also in an order that is legal.
func nextByDistance(g *graph.Graph, b *Basis, all *graph.Hops, s, home int) (ports []uint8) {
	h := all
	if b != nil && b.Hops != nil {
		h = b.Hops
	}
	if s == home || h.Distance(s, home) < 0 {
		return nil
	}
	if h.IsUpDown() {
		return slices.Sorted(slices.Values(h.Next(s, home)))
	}
	for c := g.FirstChannel(s); c < g.FirstChannel(s+1); c++ {
		if h.Distance(int(g.ChannelTo(c)), home)+int(g.Channels()[c].Weight) == h.Distance(s, home) {
			ports = append(ports, g.Channels()[c].Port)
		}
	}
	slices.Sort(ports)
	return ports
}

// TestExplainChanged: an entry that the rule does not give is not explained by the rule, whatever port it has.
func TestExplainChanged(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=8,levels=3", graph.BuildOptions{})
	r := compute(t, g, "ftree", Options{})
	src, dst := routingtest.LID(t, g, "node-0001 HCA-1"), routingtest.LID(t, g, "node-0100 HCA-1")
	first := explained(t, r, src, dst).Hops[0]
	if !strings.HasPrefix(first.Rule, "d-mod-k up: digit ") || len(first.Next) != 4 || first.Left != 4 {
		t.Fatalf("first hop: %+v", first)
	}
	for port := range uint8(10) {
		changed := r.Clone()
		changed.Row(first.Switch)[dst] = port
		h := explained(t, changed, src, dst).Hops[0]
		if is := strings.HasPrefix(h.Rule, "d-mod-k"); is != (port == first.Out) {
			t.Errorf("port %d in place of %d: %s", port, first.Out, h.Rule)
		}
	}
	changed := r.Clone()
	changed.EditRow(first.Switch)[dst] = first.Next[(slices.Index(first.Next, first.Out)+1)%4]
	if h := explained(t, changed, src, dst).Hops[0]; h.Rule != "one of 4 ports on shortest paths; the rule is unknown: tables of ftree that were changed later" {
		t.Errorf("changed by hand: %s", h.Rule)
	}
	changed.EditRow(first.Switch)[dst] = routes.NoPort
	if h := explained(t, changed, src, dst).Hops[0]; !strings.HasPrefix(h.Rule, `packets stop: "leaf-1" (0x0002c90300100000) drops LID `) || h.Left != -1 {
		t.Errorf("dropped: %+v", h)
	}
}

// TestExplainPolicies: rules of policies are computed again, and what they do not give is not claimed.
func TestExplainPolicies(t *testing.T) {
	g := routingtest.Graph(t, "hyperx:dims=4/4,hosts=2", graph.BuildOptions{})
	ends := g.LIDs(0)
	for _, x := range []struct {
		engine string
		o      Options
		rule   string
	}{
		{"minhop", Options{Policy: Hash, Seed: 5}, "hash of seed 5, switch and LID: one of 2 next hops"},
		{"minhop", Options{Policy: First}, "first port of the next hops"},
		{"dor", Options{}, "first port of the next hops"},
		{"minhop", Options{Policy: RoundRobin}, "one of 2 next hops, which LIDs take in turn (not computed again)"},
		{"sssp", Options{}, "one of 2 next hops, by load: "},
	} {
		r := compute(t, g, x.engine, x.o)
		found := 0
		for i, src := range ends {
			for _, h := range explained(t, r, src, ends[(i+11)%len(ends)]).Hops {
				if len(h.Next) == 2 {
					if found++; !strings.HasPrefix(h.Rule, x.rule) {
						t.Errorf("%s, %+v: %s", x.engine, x.o, h.Rule)
					}
				}
			}
		}
		if found == 0 {
			t.Errorf("%s, %+v: no switch has a choice", x.engine, x.o)
		}
	}
}

// TestExplainLMC: the paths to the LIDs of a port are compared.
func TestExplainLMC(t *testing.T) {
	f := routingtest.WithLMC(t, routingtest.Topology(t, "fattree:k=8,levels=3"), 2)
	g, err := graph.New(f, graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) { return p.LID(), p.LMC() }})
	if err != nil {
		t.Fatal(err)
	}
	r := compute(t, g, "ftree", Options{})
	ends, apart, moved := g.LIDs(0), 0, 0
	for i, dst := range ends {
		for _, h := range explained(t, r, ends[(i+40)%len(ends)], dst).Hops {
			if strings.Contains(h.Rule, "from here disjoint from the paths to the first") {
				apart++
			}
			if strings.Contains(h.Rule, "which d-mod-k gives") {
				if moved++; !strings.Contains(h.Rule, "and from here would share") {
					t.Errorf("to LID %d: %s", dst, h.Rule)
				}
			}
		}
	}
	if apart == 0 {
		t.Errorf("%d hops are disjoint, and %d were moved", apart, moved)
	}
}

// TestExplainLoop: each switch of a loop is there once, and the last one states the loop.
func TestExplainLoop(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{})
	r := compute(t, g, "ftree", Options{}).Clone()
	src, dst := routingtest.LID(t, g, "node-0001 HCA-1"), routingtest.LID(t, g, "node-0003 HCA-1")
	hops := explained(t, r, src, dst).Hops
	back := g.Channels()[g.Channels()[g.Target(int32(hops[0].Switch), hops[0].Out).Channel()].Reverse].Port
	r.EditRow(hops[1].Switch)[dst] = back
	x, err := Explain(t.Context(), r, src, dst)
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Hops; len(got) != 2 || got[1].Switch != hops[1].Switch || got[1].Left != -1 || !strings.HasSuffix(got[1].Rule, "packets loop: "+g.Switches()[hops[0].Switch].Label()+" is on the path already") || strings.Contains(got[0].Rule, "loop") {
		t.Errorf("%+v", got)
	}
}
