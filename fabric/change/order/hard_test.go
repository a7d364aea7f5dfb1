package order

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// network is a random irregular network: a tree, and some links more. Switch s has a
// host at port n+1, and the link to switch t at port t+1.
type network struct {
	n   int
	adj [][]int
}

func randomNetwork(random *rand.Rand, large bool) *network {
	n, more := 5+random.IntN(3), 2+random.IntN(3)
	if large {
		n, more = 10+2*random.IntN(3), 8+2*random.IntN(3)
	}
	linked := map[[2]int]bool{}
	for i := 1; i < n; i++ {
		linked[[2]int{random.IntN(i), i}] = true
	}
	for range more {
		two := random.Perm(n)[:2]
		linked[[2]int{min(two[0], two[1]), max(two[0], two[1])}] = true
	}
	w := &network{n: n, adj: make([][]int, n)}
	for a := range n {
		for b := range n {
			if linked[[2]int{min(a, b), max(a, b)}] && a != b {
				w.adj[a] = append(w.adj[a], b)
			}
		}
	}
	return w
}

// fabric is the network with LID s+1 for switch s, and n+s+1 for its host.
func (w *network) fabric(t testing.TB) *fabric.Fabric {
	b := fabric.NewBuilder()
	var handles []int
	for s := range w.n {
		h := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: uint8(w.n + 1), NodeGUID: mad.GUID(s + 1)}})
		b.SetPort(h, 0, &mad.PortInfo{LID: mad.LID(s + 1)})
		handles = append(handles, h)
	}
	for s := range w.n {
		h := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: mad.GUID(w.n + s + 1), PortGUID: mad.GUID(100 + s), LocalPortNum: 1}})
		b.SetPort(h, 1, &mad.PortInfo{LID: mad.LID(w.n + s + 1), PortState: mad.PortStateActive})
		if err := b.Link(handles[s], w.n+1, h, 1); err != nil {
			t.Fatal(err)
		}
		for _, to := range w.adj[s] {
			if to > s {
				if err := b.Link(handles[s], to+1, handles[to], s+1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return b.Build()
}

// nextHops are up*/down* from a root without a link: by destination, then switch; nil
// if not all are connected. Ties are broken at random.
func (w *network) nextHops(random *rand.Rand, root int, without [2]int) [][]int {
	ok := func(a, b int) bool { return [2]int{min(a, b), max(a, b)} != without }
	rank := slices.Repeat([]int{-1}, w.n)
	rank[root] = 0
	order := []int{root}
	for i := 0; i < len(order); i++ {
		for _, v := range w.adj[order[i]] {
			if rank[v] < 0 && ok(order[i], v) {
				rank[v] = rank[order[i]] + 1
				order = append(order, v)
			}
		}
	}
	if len(order) < w.n {
		return nil
	}
	less := func(a, b int) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b)) }
	byRank := make([]int, w.n)
	for s := range byRank {
		byRank[s] = s
	}
	slices.SortFunc(byRank, less)
	var table [][]int
	for d := range w.n {
		distance, next := slices.Repeat([]int{-1}, w.n), slices.Repeat([]int{-1}, w.n)
		distance[d] = 0
		queue := []int{d}
		for i := 0; i < len(queue); i++ {
			u := queue[i]
			for _, k := range random.Perm(len(w.adj[u])) {
				if v := w.adj[u][k]; ok(u, v) && less(v, u) < 0 && distance[v] < 0 {
					distance[v], next[v] = distance[u]+1, u
					queue = append(queue, v)
				}
			}
		}
		for _, v := range byRank {
			if distance[v] >= 0 {
				continue
			}
			best := -1
			for _, k := range random.Perm(len(w.adj[v])) {
				if u := w.adj[v][k]; ok(u, v) && less(u, v) < 0 && distance[u] >= 0 && (best < 0 || distance[u] < distance[best]) {
					best = u
				}
			}
			distance[v], next[v] = distance[best]+1, best
		}
		table = append(table, next)
	}
	return table
}

// hardCase is a change with dependencies of mixed tables that close a cycle, while those
// of the old and of the new ones together do not.
type hardCase struct {
	in   Input
	dead *fabric.Port
}

// hardCases makes random link failures, and returns the hard ones among so many.
func hardCases(t testing.TB, large bool, tries int) (list []hardCase) {
	random := rand.New(rand.NewPCG(3, 0))
	for tries > 0 {
		w := randomNetwork(random, large)
		root := random.IntN(w.n)
		a := random.IntN(w.n)
		link := [2]int{a, w.adj[a][random.IntN(len(w.adj[a]))]}
		link = [2]int{min(link[0], link[1]), max(link[0], link[1])}
		old, new := w.nextHops(random, root, [2]int{}), w.nextHops(random, root, link)
		if new == nil {
			continue
		}
		tries--
		if !hard(w.n, old, new) {
			continue
		}
		f := w.fabric(t)
		dead := f.Nodes()[link[0]].Port(link[1] + 1)
		g, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == dead }})
		if err != nil {
			t.Fatal(err)
		}
		fill := func(hops [][]int) *routes.Routes {
			r := routes.New(g, 0)
			for d := range hops {
				for s, next := range hops[d] {
					r.Row(s)[d+1], r.Row(s)[w.n+d+1] = uint8(next+1), uint8(next+1)
					if s == d {
						r.Row(s)[d+1], r.Row(s)[w.n+d+1] = 0, uint8(w.n+1)
					}
				}
			}
			return r
		}
		in := Input{Old: fill(old), New: fill(new), Drain: slices.Repeat([]time.Duration{time.Second}, w.n)}
		list = append(list, hardCase{in, dead})
	}
	return list
}

// hard says whether the mixed dependencies, without U-turns, have a cycle that the
// union of the old and the new ones has not.
func hard(n int, old, new [][]int) bool {
	union, mixed := map[wait]bool{}, map[wait]bool{}
	for d := range n {
		for u := range n {
			for _, x := range [][]int{old[d], new[d]} {
				s := x[u]
				if s < 0 || s == d {
					continue
				}
				for _, y := range [][]int{old[d], new[d]} {
					if v := y[s]; v >= 0 && v != u {
						w := wait{channel{u, s}, channel{s, v}}
						mixed[w] = true
						if &x[0] == &y[0] {
							union[w] = true
						}
					}
				}
			}
		}
	}
	return !cyclic(union) && cyclic(mixed)
}

// TestHardCases: all of them have an order.
func TestHardCases(t *testing.T) {
	for large, tries := range map[bool]int{false: 3000, true: 400} {
		waits, byPrecedence, byGroups := 0, 0, 0
		list := hardCases(t, large, tries)
		for i, c := range list {
			s, err := Plan(t.Context(), c.in)
			if err != nil {
				t.Errorf("large %v, case %d: %v", large, i, err)
				continue
			}
			if s.Wait() == 0 {
				continue
			}
			waits++
			c.in.number()
			p := &planner{net: newNet(c.in.Old.Graph()), in: &c.in, drain: 2 * time.Second}
			p.try(t.Context(), lanesFirst, &leg{ordered: make([]uint64, p.words())})
			needs := slices.Clone(p.h.needs)
			if _, err := p.byGroups(t.Context()); err == nil {
				byGroups++
			}
			if _, err := p.byPrecedence(t.Context(), needs); err == nil {
				byPrecedence++
			}
		}
		if len(list) < 19 || byPrecedence < waits/3 || byGroups < waits*9/10 {
			t.Errorf("large %v: %d cases, %d with waits, %d by precedences, %d by groups: too few", large, len(list), waits, byPrecedence, byGroups)
		}
	}
}

// sharedFabric is a snapshot of the folder beside the repository, which has files that the
// project does not ship. Where CI is set it must be there.
func sharedFabric(t *testing.T, name string) *fabric.Fabric {
	t.Helper()
	in, err := os.Open(filepath.Join("../../../../shared/fabrics", name))
	if os.IsNotExist(err) && os.Getenv("CI") == "" {
		t.Skipf("%s is not in ../shared/fabrics", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := format.ReadSnapshot(in, name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestValleyPaths: tables of OpenSM's updn have entries that no packet of a host meets, and
// by which packets would go back to where they came from. They are no reason to refuse any
// engine's tables.
func TestValleyPaths(t *testing.T) {
	old, err := routes.OfFabric(sharedFabric(t, "updn-valley-paths.fab"))
	if err != nil {
		t.Fatal(err)
	}
	g := old.Graph()
	random := rand.New(rand.NewPCG(7, 0))
	for _, name := range []string{"minhop", "updn", "dnup", "ftree", "dor", "sssp", "nue"} {
		in := Input{Old: old, New: compute(t, g, name, engines.Options{}), Drain: Drains(g)}
		s, err := Plan(t.Context(), in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if testing.Short() || name != "minhop" && name != "nue" {
			continue // the checker takes seconds
		}
		if err := newModel(g, nil).check(tablesOf(in.Old), tablesOf(in.New), BlocksOf(in, s), random, 4); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
