package verify

import (
	"context"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// ViaRule defines what the paths between ports must cross, or must not.
type ViaRule struct {
	From, To []int // terminals
	Nodes    []*fabric.Node
	Ports    []*fabric.Port // a port stands for its link, whichever way
	Must     bool           // each path must cross one of Nodes and Ports; else none may
}

// Violation is a path that breaks a rule.
type Violation struct {
	Must bool // it is a rule on what paths must cross
	Rule int  // which of these rules, or of the others
	Path *routes.Path
}

// viaWalk follows the paths to one LID.
type viaWalk struct {
	r     *routes.Routes
	nodes []bool // by node id
	ports []bool // by port id: of both ports of a link
	state []viaState
	stack []int32
}

// viaState is what becomes of packets from a switch on.
type viaState uint8

const (
	viaUnknown viaState = iota
	viaCrosses          // they arrive, and cross
	viaMisses           // they arrive, and do not cross
	viaLost             // they do not arrive
)

// checkVia counts the pairs of a terminal and a LID of another whose paths break a
// rule, and traces the first of them. Pairs that do not reach each other break
// none.
//
// Time: O(L*(S+T)) a rule.
func checkVia(ctx context.Context, r *routes.Routes, rules []ViaRule, examples int) (n int64, found []Violation, err error) {
	g := r.Graph()
	numbers := map[bool]int{}
	for i := range rules {
		rule := &rules[i]
		number := numbers[rule.Must]
		numbers[rule.Must]++
		w := &viaWalk{r: r, nodes: make([]bool, len(g.Fabric().Nodes())), ports: make([]bool, len(g.Fabric().Ports())), state: make([]viaState, len(g.Switches()))}
		for _, n := range rule.Nodes {
			w.nodes[n.ID()] = true
		}
		for _, p := range rule.Ports {
			w.ports[p.ID()] = true
			if q := p.Peer(); q != nil {
				w.ports[q.ID()] = true
			}
		}
		wrong := viaCrosses
		if rule.Must {
			wrong = viaMisses
		}
		for _, to := range rule.To {
			t := &g.Terminals()[to]
			for lid := t.LID; lid < t.LID+mad.LID(t.Count); lid++ {
				if ctx.Err() != nil {
					return 0, nil, context.Cause(ctx)
				}
				clear(w.state)
				for _, from := range rule.From {
					if from == to || w.pair(from, to, lid) != wrong {
						continue
					}
					if n++; len(found) < examples {
						p, err := r.Trace(g.Terminals()[from].LID, lid)
						if err != nil {
							return 0, nil, err
						}
						found = append(found, Violation{Rule: number, Must: rule.Must, Path: p})
					}
				}
			}
		}
	}
	return n, found, nil
}

// pair is what becomes of packets of a terminal.
func (w *viaWalk) pair(from, to int, lid mad.LID) viaState {
	t := &w.r.Graph().Terminals()[from]
	if t.Switch < 0 {
		return viaLost
	}
	state := w.from(int32(t.Switch), to, lid)
	if state == viaMisses && (w.nodes[t.Port.Node().ID()] || t.Out > 0 && w.ports[t.Port.ID()]) {
		return viaCrosses
	}
	return state
}

// from is what becomes of packets at a switch. All switches on the way are
// marked, so each is visited once for a LID.
func (w *viaWalk) from(s int32, to int, lid mad.LID) viaState {
	g := w.r.Graph()
	w.stack = w.stack[:0]
	end := viaLost
	for at := s; ; {
		if w.state[at] != viaUnknown {
			end = w.state[at]
			break
		}
		w.state[at] = viaLost // of a loop
		w.stack = append(w.stack, at)
		target := g.Target(at, w.r.Row(int(at)).Port(lid))
		if target == graph.ToTerminal(int32(to)) {
			end = viaMisses
			if w.nodes[g.Terminals()[to].Port.Node().ID()] {
				end = viaCrosses
			}
			break
		}
		if target < 0 {
			break
		}
		at = g.Channels()[target].To
	}
	for i := len(w.stack) - 1; i >= 0; i-- {
		at := w.stack[i]
		n := g.Switches()[at]
		out := n.Port(int(w.r.Row(int(at)).Port(lid)))
		if end == viaMisses && (w.nodes[n.ID()] || out != nil && out.Num() > 0 && w.ports[out.ID()]) {
			end = viaCrosses
		}
		w.state[at] = end
	}
	return end
}
