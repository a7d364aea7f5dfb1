package verify_test

import (
	"fmt"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// waits are all pairs of links, one way, of which a packet may hold the first and wait
// for the other, where each switch may send it to any port of a shortest path, or to
// the table's: found by following each packet by hand, over the fabric alone.
type waits map[[2]*fabric.Port]bool

func enumerate(r *routes.Routes) waits {
	f := r.Graph().Fabric()
	found := waits{}
	var sources []*fabric.Port // of switches, to CAs
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Node().IsSwitch() && p.Num() > 0 && p.Peer() != nil && !p.Peer().Node().IsSwitch() {
			sources = append(sources, p)
		}
	}
	for _, last := range sources {
		home := last.Node()
		distance := map[*fabric.Node]int{home: 0}
		for queue := []*fabric.Node{home}; len(queue) > 0; queue = queue[1:] {
			for p := range queue[0].Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() {
					if _, known := distance[q.Node()]; !known {
						distance[q.Node()] = distance[queue[0]] + 1
						queue = append(queue, q.Node())
					}
				}
			}
		}
		for i := range 1 << last.Peer().LMC() {
			lid := r.Graph().Terminals()[r.Graph().TerminalOf(last.Peer())].LID + mad.LID(i)
			ways := func(n *fabric.Node) (list []*fabric.Port) {
				entry := r.Row(r.Graph().SwitchOf(n)).Port(lid)
				for p := range n.Ports() {
					q := p.Peer()
					if n == home || q == nil || !q.Node().IsSwitch() || q.Node() == n {
						continue
					}
					if d, known := distance[q.Node()]; known && d == distance[n]-1 || p.Num() == int(entry) {
						list = append(list, p)
					}
				}
				return list
			}
			seen := map[*fabric.Port]bool{}
			var follow func(p *fabric.Port)
			follow = func(p *fabric.Port) {
				if seen[p] {
					return
				}
				seen[p] = true
				for _, next := range ways(p.Peer().Node()) {
					found[[2]*fabric.Port{p, next}] = true
					follow(next)
				}
			}
			for _, s := range sources {
				for _, p := range ways(s.Node()) {
					follow(p)
				}
			}
		}
	}
	return found
}

// cyclic takes away what waits for nothing until nothing is left, or nothing more can go.
func (w waits) cyclic() bool {
	for {
		waiting := map[*fabric.Port]bool{}
		for pair := range w {
			waiting[pair[0]] = true
		}
		before := len(w)
		for pair := range w {
			if !waiting[pair[1]] {
				delete(w, pair)
			}
		}
		if len(w) == before {
			return before > 0
		}
	}
}

// TestAdaptiveMinimal compares the graph of all choices, and the verdict, with what
// following each packet finds.
func TestAdaptiveMinimal(t *testing.T) {
	t.Parallel()
	specs := []string{"fattree:k=4,levels=3", "torus:dims=3/3,hosts=1", "dragonfly:a=4,p=2,h=1", "pgft:m=4/4,w=1/2,p=1/3"}
	for seed := range 6 {
		specs = append(specs, fmt.Sprintf("random:n=10,degree=3,hosts=1,remove_links=2,seed=%d", seed+1),
			fmt.Sprintf("fattree:k=4,levels=3,remove_links=4,seed=%d", seed+1))
	}
	ok := map[bool]int{}
	for _, spec := range specs {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		for _, name := range []string{"minhop", "updn", "nue"} {
			r := compute(t, g, name, engines.Options{})
			v := routingtest.Verified(t, r, verify.Options{Adaptive: verify.AdaptiveMinimal})
			want := enumerate(r)
			if v.Dependencies != len(want) {
				t.Errorf("%s, %s: %d dependencies, want %d", spec, name, v.Dependencies, len(want))
			}
			for i, c := range v.Cycle {
				next := v.Cycle[(i+1)%len(v.Cycle)].Port
				if !want[[2]*fabric.Port{c.Port, next}] {
					t.Errorf("%s, %s: no packet waits on %s for %s", spec, name, c.Port.Name(), next.Name())
				}
				if c.LID == 0 {
					t.Errorf("%s, %s: no example of %s to %s", spec, name, c.Port.Name(), next.Name())
				}
			}
			cyclic := want.cyclic()
			if v.Acyclic == cyclic || v.OK() == cyclic {
				t.Errorf("%s, %s: acyclic is %v, ok %v, and there is a cycle: %v", spec, name, v.Acyclic, v.OK(), cyclic)
			}
			ok[v.OK()]++
		}
	}
	if ok[true] < 5 || ok[false] < 5 {
		t.Errorf("the networks are too much alike: %v", ok)
	}
}

// TestAdaptiveUpDown: whichever of its legal ports a switch of an up*/down* network
// chooses, no packet waits in a circle. Under minhop that is not so.
func TestAdaptiveUpDown(t *testing.T) {
	t.Parallel()
	for _, spec := range routingtest.SmallNets() {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		r := compute(t, g, "updn", engines.Options{})
		if engines.BasisOf(r).Missing > 0 || engines.BasisOf(r).Gaps {
			continue // paths were added that are none of up*/down*
		}
		if v := routingtest.Verified(t, r, verify.Options{Adaptive: verify.AdaptiveUpDown}); !v.Acyclic {
			t.Errorf("%s: a credit loop:\n%s", spec, verify.FormatCycle(v.Cycle))
		}
	}
	r := compute(t, routingtest.Graph(t, "torus:dims=4/4,hosts=2", graph.BuildOptions{}), "minhop", engines.Options{})
	if v := routingtest.Verified(t, r, verify.Options{Adaptive: verify.AdaptiveUpDown}); v.Acyclic || v.OK() {
		t.Error("minhop on a torus, with any choice of up/down ports: no credit loop")
	}
}
