package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// legal computes which ports packets to an end port may take, by definitions alone: the
// lengths of routes are found by relaxation until nothing changes.
type legal struct {
	s      *state.Subnet
	engine string
	level  map[*state.Node]int // of updn: higher ones are up
}

func newLegal(s *state.Subnet) *legal {
	l := &legal{s: s, engine: s.Adaptive.Engine}
	if l.engine == "minhop" {
		return l
	}
	l.engine, l.level = "updn", levels(s)
	// If some hosts have no such route, up is to the switch from which the farthest one is the
	// nearest.
	for d := range l.level {
		next := l.next(d)
		for n := range l.level {
			if _, ok := next[n]; !ok && l.level[n] == 1 && l.level[d] == 1 {
				l.level = rootLevels(s)
				return l
			}
		}
	}
	return l
}

// rootLevels orders switches by their distance from the root, and then by their number.
func rootLevels(s *state.Subnet) map[*state.Node]int {
	distances := func(from *state.Node) (dist map[*state.Node]int, farthest int) {
		dist = map[*state.Node]int{from: 0}
		for queue := []*state.Node{from}; len(queue) > 0; queue = queue[1:] {
			farthest = dist[queue[0]]
			for i := range queue[0].Ports {
				p := &queue[0].Ports[i]
				if !p.Up || !p.Peer.Node.IsSwitch {
					continue
				}
				if _, known := dist[p.Peer.Node]; !known {
					dist[p.Peer.Node] = dist[queue[0]] + 1
					queue = append(queue, p.Peer.Node)
				}
			}
		}
		return dist, farthest
	}
	var best map[*state.Node]int
	nearest := 1 << 20
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.IsSwitch {
			if dist, far := distances(n); far < nearest {
				best, nearest = dist, far
			}
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.IsSwitch {
			best[n] = -(best[n]<<16 + i)
		}
	}
	return best
}

// next are the ports of each switch on routes to the switch d. Of updn: a switch with a route
// down takes the ports down to switches whose route down is shorter by one; others take the
// ports up to the switches nearest to d.
func (l *legal) next(d *state.Node) map[*state.Node]adaptive.Ports {
	const far = 1 << 20
	down, any := map[*state.Node]int{}, map[*state.Node]int{}
	for i := range l.s.Nodes {
		down[&l.s.Nodes[i]], any[&l.s.Nodes[i]] = far, far
	}
	down[d], any[d] = 0, 0
	relax := func(dist map[*state.Node]int, use func(p *state.Port) bool, only func(n *state.Node) bool) {
		for changed := true; changed; {
			changed = false
			for i := range l.s.Nodes {
				n := &l.s.Nodes[i]
				for j := range n.Ports {
					p := &n.Ports[j]
					if n.IsSwitch && only(n) && p.Up && !p.FNM && p.Peer.Node.IsSwitch && use(p) && dist[p.Peer.Node]+1 < dist[n] {
						dist[n], changed = dist[p.Peer.Node]+1, true
					}
				}
			}
		}
	}
	isDown := func(p *state.Port) bool { return l.level[p.Peer.Node] < l.level[p.Node] }
	all := func(*state.Port) bool { return true }
	every := func(*state.Node) bool { return true }
	if l.engine == "updn" {
		relax(down, isDown, every)
		for n, dist := range down {
			any[n] = dist
		}
		relax(any, func(p *state.Port) bool { return !isDown(p) }, func(n *state.Node) bool { return down[n] == far })
	} else {
		relax(any, all, every)
	}
	ports := map[*state.Node]adaptive.Ports{}
	for i := range l.s.Nodes {
		n := &l.s.Nodes[i]
		var set adaptive.Ports
		for j := range n.Ports {
			p := &n.Ports[j]
			if !n.IsSwitch || !p.Up || p.FNM || !p.Peer.Node.IsSwitch || any[p.Peer.Node]+1 != any[n] || n == d {
				continue
			}
			if l.engine != "updn" || down[n] == far && !isDown(p) || down[n] < far && isDown(p) && down[p.Peer.Node] < far {
				set.Add(p.Num)
			}
		}
		if any[n] < far {
			ports[n] = set
		}
	}
	return ports
}

// levels are the distances of switches from switches with hosts.
func levels(s *state.Subnet) map[*state.Node]int {
	level := map[*state.Node]int{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for j := range n.Ports {
			if n.IsSwitch && n.Ports[j].Up && !n.Ports[j].Peer.Node.IsSwitch {
				level[n] = 1
			}
		}
	}
	for more := 1; more <= len(s.Nodes); more++ {
		for i := range s.Nodes {
			n := &s.Nodes[i]
			for j := range n.Ports {
				p := &n.Ports[j]
				if n.IsSwitch && level[n] == 0 && p.Up && p.Peer.Node.IsSwitch && level[p.Peer.Node] == more {
					level[n] = more + 1
				}
			}
		}
	}
	return level
}

// TestAdaptiveTables: the choice of each switch has exactly the ports that the engine's
// definition permits.
func TestAdaptiveTables(t *testing.T) {
	for _, spec := range []string{
		"fattree:k=4,levels=3,ar=updn", "fattree:k=8,ar=updn,remove_links=10%", "fattree:k=6,levels=3,ar=updn,remove_links=8%,seed=3",
		"pgft:m=4/4,w=1/2,p=1/3,ar=ftree", "torus:dims=3/4,hosts=1,ar=minhop", "hyperx:dims=3/3,hosts=1,links=2,ar=minhop", "random:n=14,degree=4,hosts=1,ar=minhop",
		"fattree:k=6,levels=3,remove_links=12%,ar=updn", // some hosts have no route up and down the tree

	} {
		r := newRig(t, spec)
		r.state.EnsureTables()
		l := newLegal(r.state)
		for p := range state.EndPorts(r.state.LIDs) {
			if p.Node.IsSwitch {
				continue
			}
			d := p.Peer.Node
			for n, want := range l.next(d) {
				c := n.Choose(adaptive.Packet{LID: p.LID, Transport: adaptive.RC}, (*state.Port).Active)
				if n == d {
					want = adaptive.PortSet(p.Peer.Num)
				}
				if n.IsSwitch && c.Ports != want {
					t.Errorf("%s: %s to LID %d: ports %v, want %v", spec, n.Label, p.LID, c.Ports, want)
				}
			}
		}
	}
}

// TestAdaptiveAcyclic: in any network, the choices of updn reach every host by every choice,
// and no packet goes up after it went down.
func TestAdaptiveAcyclic(t *testing.T) {
	for seed := range 6 {
		for _, spec := range []string{"random:n=16,degree=4,hosts=1", "torus:dims=4/4,hosts=1", "dragonfly:a=3,p=1,h=1", "fattree:k=6,levels=3,remove_links=12%"} {
			r := newRig(t, fmt.Sprintf("%s,ar=updn,ar_with=secondary,seed=%d", spec, seed+1))
			r.state.EnsureTables()
			turns := map[[2]*state.Port]bool{} // from the port of arrival to the port of departure, as links
			for p := range state.EndPorts(r.state.LIDs) {
				if p.Node.IsSwitch {
					continue
				}
				longest := map[*state.Port]int{} // a port of arrival: the longest way from there
				for q := range state.EndPorts(r.state.LIDs) {
					if !q.Node.IsSwitch {
						r.follow(t, q.Peer, p.LID, longest, turns, 0)
					}
				}
			}
			if cyclic(turns) {
				t.Errorf("%s, seed %d: a cycle of turns", spec, seed+1)
			}
		}
	}
}

// follow takes all choices of a packet that arrived at a port, and returns the longest way.
func (r *rig) follow(t *testing.T, in *state.Port, lid mad.LID, longest map[*state.Port]int, turns map[[2]*state.Port]bool, depth int) int {
	if n, known := longest[in]; known {
		return n
	}
	if depth > 64 {
		t.Fatalf("a loop to LID %d at %s", lid, in.Node.Label)
	}
	c := in.Node.Choose(adaptive.Packet{In: in.Num, LID: lid, Transport: adaptive.RC}, (*state.Port).Active)
	if c.Ports.Empty() {
		t.Fatalf("%s has no port to LID %d", in.Node.Label, lid)
	}
	most := 0
	for num := range c.Ports.All() {
		out := &in.Node.Ports[num]
		turns[[2]*state.Port{in, out.Peer}] = true
		if out.Peer.Node.IsSwitch {
			most = max(most, 1+r.follow(t, out.Peer, lid, longest, turns, depth+1))
		} else if out.Peer.LID != lid {
			t.Fatalf("LID %d: arrives at LID %d", lid, out.Peer.LID)
		}
	}
	longest[in] = most
	return most
}

// cyclic reports whether the turns, from link to link, have a cycle.
func cyclic(turns map[[2]*state.Port]bool) bool {
	next := map[*state.Port][]*state.Port{}
	before := map[*state.Port]int{}
	for turn := range turns {
		next[turn[0]] = append(next[turn[0]], turn[1])
		before[turn[1]]++
	}
	var free []*state.Port
	for p := range next {
		if before[p] == 0 {
			free = append(free, p)
		}
	}
	left := len(turns)
	for ; len(free) > 0; free = free[1:] {
		for _, to := range next[free[0]] {
			left--
			if before[to]--; before[to] == 0 {
				free = append(free, to)
			}
		}
	}
	return left > 0
}

// TestAdaptiveHops: every port that packets of random traffic leave through is in the choice
// set of its switch, which is computed independently, also when links fail while the subnet
// manager is away, and after it returns.
func TestAdaptiveHops(t *testing.T) {
	for i, spec := range []string{
		"fattree:k=4,levels=3,ar=updn", "fattree:k=8,levels=2,ar=updn,ar_with=free", "fattree:k=6,levels=3,ar=updn,ar_with=secondary,remove_links=5%",
		"torus:dims=4/4,hosts=1,ar=minhop", "hyperx:dims=4/4,hosts=1,links=2,ar=minhop,ar_with=free+plft", "fattree:k=4,levels=3,ar=updn,ar_with=hbf+all",
		"fattree:k=4,levels=3,ar=updn,ar_with=plft+whbf", "pgft:m=4/4,w=1/2,p=1/3,ar=updn,planes=2",
	} {
		t.Run(spec, func(t *testing.T) {
			r := newRig(t, spec)
			now := time.Unix(1e9, 0)
			r.SetClock(func() time.Time { return now })
			random := rand.New(rand.NewPCG(uint64(i), 7))
			hosts := r.hosts()
			sm, used := r.state.SM, map[*state.Port]map[mad.LID]bool{}
			var legal map[*state.Node]map[*state.Node]adaptive.Ports
			for round := range 12 {
				switch round {
				case 0:
					legal = r.allLegal()
				case 4: // links fail, and the tables stay
					r.state.SM = nil
					for range 3 {
						r.unlinkSwitches(t, random)
					}
				case 8: // the tables are computed for the links that are left
					r.state.SM = sm
					r.unlinkSwitches(t, random)
					legal = r.allLegal()
				}
				to := hosts[random.IntN(len(hosts))]
				var flows []Flow
				for _, from := range hosts {
					if from != to && from.Num == to.Num && random.IntN(2) == 0 {
						flows = append(flows, Flow{From: cableOf(from), To: cableOf(to), Rate: 1e9 * float64(1+random.IntN(9)), SL: uint8(random.IntN(3))})
					}
				}
				if err := r.Traffic.Set(flows); err != nil {
					t.Fatal(err)
				}
				if r.checkHops(t, to, legal[to.Peer.Node], &now, used); t.Failed() {
					t.Fatalf("in round %d", round)
				}
			}
			choices := 0
			for _, lids := range used {
				choices += len(lids)
			}
			if choices < 20 {
				t.Errorf("%d hops", choices)
			}
		})
	}
}

// allLegal are the ports that may be chosen, by the switch of the destination and the switch.
func (r *rig) allLegal() map[*state.Node]map[*state.Node]adaptive.Ports {
	l := newLegal(r.state)
	all := map[*state.Node]map[*state.Node]adaptive.Ports{}
	for _, p := range r.hosts() {
		if d := p.Peer.Node; all[d] == nil {
			all[d] = l.next(d)
			if !r.state.Adaptive.Secondary {
				continue
			}
			for n, ports := range all[d] { // who goes up may take any port up
				for num := range ports.All() {
					if l.level[n.Ports[num].Peer.Node] > l.level[n] {
						for i := range n.Ports {
							if q := &n.Ports[i]; q.Up && l.level[q.Peer.Node] > l.level[n] {
								ports.Add(q.Num)
							}
						}
					}
				}
				all[d][n] = ports
			}
		}
	}
	return all
}

func (r *rig) hosts() (ports []*state.Port) {
	for i := range r.state.Nodes {
		if n := &r.state.Nodes[i]; n.Kind == fabric.KindHost {
			ports = append(ports, n.EndPorts()...)
		}
	}
	return ports
}

func cableOf(p *state.Port) Cable { return Cable{Node: p.Node.GUID(), Num: int(p.Num)} }

// unlinkSwitches takes down a random link between switches.
func (r *rig) unlinkSwitches(t *testing.T, random *rand.Rand) {
	t.Helper()
	for range 10000 {
		p := &r.state.Ports[random.IntN(len(r.state.Ports))]
		if p.Up && p.Num > 0 && !p.FNM && p.Node.IsSwitch && p.Peer.Node.IsSwitch {
			if err := r.Cables.Unlink(p.Node.GUID(), int(p.Num)); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no link")
}

// checkHops compares the ports that the flows to a port use with the choice sets. No flow
// leaves through another port.
func (r *rig) checkHops(t *testing.T, to *state.Port, legal map[*state.Node]adaptive.Ports, now *time.Time, used map[*state.Port]map[mad.LID]bool) {
	t.Helper()
	r.Traffic.Flows() // finds the ways
	sent := func(p *state.Port) uint64 {
		return p.Counters.Value(state.CounterKey{Name: "PortXmitData", Element: 0}, r.state.Now())
	}
	before := map[*state.Port]uint64{}
	for i := range r.state.Ports {
		before[&r.state.Ports[i]] = sent(&r.state.Ports[i])
	}
	*now = now.Add(time.Second)
	for i := range r.state.Ports {
		p := &r.state.Ports[i]
		if !p.Node.IsSwitch || sent(p) == before[p] || p == to.Peer {
			continue
		}
		if !legal[p.Node].Has(p.Num) {
			t.Errorf("packets to LID %d, at %s, leave %s through port %d, not %v", to.LID, to.Peer.Node.Label, p.Node.Label, p.Num, legal[p.Node])
		}
		if used[p] == nil {
			used[p] = map[mad.LID]bool{}
		}
		used[p][to.LID] = true
	}
}

// choice is what packets of RC from a host may take at a switch.
func (r *rig) choice(sw, to string) adaptive.Choice {
	r.state.EnsureTables()
	n := &r.state.Nodes[r.named(sw).ID()]
	return n.Choose(adaptive.Packet{In: 1, LID: r.lid(to), Transport: adaptive.RC}, (*state.Port).Active)
}

// TestAdaptiveLFTWrite: a write of the linear forwarding table ends adaptive routing there:
// packets follow the table, and the others keep theirs.
func TestAdaptiveLFTWrite(t *testing.T) {
	r := newRig(t, "fattree:k=4,ar=updn")
	to := r.lid("node-0008 HCA-1")
	_, before := r.get(mad.AttrAdaptiveRoutingLFT, uint32(to)/16, r.lid("leaf-1"))
	_, block := r.get(mad.AttrLinearForwardingTable, 0, r.lid("leaf-1"))
	block[to] = 1 // back to node-0001
	if status, _ := r.set(mad.AttrLinearForwardingTable, 0, r.lid("leaf-1"), block); status != mad.StatusOK {
		t.Fatal(status)
	}
	for name, want := range map[string]bool{"leaf-1": false, "leaf-2": true} {
		var info mad.AdaptiveRoutingInfo
		_, data := r.get(mad.AttrAdaptiveRoutingInfo, 0, r.lid(name))
		if info.Decode(data); info.E != want {
			t.Errorf("%s: enabled is %v", name, info.E)
		}
	}
	if _, after := r.get(mad.AttrAdaptiveRoutingLFT, uint32(to)/16, r.lid("leaf-1")); !cmp.Equal(before, after) {
		t.Error("the table of adaptive routing has changed")
	}
	if in := state.ForwardLID(r.at("node-0002 HCA-1", 1), to, false); in != nil {
		t.Errorf("a packet arrives at %s, and not where the linear table says", in.Node.Label)
	}
}

// TestFastRecovery: while the subnet manager is away, packets skip a member of a group whose
// link is down: adaptive ones, and static ones of a group.
func TestFastRecovery(t *testing.T) {
	for _, recovery := range []bool{true, false} {
		r := newRig(t, "fattree:k=8,ar=updn")
		to := r.lid("node-0032 HCA-1")
		leaf := &r.state.Nodes[r.named("leaf-1").ID()]
		leaf.Adaptive.Info.FREnabled = recovery
		leaf.Adaptive.Update()
		r.state.EnsureTables()
		static := leaf.LFT[to]
		r.state.SM = nil
		if err := r.Cables.Unlink(leaf.GUID(), int(static)); err != nil {
			t.Fatal(err)
		}
		c := r.choice("leaf-1", "node-0032 HCA-1")
		if c.Ports.Has(static) || c.Ports.Len() != 3 {
			t.Errorf("adaptive packets take ports %v; port %d is down", c.Ports, static)
		}
		in := state.ForwardLID(r.at("node-0002 HCA-1", 1), to, false)
		if (in != nil) != recovery {
			t.Errorf("recovery %v: a static packet arrives at %v", recovery, in)
		}
		if err := r.Traffic.Set([]Flow{{From: cableOf(r.at("node-0002 HCA-1", 1)), To: cableOf(r.at("node-0032 HCA-1", 1)), Rate: 1e9}}); err != nil {
			t.Fatal(err)
		}
		if f := r.Traffic.Flows()[0]; f.Carried != 1e9 {
			t.Errorf("recovery %v: an adaptive flow: %+v", recovery, f)
		}
	}
}

// TestAdaptiveFaults: each fault changes what it names, at its switch alone, and stays when
// the subnet manager computes the tables again.
func TestAdaptiveFaults(t *testing.T) {
	const far = "node-0005 HCA-1"
	summary := func(r *rig, sw string) string {
		n := &r.state.Nodes[r.named(sw).ID()]
		c := r.choice(sw, far)
		return fmt.Sprintf("ports %v of %v, group %v of %d, SLs %#x, on %v, keys %v", c.Ports, c.SubGroups, c.Group <= n.Adaptive.GroupTop(), n.Adaptive.Tables[0].Groups.Len(), n.Adaptive.Info.EnableBySLMask, n.Adaptive.Info.E, n.VSKey.ProtectBit && n.N2NKey.ProtectBit)
	}
	const good = "ports 5-8 of [5-8], group true of 9, SLs 0xffff, on true, keys true"
	for fault, want := range map[string]string{
		"stale":   "ports 5,7-8 of [5,7-8], group true of 9, SLs 0xffff, on true, keys true",
		"empty":   "ports  of [], group true of 9, SLs 0xffff, on true, keys true",
		"dead":    "ports 5-8 of [5-9], group true of 9, SLs 0xffff, on true, keys true", // port 9 does not exist
		"illegal": "ports 1,5-8 of [1,5-8], group true of 9, SLs 0xffff, on true, keys true",
		"top":     "ports 5-8 of [5-8], group false of 9, SLs 0xffff, on true, keys true",
		"sl":      "ports 5-8 of [5-8], group true of 9, SLs 0xfffd, on true, keys true",
		"key":     "ports 5-8 of [5-8], group true of 9, SLs 0xffff, on true, keys false",
	} {
		for _, live := range []bool{false, true} {
			spec := "fattree:k=8,ar=updn"
			if !live {
				spec += ",ar_faults=" + fault + "@leaf-1"
			}
			r := newRig(t, spec)
			if live {
				f, err := state.AdaptiveFaultNamed(fault)
				if err == nil {
					r.state.EnsureTables()
					err = r.state.Nodes[r.named("leaf-1").ID()].Break(f)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if got := summary(r, "leaf-1"); got != want {
					t.Errorf("%s, live %v: %s\nwant %s", fault, live, got, want)
				}
				if got := summary(r, "leaf-3"); got != good {
					t.Errorf("%s at another switch, live %v: %s\nwant %s", fault, live, got, good)
				}
				r.state.InvalidateTables()
			}
		}
	}
	r := newRig(t, "fattree:k=8,ar_faults=off@leaf-1")
	if n := &r.state.Nodes[r.named("leaf-1").ID()]; n.Adaptive.Active() {
		t.Error("off: the switch routes adaptively")
	}
}

// TestAdaptiveTraffic: flows that share a link by static routes get links of their own, by
// choices for flows and for packets; a bounded flow keeps its ports when others come and go.
func TestAdaptiveTraffic(t *testing.T) {
	for spec, want := range map[string]string{
		"fattree:k=8":                                "2.5e+10 of 5e+10, 1 ports up",
		"fattree:k=8,ar=updn":                        "5e+10 of 5e+10, 4 ports up",
		"fattree:k=8,ar=updn,ar_with=free":           "5e+10 of 5e+10, 4 ports up",
		"fattree:k=8,ar=updn,ar_faults=off@leaf-1":   "2.5e+10 of 5e+10, 1 ports up",
		"fattree:k=8,ar=updn,ar_faults=empty@leaf-1": "3.75e+10 of 5e+10, 3 ports up",
	} {
		r := newRig(t, spec)
		var flows []Flow
		for i, to := range []string{"node-0005", "node-0009", "node-0013", "node-0017"} { // the first hosts of leaves
			flows = append(flows, Flow{From: cableOf(r.at(fmt.Sprintf("node-%04d HCA-1", i+1), 1)), To: cableOf(r.at(to+" HCA-1", 1)), Rate: 12.5e9})
		}
		if err := r.Traffic.Set(flows); err != nil {
			t.Fatal(err)
		}
		if got := r.carried("leaf-1"); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
}

// TestAdaptiveFlowKeepsPort: a bounded flow leaves its port when the link fails, and does not
// return when it is back; parts of a free one do.
func TestAdaptiveFlowKeepsPort(t *testing.T) {
	for with, want := range map[string][3]string{"": {"5", "6", "6"}, ",ar_with=free": {"5-8", "6-8", "5-8"}} {
		r := newRig(t, "fattree:k=8,ar=updn"+with)
		leaf := &r.state.Nodes[r.named("leaf-1").ID()]
		used := func() string {
			r.Traffic.Flows()
			var ports adaptive.Ports
			for i := range leaf.Ports {
				if p := &leaf.Ports[i]; p.Num > 4 && p.Counters.Grows() {
					ports.Add(p.Num)
				}
			}
			return ports.String()
		}
		if err := r.Traffic.Set([]Flow{{From: cableOf(r.at("node-0001 HCA-1", 1)), To: cableOf(r.at("node-0009 HCA-1", 1)), Rate: 1e9}}); err != nil {
			t.Fatal(err)
		}
		var got [3]string
		got[0] = used()
		if err := r.Cables.Unlink(leaf.GUID(), 5); err != nil {
			t.Fatal(err)
		}
		got[1] = used()
		if err := r.Cables.Link(leaf.GUID(), 5); err != nil {
			t.Fatal(err)
		}
		if got[2] = used(); got != want {
			t.Errorf("%s: ports %q, want %q", with, got, want)
		}
	}
}

// carried is the sum of what flows carry and demand, and the number of ports up of a leaf in use.
func (r *rig) carried(leaf string) string {
	carried, rate, ports := 0.0, 0.0, 0
	for _, f := range r.Traffic.Flows() {
		carried, rate = carried+f.Carried, rate+f.Rate
	}
	n := &r.state.Nodes[r.named(leaf).ID()]
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Up && p.Peer.Node.IsSwitch && p.Num > 0 && p.Counters.Grows() && p.Peer.Counters.Grows() {
			ports++
		}
	}
	return fmt.Sprintf("%g of %g, %d ports up", carried, rate, ports)
}

// TestAdaptiveTwin: a fabric that was read with its adaptive routing is brought up with it.
func TestAdaptiveTwin(t *testing.T) {
	r := newRig(t, "fattree:k=4,levels=3,ar_faults=empty@leaf-3+off@leaf-2+sl@spine-1")
	r.state.EnsureTables()
	b := fabric.NewBuilder()
	for i := range r.Nodes() {
		n, from := &r.state.Nodes[i], &r.Nodes()[i]
		h := b.AddNode(fabric.NodeSpec{Info: *from.Info(), Name: from.Name()})
		if n.IsSwitch && n.Name() != "core-1" { // of which nothing was read
			b.SetAdaptive(h, n.Adaptive.Routing())
		}
	}
	for i := range r.Ports() {
		if p := &r.Ports()[i]; p.Peer() != nil {
			if err := b.Link(p.Node().ID(), p.Num(), p.Peer().Node().ID(), p.Peer().Num()); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := b.Build()
	twin := &rig{t: t, Fabric: f, Subnet: New(f, Options{})}
	twin.conn = twin.attach(f.OfType(mad.NodeTypeCA)[0].Name())
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		if !n.IsSwitch {
			continue
		}
		for _, a := range []struct {
			attr   *mad.Attribute
			blocks uint32
		}{{mad.AttrAdaptiveRoutingInfo, 1}, {mad.AttrAdaptiveRoutingGroupTable, 12}, {mad.AttrAdaptiveRoutingLFT, 4}} {
			for block := range a.blocks {
				_, want := r.get(a.attr, block, r.lid(n.Name()))
				_, got := twin.get(a.attr, block, twin.lid(n.Name()))
				if n.Name() == "core-1" {
					var info mad.AdaptiveRoutingInfo
					if info.Decode(got); a.attr == mad.AttrAdaptiveRoutingInfo && info.E {
						t.Error("core-1 routes adaptively")
					}
					continue
				}
				if a.attr == mad.AttrAdaptiveRoutingInfo { // GroupTop is what is in use
					copy(got[5:8], want[5:8])
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s %d of %s (-want +got)\n%s", a.attr.Name, block, n.Name(), diff)
				}
			}
		}
	}
}

// TestAdaptiveReaders: readers compute the tables that they need, at the same time.
func TestAdaptiveReaders(t *testing.T) {
	r := newRig(t, "fattree:k=8,levels=3,ar=updn,ar_faults=stale@leaf-1")
	hosts := r.hosts()
	for range 3 {
		r.state.Lock()
		r.state.InvalidateTables()
		r.state.Unlock()
		var readers sync.WaitGroup
		for i := range 8 {
			readers.Go(func() {
				r.state.RLock()
				defer r.state.RUnlock()
				var data [state.SMPSize]byte
				n := &r.state.Nodes[i]
				if i%2 == 0 {
					agent.GetAdaptiveLFT(n, 1, data[:])
				} else if in := state.ForwardLID(hosts[i], hosts[100-i].LID, false); in == nil || in.LID != hosts[100-i].LID {
					t.Errorf("arrives at %v", in)
				}
				n.Choose(adaptive.Packet{LID: hosts[i].LID, Transport: adaptive.RC}, (*state.Port).Active)
			})
		}
		readers.Wait()
	}
}
