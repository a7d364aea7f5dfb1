package certificate

import (
	"slices"

	"fabsh/mad"
)

// choices is the adaptive routing that is on before the change. A nil value is that of a
// subnet without any.
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

// still returns c without the change.
func (c *choices) still() *choices {
	if c == nil {
		return nil
	}
	return &choices{c.of, slices.Repeat([]int32{forever}, len(c.of)), make([][]uint8, len(c.of))}
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

// next returns the next round from one on, up to another, that writes an entry for the LID,
// or the table of a switch with choices for the first time.
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

// ports returns those by which a switch may send packets to the LID in a round, memory of p.
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
	behind := make([][]int32, n) // by switch: those that may send packets to it
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
