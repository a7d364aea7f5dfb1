package verify

import (
	"context"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
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

// viaWalk follows the paths to one LID, of packets of a kind.
type viaWalk struct {
	r        *routes.Routes
	kind     PacketKind
	switches []*adaptive.Switch // nil: static
	nodes    []bool             // by node id
	ports    []bool             // by port id: of both ports of a link
	state    []viaState

	loops, changed bool // of a pass of settle
}

// viaState is what may become of packets from a switch on: a bit for each. 0: they do not
// arrive.
type viaState uint8

const (
	viaCrosses viaState = 1 << iota // some arrive, and cross
	viaMisses                       // some arrive, and do not cross
	viaKnown                        // what may become of them is known
	viaOpen                         // the switch is on the path that is followed now
)

// checkVia counts the pairs of a terminal and a LID of another whose paths break a
// rule, and traces the first of them. Pairs that do not reach each other break
// none. Where switches choose among ports, each path that they may choose counts;
// packets may also leave a loop.
//
// Time: O(L*(C+T)) a rule, and each kind of packets.
func checkVia(ctx context.Context, r *routes.Routes, rules []ViaRule, examples int) (n int64, found []Violation, err error) {
	g := r.Graph()
	kinds := []PacketKind{{SLs: 0xFFFF}}
	if r.HasChoices() {
		kinds = PacketKinds(r)
	}
	switches := routes.ActiveSwitches(r)
	numbers := map[bool]int{}
	for i := range rules {
		rule := &rules[i]
		number := numbers[rule.Must]
		numbers[rule.Must]++
		walks := make([]*viaWalk, len(kinds))
		for k, kind := range kinds {
			walks[k] = newViaWalk(r, switches, kind, rule)
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
				for _, w := range walks {
					clear(w.state)
				}
				for _, from := range rule.From {
					if from == to {
						continue
					}
					at := slices.IndexFunc(walks, func(w *viaWalk) bool {
						return (r.SL == nil || w.kind.SLs>>(r.SL.Of(from, lid)&15)&1 != 0) && w.pair(from, to, lid)&wrong != 0
					})
					if at < 0 {
						continue
					}
					if n++; len(found) < examples {
						found = append(found, Violation{Rule: number, Must: rule.Must, Path: walks[at].example(from, to, lid, wrong)})
					}
				}
			}
		}
	}
	return n, found, nil
}

func newViaWalk(r *routes.Routes, switches []*adaptive.Switch, kind PacketKind, rule *ViaRule) *viaWalk {
	f := r.Graph().Fabric()
	w := &viaWalk{r: r, kind: kind, switches: switches, nodes: make([]bool, len(f.Nodes())), ports: make([]bool, len(f.Ports())), state: make([]viaState, len(switches))}
	for _, n := range rule.Nodes {
		w.nodes[n.ID()] = true
	}
	for _, p := range rule.Ports {
		w.ports[p.ID()] = true
		if q := p.Peer(); q != nil {
			w.ports[q.ID()] = true
		}
	}
	return w
}

// pair is what may become of packets of a terminal.
func (w *viaWalk) pair(from, to int, lid mad.LID) viaState {
	t := &w.r.Graph().Terminals()[from]
	if t.Switch < 0 {
		return 0
	}
	return crossing(w.settle(int32(t.Switch), to, lid), w.crossesAt(from))
}

// crossesAt reports whether packets of a terminal cross at its own port.
func (w *viaWalk) crossesAt(from int) bool {
	t := &w.r.Graph().Terminals()[from]
	return w.nodes[t.Port.Node().ID()] || t.Out > 0 && w.ports[t.Port.ID()]
}

// crossing is state, of packets that cross before if is is true.
func crossing(state viaState, is bool) viaState {
	if is && state != 0 {
		return viaCrosses
	}
	return state
}

// settle is what may become of packets at a switch. One pass finds it, unless packets may loop:
// then passes are repeated until none finds more.
func (w *viaWalk) settle(s int32, to int, lid mad.LID) viaState {
	for {
		w.loops, w.changed = false, false
		state := w.from(s, to, lid)
		if !w.loops || !w.changed {
			return state
		}
		for i := range w.state {
			w.state[i] &^= viaKnown
		}
	}
}

// from is a pass of settle, which visits each switch once.
func (w *viaWalk) from(s int32, to int, lid mad.LID) viaState {
	const found = viaCrosses | viaMisses
	if w.state[s]&(viaKnown|viaOpen) != 0 {
		w.loops = w.loops || w.state[s]&viaOpen != 0
		return w.state[s] & found
	}
	sum := w.state[s]
	w.state[s] |= viaOpen
	for p := range w.choices(s, lid).All() {
		sum |= w.by(s, p, to, lid)
	}
	w.changed = w.changed || sum != w.state[s]&found
	w.state[s] = sum | viaKnown
	return sum
}

// by is what may become of packets at switch s that it sends by port p.
func (w *viaWalk) by(s int32, p uint8, to int, lid mad.LID) viaState {
	g := w.r.Graph()
	var state viaState
	switch target := g.Target(s, p); {
	case target == graph.ToTerminal(int32(to)):
		state = crossing(viaMisses, w.nodes[g.Terminals()[to].Port.Node().ID()])
	case target.IsChannel():
		state = w.from(g.ChannelTo(target.Channel()), to, lid)
	}
	return crossing(state, w.crossesBy(s, p))
}

// crossesBy reports whether packets cross at switch s or its port p.
func (w *viaWalk) crossesBy(s int32, p uint8) bool {
	n := w.r.Graph().Switches()[s]
	out := n.Port(int(p))
	return w.nodes[n.ID()] || out != nil && out.Num() > 0 && w.ports[out.ID()]
}

// choices are the ports that switch s may take, by any private LFT.
func (w *viaWalk) choices(s int32, lid mad.LID) (all adaptive.Ports) {
	a := w.switches[s]
	if a == nil {
		return adaptive.Single(w.r.Entry(s, lid)).Ports
	}
	for in := range max(1, len(a.Private)+1) {
		plft := a.PLFT(uint8(min(in, 255)), w.kind.SL)
		if in == 0 || plft != a.PLFT(uint8(in-1), w.kind.SL) {
			all = all.Union(a.PortsOf(plft, w.kind.Packet(0), lid, routes.Down(w.r.Graph(), int(s))))
		}
	}
	return all
}

// example is a path of a pair with state wrong.
func (w *viaWalk) example(from, to int, lid mad.LID, wrong viaState) *routes.Path {
	if w.crossesAt(from) {
		wrong = viaCrosses | viaMisses // of the rest of the path
	}
	ports := w.find(int32(w.r.Graph().Terminals()[from].Switch), to, lid, wrong, map[viaSearch]bool{})
	return routes.PathBy(w.r, from, lid, func(int) uint8 {
		p := ports[0]
		ports = ports[1:]
		return p
	})
}

// viaSearch is a switch from which packets were followed, and what was wanted of them.
type viaSearch struct {
	s     int32
	wrong viaState
}

// find are the ports of a path from switch s on with a state in wrong; nil: no such path exists.
func (w *viaWalk) find(s int32, to int, lid mad.LID, wrong viaState, seen map[viaSearch]bool) []uint8 {
	key := viaSearch{s, wrong}
	if seen[key] {
		return nil
	}
	seen[key] = true
	g := w.r.Graph()
	for p := range w.choices(s, lid).All() {
		rest, crosses := wrong, w.crossesBy(s, p)
		if crosses && wrong&viaCrosses != 0 {
			rest |= viaMisses
		}
		switch target := g.Target(s, p); {
		case target == graph.ToTerminal(int32(to)):
			if w.by(s, p, to, lid)&wrong != 0 {
				return []uint8{p}
			}
		case target.IsChannel() && (!crosses || wrong&viaCrosses != 0):
			if more := w.find(g.ChannelTo(target.Channel()), to, lid, rest, seen); more != nil {
				return append([]uint8{p}, more...)
			}
		}
	}
	return nil
}
