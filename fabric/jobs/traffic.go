package jobs

import (
	"cmp"
	"context"
	"slices"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Load is the traffic on a channel of a graph. Figures that compare channels have it per capacity: traffic 1
// is 2 on a link of half the rate of hosts' ports (graph.Capacity).
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
	// Alone is the largest load of the job on a channel, and Together the largest of all jobs on
	// a channel that it uses, both per capacity; at least 1, the bandwidth of its ports.
	Alone, Together float64
	Shared          int // channels that other jobs use too
}

// Slowdown is the time that the slowest flows of the job take, relative to the job alone, if
// links are shared fairly.
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
	Loads  []float64 // by channel, per capacity
	At     int       // a channel with the largest load, or -1
	Shared []Shared  // the most traffic first
	Worst  int       // the job with the largest slowdown above 1, or -1
}

// Measure adds up the traffic of jobs on the channels of r, of a pattern with phases their mean. Where switches
// choose between ports, these share it evenly. The links of hosts do not count. group is as of MeasurePhases.
//
// Time: O(L*S) for all-to-all and rails, L ports of jobs and S switches; O(L*log(L)*P) for the
// others, P links a path.
func Measure(ctx context.Context, r *routes.Routes, list []Job, pattern string, group int) (*Traffic, error) {
	p, err := patternNamed(pattern)
	if err != nil {
		return nil, err
	}
	g := r.Graph()
	x := newPlacement(g, group)
	ports := portsOf(g)
	t := &Traffic{Jobs: make([]JobTraffic, len(list)), Loads: make([]float64, len(g.Channels())), At: -1, Worst: -1}
	users := make([][]int32, len(g.Channels()))
	for i := range list {
		j := &t.Jobs[i]
		x.lids = j.findHosts(ports, list[i].Hosts)
		loads, err := j.measure(ctx, r, p, x)
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
	for ch := range t.Loads {
		t.Loads[ch] = g.Capacity().Load(int32(ch), t.Loads[ch])
		if load := t.Loads[ch]; load > 0 && (t.At < 0 || load > t.Loads[t.At]) {
			t.At = ch
		}
	}
	t.compare(g.Capacity(), users)
	return t, nil
}

// findHosts finds the hosts of a job; it returns the LIDs of each by rail, 0 where it has none.
func (j *JobTraffic) findHosts(ports *hostPorts, names []string) (lids [][]mad.LID) {
	taken := map[string]bool{}
	var found [][]hostPort
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
		found = append(found, ports.of[host])
		j.Ports += len(ports.of[host])
	}
	rails := railsOf(found)
	if rails == nil {
		rails = ports.rails
	}
	for _, of := range found {
		lids = append(lids, rails.order(of))
	}
	return lids
}

// measure returns the traffic of the job by channel.
func (j *JobTraffic) measure(ctx context.Context, r *routes.Routes, p *Pattern, x *placement) ([]float64, error) {
	if p.sets != nil {
		loads := make([]float64, len(r.Graph().Channels()))
		for _, set := range p.sets(x) {
			if err := j.exchange(ctx, r, set, loads); err != nil {
				return nil, err
			}
		}
		return loads, nil
	}
	list, err := p.flows(x, maxFlows)
	if err != nil {
		return nil, err
	}
	if r.HasChoices() {
		return j.spreadFlows(ctx, r, list)
	}
	m, err := traffic.MeasureFlows(ctx, r, list)
	if err != nil {
		return nil, err
	}
	j.Lost = m.Lost
	return m.Traffic, nil
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
		lost[worker] += e.Lost(w, lid)
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

// newPlacement is the placement of no job yet. group is as of MeasurePhases.
func newPlacement(g *graph.Graph, group int) *placement {
	return &placement{g: g, group: cmp.Or(group, GroupSize), trees: map[int32]int{}}
}

// flows returns the flows of all phases, each with its part of the time.
func (p *Pattern) flows(x *placement, most int) (list []traffic.Flow, err error) {
	phases, err := p.phasesOf(x, most)
	for _, phase := range phases {
		for _, f := range phase.Flows {
			f.Traffic *= phase.Part
			list = append(list, f)
		}
	}
	return list, err
}

// compare finds what jobs share, by the jobs that use each channel.
func (t *Traffic) compare(capacity *graph.Capacity, users [][]int32) {
	on := func(job int, ch int32) float64 {
		loads := t.Jobs[job].Loads
		i, _ := slices.BinarySearchFunc(loads, ch, func(l Load, ch int32) int { return cmp.Compare(l.Channel, ch) })
		return loads[i].Traffic
	}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		j.Alone, j.Together = 1, 1
		for _, l := range j.Loads {
			j.Alone, j.Together = max(j.Alone, capacity.Load(l.Channel, l.Traffic)), max(j.Together, t.Loads[l.Channel])
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

// Matrix returns the traffic of jobs between ports, as Measure adds it up. Pairs that several jobs use are there
// once.
func Matrix(g *graph.Graph, list []Job, pattern string, group int) ([]traffic.Flow, error) {
	p, err := patternNamed(pattern)
	if err != nil {
		return nil, err
	}
	ports, x := portsOf(g), newPlacement(g, group)
	index := map[[2]mad.LID]int{}
	var out []traffic.Flow
	for _, job := range list {
		var j JobTraffic
		x.lids = j.findHosts(ports, job.Hosts)
		flows, err := p.flows(x, maxFlows)
		if err != nil {
			return nil, err
		}
		for _, f := range flows {
			pair := [2]mad.LID{f.From, f.To}
			i, ok := index[pair]
			if !ok {
				if len(out) == maxFlows {
					return nil, tooManyFlows(maxFlows)
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
	return j.spread(ctx, r, lids, func(i int) senders { // not from itself
		from := senders{all.on, slices.Clone(all.amount), slices.Clone(all.flows)}
		own := index[int32(g.Terminals()[g.TerminalByLID(lids[i])].Switch)]
		from.amount[own] -= 1 / float64(len(lids)-1)
		from.flows[own]--
		return from
	})
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
