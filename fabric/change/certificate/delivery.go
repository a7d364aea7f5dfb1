package certificate

import "slices"

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
	if p.ends[p.to].out == 0 {
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

// fails is the lowest rank of switches from which packets may fail.
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
