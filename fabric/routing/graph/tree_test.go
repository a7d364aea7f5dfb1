package graph_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// TestNumbering: with digits, a switch with more hosts of a class begins with the first, and the rests
// of each digit have no gaps; the others, such as I/O nodes of which each leaf has one, go on.
func TestNumbering(t *testing.T) {
	g := routingtest.Graph(t, "pgft:m=4/3,w=1/2,p=1/1", graph.BuildOptions{Rules: []graph.Rule{
		{Class: graph.ClassIO, Name: "node-0004 *"}, {Class: graph.ClassIO, Name: "node-0008 *"}, {Class: graph.ClassIO, Name: "node-0012 *"}, {Class: graph.ClassCN},
	}})
	for digits, want := range map[int]map[string][]int{
		1: {"cn": {0, 1, 2, 3, 4, 5, 6, 7, 8}, "io": {0, 1, 2}, "switch": {0, 1, 2, 3, 4}},
		2: {"cn": {0, 1, 2, 4, 3, 6, 8, 5, 10}, "io": {0, 1, 2}, "switch": {0, 1, 2, 3, 4}},
	} {
		number, got := graph.Numbering(g, nil, digits), map[string][]int{}
		for _, d := range g.Dests() {
			class := g.Terminals()[d.Terminal].Class &^ graph.ClassSM
			got[class.String()] = append(got[class.String()], number[d.LID])
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d digits (-want +got)\n%s", digits, d)
		}
	}
}
