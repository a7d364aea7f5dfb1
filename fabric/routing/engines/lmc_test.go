package engines

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// mostPaths is how many paths without a common channel there are from switch s to switch d, at
// most as many as wanted: over any channels, or over next hops only (Ford and Fulkerson).
func mostPaths(g *graph.Graph, h *graph.Hops, s, d int32, wanted int) int {
	used := map[int32]bool{}
	for n := range wanted {
		type step struct {
			channel int32
			back    bool
		}
		before := map[int32]step{s: {-1, false}}
		for queue := []int32{s}; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			for i := range g.Channels() {
				c := &g.Channels()[i]
				from, to := c.From, c.To
				forward := from == at && !used[int32(i)] && (h == nil || h.Distance(int(to), int(d)) < h.Distance(int(from), int(d)))
				backward := to == at && used[int32(i)]
				next := to
				if backward {
					next = from
				}
				if _, seen := before[next]; !seen && (forward || backward) {
					before[next] = step{int32(i), backward}
					queue = append(queue, next)
				}
			}
		}
		if _, found := before[d]; !found {
			return n
		}
		for at := d; at != s; {
			x := before[at]
			used[x.channel] = !x.back
			if x.back {
				at = g.Channels()[x.channel].To
			} else {
				at = g.Channels()[x.channel].From
			}
		}
	}
	return wanted
}

// TestSeparateLIDs: the LIDs of a port (LMC) have paths without a common link: in trees as many as there
// are, elsewhere nearly as many as by shortest paths. Paths of nue may be longer, and obey its turns. dor, lash
// and torus-2qos have one path between two switches, by definition; up*/down* paths are bounded by their turns.
func TestSeparateLIDs(t *testing.T) {
	least := map[string]float64{"minhop": 0.9, "sssp": 0.9, "dfsssp": 0.9, "ftree": 1, "nue": 0.7, "updn": 0.6, "dnup": 0.6}
	for _, spec := range []string{"fattree:k=4,levels=3", "fattree:k=4,levels=3,remove_links=4,seed=1", "pgft:m=3/4/2,w=1/2/3,p=1/1/2", "torus:dims=4/4,hosts=2", "torus:dims=3/5,hosts=1", "mesh:dims=3/4,hosts=2", "hyperx:dims=4/4,hosts=2", "dragonfly:a=4,p=2,h=2", "random:n=24,degree=4,hosts=3"} {
		for _, lmc := range []int{1, 2} {
			g, err := graph.New(routingtest.WithLMC(t, routingtest.Topology(t, spec), lmc), graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			h, err := graph.AllHops(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			var possible, shortest, pairs float64
			ends := g.Endpoints()
			for s := range g.Switches() {
				for d := range g.Switches() {
					if n := float64(ends[s] * ends[d]); s != d && n > 0 {
						pairs += n
						possible += n * float64(mostPaths(g, nil, int32(s), int32(d), 1<<lmc))
						shortest += n * float64(mostPaths(g, h, int32(s), int32(d), 1<<lmc))
					}
				}
			}
			line := fmt.Sprintf("%s, lmc %d: possible %.2f, by shortest paths %.2f:", spec, lmc, possible/pairs, shortest/pairs)
			for _, name := range Names() {
				r, err := Compute(t.Context(), g, name, Options{MaxVLs: 15})
				if errors.As(err, new(*Precondition)) || name == "file" {
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				for n, pairs := range routingtest.Verified(t, r, verify.Options{}).Disjoint.Links {
					sum += float64(n) * float64(pairs)
				}
				line += fmt.Sprintf(" %s %.2f", name, sum/pairs)
				want := least[name]
				if strings.Contains(spec, "fattree") || strings.Contains(spec, "pgft") {
					want = math.Ceil(want)
				}
				if sum < want*shortest-1e-6 {
					t.Errorf("%s, lmc %d, %s: %.2f disjoint paths, want %.2f of %.2f", spec, lmc, name, sum/pairs, want, shortest/pairs)
				}
			}
			t.Log(line)
		}
	}
}
