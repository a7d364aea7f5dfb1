package verify_test

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/sim"
)

// TestOrder: the order that edges are added in never matters, and an edge is
// refused only if it closes a cycle.
func TestOrder(t *testing.T) {
	f, _, err := sim.Parse("torus:dims=3/3,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		position := make([]int32, len(g.Channels()))
		for i, p := range random.Perm(len(position)) {
			position[i] = int32(p)
		}
		o := verify.NewDependencyOrder(verify.NewDependencyGraph(g, 1), position)
		want := simple.NewDirectedGraph()
		for v := range position {
			want.AddNode(simple.Node(v))
		}
		var tentative [][2]int32
		for range 400 {
			v := int32(random.IntN(len(position)))
			to := g.ChannelTo(v)
			w := g.FirstChannel(int(to)) + int32(random.IntN(int(g.FirstChannel(int(to+1))-g.FirstChannel(int(to)))))
			if w == g.Channels()[v].Reverse {
				continue
			}
			closes := topo.PathExistsIn(want, simple.Node(w), simple.Node(v))
			had := want.HasEdgeFromTo(int64(v), int64(w))
			if got := o.TryAdd(v, w); got == closes {
				t.Fatalf("seed %d: edge from %d to %d: added %v, closes a cycle %v", seed, v, w, got, closes)
			}
			if !closes && !had {
				want.SetEdge(want.NewEdge(simple.Node(v), simple.Node(w)))
				tentative = append(tentative, [2]int32{v, w})
			}
			if random.IntN(20) == 0 {
				o.Commit(func(v, w int32) bool { return (v+w)%2 == 0 })
				for _, e := range tentative {
					if (e[0]+e[1])%2 != 0 {
						want.RemoveEdge(int64(e[0]), int64(e[1]))
					}
				}
				tentative = nil
			}
		}
		if o.Cycle() != nil {
			t.Fatalf("seed %d: a cycle", seed)
		}
	}
}
