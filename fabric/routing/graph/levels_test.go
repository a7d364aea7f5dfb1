package graph_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// A leaf without hosts is a leaf, though it is as far from the others as a spine, or farther; a
// whole pod of such is one, and so is a switch above the spines.
func TestLeavesWithoutHosts(t *testing.T) {
	for _, x := range []struct{ spec, bare, want string }{
		{"fattree:k=4", "leaf-1", "leaf 0, spine 1"},
		{"fattree:k=4,remove_links=1", "leaf-1", "leaf 0, spine 1"},
		{"fattree:k=4,levels=3", "leaf-1", "leaf 0, spine 1, core 2"},
		{"fattree:k=4,levels=3", "leaf-1 leaf-2", "leaf 0, spine 1, core 2"},
		{"fattree:k=4,levels=3", "leaf-1 leaf-2 leaf-3 leaf-5", "leaf 0, spine 1, core 2"},
		{"fattree:k=8,levels=3,remove_links=5%,seed=2", "leaf-1 leaf-2 leaf-7", "leaf 0, spine 1, core 2"},
		{"pgft:m=4/4/4,w=1/2/2,p=1/1/1", "leaf-1 leaf-6", "leaf 0, spine 1, core 2"},
		{"mesh:dims=4,hosts=1", "switch-2 switch-3 switch-4", "switch 0 1 2 3"}, // no tree: it is as it was
	} {
		g, err := graph.New(routingtest.WithAggregation(t, routingtest.Topology(t, x.spec), strings.Fields(x.bare)...), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := graph.FindLevels(g)
		levels := map[string][]int{}
		for s, n := range g.Switches() {
			kind, _, _ := strings.Cut(n.Name(), "-")
			levels[kind] = append(levels[kind], l.Level[s])
		}
		var got []string
		for _, kind := range slices.SortedFunc(maps.Keys(levels), func(a, b string) int { return slices.Min(levels[a]) - slices.Min(levels[b]) }) {
			slices.Sort(levels[kind])
			got = append(got, kind+" "+strings.Trim(fmt.Sprint(slices.Compact(levels[kind])), "[]"))
		}
		if got := strings.Join(got, ", "); got != x.want {
			t.Errorf("%s, no hosts on %s: %s, want %s", x.spec, x.bare, got, x.want)
		}
		if err := l.Check(); err != nil {
			t.Errorf("%s, no hosts on %s: %v", x.spec, x.bare, err)
		}
	}
}
