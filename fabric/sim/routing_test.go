package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

// testTopologies are the specs of the topologies on which properties are tested.
var testTopologies = []string{
	"", "fattree:k=8,levels=3", "fattree:k=4,levels=4", "fattree:k=4,levels=1", "fattree:k=2,levels=3",
	"pgft:m=4/4/8,w=1/2/4,p=1/2/1", "pgft:m=3/3,w=1/2,p=2/3", "pgft:m=6/2/5,w=1/3/1,p=1/1/2",
	"ring:n=1", "ring:n=2", "ring:n=2,hosts=0", "ring:n=9,hosts=3", "ring:n=100,hosts=2",
}

// degraded is f without some of its cables between switches.
func degraded(f *fabric.Fabric, seed uint64) *fabric.Fabric {
	b := fabric.NewBuilder()
	for i := range f.Nodes() {
		b.AddNode(fabric.NodeSpec{Info: *f.Nodes()[i].Info(), Name: f.Nodes()[i].Name()})
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || p.Node().IsSwitch() && q.Node().IsSwitch() && random.IntN(16) == 0 {
			continue
		}
		if err := b.Link(p.Node().ID(), p.Num(), q.Node().ID(), q.Num()); err != nil {
			panic(err)
		}
	}
	return b.Build()
}

// subnets calls test with all topologies, and with what is left of the trees
// after some cables broke.
func subnets(t *testing.T, test func(t *testing.T, s *Subnet, tree bool)) {
	for _, spec := range testTopologies {
		f, o := mustParse(t, spec)
		tree := !strings.HasPrefix(spec, "ring")
		t.Run(spec, func(t *testing.T) { test(t, New(f, o), tree) })
		for seed := range uint64(6) {
			if tree && len(f.OfType(mad.NodeTypeSwitch)) > 8 {
				t.Run(fmt.Sprintf("%s less %d", spec, seed), func(t *testing.T) { test(t, New(degraded(f, seed), o), true) })
			}
		}
	}
}

// connected are the ports that cables join to p, p first.
func connected(p *port) map[*port]bool {
	seen, queue := map[*node]bool{p.node: true}, []*node{p.node}
	ports := map[*port]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, end := range queue[0].endPorts() {
			ports[end] = true
		}
		for i := range queue[0].ports {
			if q := queue[0].ports[i].peer; q != nil && !seen[q.node] {
				seen[q.node] = true
				queue = append(queue, q.node)
			}
		}
	}
	return ports
}

// TestReachable walks the tables between all pairs of end ports.
func TestReachable(t *testing.T) {
	subnets(t, func(t *testing.T, s *Subnet, _ bool) {
		ports := s.endPortsWith(func(*port) bool { return true })
		for _, from := range ports {
			for to := range connected(from) {
				if at := forwardLID(from, to.lid, false); at == nil || at.endPort() != to {
					t.Fatalf("LID %d (%s) does not reach LID %d (%s)", from.lid, from.node.label, to.lid, to.node.label)
				}
			}
		}
	})
}

// TestLIDs: every end port has one.
func TestLIDs(t *testing.T) {
	for _, spec := range testTopologies {
		t.Run(spec, func(t *testing.T) {
			f, o := mustParse(t, spec)
			s := New(f, o)
			ports := s.endPortsWith(func(*port) bool { return true })
			want := len(f.OfType(mad.NodeTypeSwitch))
			for i := range f.Ports() {
				if p := &f.Ports()[i]; !p.Node().IsSwitch() && p.Peer() != nil {
					want++
				}
			}
			if len(ports) != want {
				t.Fatalf("%d LIDs, want %d", len(ports), want)
			}
		})
	}
}

// TestDeadlockFree: on trees, broken ones too, the channels that the routes
// to hosts use depend on each other without a cycle (Dally and Seitz).
func TestDeadlockFree(t *testing.T) {
	checked := 0
	subnets(t, func(t *testing.T, s *Subnet, tree bool) {
		if !tree || !upDown(s) {
			return
		}
		checked++
		next := map[*port]map[*port]bool{} // a channel is the port it leaves
		hosts := s.endPortsWith(func(p *port) bool { return !p.node.isSwitch })
		for _, from := range hosts {
			for _, to := range hosts {
				var before *port
				for at := from; ; {
					out, there := at.nextHop(to.lid, before == nil)
					if there {
						break
					}
					if next[before] == nil {
						next[before] = map[*port]bool{}
					}
					next[before][out] = true
					before, at = out, out.peer
				}
			}
		}
		done, open := map[*port]bool{}, map[*port]bool{}
		var visit func(p *port) error
		visit = func(p *port) error {
			if open[p] {
				return fmt.Errorf("cycle through port %d of %s", p.num, p.node.label)
			}
			if done[p] {
				return nil
			}
			open[p] = true
			for q := range next[p] {
				if err := visit(q); err != nil {
					return err
				}
			}
			delete(open, p)
			done[p] = true
			return nil
		}
		if err := visit(nil); err != nil {
			t.Fatal(err)
		}
	})
	if checked < 20 {
		t.Errorf("only %d subnets have routes up and down between all hosts", checked)
	}
}

// upDown: between all switches with hosts there are routes that go up and then
// down. Where too many cables broke, others must do.
func upDown(s *Subnet) bool {
	r := s.newRouter()
	if r.rank == nil {
		return false
	}
	way := r.newDistances()
	for d := range r.switches {
		way.compute(d)
		for at, rank := range r.rank {
			if rank == 0 && len(r.destinations[d]) > 1 && way.path[at] == minimalPath {
				return false
			}
		}
	}
	return true
}

// TestUpFirst has a switch x whose way to b is up over z, although a, below
// it, is no farther; and a, which has x before y on its way up.
//
//	  z
//	 / \
//	x   y
//	|  / \
//	 a    b
func TestUpFirst(t *testing.T) {
	build := fabric.NewBuilder()
	node := func(name string, of mad.NodeType, ports uint8, guid mad.GUID) int {
		return build.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: of, NumPorts: ports, NodeGUID: guid, PortGUID: guid}})
	}
	a, b := node("a", mad.NodeTypeSwitch, 3, 1), node("b", mad.NodeTypeSwitch, 3, 2)
	x, y, z := node("x", mad.NodeTypeSwitch, 3, 3), node("y", mad.NodeTypeSwitch, 3, 4), node("z", mad.NodeTypeSwitch, 3, 5)
	for _, l := range [][4]int{
		{node("host of a", mad.NodeTypeCA, 1, 6), 1, a, 3}, {node("host of b", mad.NodeTypeCA, 1, 7), 1, b, 3},
		{a, 1, x, 1}, {a, 2, y, 1}, {b, 1, y, 2}, {x, 2, z, 1}, {y, 3, z, 2},
	} {
		if err := build.Link(l[0], l[1], l[2], l[3]); err != nil {
			t.Fatal(err)
		}
	}
	f := build.Build()
	r := &rig{t: t, Fabric: f, Subnet: New(f, Options{})}
	to := r.lid("host of b")
	got := map[string]uint8{}
	for _, name := range []string{"a", "b", "x", "y", "z"} {
		got[name] = r.at(name, 0).node.lftEntry(to)
	}
	if diff := cmp.Diff(map[string]uint8{"a": 2, "b": 3, "x": 2, "y": 2, "z": 2}, got); diff != "" {
		t.Errorf("ports to b's host (-want +got)\n%s", diff)
	}
}

// TestBalance: routes spread over parallel cables, up and down.
func TestBalance(t *testing.T) {
	for _, spec := range []string{"pgft:m=12/2,w=1/1,p=1/6", "pgft:m=8/8,w=1/1,p=1/4"} {
		f, o := mustParse(t, spec)
		s := New(f, o)
		s.tables()
		for i := range s.nodes {
			n := &s.nodes[i]
			if !n.isSwitch {
				continue
			}
			load := map[*node]map[uint8]int{} // by neighbour and port
			for _, p := range n.ports[1:] {
				if p.peer != nil && p.peer.node.isSwitch {
					if load[p.peer.node] == nil {
						load[p.peer.node] = map[uint8]int{}
					}
					load[p.peer.node][p.num] = 0
				}
			}
			for lid := 1; lid <= int(n.fdbTop); lid++ {
				if p := &n.ports[n.lft[lid]]; p.num > 0 && p.peer.node.isSwitch {
					load[p.peer.node][p.num]++
				}
			}
			for _, ports := range load {
				low, high := 1<<16, 0
				for _, routes := range ports {
					low, high = min(low, routes), max(high, routes)
				}
				if high-low > 2 { // the switches' own LIDs come on top
					t.Errorf("%s: %s has %d to %d routes on parallel cables", spec, n.label, low, high)
				}
			}
		}
	}
}

// TestShift: in a full tree d-mod-k routes every shift permutation without
// two flows on one link (Zahavi 2012).
func TestShift(t *testing.T) {
	for _, spec := range []string{"", "fattree:k=8,levels=3", "fattree:k=4,levels=4"} {
		f, o := mustParse(t, spec)
		s := New(f, o)
		hosts := s.endPortsWith(func(p *port) bool { return !p.node.isSwitch })
		for shift := 1; shift < len(hosts); shift++ {
			used := map[*port]int{}
			for i, from := range hosts {
				to := hosts[(i+shift)%len(hosts)]
				for at, sent := from, true; ; sent = false {
					out, there := at.nextHop(to.lid, sent)
					if there {
						break
					}
					if used[out]++; used[out] > 1 {
						t.Fatalf("%q, shift %d: two flows leave port %d of %s", spec, shift, out.num, out.node.label)
					}
					at = out.peer
				}
			}
		}
	}
}
