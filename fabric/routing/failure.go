package routing

import (
	"context"

	"fabsh/fabric"
)

// LinkFailure is what the failure of one link between switches breaks.
type LinkFailure struct {
	Port *fabric.Port // the end of the lower switch number
	// Pairs of an endpoint and a LID of another whose packets take the link,
	// until tables are changed.
	Pairs int64
	// Cuts: no tables help, for the link is the only way between the two
	// parts of the network. Lost are the pairs of endpoints that it parts.
	Cuts bool
	Lost int64
}

// FailEachLink says what each single failure of a link between switches would
// break, links by their first port. Endpoints are as in VerifyOptions.
func (r *Routes) FailEachLink(ctx context.Context, endpoints Class) ([]LinkFailure, error) {
	g := r.graph
	v := &verification{g: g, o: VerifyOptions{Endpoints: endpoints}}
	v.choose()
	loads, err := r.loadOf(ctx, v, nil)
	if err != nil {
		return nil, err
	}
	parted := g.bridges(v.on)
	var list []LinkFailure
	for c, ch := range g.channels {
		if int(ch.Reverse) < c {
			continue
		}
		f := LinkFailure{Port: g.ChannelPort(c), Pairs: loads[c] + loads[ch.Reverse]}
		f.Lost, f.Cuts = parted[int32(c)]
		list = append(list, f)
	}
	return list, nil
}

// bridges are the links without which the network falls apart, by the lower of
// their channels, and the pairs of endpoints, one way and the other, that they
// join (Tarjan, "A note on finding the bridges of a graph", 1974).
func (g *Graph) bridges(on []uint32) map[int32]int64 {
	n := len(g.switches)
	enter, low, below := make([]int32, n), make([]int32, n), make([]int64, n)
	total := make([]int64, n) // endpoints of the part of the network, at its root
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
		stack = append(stack[:0], frame{int32(root), -1, g.chanBase[root]})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if s := top.s; top.next < g.chanBase[s+1] {
				c := top.next
				top.next++
				t := g.chanTo[c]
				switch {
				case top.via >= 0 && c == g.channels[top.via].Reverse:
				case enter[t] != 0:
					low[s] = min(low[s], enter[t])
				default:
					clock++
					enter[t], low[t] = clock, clock
					stack = append(stack, frame{t, c, g.chanBase[t]})
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
			parent := g.channels[via].From
			low[parent] = min(low[parent], low[s])
			below[parent] += below[s]
			if low[s] > enter[parent] {
				found = append(found, bridge{min(via, g.channels[via].Reverse), below[s], root})
			}
		}
	}
	pairs := map[int32]int64{}
	for _, b := range found {
		pairs[b.channel] = 2 * b.under * (total[b.root] - b.under)
	}
	return pairs
}
