package jobs

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Patterns of the traffic of a job. In each, all ports of all its hosts send 1 in total: the
// whole bandwidth of the port, shared evenly between its partners.
const (
	AllToAll = "all-to-all"         // each port to all others of the job
	Ring     = "ring"               // to the next host, and from the last to the first; ports of equal rails
	Doubling = "recursive-doubling" // to the hosts whose place is its own XOR 1, 2, 4, ..., as an all-reduce does; ports of equal rails
	Rails    = "rails"              // to all other hosts; ports of equal rails: traffic stays on its rail
)

// Patterns are all patterns.
func Patterns() []string { return []string{AllToAll, Ring, Doubling, Rails} }

// checkPattern returns an error if pattern is unknown.
func checkPattern(pattern string) error {
	if !slices.Contains(Patterns(), pattern) {
		return fmt.Errorf("unknown pattern %.60q; supported: %s", pattern, strings.Join(Patterns(), ", "))
	}
	return nil
}

// Load is the traffic on a channel of a graph.
type Load struct {
	Channel int32
	Traffic float64
}

// JobTraffic is the traffic of a job.
type JobTraffic struct {
	Hosts   []string // the hosts in the fabric, by their names there
	Missing []string // the others
	Ports   int
	Lost    int64 // flows that do not arrive
	Loads   []Load
	// Alone is the most traffic of the job on a channel, and Together the most of all jobs on
	// a channel that it uses; at least 1, the bandwidth of its ports.
	Alone, Together float64
	Shared          int // channels that other jobs use too
}

// Slowdown is the time that the slowest flows of the job take, relative to the job alone, if
// links are shared fairly and are as fast as the ports of hosts.
func (t *JobTraffic) Slowdown() float64 { return t.Together / t.Alone }

// Shared is a channel that several jobs use.
type Shared struct {
	Channel int32
	Traffic float64
	Jobs    []int // in the order of their traffic on it, the most first
}

// Traffic is the traffic of jobs, all at once.
type Traffic struct {
	Jobs   []JobTraffic
	Loads  []float64 // by channel
	At     int       // a channel with the most traffic, or -1
	Shared []Shared  // the most traffic first
	Worst  int       // the job with the largest slowdown above 1, or -1
}

// Measure adds up the traffic of jobs on the channels of r. Where switches choose between ports,
// these share it evenly. The links of hosts do not count.
//
// Time: O(L*S) for all-to-all and rails, L ports of jobs and S switches; O(L*log(L)*P) for the
// others, P links a path.
func Measure(ctx context.Context, r *routes.Routes, list []Job, pattern string) (*Traffic, error) {
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	g := r.Graph()
	ports := portsOf(g)
	t := &Traffic{Jobs: make([]JobTraffic, len(list)), Loads: make([]float64, len(g.Channels())), At: -1, Worst: -1}
	users := make([][]int32, len(g.Channels()))
	for i := range list {
		j := &t.Jobs[i]
		lids := j.findHosts(ports, list[i].Hosts)
		loads, err := j.measure(ctx, r, lids, pattern)
		if err != nil {
			return nil, err
		}
		for ch, load := range loads {
			if load > 0 {
				j.Loads = append(j.Loads, Load{int32(ch), load})
				t.Loads[ch] += load
				users[ch] = append(users[ch], int32(i))
			}
		}
	}
	for ch, load := range t.Loads {
		if load > 0 && (t.At < 0 || load > t.Loads[t.At]) {
			t.At = ch
		}
	}
	t.compare(users)
	return t, nil
}

// findHosts finds the hosts of a job; it returns the LIDs of each.
func (j *JobTraffic) findHosts(ports *hostPorts, names []string) (lids [][]mad.LID) {
	taken := map[string]bool{}
	for _, name := range names {
		host := ports.find(name)
		if host == "" || taken[host] {
			if host == "" {
				j.Missing = append(j.Missing, name)
			}
			continue
		}
		taken[host] = true
		j.Hosts = append(j.Hosts, host)
		lids = append(lids, ports.lids[host])
		j.Ports += len(ports.lids[host])
	}
	return lids
}

// measure returns the traffic of the job by channel.
func (j *JobTraffic) measure(ctx context.Context, r *routes.Routes, lids [][]mad.LID, pattern string) ([]float64, error) {
	switch pattern {
	case AllToAll, Rails:
		loads := make([]float64, len(r.Graph().Channels()))
		for _, all := range exchanges(lids, pattern) {
			if err := j.exchange(ctx, r, all, loads); err != nil {
				return nil, err
			}
		}
		return loads, nil
	}
	list := slices.Collect(flows(lids, pattern))
	if r.HasChoices() {
		return j.spreadFlows(ctx, r, list)
	}
	m, err := traffic.MeasureFlows(ctx, r, list)
	if err != nil {
		return nil, err
	}
	j.Lost = m.Lost
	return m.Loads, nil
}

// exchanges are the sets of LIDs in which each sends to all others.
func exchanges(lids [][]mad.LID, pattern string) (sets [][]mad.LID) {
	if pattern == AllToAll {
		return [][]mad.LID{slices.Concat(lids...)}
	}
	for rail := 0; ; rail++ {
		var set []mad.LID
		for _, of := range lids {
			if rail < len(of) {
				set = append(set, of[rail])
			}
		}
		if set == nil {
			return sets
		}
		sets = append(sets, set)
	}
}

// exchange adds the traffic of ports that each send to all the others, 1 in total.
func (j *JobTraffic) exchange(ctx context.Context, r *routes.Routes, lids []mad.LID, loads []float64) error {
	if len(lids) < 2 {
		return nil
	}
	g := r.Graph()
	if r.HasChoices() {
		spread, err := j.spreadExchange(ctx, r, lids)
		for ch, load := range spread {
			loads[ch] += load
		}
		return err
	}
	e := &verify.Endpoints{On: make([]uint32, len(g.Switches())), Wanted: make([]bool, int(g.Top())+1)}
	for _, lid := range lids {
		e.Wanted[lid] = true
		s := g.Terminals()[g.TerminalByLID(lid)].Switch
		if e.On[s]++; e.On[s] == 1 {
			e.Sources = append(e.Sources, int32(s))
		}
	}
	slices.Sort(e.Sources)
	lost := make([]int64, g.Workers())
	counts, err := verify.CountRoutes(ctx, r, e, func(worker int, w *verify.Walk, lid mad.LID) {
		for _, s := range e.Sources {
			if w.State[s] < 0 {
				lost[worker] += int64(e.On[s])
			}
		}
	})
	if err != nil {
		return err
	}
	for _, n := range lost {
		j.Lost += n
	}
	for ch, n := range counts {
		loads[ch] += float64(n) / float64(len(lids)-1)
	}
	return nil
}

// flows returns the flows of a pattern, by the LIDs of each host.
func flows(lids [][]mad.LID, pattern string) iter.Seq[traffic.Flow] {
	return func(yield func(traffic.Flow) bool) {
		n := len(lids)
		if pattern == AllToAll || pattern == Rails {
			for _, set := range exchanges(lids, pattern) {
				for _, from := range set {
					for _, to := range set {
						if from != to && !yield(traffic.Flow{From: from, To: to, Traffic: 1 / float64(len(set)-1)}) {
							return
						}
					}
				}
			}
			return
		}
		for from := range n {
			partners := partners(from, n, pattern)
			for _, to := range partners {
				for rail := range min(len(lids[from]), len(lids[to])) {
					if !yield(traffic.Flow{From: lids[from][rail], To: lids[to][rail], Traffic: 1 / float64(len(partners))}) {
						return
					}
				}
			}
		}
	}
}

// partners are the hosts that a host sends to. For recursive doubling of a number of hosts
// that is not a power of two, the last ones exchange with the first ones before and after
// (Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
// MPICH", 2005).
func partners(from, n int, pattern string) (list []int) {
	if n < 2 {
		return nil
	}
	if pattern == Ring {
		return []int{(from + 1) % n}
	}
	power := 1
	for 2*power <= n {
		power *= 2
	}
	if from >= power {
		return []int{from - power}
	}
	for distance := 1; distance < power; distance *= 2 {
		list = append(list, from^distance)
	}
	if from+power < n {
		list = append(list, from+power)
	}
	return list
}

// compare finds what jobs share, by the jobs that use each channel.
func (t *Traffic) compare(users [][]int32) {
	on := func(job int, ch int32) float64 {
		loads := t.Jobs[job].Loads
		i, _ := slices.BinarySearchFunc(loads, ch, func(l Load, ch int32) int { return cmp.Compare(l.Channel, ch) })
		return loads[i].Traffic
	}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		j.Alone, j.Together = 1, 1
		for _, l := range j.Loads {
			j.Alone, j.Together = max(j.Alone, l.Traffic), max(j.Together, t.Loads[l.Channel])
			if len(users[l.Channel]) > 1 {
				j.Shared++
			}
		}
		if j.Slowdown() > 1 && (t.Worst < 0 || j.Slowdown() > t.Jobs[t.Worst].Slowdown()) {
			t.Worst = i
		}
	}
	for ch, by := range users {
		if len(by) < 2 {
			continue
		}
		s := Shared{Channel: int32(ch), Traffic: t.Loads[ch]}
		for _, i := range by {
			s.Jobs = append(s.Jobs, int(i))
		}
		slices.SortStableFunc(s.Jobs, func(a, b int) int { return cmp.Compare(on(b, s.Channel), on(a, s.Channel)) })
		t.Shared = append(t.Shared, s)
	}
	slices.SortStableFunc(t.Shared, func(a, b Shared) int { return cmp.Compare(b.Traffic, a.Traffic) })
}

// maxFlows is the most flows of a matrix.
const maxFlows = 1 << 22

// Matrix returns the traffic of jobs between ports. Pairs that several jobs use are there once.
func Matrix(g *graph.Graph, list []Job, pattern string) ([]traffic.Flow, error) {
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	ports := portsOf(g)
	index := map[[2]mad.LID]int{}
	var out []traffic.Flow
	for _, job := range list {
		var j JobTraffic
		for f := range flows(j.findHosts(ports, job.Hosts), pattern) {
			pair := [2]mad.LID{f.From, f.To}
			i, ok := index[pair]
			if !ok {
				if len(out) == maxFlows {
					return nil, fmt.Errorf("more than %d flows; routes.job_traffic() has no such limit", maxFlows)
				}
				i = len(out)
				index[pair] = i
				out = append(out, traffic.Flow{From: f.From, To: f.To})
			}
			out[i].Traffic += f.Traffic
		}
	}
	return out, nil
}

// spreader adds up traffic where switches choose between ports: each shares the traffic to a
// LID evenly between all ports that packets of reliable connections on service level 0 may
// take.
type spreader struct {
	r        *routes.Routes
	g        *graph.Graph
	switches []*adaptive.Switch // nil: static
	down     []func(port uint8) bool
	plfts    int

	lid   mad.LID
	loads []float64 // by channel
	// By switch and private LFT.
	state  []visit
	inflow []float64
	order  []int32 // visited nodes, each behind all that follow it
}

// visit is the state of a switch on the way to a LID.
type visit uint8

const (
	unvisited visit = iota
	onPath
	arrives // by all ports
	loses   // by some port, packets do not arrive
)

func newSpreader(r *routes.Routes) *spreader {
	g := r.Graph()
	x := &spreader{r: r, g: g, switches: routes.ActiveSwitches(r), plfts: 1, loads: make([]float64, len(g.Channels()))}
	x.down = make([]func(port uint8) bool, len(g.Switches()))
	for s, a := range x.switches {
		x.down[s] = routes.Down(g, s)
		if a != nil {
			for port := range g.Switches()[s].NumPorts() + 1 {
				x.plfts = max(x.plfts, int(a.PLFT(uint8(port), 0))+1)
			}
		}
	}
	n := len(g.Switches()) * x.plfts
	x.state, x.inflow = make([]visit, n), make([]float64, n)
	return x
}

// node is the node of packets that come into a switch by a port: the switch and their private
// LFT.
func (x *spreader) node(s int32, in uint8) int32 {
	if a := x.switches[s]; a != nil {
		return s*int32(x.plfts) + int32(a.PLFT(in, 0))
	}
	return s * int32(x.plfts)
}

// ports are the ports that packets at a node may take.
func (x *spreader) ports(node int32) adaptive.Ports {
	s, plft := node/int32(x.plfts), uint8(node%int32(x.plfts))
	if a := x.switches[s]; a != nil {
		return a.PortsOf(plft, adaptive.Packet{LID: x.lid, Transport: adaptive.RC}, x.lid, x.down[s])
	}
	return adaptive.Single(x.r.Entry(s, x.lid)).Ports
}

// next returns the node behind a port; ok is false where packets leave the network there, and
// arrives reports whether they do so at the destination.
func (x *spreader) next(node int32, port uint8) (to, channel int32, arrives, ok bool) {
	target := x.g.Target(node/int32(x.plfts), port)
	if !target.IsChannel() {
		return 0, 0, target == graph.ToTerminal(int32(x.g.TerminalByLID(x.lid))), false
	}
	c := target.Channel()
	return x.node(x.g.ChannelTo(c), x.g.Channels()[c].PeerPort), c, false, true
}

// visit finds what follows a node, and whether packets arrive. The depth is at most the
// number of nodes.
func (x *spreader) visit(node int32) visit {
	if x.state[node] != unvisited {
		return x.state[node]
	}
	x.state[node] = onPath
	ports, result := x.ports(node), arrives
	if ports.Empty() {
		result = loses
	}
	for port := range ports.All() {
		if to, _, at, ok := x.next(node, port); ok && x.visit(to) != arrives || !ok && !at {
			result = loses
		}
	}
	x.state[node] = result
	x.order = append(x.order, node)
	return result
}

// senders are the switches of the ports that send to a LID, and for each how much and in how many
// flows.
type senders struct {
	on     []int32
	amount []float64
	flows  []int64
}

// add adds the traffic of senders to a LID. It returns how many flows may not arrive.
func (x *spreader) add(lid mad.LID, from senders) (lost int64) {
	x.lid = lid
	for i, s := range from.on {
		node := x.node(s, 0)
		if x.visit(node) == loses {
			lost += from.flows[i]
		}
		x.inflow[node] += from.amount[i]
	}
	for _, node := range slices.Backward(x.order) {
		ports := x.ports(node)
		share := x.inflow[node] / float64(ports.Len())
		for port := range ports.All() {
			if to, c, _, ok := x.next(node, port); ok {
				x.loads[c] += share
				x.inflow[to] += share
			}
		}
	}
	// What is left in a loop is lost.
	for _, node := range x.order {
		x.inflow[node], x.state[node] = 0, unvisited
	}
	x.order = x.order[:0]
	return lost
}

// spread adds up the traffic to LIDs where switches choose between ports.
func (j *JobTraffic) spread(ctx context.Context, r *routes.Routes, lids []mad.LID, from func(i int) senders) ([]float64, error) {
	g := r.Graph()
	workers := make([]*spreader, g.Workers())
	lost := make([]int64, g.Workers())
	err := graph.Each(ctx, g.Workers(), len(lids), func(worker, i int) {
		if workers[worker] == nil {
			workers[worker] = newSpreader(r)
		}
		lost[worker] += workers[worker].add(lids[i], from(i))
	})
	if err != nil {
		return nil, err
	}
	loads := make([]float64, len(g.Channels()))
	for i, x := range workers {
		j.Lost += lost[i]
		if x != nil {
			for c, load := range x.loads {
				loads[c] += load
			}
		}
	}
	return loads, nil
}

// spreadExchange is spread of ports that each send to all the others, 1 in total.
func (j *JobTraffic) spreadExchange(ctx context.Context, r *routes.Routes, lids []mad.LID) ([]float64, error) {
	g := r.Graph()
	var all senders
	index := map[int32]int{}
	for _, lid := range lids {
		s := int32(g.Terminals()[g.TerminalByLID(lid)].Switch)
		i, ok := index[s]
		if !ok {
			i = len(all.on)
			index[s] = i
			all = senders{append(all.on, s), append(all.amount, 0), append(all.flows, 0)}
		}
		all.amount[i] += 1 / float64(len(lids)-1)
		all.flows[i]++
	}
	return j.spread(ctx, r, lids, func(int) senders { return all })
}

// spreadFlows is spread of flows.
func (j *JobTraffic) spreadFlows(ctx context.Context, r *routes.Routes, list []traffic.Flow) ([]float64, error) {
	g := r.Graph()
	var lids []mad.LID
	to := map[mad.LID]senders{}
	for _, f := range list {
		x := to[f.To]
		if x.on == nil {
			lids = append(lids, f.To)
		}
		s := int32(g.Terminals()[g.TerminalByLID(f.From)].Switch)
		to[f.To] = senders{append(x.on, s), append(x.amount, f.Traffic), append(x.flows, 1)}
	}
	return j.spread(ctx, r, lids, func(i int) senders { return to[lids[i]] })
}
