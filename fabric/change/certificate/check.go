package certificate

import (
	"context"
	"fmt"
	"slices"

	"fabsh/mad"
)

// maxPositions bounds the memory for positions, which take few bytes in a file: 256 MB.
const maxPositions = 1 << 26

// Result is the extent of what a certificate proves.
type Result struct {
	LIDs     int // to which packets are sent, and whose entries change
	Channels int // that have a position; 0: credit loops were accepted
}

// Check checks a certificate. Its time is proportional to the size of the tables, and to
// the number of switches for each LID that changes in a round. The error is a
// *FailureError if the certificate does not hold, or the end of ctx.
func Check(ctx context.Context, sub *Subnet, c *Certificate) (*Result, error) {
	p, err := newProof(sub, c)
	if err != nil {
		return nil, err
	}
	ranks := unpack(c.Ranks, "ranks")
	p.rank = func(int32) error { return ranks.read(p.ranks, 2*len(p.switches)) }
	equal := map[[2]int32]bool{} // dependencies of channels with the same position
	order := make([][]uint32, len(p.epochs))
	if !c.AcceptCreditLoops {
		if len(c.Orders) != len(p.epochs) {
			return nil, failure("it has %d orders of channels, and its rounds need %d", len(c.Orders), len(p.epochs))
		}
		p.result.Channels = len(p.channels) * c.Lanes
		if p.result.Channels*len(order) > maxPositions {
			return nil, failure("it has %d orders of %d channels: too many", len(order), p.result.Channels)
		}
		for e := range order {
			in := unpack(c.Orders[e], "positions of channels")
			order[e] = make([]uint32, p.result.Channels)
			if err := in.read(order[e], p.result.Channels); err != nil {
				return nil, err
			}
			if err := in.end(); err != nil {
				return nil, err
			}
		}
		p.depends = func(e int, v, w int32) error {
			switch at := order[e]; {
			case at[v] > at[w]:
				return failure("round %d, LID %d: packets on %s wait for %s, whose position is lower", p.epochs[e].first+1, p.lid, p.name(v), p.name(w))
			case at[v] == at[w]:
				equal[[2]int32{v, w}] = true
			}
			return nil
		}
	}
	if err := p.each(ctx); err != nil {
		return nil, err
	}
	if err := ranks.end(); err != nil {
		return nil, err
	}
	if err := p.removeOld(ctx, equal); err != nil {
		return nil, err
	}
	for pair := range equal {
		return nil, failure("packets on %s wait for %s, whose position is the same", p.name(pair[0]), p.name(pair[1]))
	}
	return &p.result, nil
}

// proof is a certificate that is checked, or made: that sets rank and depends.
type proof struct {
	*network
	sub     *Subnet
	cert    *Certificate
	blocks  [][]write // by number of the block, in the order of rounds
	epochs  []epoch
	newVLs  map[lanePlace][mad.ServiceLevels]uint8 // rows of SL2VL that change
	rank    func(round int32) error                // sets ranks
	depends func(epoch int, v, w int32) error      // nil: no channel matters
	result  Result

	// The LID that is followed, and its end; by switch: the entry in force at first,
	// before a round, after it, after all.
	lid                   int
	to                    int32
	old, now, then, final []uint8
	pairs                 []uint8 // memory of ports
	ranks                 []uint32
	delivery              delivery
	credit                credit
	choices               *choices // nil: no switch routes adaptively
}

// each follows the packets to all LIDs through all rounds.
func (p *proof) each(ctx context.Context) error {
	n := len(p.switches)
	p.old, p.now, p.then, p.final, p.ranks = make([]uint8, n), make([]uint8, n), make([]uint8, n), make([]uint8, n), make([]uint32, n)
	p.pairs = make([]uint8, 2*n)
	tables := make([][]uint8, n)
	for s, sw := range p.switches {
		tables[s] = p.sub.Table(sw)
	}
	for p.lid = range p.byLID {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.to = p.endOf(p.lid); p.to == noEnd {
			continue
		}
		for s, table := range tables {
			if p.old[s] = mad.NoPort; p.lid < len(table) {
				p.old[s] = table[p.lid]
			}
		}
		p.choices.at(p.lid)
		if err := p.follow(p.blocks[p.lid/mad.LFTBlock], p.lid%mad.LFTBlock); err != nil {
			return err
		}
	}
	return nil
}

// follow follows the packets to a LID, place i of a block, through the writes of the block.
func (p *proof) follow(list []write, i int) error {
	copy(p.final, p.old)
	changes := p.choices.turns(p.old)
	for _, w := range list {
		changes = changes || w.entries[i] != p.old[w.s]
		p.final[w.s] = w.entries[i]
	}
	if changes {
		p.result.LIDs++
		if err := p.judge(); err != nil {
			return err
		}
	}
	copy(p.now, p.old)
	copy(p.then, p.old)
	for e, epoch := range p.epochs {
		p.credit.begin(p.now)
		p.choose(epoch.first)
		for round, ok := p.next(epoch.first, epoch.last, list); ok; round, ok = p.next(round+1, epoch.last, list) {
			turns := p.turn(round)
			for ; len(list) > 0 && list[0].round == round; list = list[1:] {
				if s, port := list[0].s, list[0].entries[i]; port != p.now[s] {
					p.then[s] = port
					p.credit.replace(s, port, round)
				}
			}
			if !turns && slices.Equal(p.now, p.then) {
				continue
			}
			if err := p.deliver(round); err != nil {
				return err
			}
			copy(p.now, p.then)
		}
		if p.depends != nil && p.ends[p.to].out > 0 {
			if err := p.wait(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// name returns the name of a channel.
func (p *proof) name(v int32) string {
	c := p.channels[v/int32(p.cert.Lanes)]
	name := fmt.Sprintf("%s/%d", p.switches[c.from].Label(), c.out)
	if p.cert.Lanes > 1 {
		name = fmt.Sprintf("%s VL %d", name, v%int32(p.cert.Lanes))
	}
	return name
}
