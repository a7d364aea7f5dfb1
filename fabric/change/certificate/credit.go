package certificate

import (
	"context"
	"errors"
	"math"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// credit is what is in force for the LID during an epoch, and the channels on which packets
// wait.
type credit struct {
	entries [][]entry // by switch
	since   []int32   // by channel: the first round in which packets are there
	queue   []int32   // channels that packets enter earlier than was known
}

// entry is an entry of a switch, and the rounds between which it may be in force.
type entry struct {
	port        uint8
	from, until int32
}

const forever = math.MaxInt32

// begin begins an epoch.
func (c *credit) begin(ports []uint8) {
	if c.entries == nil {
		c.entries = make([][]entry, len(ports))
	}
	for s, port := range ports {
		c.entries[s] = append(c.entries[s][:0], entry{port, 0, forever})
	}
}

// replace adds the write of an entry. An entry that returns counts as in force all the
// time.
func (c *credit) replace(s int32, port uint8, round int32) {
	back := false
	for i := range c.entries[s] {
		e := &c.entries[s][i]
		e.until = min(e.until, round)
		if e.port == port {
			e.until, back = forever, true
		}
	}
	if !back {
		c.entries[s] = append(c.entries[s], entry{port, round, forever})
	}
}

// wait finds the dependencies of packets from all hosts to the LID in an epoch: on one
// channel they wait for the next, by entries that are in force when they are sent, and
// then or later.
func (p *proof) wait(e int) error {
	c := &p.credit
	if c.since == nil {
		c.since = slices.Repeat([]int32{forever}, len(p.channels)*p.cert.Lanes)
	}
	levels := uint8(mad.ServiceLevels)
	if p.cert.Lanes == 1 { // for all of them
		levels = 1
	}
	for sl := range levels {
		c.queue = c.queue[:0]
		for s, hosts := range p.hosts {
			for _, host := range hosts {
				if host == p.to || p.cert.Lanes > 1 && p.sub.Levels(p.ends[host].port, mad.LID(p.lid))>>sl&1 == 0 {
					continue
				}
				if err := p.enter(e, sl, int32(s), p.ends[host].out, -1, 0); err != nil {
					return err
				}
				if p.cert.Lanes == 1 {
					break // packets of all hosts at a switch enter the channels of the first
				}
			}
		}
		for i := 0; i < len(c.queue); i++ {
			v := c.queue[i]
			at := &p.channels[v/int32(p.cert.Lanes)]
			if err := p.enter(e, sl, at.to, at.in, v, c.since[v]); err != nil {
				return err
			}
		}
		for _, v := range c.queue {
			c.since[v] = forever
		}
	}
	return nil
}

// enter has packets, which are on a channel (-1: on none yet) since a round, enter the next
// channels.
func (p *proof) enter(e int, sl uint8, s int32, in uint8, before, since int32) error {
	c := &p.credit
	for _, a := range c.entries[s] {
		lead := p.lead(s, a.port)
		if lead < 0 || a.until < since {
			continue
		}
		for _, vl := range p.lanes(e, s, in, a.port, sl) {
			if vl >= mad.DropVL {
				continue
			}
			v := lead*int32(p.cert.Lanes) + int32(vl)
			if before >= 0 {
				if err := p.depends(e, before, v); err != nil {
					return err
				}
			}
			if sent := max(since, a.from); sent < c.since[v] {
				c.since[v] = sent
				c.queue = append(c.queue, v)
			}
		}
	}
	return nil
}

// lanes returns the lanes that packets may get: the old and the new one, if both may be in
// force.
func (p *proof) lanes(e int, s int32, in, out, sl uint8) [2]uint8 {
	if p.cert.Lanes == 1 {
		return [2]uint8{mad.DropVL, 0}
	}
	old := p.sub.VL(p.switches[s], in, out, sl)
	row, changes := p.newVLs[lanePlace{s, in, out}]
	switch {
	case !changes || !p.epochs[e].new:
		return [2]uint8{mad.DropVL, old}
	case !p.epochs[e].old:
		return [2]uint8{mad.DropVL, row[sl]}
	}
	return [2]uint8{old, row[sl]}
}

// removeOld removes the dependencies that the tables and lanes in force have.
func (p *proof) removeOld(ctx context.Context, pairs map[[2]int32]bool) error {
	if len(pairs) == 0 {
		return nil
	}
	return p.after(ctx, 0, func(v, w int32) { delete(pairs, [2]int32{v, w}) })
}

// findOldLoop finds the last tables that have a credit loop, and whether those in force have
// one. It consists of some of the dependencies of channels with equal positions: along all
// others positions increase.
func (p *proof) findOldLoop(ctx context.Context, equal map[[2]int32]bool) error {
	rounds := len(p.cert.Rounds)
	for done := rounds; done >= 0 && !p.result.OldLoop; done-- {
		found := map[[2]int32]bool{}
		if err := p.after(ctx, int32(done), func(v, w int32) {
			if pair := [2]int32{v, w}; equal[pair] {
				found[pair] = true
			}
		}); err != nil {
			return err
		}
		if p.result.OldLoop = isCyclic(p.result.Channels, found); p.result.OldLoop {
			p.result.OldLoopUntil = (done + 1) % (rounds + 1)
		}
	}
	return nil
}

// isCyclic reports whether dependencies of channels have a cycle.
func isCyclic(channels int, pairs map[[2]int32]bool) (cyclic bool) {
	var edges []edge
	for pair := range pairs {
		edges = append(edges, edge{low: pair[0], high: pair[1]})
	}
	_, err := levels(channels, edges, func([]int32) error { return errCyclic })
	return err != nil
}

var errCyclic = errors.New("cyclic")

// after finds the dependencies of the tables and lanes in force after some rounds.
func (p *proof) after(ctx context.Context, rounds int32, depends func(v, w int32)) error {
	tables := map[*fabric.Node][]uint8{}
	for b, list := range p.blocks {
		for _, w := range list {
			if w.round >= rounds {
				break
			}
			sw, first := p.switches[w.s], b*mad.LFTBlock
			table := tables[sw]
			if table == nil {
				table = slices.Clone(p.sub.Table(sw))
			}
			for len(table) < first+mad.LFTBlock {
				table = append(table, mad.NoPort)
			}
			copy(table[first:], w.entries)
			tables[sw] = table
		}
	}
	sub := *p.sub
	sub.Table = func(sw *fabric.Node) []uint8 {
		if table := tables[sw]; table != nil {
			return table
		}
		return p.sub.Table(sw)
	}
	e := epoch{old: p.lanesAt >= rounds, new: p.lanesAt < rounds}
	at := &proof{network: p.network, sub: &sub, cert: p.cert, blocks: make([][]write, len(p.blocks)), epochs: []epoch{e}, newVLs: p.newVLs, choices: p.choices.after(rounds)}
	at.depends = func(_ int, v, w int32) error {
		depends(v, w)
		return nil
	}
	return at.each(ctx)
}
