package search_test

import (
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
)

// TestCompleteAll: where each switch has an aggregation node, a third of the pairs of switches and more have
// no path up and then down, as in director switches of which only leaves join the parts. All get one, and
// all LIDs of switches, without a credit loop; paths to the other LIDs stay.
func TestCompleteAll(t *testing.T) {
	for _, x := range []struct {
		net   string
		roots []int // nil: the tops
		tree  bool  // some LIDs are reached along a spanning tree only
	}{
		{"pgft:m=4/4/4,w=1/4/4,p=1/1/1", nil, false},
		{"pgft:m=4/4/4,w=1/4/4,p=1/1/1,remove_links=25%,seed=4", nil, false},
		{"pgft:m=2/4/2,w=1/4/2,p=1/1/2,remove_links=10%,seed=1", nil, false},
		{"fattree:k=6,levels=3,remove_switches=2,seed=2", nil, false},
		{"pgft:m=2/3/3,w=1/2/3,p=1/1/2", []int{1, 6, 9, 12, 19}, true},
		{"torus:dims=4/4,hosts=1", []int{1, 6, 9}, true},
	} {
		g := routingtest.Graph(t, x.net+",aggregation=yes", graph.BuildOptions{})
		if x.roots == nil {
			var err error
			if x.roots, err = graph.FindRoots(t.Context(), g, "color"); err != nil {
				t.Fatal(err)
			}
		}
		h, err := graph.UpDown(t.Context(), g, graph.RanksFrom(g, x.roots))
		if err != nil {
			t.Fatal(err)
		}
		r := routes.New(g, 0)
		if err := engines.Assign(t.Context(), r, h, engines.AssignOptions{}); err != nil {
			t.Fatal(err)
		}
		before := r.Clone()
		err = search.CompleteAll(t.Context(), r, h, h.Ranks())
		v := verified(t, r, verify.Options{})
		if err != nil || !v.OK() || v.UnreachableSwitches() > 0 {
			t.Errorf("%s: %v, unreachable %d, to switches %d, acyclic %v", x.net, err, v.Unreachable, v.UnreachableSwitches(), v.Acyclic)
		}
		d, err := verify.Dependencies(t.Context(), r, verify.SelectEndpoints(g, 0))
		if err != nil {
			t.Fatal(err)
		}
		if all, err := verify.WithSwitches(t.Context(), r, d); err != nil || all == d {
			t.Errorf("%s: a credit loop with the packets to switches (%v)", x.net, err)
		}
		if tree := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "spanning tree") }); tree != x.tree {
			t.Errorf("%s: %q", x.net, r.Notes)
		}
		for d := range g.Switches() {
			whole := true
			for s := range g.Switches() {
				whole = whole && h.Distance(s, d) >= 0
			}
			for _, dest := range g.DestsOf(d) {
				if whole && !slices.Equal(r.Column(dest.LID), before.Column(dest.LID)) {
					t.Errorf("%s: other paths to LID %d, which had all", x.net, dest.LID)
				}
			}
		}
	}
}

// TestCompleteAllParted: where the network is not connected, each part gets all its paths.
func TestCompleteAllParted(t *testing.T) {
	between := func(p *fabric.Port) bool { // layers, the last of three numbers of a switch
		q := p.Peer()
		return q != nil && q.Node().IsSwitch() && p.Node().IsSwitch() && p.Node().Name()[len("switch-1-1-"):] != q.Node().Name()[len("switch-1-1-"):]
	}
	g := routingtest.Graph(t, "torus:dims=4/4/2,hosts=1,aggregation=yes", graph.BuildOptions{Exclude: between})
	var roots []int
	for s, n := range g.Switches() {
		if at := n.Name()[:len("switch-1-1")]; at == "switch-1-2" || at == "switch-2-3" || at == "switch-3-2" {
			roots = append(roots, s)
		}
	}
	h, err := graph.UpDown(t.Context(), g, graph.RanksFrom(g, roots))
	if err != nil {
		t.Fatal(err)
	}
	r := routes.New(g, 0)
	if err := engines.Assign(t.Context(), r, h, engines.AssignOptions{}); err != nil {
		t.Fatal(err)
	}
	err = search.CompleteAll(t.Context(), r, h, h.Ranks())
	if v := verified(t, r, verify.Options{}); err != nil || v.Unreachable != 2*32*32 || !v.Acyclic {
		t.Errorf("%v, unreachable %d, acyclic %v, %q", err, v.Unreachable, v.Acyclic, r.Notes)
	}
}
