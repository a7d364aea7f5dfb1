package order

import (
	"context"
	"maps"
	"slices"

	"fabsh/mad"
)

// maxLoops is the largest number of credit loops that are broken by precedences, and
// maxWork that of entries that are examined for them beyond minLoops: a proof of a large
// network takes seconds. Four times as much proves no more changes after a lost link, of
// 2,040 in networks of up to 80 hosts and 49 in some of 432 to 3,456.
const (
	maxLoops = 200
	minLoops = 4
	maxWork  = 1 << 24
)

// byPrecedence breaks one credit loop after the other. Of each it breaks the link whose
// dependencies arise in the fewest ways, all of mixed tables. A packet that an old entry
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

// with returns the precedences of the leg and those that prevent all ways; false: some
// way cannot be prevented.
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
