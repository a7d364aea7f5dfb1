package engines

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
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

// disjointPaths is the mean number of paths without a common link between two ports.
func disjointPaths(t *testing.T, r *routes.Routes) float64 {
	t.Helper()
	sum, pairs := 0.0, 0.0
	for n, with := range routingtest.Verified(t, r, verify.Options{}).Disjoint.Links {
		sum += float64(n) * float64(with)
		pairs += float64(with)
	}
	return sum / max(1, pairs)
}

// TestSeparateTrees: on one lane, the LIDs of ports get paths that have less in common, by turns that close no cycle.
// No path is longer, and the first LIDs keep theirs.
func TestSeparateTrees(t *testing.T) {
	routingtest.ResultsOnly(t)
	apart, gain := 0, 0.0
	for _, net := range routingtest.SmallNets() {
		for lmc := 1; lmc <= 2; lmc++ {
			r := searched(t, withLMC(t, net, lmc))
			if r == nil {
				continue
			}
			before := r.Clone()
			if err := separateTrees(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			noLonger(t, net, before, r)
			for _, x := range r.Graph().Terminals() {
				for s := range r.Graph().Switches() {
					if x.Count > 0 && r.Row(s)[x.LID] != before.Row(s)[x.LID] {
						t.Fatalf("%s: the path of switch %d to LID %d is another", net, s, x.LID)
					}
				}
			}
			was, is := disjointPaths(t, before), disjointPaths(t, r)
			if is < 0.98*was { // to share less in all is not quite to have more paths that share nothing
				t.Errorf("%s, lmc %d: %.3f disjoint paths, before %.3f", net, lmc, is, was)
			}
			if is > was {
				apart, gain = apart+1, gain+is/was-1
			}
		}
	}
	t.Logf("paths share less on %d networks, by %.3f", apart, gain/float64(max(1, apart)))
	if apart < 20 || gain/float64(apart) < 0.02 {
		t.Errorf("paths share less on %d networks, by %.3f", apart, gain/float64(max(1, apart)))
	}
}

// TestEvenSiblings: among paths that have as little in common, those with less load are chosen, so that the largest
// load is little more for each of several LIDs than for one. Without, all of these are at least 1.2 times as much.
func TestEvenSiblings(t *testing.T) {
	routingtest.ResultsOnly(t)
	for _, x := range []struct {
		net, engine string
		lmc         int
		most        float64
	}{
		{"fattree:k=8,levels=3,remove_links=4%,seed=1", "sssp", 1, 1.1},
		{"mesh:dims=4/4/4,hosts=2", "minhop", 1, 1.15}, {"mesh:dims=4/4/4,hosts=2", "minhop", 2, 1.1},
		{"random:n=100,degree=6,hosts=4", "minhop", 1, 1.2}, {"random:n=100,degree=6,hosts=4", "sssp", 3, 1.15},
		{"torus:dims=4/4/4,hosts=1", "dfsssp", 1, 1.2},
	} {
		load := func(lmc int) float64 {
			load, err := largestLoad(t.Context(), compute(t, withLMC(t, x.net, lmc), x.engine, Options{}))
			if err != nil {
				t.Fatal(err)
			}
			return float64(load) / float64(int(1)<<lmc)
		}
		one, several := load(0), load(x.lmc)
		t.Logf("%s, %s: %.2f", x.net, x.engine, several/one)
		if several > x.most*one {
			t.Errorf("%s, %s: %g routes for each of %d LIDs, %g for one", x.net, x.engine, several, 1<<x.lmc, one)
		}
	}
}

// TestEvenOut: the loads by which paths are chosen are those of the tables, also where rates differ and where port 0
// of switches has several LIDs, and the largest is never more than before.
func TestEvenOut(t *testing.T) {
	routingtest.ResultsOnly(t)
	fell := 0
	for _, net := range routingtest.SmallNets() {
		for mixed := range 2 {
			f := routingtest.Topology(t, net)
			if mixed > 0 {
				f = routingtest.MixedRates(t, f, 1)
			}
			g, err := graph.New(f, graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) { return mad.LID(4 * (p.ID() + 1)), 2 }})
			if err != nil {
				t.Fatal(err)
			}
			h, err := graph.AllHops(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			for _, turns := range []bool{false, true} {
				var x *separation
				if turns {
					order := graph.DenseOrder(g, 0, make([]int, len(g.Switches())))
					r, err := nueUpDown(t.Context(), g, newOrderSearch(g).ranksOf(order), h)
					if err != nil {
						t.Fatal(err)
					} else if r == nil {
						continue // not all pairs have a path up and then down
					}
					if x, err = newTreeSeparation(t.Context(), r); x == nil {
						t.Fatal(net, err)
					}
				} else {
					x = newSeparation(routes.New(g, 0))
					if err := Assign(t.Context(), x.r, h, AssignOptions{Policy: First}); err != nil {
						t.Fatal(err)
					}
					x.h, x.next = h, make([]graph.NextHops, len(g.Switches()))
					for s := range x.next {
						x.next[s].Load(h, s)
					}
				}
				var w siblings
				for _, port := range x.ports {
					w.read(x, port)
					x.separatePort(&w)
				}
				load, err := weighedRoutes(t.Context(), x.r)
				if err != nil {
					t.Fatal(err)
				}
				before := slices.Clone(load)
				if err := x.evenOut(t.Context(), load); err != nil {
					t.Fatal(err)
				}
				after, err := weighedRoutes(t.Context(), x.r)
				if err != nil || !slices.Equal(load, after) {
					t.Errorf("%s, turns %v: the loads are others, %v", net, turns, err)
				}
				was, is := slices.Max(append(before, 0)), slices.Max(append(after, 0))
				if is > was {
					t.Errorf("%s, turns %v: largest load %d, before %d", net, turns, is, was)
				}
				fell += routingtest.Count(is < was)
			}
		}
	}
	if fell < 50 {
		t.Errorf("the largest load fell on %d networks", fell)
	}
}

// TestPrice: a path that would raise the largest load costs more than any other.
func TestPrice(t *testing.T) {
	g := withLMC(t, "ring:n=5,hosts=1", 1)
	x := newSeparation(compute(t, g, "minhop", Options{}))
	var err error
	if x.h, err = graph.AllHops(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	var w siblings
	w.read(x, x.ports[0])
	l := &siblingLoads{load: slices.Repeat([]int64{10}, len(g.Channels())), most: 12}
	s := w.order[0][len(w.order[0])-1]
	if n := x.price(&w, 1, w.Via[1][s], 2, l); n <= 0 || n == math.MaxInt64 {
		t.Errorf("a path with less than the largest load: %d", n)
	}
	if n := x.price(&w, 1, w.Via[1][s], 3, l); n != math.MaxInt64 {
		t.Errorf("a path that raises the largest load: %d", n)
	}
}

// TestSeparateDamaged: where LIDs of ports get other paths by other turns, these close no cycle, nor with the packets
// to switches, also if paths move to switches that no host sent packets over.
func TestSeparateDamaged(t *testing.T) {
	for _, net := range []string{"fattree:k=4,levels=4,remove_switches=3,remove_links=6%,seed=4", "fattree:k=8,levels=3,remove_links=8%,seed=2", "pgft:m=4/4/4,w=1/4/2,p=1/1/1,remove_links=25%,seed=1"} {
		for lmc := 1; lmc <= 2; lmc++ {
			r := compute(t, withLMC(t, net, lmc), nue.Name, Options{})
			if v := routingtest.Verified(t, r, verify.Options{}); !v.OK() {
				t.Errorf("%s, lmc %d: %+v", net, lmc, v)
			}
			hosts, err := verify.Dependencies(t.Context(), r, verify.SelectEndpoints(r.Graph(), 0))
			if err != nil {
				t.Fatal(err)
			}
			if all, err := verify.WithSwitches(t.Context(), r, hosts); err != nil || all == hosts {
				t.Errorf("%s, lmc %d: a credit loop with the packets to switches, %v", net, lmc, err)
			}
		}
	}
}

// TestExplainLIDs: of new tables, no rule says that they were kept or repaired.
func TestExplainLIDs(t *testing.T) {
	r := compute(t, withLMC(t, "fattree:k=8,levels=2,remove_links=8%,seed=2", 2), ftree.Name, Options{})
	byLoad := 0
	for _, from := range r.Graph().Terminals() {
		for _, to := range r.Graph().Terminals() {
			if from.Count == 0 || from.Switch == to.Switch || !from.IsEndpoint(0) || !to.IsEndpoint(0) {
				continue
			}
			for k := range max(1, to.Count) {
				for _, h := range explained(t, r, from.LID, to.LID+mad.LID(k)).Hops {
					if strings.Contains(h.Rule, "; tables that were kept") {
						t.Fatalf("from LID %d to %d: %s", from.LID, to.LID, h.Rule)
					}
					byLoad += routingtest.Count(strings.Contains(h.Rule, "for even loads"))
				}
			}
		}
	}
	if byLoad == 0 {
		t.Error("no port is explained by load")
	}
}
