package order

import (
	"context"

	"fabsh/fabric/routing"
	"fabsh/mad"
)

// maxGroups is how many groups of LIDs change one after the other, and maxTests how
// often a group is tested for cycles, before this is given up.
const (
	maxGroups = 32
	maxTests  = 20000
)

// byGroups changes the LIDs in groups, with drains between. The LIDs of a group are
// those whose mixed dependencies close no cycle with those of all the others, which
// have changed or have not.
func (p *planner) byGroups(ctx context.Context) (*Schedule, error) {
	left := p.h.changing()
	now := p.in.Old
	var legs []*leg
	for range maxGroups {
		group, err := p.group(ctx, now, left)
		if err != nil {
			return nil, err
		}
		if len(group) == 0 {
			return nil, errContradiction
		}
		l := &leg{from: now, to: p.in.New, ordered: make([]uint64, p.words())}
		for _, lid := range group {
			l.ordered[int(lid)/mad.LFTBlock] |= 1 << (int(lid) % mad.LFTBlock)
		}
		legs = append(legs, l)
		if left = without(left, group); len(left) == 0 {
			return p.try(ctx, true, legs...)
		}
		l.to = routing.NewRoutes(p.g, max(now.Top(), p.in.New.Top()))
		l.to.SL, l.to.SL2VL = now.SL, now.SL2VL
		for s := range p.n {
			row := l.to.Row(s)
			row.Copy(now.Row(s), nil)
			row.Copy(p.in.New.Row(s), group)
		}
		now = l.to
	}
	return nil, errContradiction
}

// changing are the LIDs whose entries change, and to which packets are sent.
func (h *history) changing() (lids []mad.LID) {
	for b, bits := range h.judged {
		for i := range mad.LFTBlock {
			if bits>>i&1 != 0 {
				lids = append(lids, mad.LID(b*mad.LFTBlock+i))
			}
		}
	}
	return lids
}

// without are the LIDs that are not in group; both are ascending.
func without(lids, group []mad.LID) (rest []mad.LID) {
	for _, lid := range lids {
		if len(group) > 0 && group[0] == lid {
			group = group[1:]
			continue
		}
		rest = append(rest, lid)
	}
	return rest
}

// grouping chooses a group.
type grouping struct {
	deps  *routing.CDG
	edges map[mad.LID][][2]int32 // dependencies of mixed tables
	tests int
	group []mad.LID
}

// group chooses LIDs that may change together, given those that are left.
func (p *planner) group(ctx context.Context, now *routing.Routes, left []mad.LID) ([]mad.LID, error) {
	in := *p.in
	in.Old = now
	h, err := newHistory(p.net, &in, &Schedule{Rounds: []Round{{Lanes: !in.sameLanes()}}})
	if err != nil {
		return nil, err
	}
	e := epoch{old: p.in.sameLanes(), new: true}
	g := &grouping{deps: routing.NewCDG(p.g, h.vls()), edges: map[mad.LID][][2]int32{}}
	if err := h.collectExact(ctx, e, g.deps); err != nil {
		return nil, err
	}
	if !g.deps.Acyclic() {
		return nil, nil
	}
	f := newFollower(h)
	for _, lid := range left {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		b, i := int(lid)/mad.LFTBlock, int(lid)%mad.LFTBlock
		f.load(b, 1<<i)
		for s := range p.n {
			f.new[i*p.n+s] = p.in.New.Row(s).Port(lid)
		}
		f.mixBackwards(lid, f.old[i*p.n:][:p.n], f.new[i*p.n:][:p.n])
		if h.ends[b]>>i&1 != 0 {
			f.credit.wanted = func(v, w int32, _, _ *entry) {
				if !g.deps.Has(v, w) {
					g.edges[lid] = append(g.edges[lid], [2]int32{v, w})
				}
			}
			f.collect(e, lid)
		}
	}
	g.choose(left)
	return g.group, nil
}

// mixBackwards takes the entries that a LID has while it changes from the destination
// backwards: in the round of its distance.
func (f *follower) mixBackwards(lid mad.LID, old, new []uint8) {
	t := f.h.net
	f.at.begin(old)
	for s := range old {
		if old[s] == new[s] {
			continue
		}
		at, distance := int32(s), int32(0)
		for ; int(distance) < t.n; distance++ {
			target := t.target(at, new[at])
			if target < 0 && target != -2-t.terminal(int(lid)) {
				distance = int32(t.n) // it leads nowhere: it is last
			}
			if target < 0 {
				break
			}
			at = t.channels[target].To
		}
		f.at.replace(int32(s), new[s], distance)
	}
}

// choose takes LIDs into the group as long as there is no cycle, halves of them where
// not all can be.
func (g *grouping) choose(lids []mad.LID) {
	if g.tests++; g.tests > maxTests || len(lids) == 0 {
		return
	}
	var added [][2]int32
	for _, lid := range lids {
		for _, e := range g.edges[lid] {
			if !g.deps.Has(e[0], e[1]) {
				g.deps.Add(e[0], e[1])
				added = append(added, e)
			}
		}
	}
	if g.deps.Acyclic() {
		g.group = append(g.group, lids...)
		return
	}
	for _, e := range added {
		g.deps.Remove(e[0], e[1])
	}
	if len(lids) > 1 {
		g.choose(lids[:len(lids)/2])
		g.choose(lids[len(lids)/2:])
	}
}
