package verify_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// apart is how many of the paths can be chosen such that no two have anything in
// common: by trying all choices.
func apart(paths [][]any) int {
	most := 0
	for set := range 1 << len(paths) {
		seen, ok := map[any]bool{}, true
		for i, path := range paths {
			for _, x := range path {
				ok = ok && (set>>i&1 == 0 || !seen[x])
				if set>>i&1 == 1 {
					seen[x] = true
				}
			}
		}
		if ok {
			most = max(most, bits.OnesCount(uint(set)))
		}
	}
	return most
}

// flow is how many paths without a common link there are between two switches, over
// any links (Ford and Fulkerson), at most as many as wanted.
func flow(from, to *fabric.Node, wanted int) int {
	used := map[*fabric.Port]bool{} // ports that a path goes out of
	for n := range wanted {
		before := map[*fabric.Node]*fabric.Port{from: nil}
		for queue := []*fabric.Node{from}; len(queue) > 0 && before[to] == nil; queue = queue[1:] {
			for p := range queue[0].Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() && !used[p] {
					if _, seen := before[q.Node()]; !seen {
						before[q.Node()] = p
						queue = append(queue, q.Node())
					}
				}
			}
		}
		if before[to] == nil {
			return n
		}
		for at := to; at != from; {
			p := before[at]
			if used[p.Peer()] {
				delete(used, p.Peer()) // the path there goes elsewhere now
			} else {
				used[p] = true
			}
			at = p.Node()
		}
	}
	return wanted
}

// apartOf is the Disjointness of r, path by path, and, by LIDs of a port, how many pairs
// could have so many disjoint paths.
func apartOf(t *testing.T, r *routes.Routes, lids int) (links, switches, possible []int64) {
	g := r.Graph()
	links, switches, possible = make([]int64, lids+1), make([]int64, lids+1), make([]int64, lids+1)
	for _, a := range g.Terminals() {
		for _, b := range g.Terminals() {
			if a.Out == 0 || b.Out == 0 || a.Switch == b.Switch || a.Switch < 0 || b.Switch < 0 {
				continue
			}
			var overLinks, overSwitches [][]any
			for i := range lids {
				p, err := r.Trace(a.LID, b.LID+mad.LID(i))
				if err != nil {
					t.Fatal(err)
				}
				if p.Broken != "" {
					continue
				}
				var l, s []any
				for j, h := range p.Hops {
					if j < len(p.Hops)-1 {
						l = append(l, [2]int{h.Switch, int(h.Out)})
					}
					if j > 0 && j < len(p.Hops)-1 {
						s = append(s, h.Switch)
					}
				}
				overLinks, overSwitches = append(overLinks, l), append(overSwitches, slices.Concat(l, s))
			}
			links[apart(overLinks)]++
			switches[apart(overSwitches)]++
			possible[flow(g.Switches()[a.Switch], g.Switches()[b.Switch], lids)]++
		}
	}
	return links, switches, possible
}

// above is how many pairs have more than n.
func above(pairs []int64, n int) (sum int64) {
	for _, x := range pairs[min(n+1, len(pairs)):] {
		sum += x
	}
	return sum
}

// TestDisjointness compares the metric with all choices of paths, and these with the
// most paths that there are. In fat trees the LIDs of a port have as many disjoint paths
// as there are, also with parts missing.
func TestDisjointness(t *testing.T) {
	t.Parallel()
	type sample struct {
		spec string
		lmc  int
		all  bool // all that there are are found
	}
	samples := []sample{
		{"fattree:k=4,levels=3", 1, true}, {"fattree:k=8,levels=2", 2, true}, {"pgft:m=4/4,w=1/2,p=1/3", 2, false},
		{"torus:dims=3/4,hosts=1", 1, false}, {"hyperx:dims=3/3,hosts=1", 1, false}, {"ring:n=4", 1, false},
	}
	for seed := range 2 {
		samples = append(samples, sample{fmt.Sprintf("random:n=12,degree=4,hosts=1,remove_links=3,seed=%d", seed+1), min(seed+1, 2), false},
			sample{fmt.Sprintf("fattree:k=4,levels=3,remove_links=4,seed=%d", seed+1), 1, true})
	}
	for _, x := range samples {
		g, err := graph.New(routingtest.WithLMC(t, routingtest.Topology(t, x.spec), x.lmc), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"minhop", "updn", "sssp", "nue"} {
			lids := 1 << x.lmc
			r := compute(t, g, name, engines.Options{})
			d := routingtest.Verified(t, r, verify.Options{}).Disjoint
			links, switches, possible := apartOf(t, r, lids)
			if !slices.Equal(d.Links, links) || !slices.Equal(d.Switches, switches) || d.LIDs != lids || d.Pairs != above(links, -1) {
				t.Errorf("%s, lmc %d, %s: links %v, switches %v of %d pairs, want %v and %v", x.spec, x.lmc, name, d.Links, d.Switches, d.Pairs, links, switches)
			}
			for n := range lids {
				if above(links, n) > above(possible, n) {
					t.Errorf("%s, lmc %d, %s: %d pairs have more than %d disjoint paths, and %d can", x.spec, x.lmc, name, above(links, n), n, above(possible, n))
				}
			}
			if x.all && name != "nue" && !slices.Equal(links, possible) {
				t.Errorf("%s, lmc %d, %s: links %v, possible are %v", x.spec, x.lmc, name, links, possible)
			}
		}
	}
}

// TestUnmark: without the path of a LID, the links and switches that only that path has are not marked, and those
// that it shares are.
func TestUnmark(t *testing.T) {
	t.Parallel()
	g, err := graph.New(routingtest.WithLMC(t, routingtest.Topology(t, "fattree:k=4,levels=3"), 2), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x := verify.NewSiblings(g)
	port := &g.Terminals()[slices.IndexFunc(g.Terminals(), func(p graph.Terminal) bool { return p.Count == 4 })]
	x.Read(compute(t, g, "minhop", engines.Options{}), port)
	s := int32(len(g.Switches()) - 1)
	for ends := g.Endpoints(); ends[s] == 0 || int(s) == port.Switch; {
		s--
	}
	path := func(i int) (links, switches []int32) {
		for at := s; int(at) != port.Switch; {
			c := x.Via[i][at]
			links = append(links, c)
			if at = g.ChannelTo(c); int(at) != port.Switch {
				switches = append(switches, at)
			}
		}
		return links, switches
	}
	var links, switches []int32 // of the others
	for i := range 4 {
		if x.Mark(s, int32(port.Switch), i); i != 1 {
			l, n := path(i)
			links, switches = append(links, l...), append(switches, n...)
		}
	}
	own, passed := path(1)
	shares := func(list, with []int32) bool {
		return slices.ContainsFunc(list, func(x int32) bool { return slices.Contains(with, x) })
	}
	if !shares(own, links) || !shares(passed, switches) {
		t.Fatal("the path shares nothing")
	}
	x.Unmark(s, int32(port.Switch), 1)
	for c := range g.Channels() {
		if want := slices.Contains(links, int32(c)); x.Takes(int32(c)) != want {
			t.Errorf("link %d marked: %v", c, !want)
		}
	}
	for n := range g.Switches() {
		if want := slices.Contains(switches, int32(n)); x.Passes(int32(n)) != want {
			t.Errorf("switch %d marked: %v", n, !want)
		}
	}
	x.Forget()
	if slices.ContainsFunc(links, x.Takes) || slices.ContainsFunc(switches, x.Passes) {
		t.Error("marks are left")
	}
}
