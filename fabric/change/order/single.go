package order

import (
	"context"
	"slices"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// maxSingles is the largest number of LIDs whose order is searched one by one, maxRestarts how
// often the search begins again, and maxSingleTests the largest number of tests for cycles.
const (
	maxSingles     = 512
	maxRestarts    = 64
	maxSingleTests = 20000
)

// bySingles changes one LID after the other, with a drain after each, in an order that is
// searched: each time the first LID changes whose mixed dependencies close no cycle with those
// of the current tables of all other LIDs. Where no LID is left that can change, the search
// begins again, with those that were left before the others. LIDs that follow each other in the
// order found change together where that closes no cycle.
func (p *planner) bySingles(ctx context.Context) (*Schedule, error) {
	lids := p.h.changing()
	if len(lids) > maxSingles {
		return nil, errContradiction
	}
	s, err := p.newSingles(ctx, lids)
	if err != nil {
		return nil, err
	}
	if !s.deps.Acyclic() {
		return nil, errContradiction
	}
	p.singles = true
	for range maxRestarts {
		order, left := s.search()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(left) == 0 {
			return p.try(ctx, lanesDrained, p.singleLegs(s.merged(order))...)
		}
		for _, i := range left {
			s.stuck[i]++
		}
		if s.tests >= maxSingleTests {
			break
		}
	}
	return nil, errContradiction
}

// singles are the dependencies of LIDs that change.
type singles struct {
	lids []mad.LID
	// By LID: the dependencies of its packets by its old entries, by the new ones, and while it
	// changes from the destination backwards, which include the old ones.
	old, new, mixed [][][2]int32
	deps            *verify.DependencyGraph // of the current tables
	uses            map[[2]int32]int        // how many LIDs have a dependency of deps
	stuck           []int                   // by LID: how often it was left
	tests           int
}

func (p *planner) newSingles(ctx context.Context, lids []mad.LID) (*singles, error) {
	h, err := newHistory(p.net, p.in, &Schedule{Rounds: []certificate.Round{p.in.switchLanes()}})
	if err != nil {
		return nil, err
	}
	e := epoch{old: p.in.sameLanes(), new: true}
	s := &singles{lids: lids, deps: verify.NewDependencyGraph(p.g, h.vls()), uses: map[[2]int32]int{}, stuck: make([]int, len(lids))}
	for _, lid := range lids {
		h.judged[int(lid)/mad.LFTBlock] |= 1 << (int(lid) % mad.LFTBlock)
	}
	if err := h.collectExact(ctx, e, s.deps, betweenHosts); err != nil {
		return nil, err
	}
	f := newFollower(h)
	kept := 0
	for _, lid := range lids {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		old, new := f.loadLID(lid, p.in.New)
		collect := func(begin func()) (edges [][2]int32) {
			if begin(); !h.isEndLID(lid) {
				return nil
			}
			f.credit.wanted = func(v, w int32, _, _ *entry) {
				if !s.deps.Has(v, w) || s.uses[[2]int32{v, w}] > 0 { // else LIDs that stay have it
					edges = append(edges, [2]int32{v, w})
				}
			}
			f.collect(e, lid, betweenHosts)
			slices.SortFunc(edges, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
			return slices.Compact(edges)
		}
		s.mixed = append(s.mixed, collect(func() { f.mixBackwards(lid, old, new) }))
		s.new = append(s.new, collect(func() { f.at.begin(new) }))
		s.old = append(s.old, collect(func() { f.at.begin(old) }))
		if kept += len(s.mixed[len(s.mixed)-1]); kept > maxEdges {
			return nil, errContradiction
		}
		s.add(s.old[len(s.old)-1])
	}
	return s, nil
}

func (s *singles) add(edges [][2]int32) {
	for _, e := range edges {
		if s.uses[e]++; s.uses[e] == 1 {
			s.deps.Add(e[0], e[1])
		}
	}
}

func (s *singles) remove(edges [][2]int32) {
	for _, e := range edges {
		if s.uses[e]--; s.uses[e] == 0 {
			s.deps.Remove(e[0], e[1])
		}
	}
}

// fits reports whether LID i can change now.
func (s *singles) fits(i int) bool {
	s.tests++
	s.add(s.mixed[i])
	ok := s.deps.Acyclic()
	if !ok {
		s.remove(s.mixed[i])
	}
	return ok
}

// change ends the change of LID i, which fits.
func (s *singles) change(i int) {
	s.remove(s.mixed[i])
	s.remove(s.old[i])
	s.add(s.new[i])
}

// back returns LIDs to their old entries.
func (s *singles) back(order []int) {
	for _, i := range order {
		s.remove(s.new[i])
		s.add(s.old[i])
	}
}

// search returns the order in which LIDs can change one by one, and the LIDs that are left.
func (s *singles) search() (order, left []int) {
	for i := range s.lids {
		left = append(left, i)
	}
	slices.SortStableFunc(left, func(a, b int) int { return s.stuck[b] - s.stuck[a] })
	for s.tests < maxSingleTests {
		at := slices.IndexFunc(left, s.fits)
		if at < 0 {
			break
		}
		s.change(left[at])
		order, left = append(order, left[at]), slices.Delete(left, at, at+1)
	}
	s.back(order)
	return order, left
}

// merged returns an order in groups that can change together.
func (s *singles) merged(order []int) (groups [][]mad.LID) {
	for len(order) > 0 {
		n := 0
		for n < len(order) && s.fits(order[n]) {
			n++
		}
		var group []mad.LID
		for _, i := range order[:n] {
			s.change(i)
			group = append(group, s.lids[i])
		}
		if slices.Sort(group); n == 0 {
			return nil
		}
		groups, order = append(groups, group), order[n:]
	}
	return groups
}

// singleLegs returns the legs that change groups of LIDs one after the other.
func (p *planner) singleLegs(groups [][]mad.LID) (legs []*leg) {
	now := p.in.Old
	for _, group := range groups {
		l := &leg{from: now, to: p.copyOf(now), ordered: make([]uint64, p.words())}
		for _, lid := range group {
			l.ordered[int(lid)/mad.LFTBlock] |= 1 << (int(lid) % mad.LFTBlock)
		}
		for s := range p.n {
			l.to.Row(s).Copy(p.in.New.Row(s), group)
		}
		legs, now = append(legs, l), l.to
	}
	if len(legs) > 0 {
		legs[len(legs)-1].to = p.in.New // entries that no packet meets
	}
	return legs
}
