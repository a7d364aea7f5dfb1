package verify_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestViaOracle: the violations that are counted are the violations of single paths.
func TestViaOracle(t *testing.T) {
	total := map[bool]int64{}
	for i, spec := range routingtest.SmallNets() {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		r := compute(t, g, "minhop", engines.Options{})
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
			if want > 0 && (found[0].Must != must || found[0].Rule != 1-routingtest.Count(must) || found[0].Path.String() != first.String()) {
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
	g := routingtest.Graph(t, "ring:n=4", graph.BuildOptions{})
	r := compute(t, g, "minhop", engines.Options{})
	rule := verify.ViaRule{From: []int{4}, To: []int{6}, Nodes: []*fabric.Node{g.Switches()[0]}, Must: true}
	if v := routingtest.Verified(t, r, verify.Options{Via: []verify.ViaRule{rule}}); !v.OK() || v.Violations != 0 {
		t.Errorf("got %+v", v)
	}
	rule.Must = false
	if v := routingtest.Verified(t, r, verify.Options{Via: []verify.ViaRule{rule}}); v.OK() || v.Violations != 1 || len(v.Violating) != 1 {
		t.Errorf("got %+v", v)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := verify.CheckVia(ctx, r, []verify.ViaRule{rule}, 1); err == nil {
		t.Error("it goes on after its end")
	}
}

// TestViaChoices: where switches choose, the violations are the violations of single paths, followed by
// the checker; with several private LFTs no fewer.
func TestViaChoices(t *testing.T) {
	nets := []string{"ring:n=4,hosts=1", "mesh:dims=2/3,hosts=1", "pgft:m=2/3,w=1/2,p=1/1", "random:n=5,degree=2,hosts=1,seed=2", "hyperx:dims=3,hosts=2"}
	random := rand.New(rand.NewPCG(4, 2))
	total := map[bool]int64{}
	for i := range 150 {
		g := routingtest.Graph(t, nets[i%len(nets)], graph.BuildOptions{})
		r := compute(t, g, "updn", engines.Options{})
		h, err := graph.UpDown(t.Context(), g, graph.RanksFrom(g, []int{0}))
		if err != nil {
			t.Fatal(err)
		}
		randomChoices(random, r, h, false)
		c := newChecker(r)
		private := slices.ContainsFunc(c.ar, func(a *adaptive.Switch) bool { return a.Active() && a.Private != nil })
		must := i%2 == 0
		ports := g.Fabric().Ports()
		rule := verify.ViaRule{Must: must, Nodes: []*fabric.Node{g.Switches()[random.IntN(len(g.Switches()))]}, Ports: []*fabric.Port{&ports[random.IntN(len(ports))]}}
		for t := range g.Terminals() {
			if g.Terminals()[t].Out > 0 {
				rule.From, rule.To = append(rule.From, t), append(rule.To, t)
			}
		}
		crosses := func(p *fabric.Port) bool {
			return slices.Contains(rule.Nodes, p.Node()) || p.Num() > 0 && (rule.Ports[0] == p || rule.Ports[0] == p.Peer())
		}
		// breaks reports whether a path from switch s breaks the rule. It does not search twice
		// from one state.
		type state struct {
			s       int32
			in      uint8
			crossed bool
		}
		seen := map[state]bool{}
		var breaks func(s int32, in, sl uint8, transport adaptive.Transport, to int, lid mad.LID, crossed bool) bool
		breaks = func(s int32, in, sl uint8, transport adaptive.Transport, to int, lid mad.LID, crossed bool) bool {
			if seen[state{s, in, crossed}] {
				return false
			}
			seen[state{s, in, crossed}] = true
			return slices.ContainsFunc(c.mayTake(s, in, sl, transport, lid), func(p uint8) bool {
				now := crossed || slices.Contains(rule.Nodes, g.Switches()[s])
				if out := g.Switches()[s].Port(int(p)); out != nil {
					now = now || crosses(out)
				}
				switch target := g.Target(s, p); {
				case target.IsChannel():
					ch := g.Channels()[target.Channel()]
					return breaks(ch.To, ch.PeerPort, sl, transport, to, lid, now)
				case target == graph.ToTerminal(int32(to)):
					return (now || slices.Contains(rule.Nodes, g.Terminals()[to].Port.Node())) != must
				}
				return false
			})
		}
		want := int64(0)
		for _, from := range rule.From {
			for _, to := range rule.To {
				src, lid := &g.Terminals()[from], g.Terminals()[to].LID
				broken := false
				for sl := uint8(0); sl < 16 && from != to; sl++ {
					for transport := adaptive.RC; transport <= adaptive.DC; transport++ {
						clear(seen)
						broken = broken || breaks(int32(src.Switch), src.Out, sl, transport, to, lid, crosses(src.Port))
					}
				}
				want += int64(routingtest.Count(broken))
			}
		}
		n, found, err := verify.CheckVia(context.Background(), r, []verify.ViaRule{rule}, 1000)
		if err != nil || int64(len(found)) != n || n < want || n > want && !private {
			t.Fatalf("table %d: %d violations, %d examples, want %d (%v)", i, n, len(found), want, err)
		}
		for _, v := range found {
			if is := slices.ContainsFunc(v.Path.Ports(), crosses); v.Path.Broken != "" || is == must {
				t.Fatalf("table %d: %s breaks no rule", i, v.Path)
			}
		}
		total[must] += n
	}
	if total[true] < 100 || total[false] < 100 {
		t.Errorf("too few violations: %v", total)
	}
}
