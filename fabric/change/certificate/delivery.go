package certificate

import (
	"slices"

	"fabsh/mad"
)

// delivery is the fate of packets to the LID, by switch.
type delivery struct {
	before, after []bool // they arrive before and after the change
	seen          []int32
	path          []int32
}

// judge finds from where packets arrive before and after the change: they must after it,
// where hosts have a path to a host before.
func (p *proof) judge() error {
	d := &p.delivery
	if d.before, d.after = p.arriving(p.old, d.before), p.arriving(p.final, d.after); p.choices != nil {
		d.before, d.after = p.arrivingByAll(p.begun), p.arrivingByAll(p.ended)
	}
	if p.ends[p.to].out == 0 || p.cert.AcceptLost {
		return nil
	}
	for s, hosts := range p.hosts {
		if d.before[s] && !d.after[s] && (len(hosts) > 1 || len(hosts) == 1 && hosts[0] != p.to) {
			return failure("packets from %s to LID %d arrive before the change and not after it", p.switches[s].Label(), p.lid)
		}
	}
	return nil
}

// arriving finds from which switches packets arrive by given entries.
func (p *proof) arriving(entries []uint8, arrives []bool) []bool {
	d := &p.delivery
	arrives = append(arrives[:0], make([]bool, len(entries))...)
	d.seen = append(d.seen[:0], make([]int32, len(entries))...)
	for first := range entries {
		d.path = d.path[:0]
		s, ok := int32(first), false
		for ; d.seen[s] == 0; s = p.channels[p.lead(s, entries[s])].to {
			d.seen[s] = 1
			d.path = append(d.path, s)
			if lead := p.lead(s, entries[s]); lead < 0 {
				ok = lead == leadsToEnd(p.to)
				break
			}
		}
		ok = ok || arrives[s]
		for _, s := range d.path {
			arrives[s] = ok
		}
	}
	return arrives
}

// deliver checks the ranks of a round.
func (p *proof) deliver(round int32) error {
	if err := p.rank(round); err != nil {
		return err
	}
	for s := range p.ranks {
		for _, port := range p.ports(int32(s), round) {
			if err := p.descends(int32(s), port, round); err != nil {
				return err
			}
		}
		if d := &p.delivery; d.before[s] && d.after[s] && p.ranks[s] >= p.fails() {
			return failure("round %d: packets from %s to LID %d may be dropped (rank %d)", round+1, p.switches[s].Label(), p.lid, p.ranks[s])
		}
	}
	return nil
}

// fails returns the lowest rank of switches from which packets may fail.
func (n *network) fails() uint32 { return uint32(len(n.switches)) }

// descends checks that an entry of a switch leads to the LID, or to a lower rank.
func (p *proof) descends(s int32, port uint8, round int32) error {
	lead := p.lead(s, port)
	switch {
	case lead == leadsToEnd(p.to):
		return nil
	case lead < 0 && p.ranks[s] < p.fails():
		return failure("round %d: packets to LID %d may be dropped at %s (rank %d)", round+1, p.lid, p.switches[s].Label(), p.ranks[s])
	case lead < 0:
		return nil
	}
	to := p.channels[lead].to
	mayLoop := slices.Contains(p.begun(s), port) && p.ranks[s] >= p.fails() // if all entries of a loop are old, it is not one of the change
	if p.ranks[to] > p.ranks[s] || p.ranks[to] == p.ranks[s] && !mayLoop {
		return failure("round %d, LID %d: packets go from %s (rank %d) to %s (rank %d): the rank does not decrease, so they may loop", round+1, p.lid, p.switches[s].Label(), p.ranks[s], p.switches[to].Label(), p.ranks[to])
	}
	return nil
}

// choices is the adaptive routing that is on before the change; nil: no switch routes
// adaptively.
type choices struct {
	of    []func(to mad.LID) []uint8 // by switch; nil: it follows its table
	first []int32                    // by switch with choices: the first round that writes its table; forever: none
	every [][]uint8                  // by switch with choices: the ports for the LID
}

func newChoices(n *network, sub *Subnet) *choices {
	if sub.Choices == nil {
		return nil
	}
	c, some := &choices{first: slices.Repeat([]int32{forever}, len(n.switches)), every: make([][]uint8, len(n.switches))}, false
	for _, sw := range n.switches {
		of := sub.Choices(sw)
		c.of, some = append(c.of, of), some || of != nil
	}
	if !some {
		return nil
	}
	return c
}

// after returns the choices that are in force after some rounds, and stay.
func (c *choices) after(rounds int32) *choices {
	if c == nil {
		return nil
	}
	stay := &choices{slices.Clone(c.of), slices.Repeat([]int32{forever}, len(c.of)), make([][]uint8, len(c.of))}
	for s, first := range c.first {
		if first < rounds {
			stay.of[s] = nil
		}
	}
	return stay
}

// write notes that a round writes the table of a switch.
func (c *choices) write(s, round int32) {
	if c != nil && c.of[s] != nil {
		c.first[s] = min(c.first[s], round)
	}
}

// at reads the choices for a LID.
func (c *choices) at(lid int) {
	if c == nil {
		return
	}
	for s, of := range c.of {
		if of != nil {
			c.every[s] = of(mad.LID(lid))
		}
	}
}

// differs reports whether a switch does more than send by one port.
func (c *choices) differs(s int, port uint8) bool {
	return slices.ContainsFunc(c.every[s], func(p uint8) bool { return p != port })
}

// turns reports whether packets take other ports when adaptive routing is disabled.
func (c *choices) turns(table []uint8) bool {
	if c == nil {
		return false
	}
	for s, of := range c.of {
		if of != nil && c.first[s] != forever && c.differs(s, table[s]) {
			return true
		}
	}
	return false
}

// choose has the choices in force at the beginning of an epoch.
func (p *proof) choose(first int32) {
	c := p.choices
	if c == nil {
		return
	}
	for s, of := range c.of {
		if of == nil || c.first[s] < first {
			continue
		}
		p.credit.entries[s] = p.credit.entries[s][:0]
		for _, port := range c.every[s] {
			p.credit.entries[s] = append(p.credit.entries[s], entry{port, 0, forever})
		}
	}
}

// next returns the first round among from to last that writes an entry for the LID, or the
// table of a switch with choices for the first time.
func (p *proof) next(from, last int32, list []write) (round int32, ok bool) {
	round = forever
	if len(list) > 0 {
		round = list[0].round
	}
	if c := p.choices; c != nil {
		for _, first := range c.first {
			if first >= from {
				round = min(round, first)
			}
		}
	}
	return round, round <= last
}

// turn has the tables in force of switches that a round writes for the first time. It
// reports whether packets then take other ports.
func (p *proof) turn(round int32) (turns bool) {
	c := p.choices
	if c == nil {
		return false
	}
	for s, of := range c.of {
		if of != nil && c.first[s] == round {
			p.credit.replace(int32(s), p.now[s], round)
			turns = turns || c.differs(s, p.now[s])
		}
	}
	return turns
}

// ports returns the ports by which a switch may send packets to the LID in a round, in memory
// of p.
func (p *proof) ports(s, round int32) []uint8 {
	c := p.choices
	table := p.now[s : s+1 : s+1]
	if p.then[s] != p.now[s] {
		table = p.pairs[2*s : 2*s+2 : 2*s+2]
		table[0], table[1] = p.now[s], p.then[s]
	}
	switch {
	case c == nil || c.of[s] == nil || c.first[s] < round:
		return table
	case c.first[s] > round:
		return c.every[s]
	}
	return slices.Concat(c.every[s], table)
}

// begun and ended return the ports before and after the change.
func (p *proof) begun(s int32) []uint8 {
	if c := p.choices; c != nil && c.of[s] != nil {
		return c.every[s]
	}
	return p.old[s : s+1 : s+1]
}

func (p *proof) ended(s int32) []uint8 {
	if c := p.choices; c != nil && c.of[s] != nil && c.first[s] == forever {
		return c.every[s]
	}
	return p.final[s : s+1 : s+1]
}

// arrivingByAll finds from which switches packets arrive by all of some ports.
func (p *proof) arrivingByAll(ports func(s int32) []uint8) []bool {
	n := len(p.switches)
	behind := make([][]int32, n) // by switch: the switches that may send packets to it
	fails := make([]bool, n)
	var queue []int32
	left := make([]int, n) // ports whose packets are not known to arrive
	for s := range int32(n) {
		for _, port := range ports(s) {
			switch lead := p.lead(s, port); {
			case lead >= 0:
				to := p.channels[lead].to
				behind[to], left[s] = append(behind[to], s), left[s]+1
			case lead != leadsToEnd(p.to):
				fails[s] = true
			}
		}
		if left[s] == 0 && !fails[s] {
			queue = append(queue, s)
		}
	}
	arrives := make([]bool, n)
	for ; len(queue) > 0; queue = queue[1:] {
		arrives[queue[0]] = true
		for _, s := range behind[queue[0]] {
			if left[s]--; left[s] == 0 && !fails[s] {
				queue = append(queue, s)
			}
		}
	}
	return arrives
}
