package graph_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
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

// legalFrom reports where paths lead that never go up after they went down.
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

func TestRoots(t *testing.T) {
	for _, x := range []struct{ spec, method, want string }{
		{"fattree:k=4", "color", "spine-1 spine-2 "},
		{"fattree:k=4", "farthest", "spine-1 spine-2 "},
		{"fattree:k=4", "histogram", "spine-1 spine-2 "},
		{"fattree:k=4", "center", "spine-1 "},
		{"fattree:k=4,levels=3", "histogram", "core-1 core-2 core-3 core-4 "},
		{"mesh:dims=5,hosts=1", "center", "switch-3 "},
		{"mesh:dims=5,hosts=1", "histogram", `roots by histogram: no switch has more than 90% of the 5 CA ports at one distance and no other 5%`},
		{"ring:n=3,hosts=0", "color", "roots by color: not a fat tree: no switch has a compute node"},
		{"ring:n=3", "magic", `unknown method "magic" to find roots; supported: color, farthest, histogram, center`},
	} {
		g := routingtest.Graph(t, x.spec, graph.BuildOptions{})
		roots, err := graph.FindRoots(t.Context(), g, x.method)
		got := ""
		for _, s := range roots {
			got += g.Switches()[s].Name() + " "
		}
		if err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", x.spec, x.method, got, x.want)
		}
	}
}

// TestHistogramRoots: 94 of 100 hosts at one distance and the others at another
// are no root's view; 96 are.
func TestHistogramRoots(t *testing.T) {
	for near, want := range map[int]string{6: "[]", 4: "[0 1]"} {
		b := fabric.NewBuilder()
		add := func(kind mad.NodeType, ports, i int) int {
			return b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: kind, NumPorts: uint8(ports), NodeGUID: mad.GUID(i + 1), PortGUID: mad.GUID(i + 1)}})
		}
		hub, leaf := add(mad.NodeTypeSwitch, 120, 0), add(mad.NodeTypeSwitch, 120, 1)
		err := b.Link(hub, 120, leaf, 120)
		for i := range 100 {
			on := leaf
			if i < near {
				on = hub
			}
			err = errors.Join(err, b.Link(add(mad.NodeTypeCA, 1, 2+i), 1, on, 1+i))
		}
		g, bad := graph.New(b.Build(), graph.BuildOptions{})
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		if roots, _ := graph.FindRoots(t.Context(), g, "histogram"); fmt.Sprint(roots) != want {
			t.Errorf("%d hosts on the hub: %v, want %s", near, roots, want)
		}
	}
}
