package search_test

import (
	"testing"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
)

// TestCompatible: after a link was lost, packets that follow the old tables, and from some switch
// on the new ones, close no credit loop with other packets, unless drains are needed; and the new
// tables reach all that the tables of the engine reach.
func TestCompatible(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	nets := routingtest.SmallNets()
	made, needed, none := 0, 0, 0
	for i, spec := range nets {
		f := routingtest.Topology(t, spec)
		whole := newGraph(t, f, nil)
		for _, name := range []string{"updn", "nue"} {
			old, err := engines.Compute(t.Context(), whole, name, engines.Options{})
			if err != nil || len(whole.Channels()) == 0 {
				continue
			}
			g := newGraph(t, f, whole.ChannelPort((7*i)%len(whole.Channels())))
			own, err := engines.Compute(t.Context(), g, name, engines.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, drains, err := search.Compatible(t.Context(), old.On(g), own)
			if err != nil {
				t.Fatal(err)
			}
			if r == nil {
				none++
				continue
			}
			made++
			v, w := verified(t, r, verify.Options{}), verified(t, own, verify.Options{})
			if !v.Acyclic || v.Unreachable > w.Unreachable || v.Loops > 0 {
				t.Errorf("%s, %s: acyclic %v, %d pairs do not arrive, %d loop; of the engine %d", spec, name, v.Acyclic, v.Unreachable, v.Loops, w.Unreachable)
			}
			if acyclic := acyclicBetween(old.On(g), r); !drains && !acyclic {
				t.Errorf("%s, %s: a credit loop on the way", spec, name)
			} else if !acyclic {
				needed++
			}
		}
	}
	if made < 80 || needed > made/5 || none > made/10 {
		t.Errorf("%d tables, %d of them with drains, and %d times none", made, needed, none)
	}
}

func newGraph(t *testing.T, f *fabric.Fabric, lost *fabric.Port) *graph.Graph {
	t.Helper()
	g, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == lost }})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// acyclicBetween follows all packets between CAs, at each switch by the old entry or from
// there on by the new ones, and reports whether links wait for each other in no circle.
func acyclicBetween(old, new *routes.Routes) bool {
	g := new.Graph()
	waits := simple.NewDirectedGraph()
	for _, dest := range g.Dests() {
		if dest.Out == 0 {
			continue
		}
		type at struct {
			s, from int32
			changed bool
		}
		seen := map[at]bool{}
		var follow func(at)
		follow = func(p at) {
			if seen[p] {
				return
			}
			seen[p] = true
			for i, r := range []*routes.Routes{old, new} {
				if i == 0 && p.changed {
					continue
				}
				c := g.Target(p.s, r.Row(int(p.s)).Port(dest.LID)).Channel()
				if c < 0 {
					continue
				}
				if p.from >= 0 && p.from != c {
					waits.SetEdge(simple.Edge{F: simple.Node(p.from), T: simple.Node(c)})
				}
				follow(at{g.ChannelTo(c), c, i == 1})
			}
		}
		for s, n := range g.Endpoints() {
			if n > 0 {
				follow(at{int32(s), -1, false})
			}
		}
	}
	_, err := topo.Sort(waits)
	return err == nil
}
