package graph_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// TestUpDown: a pair has a distance if a legal path exists (a search that knows
// whether it went down already), and paths by next hops are legal and that long.
func TestUpDown(t *testing.T) {
	for i, spec := range routingtest.SmallNets() {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		o := graph.BuildOptions{}
		if i%2 == 1 {
			o.Weight = func(*fabric.Port) int { return 1 + random.IntN(3) }
		}
		g := routingtest.Graph(t, spec, o)
		roots := []int{random.IntN(len(g.Switches())), random.IntN(len(g.Switches()))}
		ranks := graph.RanksFrom(g, roots[:1+i%2])
		h, err := graph.UpDown(t.Context(), g, ranks)
		if err != nil {
			t.Fatal(err)
		}
		var next graph.NextHops
		for s := range g.Switches() {
			legal := legalFrom(g, ranks, s)
			next.Load(h, s)
			for d := range g.Switches() {
				if got := h.Distance(s, d) >= 0; got != legal[d] {
					t.Fatalf("%s: from %d to %d: %v, want %v", spec, s, d, got, legal[d])
				}
				// Follow one of the next hops at random.
				at, length, down := s, 0, false
				for at != d && legal[d] {
					ports := h.Next(at, d)
					if len(ports) == 0 {
						t.Fatalf("%s: from %d to %d: stuck at %d", spec, s, d, at)
					}
					c := &g.Channels()[g.Target(int32(at), ports[random.IntN(len(ports))])]
					if up := ranks.Up(at, int(c.To)); up && down {
						t.Fatalf("%s: from %d to %d: up at %d after down", spec, s, d, at)
					} else if !up {
						down = true
					}
					length += int(c.Weight)
					at = int(c.To)
				}
				if legal[d] && length != h.Distance(s, d) {
					t.Fatalf("%s: from %d to %d: %d links, distance %d", spec, s, d, length, h.Distance(s, d))
				}
				list := h.Next(s, d)
				slices.Sort(list)
				fast, _ := next.Ports(d)
				fast = slices.Clone(fast)
				slices.Sort(fast)
				if !slices.Equal(list, fast) {
					t.Fatalf("%s: from %d to %d: next hops %v and %v", spec, s, d, fast, list)
				}
			}
		}
	}
}

// legalFrom tells where paths lead that never go up after they went down.
func legalFrom(g *graph.Graph, r *graph.Ranks, from int) []bool {
	seen := make([][2]bool, len(g.Switches()))
	type state struct{ s, down int }
	queue := []state{{from, 0}}
	seen[from][0] = true
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for _, n := range g.Neighbours(x.s) {
			y := state{int(n.To), x.down}
			if !r.Up(x.s, y.s) {
				y.down = 1
			} else if x.down == 1 {
				continue
			}
			if !seen[y.s][y.down] {
				seen[y.s][y.down] = true
				queue = append(queue, y)
			}
		}
	}
	legal := make([]bool, len(seen))
	for s := range seen {
		legal[s] = seen[s][0] || seen[s][1]
	}
	return legal
}
