package verify_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// compute computes tables by an engine, and fails the test on an error.
var compute = routingtest.Computing(engines.Compute)

// TestVerifyOracle: what verification counts is what single paths add up to,
// and gonum finds a cycle in their dependencies where it does.
func TestVerifyOracle(t *testing.T) {
	verdicts, longer, rounds := map[bool]int{}, 0, 0
	for i, spec := range routingtest.SmallNets() {
		if testing.Short() && i%3 > 0 {
			continue
		}
		random := rand.New(rand.NewPCG(uint64(i), 0))
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		for _, kind := range []string{"minhop", "updn", "nue", "damaged"} {
			name := kind
			if kind == "damaged" {
				name = "minhop"
			}
			r := compute(t, g, name, engines.Options{})
			for k := 0; kind == "damaged" && k < 10; k++ {
				r.Row(random.IntN(len(g.Switches())))[1+random.IntN(int(g.Top()))] = uint8(random.IntN(8))
			}
			v := routingtest.Verified(t, r, verify.Options{Examples: 1 << 20})
			waits := simple.NewDirectedGraph()
			var lost, arrived, circles int64
			hops, detours := map[int]int64{}, map[int]int64{}
			edges := map[[2]int]bool{}
			for from := range g.Terminals() {
				for to := range g.Terminals() {
					a, b := &g.Terminals()[from], &g.Terminals()[to]
					if from == to || a.Out == 0 || b.Out == 0 {
						continue
					}
					p, err := r.Trace(a.LID, b.LID)
					if err != nil {
						t.Fatal(err)
					}
					if p.Broken != "" {
						lost++
						circles += int64(routingtest.Count(strings.HasSuffix(p.Broken, "loops")))
					} else {
						arrived++
						hops[len(p.Hops)+1]++
						detours[len(p.Hops)-1-graph.DistancesFrom(g, []int{b.Switch})[a.Switch]]++
					}
					before := -1
					for _, h := range p.Hops {
						c := g.Target(int32(h.Switch), h.Out)
						if before >= 0 && c >= 0 && before != int(c) && !edges[[2]int{before, int(c)}] {
							edges[[2]int{before, int(c)}] = true
							waits.SetEdge(waits.NewEdge(simple.Node(before), simple.Node(c)))
						}
						before = int(c)
					}
				}
			}
			if rounds += int(circles); v.Loops != circles {
				t.Errorf("%s, %s: %d pairs in loops, one by one %d", spec, kind, v.Loops, circles)
			}
			if v.Unreachable != lost || v.Pairs != lost+arrived || len(v.Broken)+int(v.Apart) != int(lost) {
				t.Errorf("%s, %s: %d of %d pairs do not arrive, %d listed; one by one %d of %d", spec, kind, v.Unreachable, v.Pairs, len(v.Broken), lost, lost+arrived)
			}
			for n, pairs := range hops {
				if n >= len(v.Hops) || v.Hops[n] != pairs {
					t.Errorf("%s, %s: hops %v, one by one %v", spec, kind, v.Hops, hops)
					break
				}
			}
			for n, pairs := range detours {
				if n >= len(v.Detours) || v.Detours[n] != pairs {
					t.Errorf("%s, %s: detours %v, one by one %v", spec, kind, v.Detours, detours)
					break
				}
				if n > 0 {
					longer++
				}
			}
			if v.Dependencies != len(edges) {
				t.Errorf("%s, %s: %d dependencies, one by one %d", spec, kind, v.Dependencies, len(edges))
			}
			acyclic := true
			for _, scc := range topo.TarjanSCC(waits) {
				acyclic = acyclic && len(scc) == 1
			}
			if v.Acyclic != acyclic {
				t.Errorf("%s, %s: acyclic %v, gonum: %v", spec, kind, v.Acyclic, acyclic)
			}
			verdicts[acyclic]++
			for k, w := range v.Cycle { // each step waits for the next
				next := v.Cycle[(k+1)%len(v.Cycle)]
				if w.Port.Peer().Node() != next.Port.Node() || !edges[[2]int{g.ChannelOf(w.Port), g.ChannelOf(next.Port)}] {
					t.Errorf("%s, %s: no such loop:\n%s", spec, kind, verify.FormatCycle(v.Cycle))
				}
				s := g.SwitchOf(next.Port.Node())
				if r.Row(g.SwitchOf(w.Port.Node())).Port(w.LID) != uint8(w.Port.Num()) || r.Row(s).Port(w.LID) != uint8(next.Port.Num()) {
					t.Errorf("%s, %s: LID %d takes other ways", spec, kind, w.LID)
				}
			}
		}
	}
	if verdicts[true] < 10 || verdicts[false] < 10 || longer < 10 || rounds < 10 {
		t.Errorf("verdicts %v, %d times detours, %d pairs in loops: that proves little", verdicts, longer, rounds)
	}
}

// TestVerifyMixture: tables that are fine each may deadlock together.
func TestVerifyMixture(t *testing.T) {
	g := routingtest.Graph(t, "mesh:dims=2/2,hosts=1", graph.BuildOptions{})
	xy := compute(t, g, "dor", engines.Options{})
	yx, err := graph.New(g.Fabric(), graph.BuildOptions{PortOrder: func(*fabric.Node) []int { return []int{4, 5, 2, 3} }})
	if err != nil {
		t.Fatal(err)
	}
	other := compute(t, yx, "dor", engines.Options{})
	for _, r := range []*routes.Routes{xy, other} {
		if v := routingtest.Verified(t, r, verify.Options{}); !v.OK() {
			t.Errorf("%+v", v)
		}
	}
	if d := other.Diff(xy); d.Entries == 0 {
		t.Error("the tables are the same")
	}
	v := routingtest.Verified(t, xy, verify.Options{Union: other})
	if v.Acyclic || v.Unreachable != 0 || v.Pairs != 12 || v.Judged != "static forwarding tables, SL 0, and any mixture with the other tables" {
		t.Errorf("%+v", v)
	}
}

func TestVerifyWords(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=5", graph.BuildOptions{})
	r := compute(t, g, "minhop", engines.Options{})
	v := routingtest.Verified(t, r, verify.Options{})
	want := `switch-1/2 -> switch-5/3, VL 0, to LID 9
switch-5/2 -> switch-4/3, VL 0, to LID 8
switch-4/2 -> switch-3/3, VL 0, to LID 7
switch-3/2 -> switch-2/3, VL 0, to LID 6
switch-2/2 -> switch-1/3, VL 0, to LID 10
`
	if got := verify.FormatCycle(v.Cycle); got != want {
		t.Errorf("got\n%s", got)
	}
	if v.Endpoints != "all 5 ports of CAs and routers (5 cn)" || v.MaxHops != 4 || fmt.Sprint(v.Hops, v.Detours, v.Notes) != "[0 0 0 10 10] [20] [no port has a LID; LIDs are assigned from 1, in the order of the fabric adaptive routing not determined]" {
		t.Errorf("%+v", v)
	}
	v = routingtest.Verified(t, r, verify.Options{Endpoints: graph.ClassSwitch})
	if v.Endpoints != "5 ports (5 switch)" || v.Terminals != 5 || fmt.Sprint(v.Hops) != "[0 10 10]" {
		t.Errorf("%+v", v)
	}
	v = routingtest.Verified(t, r, verify.Options{Endpoints: graph.ClassSwitch | graph.ClassCN})
	if v.Endpoints != "10 ports (5 cn, 5 switch)" || fmt.Sprint(v.Hops) != "[0 20 30 30 10]" {
		t.Errorf("%+v", v)
	}
	// Pairs that need not reach each other.
	r.Row(0).Fill([]mad.LID{7, 8}, routes.NoPort)
	v = routingtest.Verified(t, r, verify.Options{Require: func(src, dst *graph.Terminal) bool { return dst.LID != 7 }, Examples: 2})
	var broken []string
	for _, b := range v.Broken {
		broken = append(broken, fmt.Sprintf("%s to %d: %s", b.From.Name(), b.LID, b.Why))
	}
	if v.Unreachable == 0 || v.Excused == 0 || v.Unreachable+v.Excused >= v.Pairs || broken[0] != `node-0001 HCA-1/1 to 8: "switch-1" (0x0002c90300100000) drops LID 8` {
		t.Errorf("%+v %q", v, broken)
	}
}
