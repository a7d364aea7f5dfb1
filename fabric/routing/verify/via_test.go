package verify_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engine"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestViaOracle: the violations that are counted are those of single paths.
func TestViaOracle(t *testing.T) {
	total := map[bool]int64{}
	for i, spec := range routingtest.SmallNets() {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		g := routingtest.Graph(t, spec, graph.Options{})
		r := compute(t, g, "minhop", engine.Options{})
		for k := 0; i%2 == 0 && k < 10; k++ { // some do not arrive, or loop
			r.Row(random.IntN(len(g.Switches())))[1+random.IntN(int(g.Top()))] = uint8(random.IntN(8))
		}
		all := make([]int, len(g.Terminals()))
		for i := range all {
			all[i] = i
		}
		nodes, ports := g.Fabric().Nodes(), g.Fabric().Ports()
		for _, must := range []bool{false, true} {
			rule := verify.ViaRule{From: all, To: all[:len(all)/2], Must: must,
				Nodes: []*fabric.Node{&nodes[random.IntN(len(nodes))], g.Switches()[random.IntN(len(g.Switches()))]},
				Ports: []*fabric.Port{&ports[random.IntN(len(ports))], &ports[random.IntN(len(ports))]}}
			var want int64
			var first *routes.Path
			for _, to := range rule.To {
				for lid := g.Terminals()[to].LID; lid < g.Terminals()[to].LID+1<<g.Terminals()[to].Port.LMC(); lid++ {
					for _, from := range rule.From {
						p, err := r.Trace(g.Terminals()[from].LID, lid)
						if err != nil {
							t.Fatal(err)
						}
						if from == to || p.Broken != "" {
							continue
						}
						path := p.Ports()
						crosses := slices.ContainsFunc(path, func(q *fabric.Port) bool {
							return slices.Contains(rule.Nodes, q.Node()) ||
								slices.ContainsFunc(rule.Ports, func(v *fabric.Port) bool {
									return q.Num() > 0 && (v == q || v == q.Peer()) && slices.Contains(path, q.Peer())
								})
						})
						if crosses != must {
							if want++; first == nil {
								first = p
							}
						}
					}
				}
			}
			n, found, err := verify.CheckVia(context.Background(), r, []verify.ViaRule{{}, rule}, 3)
			if err != nil || n != want || int64(len(found)) != min(want, 3) {
				t.Errorf("%s: must %v: got %d, %d examples, want %d (%v)", spec, must, n, len(found), want, err)
				continue
			}
			if want > 0 && (found[0].Must != must || found[0].Rule != 1-btoi(must) || found[0].Path.String() != first.String()) {
				t.Errorf("%s: got\n%v\nwant\n%v", spec, found[0].Path, first)
			}
			total[must] += n
		}
	}
	if total[true] < 100 || total[false] < 100 {
		t.Errorf("too few: %v", total)
	}
}

func TestViaVerdict(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=4", graph.Options{})
	r := compute(t, g, "minhop", engine.Options{})
	rule := verify.ViaRule{From: []int{4}, To: []int{6}, Nodes: []*fabric.Node{g.Switches()[0]}, Must: true}
	if v := verified(t, r, verify.Options{Via: []verify.ViaRule{rule}}); !v.OK() || v.Violations != 0 {
		t.Errorf("got %+v", v)
	}
	rule.Must = false
	if v := verified(t, r, verify.Options{Via: []verify.ViaRule{rule}}); v.OK() || v.Violations != 1 || len(v.Violating) != 1 {
		t.Errorf("got %+v", v)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := verify.CheckVia(ctx, r, []verify.ViaRule{rule}, 1); err == nil {
		t.Error("it goes on after its end")
	}
}
