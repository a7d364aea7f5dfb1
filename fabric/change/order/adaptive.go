package order

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// choices is the adaptive routing that is on before a change. Until the first write of its
// forwarding table, a switch may send a packet by any of its choices. That write disables
// adaptive routing: in its round the switch may have, for each LID independently, its
// choices, its old entry, or what the round writes; afterwards it has only its table.
type choices struct {
	of      []*adaptive.Switch // by switch; nil: it follows its table
	down    []func(port uint8) bool
	turn    []int32   // by switch: the round of the first write of its table; forever: none
	turning [][]int32 // by round: the switches with that turn
}

// newChoices returns the choices of a schedule; nil: no switch routes adaptively.
func newChoices(in *Input, s *Schedule) *choices {
	if !slices.ContainsFunc(in.Adaptive, (*adaptive.Switch).Active) {
		return nil
	}
	n := len(in.Adaptive)
	c := &choices{make([]*adaptive.Switch, n), make([]func(uint8) bool, n), slices.Repeat([]int32{forever}, n), make([][]int32, max(1, len(s.Rounds)))}
	for i, a := range in.Adaptive {
		if a.Active() {
			c.of[i], c.down[i] = a, routes.Down(in.Old.Graph(), i)
		}
	}
	for r := range s.Rounds {
		for _, w := range s.Rounds[r].Writes {
			if at := in.at[w.Change].s; at >= 0 && c.of[at] != nil && c.turn[at] == forever {
				c.turn[at] = int32(r)
				c.turning[r] = append(c.turning[r], int32(at))
			}
		}
	}
	return c
}

// still returns c without the change.
func (c *choices) still() *choices {
	if c == nil {
		return nil
	}
	return &choices{c.of, c.down, slices.Repeat([]int32{forever}, len(c.turn)), make([][]int32, 1)}
}

// begin sets the entries for a LID that may be in force when the round first begins an
// epoch; ports are the entries of the forwarding tables.
func (f *follower) begin(first int32, lid int, ports []uint8) {
	f.at.begin(ports)
	c := f.h.choices
	if c == nil {
		return
	}
	if f.every == nil {
		f.every = make([]adaptive.Ports, f.h.n)
	}
	for s, a := range c.of {
		if a == nil {
			continue
		}
		if f.every[s] = a.Every(mad.LID(lid), c.down[s]); c.turn[s] >= first {
			f.at.choose(s, f.every[s])
		}
	}
}

// choose sets the entries of a switch at the beginning of an epoch: all of some ports.
func (e *entries) choose(s int, ports adaptive.Ports) {
	at := &e.first[s]
	for port := range ports.All() {
		if port != ports.First() {
			at.next = int32(len(e.more))
			e.more = append(e.more, entry{})
			at = &e.more[at.next]
		}
		*at = entry{port: port, until: forever, next: -1}
	}
}

// retire notes that a round replaces all entries of a switch.
func (e *entries) retire(s, round int32) {
	for at := &e.first[s]; at != nil; at = e.after(at) {
		at.until = min(at.until, round)
	}
}

// followChoices is follow where some switch routes adaptively.
func (f *follower) followChoices(e epoch, b, i int) {
	h, c, n, lid := f.h, f.h.choices, f.h.n, b*mad.LFTBlock+i
	terminal := h.terminal(lid)
	to := graph.ToTerminal(terminal)
	old, new := f.old[i*n:][:n], f.new[i*n:][:n]
	copy(f.now, old)
	list := h.blocks[b]
	for ; len(list) > 0 && list[0].round < e.first; list = list[1:] {
		f.now[list[0].s] = list[0].entries[i]
	}
	copy(f.then, f.now)
	f.begin(e.first, lid, f.now)
	m := f.mixture()
	for s := range n {
		m.begun[s], m.ended[s] = adaptive.PortSet(old[s]), adaptive.PortSet(new[s])
		if c.of[s] != nil {
			if m.begun[s] = f.every[s]; c.turn[s] == forever {
				m.ended[s] = f.every[s]
			}
		}
	}
	f.looped = m.fates(m.begun, to, f.was)
	m.fates(m.ended, to, f.is)
	if e.first == 0 {
		f.compareChoices()
		f.count(terminal, mad.LID(lid))
	}
	for round := e.first; round <= e.last && int(round) < len(c.turning); round++ {
		f.changed = f.changed[:0]
		turns := false
		for _, s := range c.turning[round] {
			f.at.retire(s, round)
			f.at.replace(s, f.now[s], round)
			turns = turns || f.every[s] != adaptive.PortSet(f.now[s])
		}
		for ; len(list) > 0 && list[0].round == round; list = list[1:] {
			if w := list[0]; w.entries[i] != f.now[w.s] {
				f.then[w.s] = w.entries[i]
				f.changed = append(f.changed, w.s)
				f.at.replace(w.s, w.entries[i], round)
			}
		}
		if !turns && len(f.changed) == 0 {
			continue
		}
		for s := range n {
			if m.may[s] = adaptive.PortSet(f.now[s], f.then[s]); c.of[s] != nil && c.turn[s] >= round {
				m.may[s] = f.every[s]
				if c.turn[s] == round {
					m.may[s].Add(f.now[s])
					m.may[s].Add(f.then[s])
				}
			}
		}
		f.mixChoices(to, lid, round)
		for _, s := range f.changed {
			f.now[s] = f.then[s]
		}
	}
}

// compareChoices compares the choices and entries before and after the change.
func (f *follower) compareChoices() {
	m, t := f.choosing, f.h.net
	clear(f.ways)
	var compare func(s int32) comparison
	compare = func(s int32) comparison {
		if f.ways[s] != uncompared {
			return f.ways[s]
		}
		f.ways[s] = sameWay // of a loop
		way := sameWay
		if m.begun[s] != m.ended[s] {
			way = otherWay
		}
		for port := range m.begun[s].All() {
			if target := t.target(s, port); way == sameWay && target.IsChannel() {
				way = compare(t.channels[target].To)
			}
		}
		f.ways[s] = way
		return way
	}
	for s := range f.ways {
		compare(int32(s))
	}
}

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

// mixture returns the mixture of the follower.
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

// turnHint explains a refusal of a round that disables adaptive routing; "": the round
// disables none.
func (h *history) turnHint(round int32) string {
	if len(h.choices.turning[round]) == 0 {
		return ""
	}
	return "the round disables adaptive routing: until it is read back, a switch may use its choices or its forwarding table, which the subnet manager may have left out of date"
}
