package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Where links of a fat tree are missing, up*/down* has no path from many switches to
// the LIDs of others. They get one, but for a few where much is missing, which notes
// tell; and with the packets to them too there is no credit loop.
func TestToSwitches(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	for _, spec := range []string{
		"pgft:m=6/6/6,w=1/6/6,p=1/1/1,remove_links=40,seed=5",
		"pgft:m=6/6/6,w=1/6/6,p=1/1/1,remove_links=100,seed=7",
		"pgft:m=12/12/12,w=1/12/12,p=1/1/1,remove_links=60,seed=1",
		"fattree:k=8,levels=3,remove_links=30,seed=2",
		"fattree:k=8,levels=2,remove_links=6,seed=3",
	} {
		g := routingtest.Graph(t, spec, graph.BuildOptions{Workers: 9}) // more than there are blocks of LIDs
		for _, name := range []string{"updn", "ftree", "nue"} {
			r := compute(t, g, name, engines.Options{})
			v := verified(t, r, verify.Options{})
			told := slices.ContainsFunc(v.Notes, func(n string) bool {
				return strings.Contains(n, "only management packets use") && strings.Contains(n, "every other path would close a credit loop")
			})
			if whole := v.ToSwitches == v.SwitchPairs; !v.OK() || v.SwitchPairs == 0 || whole == told || v.ToSwitches < v.SwitchPairs-v.SwitchPairs/100 {
				t.Errorf("%s, %s: ok %v, to switches: %d of %d; %q", spec, name, v.OK(), v.ToSwitches, v.SwitchPairs, v.Notes)
			}
			graph, err := verify.Dependencies(t.Context(), r, verify.SelectEndpoints(r.Graph(), 0))
			if err != nil {
				t.Fatal(err)
			}
			if all, err := verify.WithSwitches(t.Context(), r, graph); err != nil || all == graph {
				t.Errorf("%s, %s: a credit loop with the packets to switches (%v)", spec, name, err)
			}
		}
	}
}

// TestToSwitchesBesideTree: on networks where the paths to CAs that are added first take the turns that paths
// to switches need, all paths are found beside an escape tree.
func TestToSwitchesBesideTree(t *testing.T) {
	for _, spec := range []string{
		"random:n=16,degree=5,hosts=1,seed=3", "hyperx:dims=4/4,hosts=1,remove_links=25%,seed=6",
		"pgft:m=4/4/4,w=1/4/2,p=1/1/1,remove_links=25%,seed=1", "fattree:k=6,levels=3,remove_links=23%,seed=9",
		"fattree:k=4,levels=4,remove_switches=3,remove_links=16%,seed=4",
	} {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		for _, name := range []string{"updn", "dnup"} {
			r := compute(t, g, name, engines.Options{})
			if v := verified(t, r, verify.Options{}); !v.OK() || v.ToSwitches < v.SwitchPairs {
				t.Errorf("%s, %s: ok %v, to switches: %d of %d; %q", spec, name, v.OK(), v.ToSwitches, v.SwitchPairs, v.Notes)
			}
			d, err := verify.Dependencies(t.Context(), r, verify.SelectEndpoints(g, 0))
			if err != nil {
				t.Fatal(err)
			}
			if all, err := verify.WithSwitches(t.Context(), r, d); err != nil || all == d {
				t.Errorf("%s, %s: a credit loop with the packets to switches (%v)", spec, name, err)
			}
		}
	}
}

// What cannot be reached is counted: here an entry of a leaf that is gone.
func TestToSwitchesLost(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{})
	var spine graph.Dest
	for d := range g.Switches() {
		if g.Endpoints()[d] == 0 {
			spine = g.DestsOf(d)[0]
		}
	}
	leaf := g.Terminals()[g.TerminalByLID(graph.Order(g)[0])].Switch
	r.Row(leaf)[spine.LID] = routes.NoPort
	v := verified(t, r, verify.Options{})
	if on := g.Endpoints()[leaf]; !v.OK() || v.UnreachableSwitches() != on {
		t.Errorf("ok %v, to switches: %d of %d, want %d less", v.OK(), v.ToSwitches, v.SwitchPairs, on)
	}
}

// TestToSwitchesCounted: on badly damaged fat trees, the verdict on the tables of each engine
// counts as many pairs without a path to a switch as there are when each is followed on its
// own; and all switches without CAs reach the CAs that they are connected to, whose requests
// they answer.
func TestToSwitchesCounted(t *testing.T) {
	missing := 0
	for seed := range 3 {
		for _, net := range []string{
			"fattree:k=4,levels=3,remove_links=20%", "fattree:k=6,levels=2,remove_links=30%", "fattree:k=4,levels=4,remove_switches=15%",
			"pgft:m=3/3/3,w=1/3/3,p=1/1/1,remove_links=15%,remove_switches=10%",
		} {
			spec := fmt.Sprintf("%s,seed=%d", net, seed)
			g := routingtest.Graph(t, spec, graph.BuildOptions{})
			part, endpoints := graph.Components(g), g.Endpoints()
			for _, name := range []string{"minhop", "updn", "dnup", "ftree", "sssp", "dfsssp", "lash", "nue", "dor"} {
				r, err := engines.Compute(t.Context(), g, name, engines.Options{})
				if err != nil && name == "ftree" {
					continue // too much of the tree is missing
				}
				if err != nil {
					t.Fatal(err)
				}
				var want int64
				for _, d := range g.Dests() {
					home := g.Terminals()[d.Terminal].Switch
					for s, n := range endpoints {
						switch arrives := arrives(r, s, d.LID); {
						case d.Out == 0 && !arrives:
							want += n
						case d.Out > 0 && !arrives && n == 0 && part[s] == part[home]:
							t.Errorf("%s, %s: no path from switch %d to LID %d of a CA", spec, name, s, d.LID)
						}
					}
				}
				if v := verified(t, r, verify.Options{}); v.UnreachableSwitches() != want {
					t.Errorf("%s, %s: %d paths to switches missing, want %d", spec, name, v.UnreachableSwitches(), want)
				}
				missing += int(want)
			}
		}
	}
	if missing == 0 {
		t.Error("no path is missing")
	}
}

// arrives follows packets from a switch by its entries.
func arrives(r *routes.Routes, s int, lid mad.LID) bool {
	g := r.Graph()
	for range graph.MaxDistance + 1 {
		port := r.Row(s)[lid]
		if port == routes.NoPort {
			return false
		}
		target := g.Target(int32(s), port)
		if !target.IsChannel() {
			return target == graph.ToTerminal(int32(g.TerminalByLID(lid)))
		}
		s = int(g.ChannelTo(target.Channel()))
	}
	return false
}

// Where most pairs have no path up to a top and then down, none is added: the only root is a leaf,
// and then all have one.
func TestTooMuchMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	g := routingtest.Graph(t, "pgft:m=16/12/12,w=1/12/12,p=1/1/1,remove_links=2200,seed=4", graph.BuildOptions{})
	for _, name := range []string{"updn", "ftree"} {
		v := verified(t, compute(t, g, name, engines.Options{}), verify.Options{})
		if !v.OK() || !slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, "the only root is a leaf") }) {
			t.Errorf("%s: unreachable %d, acyclic %v; %q", name, v.Unreachable, v.Acyclic, v.Notes)
		}
	}
}

// A verdict over no pair, and one that leaves ports out, is not ok.
func TestNothingJudged(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{})
	if v := verified(t, r, verify.Options{Endpoints: graph.ClassGateway}); v.OK() || v.Pairs != 0 {
		t.Errorf("ok %v over %d pairs", v.OK(), v.Pairs)
	}
	lost := g.Terminals()[slices.IndexFunc(g.Terminals(), func(t graph.Terminal) bool { return t.Out > 0 })].Port
	g, err := graph.New(g.Fabric(), graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) {
		if p == lost {
			return 0, 0
		}
		return mad.LID(p.ID() + 1), 0
	}})
	if err != nil {
		t.Fatal(err)
	}
	r = compute(t, g, "updn", engines.Options{})
	if v := verified(t, r, verify.Options{}); v.OK() || len(v.LeftOut) != 1 {
		t.Errorf("ok %v, left out %q", v.OK(), v.LeftOut)
	}
}
