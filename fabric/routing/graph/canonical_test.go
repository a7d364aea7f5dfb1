package graph_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// shape is what a graph is like without GUIDs, ports and LIDs: by switch, its endpoints and the switches that
// its channels lead to.
func shape(g *graph.Graph) (list [][]int64) {
	for s, ends := range g.Endpoints() {
		row := []int64{ends}
		for c := g.FirstChannel(s); c < g.FirstChannel(s+1); c++ {
			row = append(row, int64(g.ChannelTo(c)))
			if costs := g.Capacity().Costs(); costs != nil {
				row = append(row, costs[c])
			}
		}
		list = append(list, row)
	}
	return list
}

// TestCanonical: a network with other GUIDs, and cables in other ports, has the same canonical graph, which
// is that network.
func TestCanonical(t *testing.T) {
	for _, net := range []string{
		"ring:n=7,hosts=2", "torus:dims=4/4,hosts=2", "torus:dims=3/3/5,hosts=2,links=2", "mesh:dims=3/4,hosts=1", "hyperx:dims=4/4,hosts=1,remove_links=15%,seed=2",
		"random:n=50,degree=5,hosts=4", "random:n=24,degree=3,hosts=2,remove_links=40%,seed=1", "slimfly:q=5", "dragonfly+:leaves=3,spines=3,p=3,h=2",
		"dragonfly:a=4,p=2,h=2", "dragonfly:a=4,p=2,h=2,arrangement=relative", "dragonfly:a=4,p=2,h=2,arrangement=random,seed=3",
		"fattree:k=8,levels=2", "fattree:k=8,levels=3,remove_links=4%,seed=1", "pgft:m=4/4,w=1/2,p=1/3", "fattree:k=8,levels=2,rails=4",
	} {
		var first [][]int64
		for seed := range uint64(4) {
			f := routingtest.Topology(t, net)
			if seed > 0 {
				f = routingtest.Shuffled(t, f, seed)
			}
			c := isCanonical(t, f)
			switch got := shape(c); {
			case first == nil:
				first = got
			case !slices.EqualFunc(first, got, slices.Equal):
				t.Errorf("%s: with numbers %d another graph", net, seed)
			}
		}
	}
	isCanonical(t, routingtest.MixedRates(t, routingtest.Topology(t, "pgft:m=4/4,w=1/2,p=1/3"), 1))
	g := routingtest.Graph(t, "ring:n=5,hosts=1", graph.BuildOptions{Weight: func(p *fabric.Port) int { return p.Num() }})
	if c, err := graph.Canonical(t.Context(), g); err != nil || c != g {
		t.Errorf("with weights: %v", err)
	}
}

// TestDenseOrder: no switch comes before one with more neighbours before it, or as many and a lesser tie.
func TestDenseOrder(t *testing.T) {
	for _, net := range []string{"dragonfly:a=4,p=2,h=1", "torus:dims=4/4,hosts=2", "random:n=24,degree=3,hosts=2,remove_links=40%,seed=1"} {
		g := routingtest.Graph(t, net, graph.BuildOptions{})
		n := len(g.Switches())
		tie := rand.New(rand.NewPCG(1, 2)).Perm(n)
		order := graph.DenseOrder(g, 5, tie)
		if order[0] != 5 {
			t.Errorf("%s: begins with %d", net, order[0])
		}
		for i, s := range order {
			before := func(s int) (n int) {
				for _, t := range g.Neighbours(s) {
					if slices.Contains(order[:i], int(t.To)) {
						n++
					}
				}
				return n
			}
			for _, u := range order[i+1:] {
				if a, b := before(s), before(u); i > 0 && (a < b || a == b && tie[s] > tie[u]) {
					t.Fatalf("%s: %d before %d: %d and %d neighbours before them", net, s, u, a, b)
				}
			}
		}
		if slices.Sort(order); len(order) != n || len(slices.Compact(order)) != n {
			t.Errorf("%s: %d switches", net, len(order))
		}
		if order := graph.DenseOrder(g, -1, tie); order != nil {
			t.Errorf("without a root: %v", order)
		}
	}
}

// isCanonical returns the canonical graph of f. Its methods must agree with those of the graph itself.
func isCanonical(t *testing.T, f *fabric.Fabric) *graph.Graph {
	t.Helper()
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := graph.Canonical(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Switches()) != len(g.Switches()) || len(c.Channels()) != len(g.Channels()) || len(c.Dests()) != len(g.Dests()) {
		t.Fatalf("%d switches, %d channels, %d LIDs", len(c.Switches()), len(c.Channels()), len(c.Dests()))
	}
	for s, n := range g.Switches() {
		at := c.SwitchOf(n)
		if c.Switches()[at] != n || c.SwitchByGUID(n.GUID()) != at || len(c.DestsOf(at)) != len(g.DestsOf(s)) || len(c.Neighbours(at)) != len(g.Neighbours(s)) {
			t.Fatalf("switch %d is %d", s, at)
		}
		for p := range n.Ports() {
			port := uint8(p.Num())
			was, is := g.Target(int32(s), port), c.Target(int32(at), port)
			if was.IsChannel() != is.IsChannel() || was.IsTerminal() != is.IsTerminal() || was.IsTerminal() && was != is {
				t.Fatalf("port %d of switch %d leads to %d, was %d", port, at, is, was)
			}
			if !is.IsChannel() {
				continue
			}
			ch := c.Channels()[is.Channel()]
			back := c.Channels()[ch.Reverse]
			if ch.Port != port || int(ch.From) != at || c.ChannelTo(is.Channel()) != ch.To || c.Switches()[ch.To] != p.Peer().Node() || back.Port != ch.PeerPort || back.Reverse != is.Channel() || c.ChannelOf(p) != int(is.Channel()) {
				t.Fatalf("channel %+v of port %d, back %+v", ch, port, back)
			}
		}
	}
	for i, terminal := range c.Terminals() {
		if was := g.Terminals()[i]; terminal.LID != was.LID || terminal.Switch >= 0 && c.Switches()[terminal.Switch] != g.Switches()[was.Switch] || c.TerminalOf(terminal.Port) != i {
			t.Fatalf("terminal %d: %+v, was %+v", i, terminal, was)
		}
	}
	return c
}
