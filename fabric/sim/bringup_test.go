package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/sim/spec"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// bringUpTopologies are the specs of the topologies on which properties are tested.
var bringUpTopologies = []string{
	"", "fattree:k=8,levels=3", "fattree:k=4,levels=4", "fattree:k=4,levels=1", "fattree:k=2,levels=3",
	"pgft:m=4/4/8,w=1/2/4,p=1/2/1", "pgft:m=3/3,w=1/2,p=2/3", "pgft:m=6/2/5,w=1/3/1,p=1/1/2",
	"ring:n=1", "ring:n=2", "ring:n=2,hosts=0", "ring:n=9,hosts=3", "ring:n=100,hosts=2",
}

func mustParseSpec(t *testing.T, text string) (*fabric.Fabric, spec.SubnetOptions) {
	t.Helper()
	f, o, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return f, o
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
func subnets(t *testing.T, test func(t *testing.T, s *state.Subnet, tree bool)) {
	for _, spec := range bringUpTopologies {
		f, o := mustParseSpec(t, spec)
		tree := !strings.HasPrefix(spec, "ring")
		t.Run(spec, func(t *testing.T) { test(t, bringUp(f, &o), tree) })
		for seed := range uint64(6) {
			if tree && len(f.OfType(mad.NodeTypeSwitch)) > 8 {
				t.Run(fmt.Sprintf("%s less %d", spec, seed), func(t *testing.T) { test(t, bringUp(degraded(f, seed), &o), true) })
			}
		}
	}
}

// connected are the ports that cables join to p, p first.
func connected(p *state.Port) map[*state.Port]bool {
	seen, queue := map[*state.Node]bool{p.Node: true}, []*state.Node{p.Node}
	ports := map[*state.Port]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, end := range queue[0].EndPorts() {
			ports[end] = true
		}
		for i := range queue[0].Ports {
			if q := queue[0].Ports[i].Peer; q != nil && !seen[q.Node] {
				seen[q.Node] = true
				queue = append(queue, q.Node)
			}
		}
	}
	return ports
}

// hostPorts returns the ports of hosts, by LID.
func hostPorts(s *state.Subnet) []*state.Port {
	ports := slices.Collect(state.EndPorts(s.LIDs))
	return slices.DeleteFunc(ports, func(p *state.Port) bool { return p.Node.IsSwitch })
}

// TestReachable walks the tables between all pairs of end ports.
func TestReachable(t *testing.T) {
	subnets(t, func(t *testing.T, s *state.Subnet, _ bool) {
		ports := slices.Collect(state.EndPorts(s.LIDs))
		for _, from := range ports {
			for to := range connected(from) {
				if at := state.ForwardLID(from, to.LID, false); at == nil || at.EndPort() != to {
					t.Fatalf("LID %d (%s) does not reach LID %d (%s)", from.LID, from.Node.Label, to.LID, to.Node.Label)
				}
			}
		}
	})
}

// TestLIDs: every end port has one.
func TestLIDs(t *testing.T) {
	for _, spec := range bringUpTopologies {
		t.Run(spec, func(t *testing.T) {
			f, o := mustParseSpec(t, spec)
			s := bringUp(f, &o)
			ports := slices.Collect(state.EndPorts(s.LIDs))
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
	subnets(t, func(t *testing.T, s *state.Subnet, tree bool) {
		if !tree || !upDown(s) {
			return
		}
		checked++
		next := map[*state.Port]map[*state.Port]bool{} // a channel is the port it leaves
		hosts := hostPorts(s)
		for _, from := range hosts {
			for _, to := range hosts {
				var before *state.Port
				for at := from; ; {
					out, there := at.NextHop(to.LID, before == nil)
					if there {
						break
					}
					if next[before] == nil {
						next[before] = map[*state.Port]bool{}
					}
					next[before][out] = true
					before, at = out, out.Peer
				}
			}
		}
		done, open := map[*state.Port]bool{}, map[*state.Port]bool{}
		var visit func(p *state.Port) error
		visit = func(p *state.Port) error {
			if open[p] {
				return fmt.Errorf("cycle through port %d of %s", p.Num, p.Node.Label)
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

// upDown reports whether all links between switches join neighbouring ranks, and
// between all switches with hosts there are routes that go up and then down. Where too
// many cables broke, others must do.
func upDown(s *state.Subnet) bool {
	far := func(n *state.Node, visit func(*state.Node)) {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Up && p.Peer.Node.IsSwitch && p.Peer.Node != n {
				visit(p.Peer.Node)
			}
		}
	}
	rank := map[*state.Node]int{}
	var leaves []*state.Node
	for i := range s.Ports {
		if p := &s.Ports[i]; !p.Node.IsSwitch && p.Up && p.LID != 0 && p.Peer.Node.IsSwitch {
			if _, known := rank[p.Peer.Node]; !known {
				rank[p.Peer.Node] = 0
				leaves = append(leaves, p.Peer.Node)
			}
		}
	}
	queue := slices.Clone(leaves)
	for ; len(queue) > 0; queue = queue[1:] {
		far(queue[0], func(n *state.Node) {
			if _, known := rank[n]; !known {
				rank[n] = rank[queue[0]] + 1
				queue = append(queue, n)
			}
		})
	}
	good := true
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if r, known := rank[n]; n.IsSwitch {
			far(n, func(m *state.Node) { good = good && known && (rank[m] == r+1 || rank[m] == r-1) })
		}
	}
	above := map[*state.Node]map[*state.Node]bool{} // of each leaf: the switches that it reaches by going up
	for _, leaf := range leaves {
		seen := map[*state.Node]bool{leaf: true}
		for queue := []*state.Node{leaf}; len(queue) > 0; queue = queue[1:] {
			far(queue[0], func(n *state.Node) {
				if rank[n] > rank[queue[0]] && !seen[n] {
					seen[n] = true
					queue = append(queue, n)
				}
			})
		}
		above[leaf] = seen
	}
	for _, a := range leaves {
		for _, b := range leaves {
			meet := false
			for n := range above[a] {
				meet = meet || above[b][n]
			}
			good = good && meet
		}
	}
	return good
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
	s := bringUp(f, &spec.SubnetOptions{})
	end := func(name string) *state.Port { return s.Nodes[f.NodeByName(name)[0].ID()].EndPorts()[0] }
	to := end("host of b").LID
	got := map[string]uint8{}
	for _, name := range []string{"a", "b", "x", "y", "z"} {
		out, _ := end(name).NextHop(to, false)
		got[name] = out.Num
	}
	if diff := cmp.Diff(map[string]uint8{"a": 2, "b": 3, "x": 2, "y": 2, "z": 2}, got); diff != "" {
		t.Errorf("ports to b's host (-want +got)\n%s", diff)
	}
}

// TestBalance: routes spread over parallel cables, up and down.
func TestBalance(t *testing.T) {
	for _, spec := range []string{"pgft:m=12/2,w=1/1,p=1/6", "pgft:m=8/8,w=1/1,p=1/4"} {
		f, o := mustParseSpec(t, spec)
		s := bringUp(f, &o)
		s.EnsureTables()
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if !n.IsSwitch {
				continue
			}
			load := map[*state.Node]map[uint8]int{} // by neighbour and port
			for _, p := range n.Ports[1:] {
				if p.Peer != nil && p.Peer.Node.IsSwitch {
					if load[p.Peer.Node] == nil {
						load[p.Peer.Node] = map[uint8]int{}
					}
					load[p.Peer.Node][p.Num] = 0
				}
			}
			for lid := 1; lid <= int(n.FDBTop); lid++ {
				if p := &n.Ports[n.LFT[lid]]; p.Num > 0 && p.Peer.Node.IsSwitch {
					load[p.Peer.Node][p.Num]++
				}
			}
			for _, ports := range load {
				low, high := 1<<16, 0
				for _, routes := range ports {
					low, high = min(low, routes), max(high, routes)
				}
				if high-low > 2 { // the switches' own LIDs come on top
					t.Errorf("%s: %s has %d to %d routes on parallel cables", spec, n.Label, low, high)
				}
			}
		}
	}
}

// TestShift: in a full tree d-mod-k routes every shift permutation without
// two flows on one link (Zahavi 2012).
func TestShift(t *testing.T) {
	for _, spec := range []string{"", "fattree:k=8,levels=3", "fattree:k=4,levels=4"} {
		f, o := mustParseSpec(t, spec)
		s := bringUp(f, &o)
		hosts := hostPorts(s)
		for shift := 1; shift < len(hosts); shift++ {
			used := map[*state.Port]int{}
			for i, from := range hosts {
				to := hosts[(i+shift)%len(hosts)]
				for at, sent := from, true; ; sent = false {
					out, there := at.NextHop(to.LID, sent)
					if there {
						break
					}
					if used[out]++; used[out] > 1 {
						t.Fatalf("%q, shift %d: two flows leave port %d of %s", spec, shift, out.Num, out.Node.Label)
					}
					at = out.Peer
				}
			}
		}
	}
}

// TestLMC: each port of a CA gets 2^LMC LIDs, the first a multiple of that, and no two
// ports share one; switches get one.
func TestLMC(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"fattree:k=4,lmc=0", "fattree:k=4,lmc=2", "ring:n=3,lmc=7", "ring:n=3,hosts=200,lmc=7"} {
		f, o := mustParseSpec(t, spec)
		s := bringUp(f, &o)
		of := map[mad.LID]bool{}
		for i := range s.Nodes {
			for _, p := range s.Nodes[i].EndPorts() {
				if p.LID == 0 { // there are no more LIDs
					if spec != "ring:n=3,hosts=200,lmc=7" {
						t.Errorf("%s: a port without a LID", spec)
					}
					continue
				}
				count := 1 << p.LMC
				if p.LMC != o.LMC && !s.Nodes[i].IsSwitch || p.LMC != 0 && s.Nodes[i].IsSwitch || int(p.LID)%count != 0 || int(p.LID)+count-1 > int(mad.MaxUnicastLID) {
					t.Errorf("%s: LID %d with LMC %d", spec, p.LID, p.LMC)
				}
				for j := range count {
					if lid := p.LID + mad.LID(j); of[lid] || s.LIDs[lid] != p {
						t.Errorf("%s: LID %d is another's", spec, lid)
					} else {
						of[lid] = true
					}
				}
			}
		}
	}
}

// bring does what a subnet manager does to a bare subnet: it gives each end port
// the LID that it has in model, fills the tables likewise, and makes the links
// active.
func (r *rig) bring(model *Subnet, sm mad.LID) {
	r.t.Helper()
	routes := r.routesTo()
	must := func(status mad.Status, _ []byte) {
		r.t.Helper()
		if status != 0 {
			r.t.Fatal(status)
		}
	}
	ports := func(do func(p *state.Port, route mad.DirectedRoute, info *mad.PortInfo)) {
		for i := range r.state.Nodes {
			for j := range r.state.Nodes[i].Ports {
				p := &r.state.Nodes[i].Ports[j]
				if route, ok := routes[p.Node]; ok && (p.Num > 0 || p.Node.IsSwitch) {
					info := r.portInfo(uint32(p.Num), route)
					info.PortState, info.PortPhysicalState = 0, 0
					do(p, route, &info)
					must(r.set(mad.AttrPortInfo, uint32(p.Num), route, encode(&info)))
				}
			}
		}
	}
	ports(func(p *state.Port, _ mad.DirectedRoute, info *mad.PortInfo) {
		if p == p.EndPort() {
			info.LID, info.MasterSMLID = model.state.Nodes[r.index(p.Node)].Ports[p.Num].LID, sm
		}
	})
	for i := range r.state.Nodes {
		if n := &r.state.Nodes[i]; n.IsSwitch {
			block := make([]byte, state.SMPSize)
			model.state.Nodes[i].ReadLFT(0, block)
			must(r.set(mad.AttrLinearForwardingTable, 0, routes[n], block))
			must(r.set(mad.AttrSwitchInfo, 0, routes[n], encode(&mad.SwitchInfo{LinearFDBTop: 63, LifeTimeValue: 18, PortStateChange: true})))
		}
	}
	for _, target := range []mad.PortState{mad.PortStateArmed, mad.PortStateActive} {
		ports(func(p *state.Port, _ mad.DirectedRoute, info *mad.PortInfo) {
			if p.Up {
				info.PortState = target
			}
		})
	}
}

func (r *rig) index(n *state.Node) int {
	for i := range r.state.Nodes {
		if &r.state.Nodes[i] == n {
			return i
		}
	}
	panic("no such node")
}

// routesTo are directed routes to all nodes that the first program reaches.
func (r *rig) routesTo() map[*state.Node]mad.DirectedRoute {
	start := r.conn.node
	routes := map[*state.Node]mad.DirectedRoute{start: {0}}
	for queue := []*state.Node{start}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for i := range n.Ports {
			if far := n.Ports[i].Neighbour(); far != nil && (n.IsSwitch || n == start) {
				if _, known := routes[far.Node]; !known {
					routes[far.Node] = routes[n].Append(uint8(i))
					queue = append(queue, far.Node)
				}
			}
		}
	}
	return routes
}

// TestBare: a bare subnet has no LIDs, routes, active links and subnet manager, and
// Sets bring it up.
func TestBare(t *testing.T) {
	f, o := mustParse(t, small)
	model := New(f, o)
	o.Bare = true
	r := &rig{t: t, Fabric: f, Subnet: New(f, o)}
	r.conn = r.attach("node-0001 HCA-1")

	info := r.portInfo(1, here)
	if info.LID != 0 || info.MasterSMLID != 0 || info.PortState != mad.PortStateInitialize || info.CapabilityMask&mad.CapabilityMaskIsSM != 0 {
		t.Errorf("a CA's port: %+v", info)
	}
	if status, _ := r.get(mad.AttrSMInfo, 0, here); status != mad.StatusBadMethodAttribute {
		t.Errorf("SMInfo: %v", status)
	}
	var sw mad.SwitchInfo
	_, data := r.get(mad.AttrSwitchInfo, 0, leaf1)
	if sw.Decode(data); sw.LinearFDBTop != 0 {
		t.Errorf("SwitchInfo: %+v", sw)
	}
	if _, data := r.get(mad.AttrLinearForwardingTable, 0, leaf1); data[1] != mad.NoPort {
		t.Errorf("LFT % x", data)
	}
	if err := r.SM.Restart(0); err == nil {
		t.Error("a subnet manager that is not there was restarted")
	}

	sm := model.state.SM.LID
	r.bring(model, sm)
	for i := range f.Nodes() {
		name := f.Nodes()[i].Name()
		c := &engine.Call{}
		c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, []byte{0, 1})
		c.SetLID(r.lid(name))
		if !r.conn.ask(t, c) || c.Header().Status != 0 {
			t.Errorf("%s does not answer", name)
		}
	}
	r.accept(r.conn, mad.ClassSubn, mad.MethodTrap)
	if err := r.Cables.Unlink(r.named("leaf-4").GUID(), 2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Trap 1 4: trap 128 of LID 4, switch 4"}, r.events(r.conn)); diff != "" {
		t.Errorf("trap (-want +got)\n%s", diff)
	}
	if err := r.Cables.Link(r.named("leaf-4").GUID(), 2); err != nil {
		t.Fatal(err)
	}
	if p := r.at("leaf-4", 2); p.State != mad.PortStateInitialize {
		t.Errorf("the link is %v again: nobody made it so", p.State)
	}
}

// TestIsland: the subnet administrator does not know ports that its sweep does not
// reach, in paths, groups and services either.
func TestIsland(t *testing.T) {
	r := newRig(t, small)
	lid, far := r.lid("node-0004 HCA-1"), r.lid("node-0003 HCA-1")
	guid := r.at("node-0004 HCA-1", 1).GUID
	status := func(m mad.Method, a *mad.Attribute, mask uint64, record []byte) mad.Status {
		t.Helper()
		c := saCall(m, a, 0, mask, record, r.state.SM.LID)
		if !r.conn.ask(t, c) {
			t.Fatal("no answer")
		}
		return c.Header().Status
	}
	check := func(when string, paths int, others mad.Status, byGID mad.Status) {
		t.Helper()
		e := engine.New(r.attach("node-0001 HCA-1"), engine.Options{})
		defer e.Close()
		for what, q := range map[string]struct {
			mask uint64
			rec  mad.PathRecord
		}{
			"both":   {pathSLIDMask | pathDLIDMask, mad.PathRecord{SLID: far, DLID: lid}},
			"itself": {pathSLIDMask | pathDLIDMask, mad.PathRecord{SLID: lid, DLID: lid}},
		} {
			if got := r.records(e, mad.AttrPathRecord, 0, q.mask, encode(&q.rec)); len(got) != paths {
				t.Errorf("%s: %d paths of %s, want %d", when, len(got), what, paths)
			}
		}
		gid := mad.MakeGID(state.GIDPrefix, guid)
		if got := status(mad.MethodGet, mad.AttrPathRecord, pathSGIDMask|pathDGIDMask, encode(&mad.PathRecord{SGID: gid, DGID: gid})); got != byGID {
			t.Errorf("%s: a path by GID: %v, want %v", when, got, byGID)
		}
		join := encode(&mad.MCMemberRecord{MGID: r.state.Groups[0].MGID, PortGID: gid, JoinState: mad.JoinStateFullMember})
		if got := status(mad.MethodSet, mad.AttrMCMemberRecord, joinMask, join); got != others {
			t.Errorf("%s: a join: %v, want %v", when, got, others)
		}
		guids := encode(&mad.GUIDInfoRecord{LID: lid})
		if got := status(mad.MethodSet, mad.AttrGUIDInfoRecord, guidRecordMask, guids); got != others {
			t.Errorf("%s: its GUIDs: %v, want %v", when, got, others)
		}
	}
	check("before", 1, mad.StatusOK, mad.StatusOK)
	for num := 3; num <= 4; num++ {
		if err := r.Cables.Unlink(r.named("leaf-2").GUID(), num); err != nil {
			t.Fatal(err)
		}
	}
	check("cut off", 0, mad.StatusRequestInvalid, mad.StatusInvalidGID)
	if err := r.Cables.Link(r.named("leaf-2").GUID(), 3); err != nil {
		t.Fatal(err)
	}
	check("again", 1, mad.StatusOK, mad.StatusOK)
}
