package search

import (
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// byQueue finds the paths of sweep by search, and returns the links beyond shortest paths.
func (n *nueSearch) byQueue(d int, connected *graph.Hops) (excess int64) {
	n.order.Budget = -1
	n.begin(d)
	n.search()
	n.order.Budget = 0
	n.order.Commit(func(v, w int32) bool { return false })
	for s, endpoints := range n.endpoints {
		switch x := connected.Distance(s, d); {
		case x < 0:
		case n.settled[s]:
			excess += endpoints * (n.cost[s]/hopCost - int64(x))
		default:
			excess += endpoints * graph.MaxDistance
		}
	}
	return excess
}

// TestLevels: searches without cycle tests find equal paths level by level and by a queue, and the
// lane with the shortest, whatever the weights of links and the loads are.
func TestLevels(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 1))
	for _, net := range []string{"torus:dims=4/4/3,hosts=2", "random:n=30,degree=4,hosts=3,remove_links=10%", "dragonfly:a=4,p=2,h=2", "pgft:m=4/4,w=1/2,p=1/3"} {
		for _, weighted := range []bool{false, true} {
			o := graph.BuildOptions{}
			if weighted {
				o.Weight = func(*fabric.Port) int { return 1 + random.IntN(3) }
			}
			g := routingtest.Graph(t, net, o)
			connected, err := graph.AllHops(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			r := routes.New(g, 0)
			var lanes []*nueSearch
			load := make([]int64, len(g.Channels()))
			for c := range load {
				load[c] = random.Int64N(3)
			}
			for root := range 4 {
				n := newNueSearch(r, verify.NewDependencyGraph(g, 1), verify.UpDownOrder(g, graph.RanksFrom(g, []int{root})), settings{})
				n.load = load
				n.addTree(root)
				lanes = append(lanes, n)
			}
			for d := range g.Switches() {
				var excess []int64
				for i, n := range lanes {
					excess = append(excess, n.byQueue(d, connected))
					want := slices.Clone(n.via)
					left := n.left
					n.sweep(d)
					for s, via := range n.via {
						if n.endpoints[s] > 0 && via != want[s] {
							t.Fatalf("%s, weighted %t, to switch %d on lane %d: switch %d takes channel %d, want %d", net, weighted, d, i, s, via, want[s])
						}
					}
					if n.left != left {
						t.Fatalf("%s, to switch %d on lane %d: %d switches left, want %d", net, d, i, n.left, left)
					}
				}
				if got, want := shortestLane(lanes, d, connected), slices.Index(excess, slices.Min(excess)); got != want {
					t.Fatalf("%s, weighted %t, to switch %d: lane %d of %d", net, weighted, d, got, excess)
				}
			}
		}
	}
}
