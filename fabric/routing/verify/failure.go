package verify

import (
	"context"
	"math/bits"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// LinkFailure is what the failure of one link between switches breaks.
type LinkFailure struct {
	Port *fabric.Port // the end of the lower switch number
	// Pairs counts the pairs of an endpoint and a LID of another that lose packets until the
	// tables change.
	Pairs int64
	// Cuts reports that the link is a bridge of the network: no tables help. Lost
	// are the pairs of endpoints on different sides of it.
	Cuts bool
	Lost int64
	// Predicted is what the subnet manager is expected to do; nil: not requested.
	Predicted *FailurePrediction
}

// FailurePrediction is the predicted effect of the tables that a subnet manager makes after a
// failure.
type FailurePrediction struct {
	Rerouted, LoadAfter, IdleLinks int64
	Text                           string
}

// FailEachLink computes what the failure of each single link between switches would
// break; links come in the order of their first ports. Endpoints are as in VerifyOptions.
// byChoice reports that pairs were judged on the choices of switches that route adaptively,
// for reliable connections (RC) with SL 0: a pair survives if each switch has another port
// for it. Otherwise pairs were judged on static ports.
//
// Time: O(L*S), and O(S + C) for the bridges; with choices, O(C*S/64) for each class of LIDs.
func FailEachLink(ctx context.Context, r *routes.Routes, endpoints graph.Class) (list []LinkFailure, byChoice bool, err error) {
	g := r.Graph()
	e := SelectEndpoints(g, endpoints)
	var loads []int64
	if r.HasChoices() {
		if loads, err = choiceFailures(ctx, r, e); err != nil {
			return nil, false, err
		}
		byChoice = loads != nil
	}
	if !byChoice {
		if loads, err = CountRoutes(ctx, r, e, nil); err != nil {
			return nil, false, err
		}
	}
	bridges := bridges(g, e.On)
	for c, ch := range g.Channels() {
		if int(ch.Reverse) < c {
			continue
		}
		f := LinkFailure{Port: g.ChannelPort(c), Pairs: loads[c] + loads[ch.Reverse]}
		f.Lost, f.Cuts = bridges[int32(c)]
		list = append(list, f)
	}
	return list, byChoice, nil
}

// bridges are the links without which a component of the network falls in two, by
// the lower of their channels, and the number of ordered pairs of endpoints on
// different sides of each. They are found by one depth-first search (Tarjan, "A note
// on finding the bridges of a graph", 1974).
func bridges(g *graph.Graph, on []uint32) map[int32]int64 {
	n := len(g.Switches())
	enter, low, below := make([]int32, n), make([]int32, n), make([]int64, n)
	total := make([]int64, n) // endpoints of a component, at its root
	type frame struct{ s, via, next int32 }
	type bridge struct {
		channel int32
		under   int64
		root    int
	}
	var found []bridge
	clock := int32(0)
	var stack []frame
	for root := range n {
		if enter[root] != 0 {
			continue
		}
		clock++
		enter[root], low[root] = clock, clock
		stack = append(stack[:0], frame{int32(root), -1, g.FirstChannel(root)})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if s := top.s; top.next < g.FirstChannel(int(s+1)) {
				c := top.next
				top.next++
				t := g.ChannelTo(c)
				switch {
				case top.via >= 0 && c == g.Channels()[top.via].Reverse:
				case enter[t] != 0:
					low[s] = min(low[s], enter[t])
				default:
					clock++
					enter[t], low[t] = clock, clock
					stack = append(stack, frame{t, c, g.FirstChannel(int(t))})
				}
				continue
			}
			s, via := top.s, top.via
			below[s] += int64(on[s])
			stack = stack[:len(stack)-1]
			if via < 0 {
				total[root] = below[s]
				continue
			}
			parent := g.Channels()[via].From
			low[parent] = min(low[parent], low[s])
			below[parent] += below[s]
			if low[s] > enter[parent] {
				found = append(found, bridge{min(via, g.Channels()[via].Reverse), below[s], root})
			}
		}
	}
	pairs := map[int32]int64{}
	for _, b := range found {
		pairs[b.channel] = 2 * b.under * (total[b.root] - b.under)
	}
	return pairs
}

// choiceFailures counts, by channel, the pairs that lose packets of reliable connections (RC)
// with SL 0 while the link is down: by some choices, these come to the switch before it, which
// has no other port for them then, or does not avoid it. Switches further away do not know of
// the failure. Ports that fast recovery takes only for static entries do not count.
//
// nil: paths have service levels, choices depend on input ports, are unknown, or loop.
//
// Time: O(C*S/64) for each class of LIDs, and O(S) for each of its channels without another.
func choiceFailures(ctx context.Context, r *routes.Routes, e *Endpoints) ([]int64, error) {
	g := r.Graph()
	switches := routes.ActiveSwitches(r)
	if r.SL.Any() {
		return nil, nil
	}
	for s := range switches {
		if a := r.Adaptive(s); a != nil && (a.Unknown != "" || len(a.Private) > 0) {
			return nil, nil
		}
	}
	classes, err := ChoiceClasses(ctx, r, PacketKind{SLs: 1, Transport: adaptive.RC}, e.Wanted)
	if err != nil {
		return nil, err
	}
	workers := make([]*failureWalk, g.Workers())
	err = graph.Each(ctx, g.Workers(), len(classes), func(worker, c int) {
		if workers[worker] == nil {
			workers[worker] = newFailureWalk(r, e, switches)
		}
		workers[worker].class(classes[c])
	})
	if err != nil {
		return nil, err
	}
	sum := make([]int64, len(g.Channels()))
	for _, w := range workers {
		if w == nil {
			continue
		}
		if w.loops {
			return nil, nil
		}
		for c, n := range w.lost {
			sum[c] += n
		}
	}
	return sum, nil
}

// failureWalk is the memory of a worker.
type failureWalk struct {
	r        *routes.Routes
	g        *graph.Graph
	e        *Endpoints
	switches []*adaptive.Switch // nil: static
	lost     []int64            // pairs, by channel
	loops    bool

	ports []adaptive.Ports // by switch
	state []uint8          // by switch: 0 new, 1 open, 2 done
	order []int32          // switches that packets reach, the last first
	words int
	from  []uint64 // by switch: the switches whose packets reach it, a bit each
}

func newFailureWalk(r *routes.Routes, e *Endpoints, switches []*adaptive.Switch) *failureWalk {
	g, n := r.Graph(), len(switches)
	w := &failureWalk{r: r, g: g, e: e, switches: switches, lost: make([]int64, len(g.Channels()))}
	w.ports, w.state, w.words = make([]adaptive.Ports, n), make([]uint8, n), (n+63)/64
	w.from = make([]uint64, n*w.words)
	return w
}

// choose are the ports of a switch to a LID; port failed, if any, has no link.
func (w *failureWalk) choose(s int32, lid mad.LID, failed int) adaptive.Ports {
	a := w.switches[s]
	if a == nil {
		return adaptive.Single(w.r.Entry(s, lid)).Ports
	}
	down := routes.Down(w.g, int(s))
	return a.PortsOf(0, adaptive.Packet{Transport: adaptive.RC}, lid, func(port uint8) bool { return int(port) == failed || down(port) })
}

// class counts the pairs of the LIDs of a class, which are on one switch.
func (w *failureWalk) class(lids []mad.LID) {
	lid := lids[0]
	home := int32(w.g.Terminals()[w.g.TerminalByLID(lid)].Switch)
	if home < 0 {
		return
	}
	clear(w.state)
	clear(w.from)
	w.order = w.order[:0]
	for _, s := range w.e.Sources {
		w.visit(s, home, lid)
		w.from[int(s)*w.words+int(s)/64] |= 1 << (s % 64)
	}
	for i := len(w.order) - 1; i >= 0 && !w.loops; i-- {
		s := w.order[i]
		from := w.from[int(s)*w.words:][:w.words]
		for p := range w.ports[s].All() {
			target := w.g.Target(s, p)
			if !target.IsChannel() {
				continue
			}
			c := target.Channel()
			for k, word := range from {
				w.from[int(w.g.ChannelTo(c))*w.words+k] |= word
			}
			left := w.choose(s, lid, int(p))
			if left.Empty() || left.Has(p) || left.Union(w.ports[s]) != w.ports[s] {
				w.lost[c] += w.count(from) * int64(len(lids))
			}
		}
	}
}

// visit orders the switches that packets reach from s.
func (w *failureWalk) visit(s, home int32, lid mad.LID) {
	switch {
	case s == home || w.state[s] == 2:
		return
	case w.state[s] == 1:
		w.loops = true
		return
	}
	w.state[s] = 1
	w.ports[s] = w.choose(s, lid, -1)
	for p := range w.ports[s].All() {
		if target := w.g.Target(s, p); target.IsChannel() {
			w.visit(w.g.ChannelTo(target.Channel()), home, lid)
		}
	}
	w.state[s] = 2
	w.order = append(w.order, s)
}

// count is how many endpoints are on a set of switches.
func (w *failureWalk) count(set []uint64) (n int64) {
	for k, word := range set {
		for ; word != 0; word &= word - 1 {
			n += int64(w.e.On[k*64+bits.TrailingZeros64(word)])
		}
	}
	return n
}
