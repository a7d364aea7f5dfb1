package order

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"fabsh/fabric/change/certificate"
	"fabsh/mad"
)

// Plan finds an order in which a change is safe. It tries these, until one is proven:
//
//  1. one round;
//  2. from the destination backwards the entries of LIDs whose packets would loop or be
//     dropped, then the entries of all LIDs;
//  3. besides, for each credit loop that is left, precedences that break it, with
//     drains between where packets that an old entry sent must have left;
//  4. the LIDs in groups, with drains between, some by way of intermediate tables;
//  5. the LIDs one by one, with drains between, in an order that is searched;
//  6. the virtual lanes after the tables instead of before, as on the way back from
//     tables that need them.
//
// Before these, one round disables adaptive routing where the change writes, with a drain
// if none of them is safe without.
//
// If none is safe, the error is the *Refusal of the second. A credit loop is accepted
// only then.
func Plan(ctx context.Context, in Input) (*Schedule, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	accept := in.AcceptCreditLoops
	p := &planner{net: newNet(in.Old.Graph()), in: &in}
	p.drain = p.longestDrain(p.in)
	in.AcceptCreditLoops = false
	s, err := p.plan(ctx)
	if p.creditLoop(err) && p.drain > 0 && len(in.Disable) > 0 {
		p.drained = true
		s, err = p.plan(ctx)
	}
	if accept && p.creditLoop(err) {
		in.AcceptCreditLoops = true
		s, err = p.try(ctx, lanesFirst, &leg{ordered: p.needs})
	}
	if err != nil {
		return nil, err
	}
	in.complete(s)
	return s, nil
}

// planner is the state of Plan.
type planner struct {
	*net
	in    *Input
	drain time.Duration // how long each drain takes; 0: unlimited
	h     *history      // of the schedule that was tried last
	needs []uint64      // LIDs whose packets would loop or be dropped with one round
	// drained is set if a drain follows the round that disables adaptive routing.
	drained bool
	// singles is set if an order LID by LID was searched.
	singles bool
}

func (p *planner) plan(ctx context.Context) (*Schedule, error) {
	none := make([]uint64, p.words())
	s, err := p.try(ctx, lanesFirst, &leg{ordered: none})
	if !p.unsafe(err) {
		return s, err
	}
	p.needs = p.h.needs
	needs := p.needs
	if slices.ContainsFunc(needs, func(bits uint64) bool { return bits != 0 }) {
		if s, err = p.try(ctx, lanesFirst, &leg{ordered: needs}); !p.creditLoop(err) {
			return s, err
		}
	}
	all := slices.Clone(p.h.judged)
	s, why := p.try(ctx, lanesFirst, &leg{ordered: all})
	if !p.creditLoop(why) {
		return s, why
	}
	if p.in.Simple {
		return nil, why
	}
	if p.drain > 0 && !p.in.sameLanes() {
		for _, lanes := range []lanesAt{lanesDrained, lanesLast} {
			if s, err := p.try(ctx, lanes, &leg{ordered: all}); !isRefusal(err) {
				return s, err
			}
		}
	}
	if p.drain > 0 {
		if s, err := p.byPrecedence(ctx, needs); !isRefusal(err) {
			return s, err
		}
		if s, err := p.byGroups(ctx); !isRefusal(err) {
			return s, err
		}
		if s, err := p.bySingles(ctx); !isRefusal(err) {
			return s, err
		}
		p.advise(why)
	}
	return nil, why
}

// advise adds to the hint of a refusal which orders with drains were tried.
func (p *planner) advise(why error) {
	r := new(Refusal)
	if !errors.As(why, &r) {
		return
	}
	tried := "orders in groups of LIDs with waits were tried"
	if p.singles {
		tried = "orders with waits were tried, in groups of LIDs and LID by LID"
	}
	r.Hint = tried + ": " + r.Hint
}

// words returns the number of blocks.
func (p *planner) words() int {
	return max(p.blocks(), int(p.in.Old.Top())/mad.LFTBlock+1, int(p.in.New.Top())/mad.LFTBlock+1)
}

// isRefusal reports whether no safe schedule was found.
func isRefusal(err error) bool { return errors.As(err, new(*Refusal)) }

// unsafe reports whether a round is the reason: another order may help.
func (p *planner) unsafe(err error) bool {
	r := new(Refusal)
	return errors.As(err, &r) && r.Round >= 0
}

// creditLoop reports whether a credit loop is the reason.
func (p *planner) creditLoop(err error) bool {
	r := new(Refusal)
	return errors.As(err, &r) && r.Cycle != nil
}

// lanesAt states when SL2VL is written, if it changes.
type lanesAt uint8

const (
	lanesFirst   lanesAt = iota // before the tables
	lanesDrained                // before the tables, and a drain between
	lanesLast                   // after a drain
)

// try proves the schedule of legs; tables that a leg lacks are taken from the input.
func (p *planner) try(ctx context.Context, lanes lanesAt, legs ...*leg) (*Schedule, error) {
	s := &Schedule{}
	if first := p.in.disable(); len(first.Writes) > 0 {
		if p.drained {
			first.Drain = p.drain
		}
		s.Rounds = append(s.Rounds, first)
	}
	round := p.in.lanes()
	if lanes == lanesDrained {
		round.Drain = p.drain
	}
	if !p.in.sameLanes() && lanes != lanesLast {
		s.Rounds = append(s.Rounds, round)
	}
	for i, l := range legs {
		l.net, l.in = p.net, p.in
		if l.from == nil {
			l.from, l.to = p.in.Old, p.in.New
		}
		rounds, drains, ok := l.rounds()
		if !ok {
			return nil, errContradiction
		}
		for _, r := range drains {
			rounds[r].Drain = p.drain
		}
		if i < len(legs)-1 && len(rounds) > 0 {
			rounds[len(rounds)-1].Drain = p.drain
		}
		s.Rounds = append(s.Rounds, rounds...)
	}
	if !p.in.sameLanes() && lanes == lanesLast {
		if n := len(s.Rounds); n > 0 {
			s.Rounds[n-1].Drain = p.drain
		}
		s.Rounds = append(s.Rounds, round)
	}
	p.in.putLast(s)
	h, err := newHistory(p.net, p.in, s)
	if err != nil {
		return nil, err
	}
	p.h = h
	if s.Figures, err = h.prove(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// errContradiction reports a leg whose precedences contradict each other.
var errContradiction = &Refusal{Round: -1, Reason: "the precedences contradict each other"}

// longestDrain returns the time until packets that a switch sent by a replaced entry have
// left that switch and the next one; 0: unlimited.
func (t *net) longestDrain(in *Input) time.Duration {
	d := in.Drain
	if d == nil || slices.Contains(d, 0) {
		return 0
	}
	longest := time.Duration(1)
	for _, c := range t.channels {
		longest = max(longest, d[c.From]+d[c.To])
	}
	return longest
}

// putLast puts the blocks with LIDs of Input.Last at the end of each round.
func (in *Input) putLast(s *Schedule) {
	last := map[int]bool{}
	for _, lid := range in.Last {
		last[int(lid)/mad.LFTBlock] = true
	}
	for r := range s.Rounds {
		slices.SortStableFunc(s.Rounds[r].Writes, func(a, b certificate.Write) int {
			if a.Change < 0 || b.Change < 0 {
				return 0
			}
			switch x, y := last[in.at[a.Change].number], last[in.at[b.Change].number]; {
			case x == y:
				return 0
			case y:
				return -1
			}
			return 1
		})
	}
}

// maxLoops is the largest number of credit loops that are broken by precedences, and maxWork
// the largest number of entries that are examined for them beyond minLoops: a proof of a large
// network takes seconds. Four times as much proves no more changes after a lost link, of
// 2,040 in networks of up to 80 hosts and 49 in some of 432 to 3,456.
const (
	maxLoops = 200
	minLoops = 4
	maxWork  = 1 << 24
)

// byPrecedence breaks credit loops one by one. In each it breaks the link whose dependencies
// arise in the fewest ways, all of mixed tables. A packet that an old entry
// sent does not meet a new entry if the next switch changes after a drain; a packet that
// a new entry sent does not meet an old entry if the next switch changes first.
func (p *planner) byPrecedence(ctx context.Context, needs []uint64) (*Schedule, error) {
	l := &leg{ordered: needs, extra: map[int][]precedence{}}
	s, err := p.try(ctx, lanesDrained, l)
	loops := min(maxLoops, max(minLoops, maxWork/max(1, p.n*len(p.h.changing()))))
	for range loops {
		if !p.creditLoop(err) {
			return s, err
		}
		broken := false
		for _, ways := range p.h.loop.byWays() {
			more, ok := l.with(ways)
			if !ok {
				continue
			}
			before := l.extra
			l.extra = more
			if s, err = p.try(ctx, lanesDrained, l); err != errContradiction {
				broken = true
				break
			}
			l.extra = before
		}
		if !broken {
			return nil, errContradiction
		}
	}
	return nil, errContradiction
}

// byWays returns the ways of each link, those with the fewest first.
func (c *creditLoop) byWays() [][]way {
	list := slices.Clone(c.ways)
	slices.SortStableFunc(list, func(a, b []way) int { return len(a) - len(b) })
	return list
}

// with returns the precedences of the leg together with precedences that prevent all ways;
// false: some way cannot be prevented.
func (l *leg) with(ways []way) (map[int][]precedence, bool) {
	extra := maps.Clone(l.extra)
	for _, w := range ways {
		var x precedence
		switch {
		case w.first == Old && w.next == New:
			x = precedence{lid: w.lid, before: w.s, after: w.to, drain: true}
		case w.first == New && w.next == Old:
			x = precedence{lid: w.lid, before: w.to, after: w.s}
		default:
			return nil, false
		}
		b := int(w.lid) / mad.LFTBlock
		if slices.Contains(extra[b], x) {
			return nil, false // it exists already, and does not help
		}
		extra[b] = append(slices.Clip(extra[b]), x)
	}
	return extra, true
}
