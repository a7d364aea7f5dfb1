package verify

import (
	"context"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// LinkFailure is what the failure of one link between switches breaks.
type LinkFailure struct {
	Port *fabric.Port // the end of the lower switch number
	// Pairs are those of an endpoint and a LID of another that lose packets until the
	// tables change.
	Pairs int64
	// Cuts reports that the link is a bridge of the network: no tables help. Lost
	// are the pairs of endpoints on different sides of it.
	Cuts bool
	Lost int64
}

// FailEachLink computes what the failure of each single link between switches would
// break; links come in the order of their first ports. Endpoints are as in VerifyOptions.
// byChoice reports that pairs were judged on the choices of switches that route adaptively,
// for reliable connections (RC) with SL 0: those survive for which each switch has another
// port. Otherwise they were judged on static ports.
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
