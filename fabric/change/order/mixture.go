package order

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// mixture follows the packets to one LID where each switch may send them by any of several
// ports.
type mixture struct {
	t                 *net
	begun, ended, may []adaptive.Ports // by switch: before the change, after it, in a round
	path              []step           // to the switch that is followed
	// found is called for a loop: the last steps of path, from the switch on.
	found func(from int32)
}

// step is a switch on a path, and the port by which packets leave it.
type step struct {
	s    int32
	port uint8
}

// mixture returns the follower's.
func (f *follower) mixture() *mixture {
	if f.choosing == nil {
		n := f.h.n
		f.choosing = &mixture{t: f.h.net, begun: make([]adaptive.Ports, n), ended: make([]adaptive.Ports, n), may: make([]adaptive.Ports, n)}
	}
	return f.choosing
}

// fates determines the fate of packets from each switch: they arrive if they do by all
// ports that the switches may send them by. It reports whether packets may loop.
func (m *mixture) fates(ports []adaptive.Ports, to graph.Target, state []fate) (loops bool) {
	clear(state)
	var follow func(s int32) fate
	follow = func(s int32) fate {
		state[s] = onWay
		end := arrives
		for port := range ports[s].All() {
			target := m.t.target(s, port)
			if target == to {
				continue
			}
			if !target.IsChannel() {
				end = fails
				continue
			}
			next := m.t.channels[target].To
			m.path = append(m.path, step{s, port})
			switch {
			case state[next] == onWay:
				if loops = true; m.found != nil {
					m.found(next)
				}
				end = fails
			case state[next] == fails, state[next] == unknown && follow(next) == fails:
				end = fails
			}
			m.path = m.path[:len(m.path)-1]
		}
		state[s] = end
		return end
	}
	for s := range state {
		if state[s] == unknown {
			follow(int32(s))
		}
	}
	return loops
}

// mixChoices is mix for the packets from all switches where some switch routes adaptively.
func (f *follower) mixChoices(to graph.Target, lid int, round int32) {
	m := f.choosing
	m.found = func(from int32) {
		first := slices.IndexFunc(m.path, func(x step) bool { return x.s == from })
		if loop := m.path[first:]; slices.ContainsFunc(loop, func(x step) bool { return !m.begun[x.s].Has(x.port) }) {
			f.refuseLoop(loop, lid, round)
		}
	}
	loops := m.fates(m.may, to, f.mixed)
	m.found = nil
	if loops && f.looped {
		f.findLoop(lid, round)
	}
	for s, end := range f.mixed {
		if end == fails && f.was[s] == arrives && f.is[s] == arrives {
			f.loseChoice(int32(s), to, lid, round)
			return
		}
	}
}

// findLoop refuses a loop with a port by which the switch did not send packets before the
// change. fates finds some loop, not each, so it is called where packets may loop before
// the change.
func (f *follower) findLoop(lid int, round int32) {
	m := f.choosing
	var edges []edge
	for s := range m.may {
		for port := range m.may[s].All() {
			if target := m.t.target(int32(s), port); target.IsChannel() {
				edges = append(edges, edge{from: int32(s), to: m.t.channels[target].To})
			}
		}
	}
	part := make([]int, len(m.may))
	for i, c := range components(len(m.may), edges) {
		for _, s := range c {
			part[s] = i
		}
	}
	for s := range m.may {
		for port := range m.may[s].All() {
			target := m.t.target(int32(s), port)
			if target.IsChannel() && part[s] == part[m.t.channels[target].To] && !m.begun[s].Has(port) {
				f.refuseLoop([]step{{int32(s), port}}, lid, round)
			}
		}
	}
}

// refuseLoop refuses a loop.
func (f *follower) refuseLoop(loop []step, lid int, round int32) {
	r := &Refusal{Round: int(round), Reason: fmt.Sprintf("packets to LID %d may loop", lid), LID: mad.LID(lid), Hint: f.h.turnHint(round)}
	for _, x := range loop {
		if p := f.h.g.Switches()[x.s].Port(int(x.port)); p != nil {
			r.Path = append(r.Path, p)
		}
	}
	f.refuse(lid, r)
}

// loseChoice refuses that packets from a switch may be dropped, by ports that fail.
func (f *follower) loseChoice(s int32, to graph.Target, lid int, round int32) {
	m, t := f.choosing, f.h.net
	r := &Refusal{Round: int(round), Reason: fmt.Sprintf("packets from %s to LID %d may be dropped", t.g.Switches()[s].Label(), lid), LID: mad.LID(lid), Hint: f.h.turnHint(round)}
	for range t.n {
		next := int32(noSwitch)
		var by *fabric.Port
		for port := range m.may[s].All() {
			target := t.target(s, port)
			if target == to || target.IsChannel() && f.mixed[t.channels[target].To] != fails {
				continue
			}
			by = t.g.Switches()[s].Port(int(port))
			if target.IsChannel() {
				next = t.channels[target].To
			}
			break
		}
		if by != nil {
			r.Path = append(r.Path, by)
		}
		if next == noSwitch {
			break
		}
		s = next
	}
	f.refuse(lid, r)
}

// turnHint explains a refusal of a round that disables adaptive routing; "" for others.
func (h *history) turnHint(round int32) string {
	if len(h.choices.turning[round]) == 0 {
		return ""
	}
	return "the round disables adaptive routing: until it is read back, a switch may use its choices or its forwarding table, which the subnet manager may have left out of date"
}
