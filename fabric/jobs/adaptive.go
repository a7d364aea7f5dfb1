package jobs

import (
	"context"
	"slices"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

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
	order  []int32 // those that are done, each behind all that follow it
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

// node is that of packets that come into a switch by a port.
func (x *spreader) node(s int32, in uint8) int32 {
	if a := x.switches[s]; a != nil {
		return s*int32(x.plfts) + int32(a.PLFT(in, 0))
	}
	return s * int32(x.plfts)
}

// ports are those that packets at a node may take.
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

// senders are the switches of those that send to a LID, and for each how much and in how many
// flows.
type senders struct {
	on     []int32
	amount []float64
	flows  []int64
}

// to adds the traffic of senders to a LID. It returns how many flows may not arrive.
func (x *spreader) to(lid mad.LID, from senders) (lost int64) {
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
		lost[worker] += workers[worker].to(lids[i], from(i))
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

// spreadExchange is that of ports that send to all others of them, each 1 in total.
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

// spreadFlows is that of flows.
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
