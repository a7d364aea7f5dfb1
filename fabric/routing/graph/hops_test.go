package graph_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// TestDistances: the distances agree with gonum's Dijkstra, with weights and without, and
// the next hops are the neighbours that are nearer by a link. Ways that are
// too long matter only where there is no other.
func TestDistances(t *testing.T) {
	far, heavy := 0, 0
	for i, spec := range routingtest.SmallNets() {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		weights := make(map[*fabric.Port]int)
		o := graph.BuildOptions{}
		if i%2 == 1 {
			o.Weight = func(p *fabric.Port) int {
				if weights[p] == 0 {
					weights[p] = 1 + random.IntN(4)
					switch {
					case i%4 == 3 && random.IntN(12) == 0:
						weights[p] = graph.MaxDistance - random.IntN(4)
					case i%8 == 1:
						weights[p] += 30
					}
				}
				return weights[p]
			}
		}
		g := routingtest.Graph(t, spec, o)
		want := simple.NewWeightedDirectedGraph(0, math.Inf(1))
		for s := range g.Switches() {
			want.AddNode(simple.Node(s))
		}
		for _, c := range g.Channels() {
			w := float64(c.Weight)
			if e := want.WeightedEdge(int64(c.From), int64(c.To)); e != nil {
				w = min(w, e.Weight())
			}
			want.SetWeightedEdge(want.NewWeightedEdge(simple.Node(c.From), simple.Node(c.To), w))
		}
		longest := 0.0
		for s := range g.Switches() {
			for d, shortest := 0, path.DijkstraFrom(simple.Node(s), want); d < len(g.Switches()); d++ {
				if x := shortest.WeightTo(int64(d)); !math.IsInf(x, 1) {
					longest = max(longest, x)
				}
			}
		}
		h, err := graph.AllHops(t.Context(), g)
		if longest > graph.MaxDistance {
			if far++; err == nil {
				t.Errorf("%s: no error, but gonum finds a distance of %v", spec, longest)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v; gonum: %v at most", spec, err, longest)
		}
		for _, c := range g.Channels() {
			if c.Weight > 100 {
				heavy++
				break
			}
		}
		weight := make([]int64, len(g.Channels()))
		for c := range weight {
			weight[c] = int64(g.Channels()[c].Weight)
		}
		costs := make([][]int64, len(g.Switches()))
		for d := range g.Switches() {
			if costs[d], _, err = graph.Dijkstra(g, d, weight); err != nil {
				t.Fatal(err)
			}
		}
		var next graph.NextHops
		for s := range g.Switches() {
			shortest := path.DijkstraFrom(simple.Node(s), want)
			next.Load(h, s)
			for d := range g.Switches() {
				w := -1
				if x := shortest.WeightTo(int64(d)); !math.IsInf(x, 1) {
					w = int(x)
				}
				if got := h.Distance(s, d); got != w {
					t.Fatalf("%s: from %d to %d: %d, gonum: %d", spec, s, d, got, w)
				}
				if got := int(costs[d][s]); got != w {
					t.Fatalf("%s: Dijkstra from %d to %d: %d, gonum: %d", spec, s, d, got, w)
				}
				checkNext(t, g, h, &next, s, d, func(c *graph.Channel) bool {
					return w >= 0 && s != d && h.Distance(int(c.To), d) >= 0 && h.Distance(int(c.To), d)+int(c.Weight) == w
				})
			}
		}
	}
	if far == 0 || heavy == 0 {
		t.Errorf("%d nets with distances that are too far, %d with ways that are: that proves little", far, heavy)
	}
}

// checkNext: both ways to find next hops give the ports that ok says.
func checkNext(t *testing.T, g *graph.Graph, h *graph.Hops, next *graph.NextHops, s, d int, ok func(*graph.Channel) bool) {
	t.Helper()
	var want []uint8
	for c := g.FirstChannel(s); c < g.FirstChannel(s+1); c++ {
		if ok(&g.Channels()[c]) {
			want = append(want, g.Channels()[c].Port)
		}
	}
	fast, _ := next.Ports(d)
	for _, got := range [][]uint8{slices.Clone(fast), slices.Clone(h.Next(s, d))} {
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("next hops from %d to %d: %v, want %v", s, d, got, want)
		}
	}
}

func BenchmarkHops(b *testing.B) {
	routingtest.Bench(b, "ft11664", func(b *testing.B, g *graph.Graph) error {
		_, err := graph.AllHops(b.Context(), g)
		return err
	})
}

func BenchmarkUpDown(b *testing.B) {
	routingtest.Bench(b, "ft11664", func(b *testing.B, g *graph.Graph) error {
		_, err := graph.UpDown(b.Context(), g, graph.FindLevels(g).Ranks())
		return err
	})
}
