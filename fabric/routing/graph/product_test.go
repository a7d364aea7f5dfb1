package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// TestFactors: the dimensions of networks, in any numbering; a ring of four is a square of two.
func TestFactors(t *testing.T) {
	for net, want := range map[string]string{
		"torus:dims=5/3/7,hosts=1":                                 "3 5 7",
		"torus:dims=6/4,hosts=2":                                   "2 2 6",
		"torus:dims=3/5,hosts=2,links=2":                           "3 5",
		"mesh:dims=2/2/2/2,hosts=1":                                "2 2 2 2",
		"mesh:dims=3/4,hosts=1":                                    "3 4",
		"hyperx:dims=4/6,hosts=1":                                  "4 6",
		"hyperx:dims=5/3/4,hosts=1":                                "3 4 5",
		"ring:n=9,hosts=1":                                         "",
		"dragonfly:a=4,p=2,h=2":                                    "",
		"slimfly:q=5":                                              "",
		"random:n=24,degree=4,hosts=3":                             "",
		"torus:dims=5/5,hosts=1,remove_links=1":                    "",
		"hyperx:dims=4/6,hosts=1,remove_switches=1":                "",
		"torus:dims=3/3,hosts=1,remove_links=60%,seed=1":           "",
		"hyperx:dims=40/40,hosts=1":                                "", // too large
		"fattree:k=4,levels=2":                                     "",
		"mesh:dims=2/2,hosts=1":                                    "2 2",
		"mesh:dims=2/3/2,hosts=1,remove_links=0,remove_switches=0": "2 2 3",
	} {
		f := routingtest.Topology(t, net)
		for seed := range uint64(3) {
			if seed > 0 {
				f = routingtest.Shuffled(t, f, seed)
			}
			g, err := graph.New(f, graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			h, err := graph.AllHops(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			factors, err := graph.FindFactors(t.Context(), g, h)
			if err != nil {
				t.Fatal(err)
			}
			var sizes []int
			has, places := make([]int, len(g.Channels())), map[string]bool{}
			for _, f := range factors {
				sizes = append(sizes, slices.Max(f.Ranks.Rank)+1)
				for c, ch := range g.Channels() {
					if f.Has[c] {
						has[c]++
					}
					if f.Has[c] == (f.Ranks.Rank[ch.From] == f.Ranks.Rank[ch.To]) {
						t.Fatalf("%s: channel %d leads from place %d to %d", net, c, f.Ranks.Rank[ch.From], f.Ranks.Rank[ch.To])
					}
				}
			}
			for s := range g.Switches() {
				place := ""
				for _, f := range factors {
					place += fmt.Sprint(f.Ranks.Rank[s], " ")
				}
				places[place] = true
			}
			slices.Sort(sizes)
			if got := strings.Trim(fmt.Sprint(sizes), "[]"); got != want || factors != nil && (len(places) != len(g.Switches()) || slices.Min(has) != 1 || slices.Max(has) != 1) {
				t.Errorf("%s: %q, want %q; %d places", net, got, want, len(places))
			}
		}
	}
}
