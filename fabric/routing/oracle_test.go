package routing

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"fabsh/fabric"
)

// TestDistances: gonum's Dijkstra finds the same distances, with weights and
// without, and the next hops are those that are nearer by a link. Ways that are
// too long matter only where there is no other.
func TestDistances(t *testing.T) {
	far, heavy := 0, 0
	for i, spec := range small() {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		weights := make(map[*fabric.Port]int)
		o := GraphOptions{}
		if i%2 == 1 {
			o.Weight = func(p *fabric.Port) int {
				if weights[p] == 0 {
					weights[p] = 1 + random.IntN(4)
					switch {
					case i%4 == 3 && random.IntN(12) == 0:
						weights[p] = maxDistance - random.IntN(4)
					case i%8 == 1:
						weights[p] += 30
					}
				}
				return weights[p]
			}
		}
		g := graph(t, spec, o)
		want := simple.NewWeightedDirectedGraph(0, math.Inf(1))
		for s := range g.switches {
			want.AddNode(simple.Node(s))
		}
		for _, c := range g.channels {
			w := float64(c.Weight)
			if e := want.WeightedEdge(int64(c.From), int64(c.To)); e != nil {
				w = min(w, e.Weight())
			}
			want.SetWeightedEdge(want.NewWeightedEdge(simple.Node(c.From), simple.Node(c.To), w))
		}
		longest := 0.0
		for s := range g.switches {
			for d, shortest := 0, path.DijkstraFrom(simple.Node(s), want); d < len(g.switches); d++ {
				if x := shortest.WeightTo(int64(d)); !math.IsInf(x, 1) {
					longest = max(longest, x)
				}
			}
		}
		h, err := g.Hops(t.Context())
		if longest > maxDistance {
			if far++; err == nil {
				t.Errorf("%s: no error, but gonum finds a distance of %v", spec, longest)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v; gonum: %v at most", spec, err, longest)
		}
		for _, c := range g.channels {
			if c.Weight > 100 {
				heavy++
				break
			}
		}
		weight := make([]int64, len(g.channels))
		for c := range weight {
			weight[c] = int64(g.channels[c].Weight)
		}
		costs := make([][]int64, len(g.switches))
		for d := range g.switches {
			if costs[d], _, err = g.Dijkstra(d, weight); err != nil {
				t.Fatal(err)
			}
		}
		var next nextHops
		for s := range g.switches {
			shortest := path.DijkstraFrom(simple.Node(s), want)
			next.load(h, s)
			for d := range g.switches {
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
				checkNext(t, g, h, &next, s, d, func(c *Channel) bool {
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
func checkNext(t *testing.T, g *Graph, h *Hops, next *nextHops, s, d int, ok func(*Channel) bool) {
	t.Helper()
	var want []uint8
	for c := g.chanBase[s]; c < g.chanBase[s+1]; c++ {
		if ok(&g.channels[c]) {
			want = append(want, g.channels[c].Port)
		}
	}
	fast, _ := next.ports(d)
	for _, got := range [][]uint8{slices.Clone(fast), slices.Clone(h.Next(s, d))} {
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("next hops from %d to %d: %v, want %v", s, d, got, want)
		}
	}
}

// TestUpDown: a pair has a distance if a legal path exists (a search that knows
// whether it went down already), and paths by next hops are legal and that long.
func TestUpDown(t *testing.T) {
	for i, spec := range small() {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		o := GraphOptions{}
		if i%2 == 1 {
			o.Weight = func(*fabric.Port) int { return 1 + random.IntN(3) }
		}
		g := graph(t, spec, o)
		roots := []int{random.IntN(len(g.switches)), random.IntN(len(g.switches))}
		ranks := g.Ranks(roots[:1+i%2])
		h, err := g.UpDown(t.Context(), ranks)
		if err != nil {
			t.Fatal(err)
		}
		var next nextHops
		for s := range g.switches {
			legal := legalFrom(g, ranks, s)
			next.load(h, s)
			for d := range g.switches {
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
					c := &g.channels[g.targets[int(g.portBase[at])+int(ports[random.IntN(len(ports))])]]
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
				fast, _ := next.ports(d)
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
func legalFrom(g *Graph, r *Ranks, from int) []bool {
	seen := make([][2]bool, len(g.switches))
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

// TestVerifyOracle: what verification counts is what single paths add up to,
// and gonum finds a cycle in their dependencies where it does.
func TestVerifyOracle(t *testing.T) {
	verdicts, longer, rounds := map[bool]int{}, 0, 0
	for i, spec := range small() {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		g := graph(t, spec, GraphOptions{})
		for _, engine := range []string{"minhop", "updn", "nue", "damaged"} {
			name := engine
			if engine == "damaged" {
				name = "minhop"
			}
			r := compute(t, g, name, Options{})
			for k := 0; engine == "damaged" && k < 10; k++ {
				r.Row(random.IntN(len(g.switches)))[1+random.IntN(int(g.Top()))] = uint8(random.IntN(8))
			}
			v := verify(t, r, VerifyOptions{Examples: 1 << 20})
			waits := simple.NewDirectedGraph()
			var lost, arrived, circles int64
			hops, detours := map[int]int64{}, map[int]int64{}
			edges := map[[2]int]bool{}
			for from := range g.terminals {
				for to := range g.terminals {
					a, b := &g.terminals[from], &g.terminals[to]
					if from == to || a.Out == 0 || b.Out == 0 {
						continue
					}
					p, err := r.Trace(a.LID, b.LID)
					if err != nil {
						t.Fatal(err)
					}
					if p.Broken != "" {
						lost++
						circles += int64(btoi(strings.HasSuffix(p.Broken, "goes round in circles")))
					} else {
						arrived++
						hops[len(p.Hops)+1]++
						detours[len(p.Hops)-1-g.distancesFrom([]int{b.Switch})[a.Switch]]++
					}
					before := -1
					for _, h := range p.Hops {
						c := g.target(int32(h.Switch), h.Out)
						if before >= 0 && c >= 0 && before != int(c) && !edges[[2]int{before, int(c)}] {
							edges[[2]int{before, int(c)}] = true
							waits.SetEdge(waits.NewEdge(simple.Node(before), simple.Node(c)))
						}
						before = int(c)
					}
				}
			}
			if rounds += int(circles); v.Loops != circles {
				t.Errorf("%s, %s: %d pairs in loops, one by one %d", spec, engine, v.Loops, circles)
			}
			if v.Unreachable != lost || v.Pairs != lost+arrived || len(v.Broken) != int(lost) {
				t.Errorf("%s, %s: %d of %d pairs do not arrive, %d listed; one by one %d of %d", spec, engine, v.Unreachable, v.Pairs, len(v.Broken), lost, lost+arrived)
			}
			for n, pairs := range hops {
				if n >= len(v.Hops) || v.Hops[n] != pairs {
					t.Errorf("%s, %s: hops %v, one by one %v", spec, engine, v.Hops, hops)
					break
				}
			}
			for n, pairs := range detours {
				if n >= len(v.Detours) || v.Detours[n] != pairs {
					t.Errorf("%s, %s: detours %v, one by one %v", spec, engine, v.Detours, detours)
					break
				}
				if n > 0 {
					longer++
				}
			}
			if v.Dependencies != len(edges) {
				t.Errorf("%s, %s: %d dependencies, one by one %d", spec, engine, v.Dependencies, len(edges))
			}
			acyclic := true
			for _, scc := range topo.TarjanSCC(waits) {
				acyclic = acyclic && len(scc) == 1
			}
			if v.Acyclic != acyclic {
				t.Errorf("%s, %s: acyclic %v, gonum: %v", spec, engine, v.Acyclic, acyclic)
			}
			verdicts[acyclic]++
			for k, w := range v.Cycle { // each step waits for the next
				next := v.Cycle[(k+1)%len(v.Cycle)]
				if w.Port.Peer().Node() != next.Port.Node() || !edges[[2]int{g.ChannelOf(w.Port), g.ChannelOf(next.Port)}] {
					t.Errorf("%s, %s: no such loop:\n%s", spec, engine, FormatCycle(v.Cycle))
				}
				s := g.SwitchOf(next.Port.Node())
				if r.Row(g.SwitchOf(w.Port.Node())).Port(w.LID) != uint8(w.Port.Num()) || r.Row(s).Port(w.LID) != uint8(next.Port.Num()) {
					t.Errorf("%s, %s: LID %d takes other ways", spec, engine, w.LID)
				}
			}
		}
	}
	if verdicts[true] < 10 || verdicts[false] < 10 || longer < 10 || rounds < 10 {
		t.Errorf("verdicts %v, %d times detours, %d pairs in loops: that proves little", verdicts, longer, rounds)
	}
}

// TestFailEachLink: each link taken out, tables as they are; and whether any
// tables would help.
func TestFailEachLink(t *testing.T) {
	cuts := 0
	for i, spec := range small() {
		if i%3 != 0 {
			continue
		}
		f := topology(t, spec)
		g, err := NewGraph(f, GraphOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := compute(t, g, "sssp", Options{})
		before := verify(t, r, VerifyOptions{})
		list, err := r.FailEachLink(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != len(g.channels)/2 {
			t.Errorf("%s: %d links, want %d", spec, len(list), len(g.channels)/2)
		}
		for _, l := range list {
			less, err := NewGraph(f, GraphOptions{Exclude: func(p *fabric.Port) bool { return p == l.Port }})
			if err != nil {
				t.Fatal(err)
			}
			after := verify(t, r.On(less), VerifyOptions{})
			best := verify(t, compute(t, less, "sssp", Options{}), VerifyOptions{})
			if after.Unreachable-before.Unreachable != l.Pairs || best.Unreachable-before.Unreachable != l.Lost || l.Cuts && l.Lost == 0 != (best.Unreachable == before.Unreachable) {
				t.Errorf("%s without %s: %+v; %d pairs are lost, %d for good", spec, l.Port.Label(), l, after.Unreachable-before.Unreachable, best.Unreachable-before.Unreachable)
			}
			if l.Cuts {
				cuts++
			}
		}
	}
	if cuts == 0 {
		t.Error("no link cuts anything: that proves little")
	}
}
