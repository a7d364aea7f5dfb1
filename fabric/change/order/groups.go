package order

import (
	"context"
	"slices"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// maxGroups is the largest number of groups of LIDs that change one after the other, and
// maxTests the largest number of tests of a group for cycles.
const (
	maxGroups = 32
	maxTests  = 20000
	maxTrees  = 16      // for intermediate tables
	maxEdges  = 1 << 24 // of dependencies that are kept: 128 MB
)

// byGroups changes the LIDs in groups, with drains between. A group has LIDs whose mixed
// dependencies close no cycle with the dependencies of all other LIDs, before or after their
// change. The remaining LIDs get intermediate tables, of paths in a tree, which have few
// dependencies, and then the new ones.
func (p *planner) byGroups(ctx context.Context) (*Schedule, error) {
	legs, now, left, err := p.groups(ctx, p.in.Old, p.in.New, p.h.changing())
	if err != nil {
		return nil, err
	}
	if len(left) == 0 {
		return p.try(ctx, lanesDrained, legs...)
	}
	differ := p.in.differing()
	for root := range min(p.n, maxTrees) {
		tree := p.tree(int32(root), now, left, differ)
		there, _, rest, err := p.groups(ctx, now, tree, left)
		if err != nil {
			return nil, err
		}
		if len(rest) > 0 {
			continue
		}
		on, _, rest, err := p.groups(ctx, tree, p.in.New, left)
		if err != nil {
			return nil, err
		}
		if len(rest) > 0 {
			continue
		}
		s, err := p.try(ctx, lanesDrained, slices.Concat(legs, there, on)...)
		if !isRefusal(err) {
			return s, err
		}
	}
	return nil, errContradiction
}

// groups returns the legs that change groups of LIDs from the tables now to the tables to,
// the tables after them, and the LIDs that fit in no group.
func (p *planner) groups(ctx context.Context, now, to *routes.Routes, left []mad.LID) ([]*leg, *routes.Routes, []mad.LID, error) {
	var legs []*leg
	for range maxGroups {
		g, err := p.group(ctx, now, to, left)
		if err != nil || len(g.group) == 0 {
			return legs, now, left, err
		}
		group := g.group
		l := &leg{from: now, to: to, ordered: make([]uint64, p.words()), extra: map[int][]precedence{}}
		for _, lid := range group {
			b := int(lid) / mad.LFTBlock
			if strict, ok := g.strict[lid]; ok {
				l.extra[b] = append(l.extra[b], strict...)
			} else {
				l.ordered[b] |= 1 << (int(lid) % mad.LFTBlock)
			}
		}
		legs = append(legs, l)
		if left = withoutLIDs(left, group); len(left) == 0 {
			return legs, to, nil, nil
		}
		l.to = p.copyOf(now)
		for s := range p.n {
			l.to.Row(s).Copy(to.Row(s), group)
		}
		now = l.to
	}
	return legs, now, left, nil
}

// copyOf returns a copy of tables, with room for all LIDs.
func (p *planner) copyOf(r *routes.Routes) *routes.Routes {
	c := routes.New(p.g, max(r.Top(), p.in.New.Top()))
	c.SL, c.SL2VL = r.SL, r.SL2VL
	for s := range p.n {
		c.Row(s).Copy(r.Row(s), nil)
	}
	return c
}

// tree returns tables with the paths to some LIDs in a breadth-first search tree, in the
// blocks that differ in the end, and the unchanged paths to others.
func (p *planner) tree(root int32, others *routes.Routes, lids []mad.LID, differ map[[2]int]bool) *routes.Routes {
	up := slices.Repeat([]int32{-1}, p.n) // the channel towards the root
	seen := make([]bool, p.n)
	seen[root] = true
	order := []int32{root}
	for i := 0; i < len(order); i++ {
		for c := p.chanBase[order[i]]; c < p.chanBase[order[i]+1]; c++ {
			if to := p.channels[c].To; !seen[to] {
				seen[to], up[to] = true, p.channels[c].Reverse
				order = append(order, to)
			}
		}
	}
	r := p.copyOf(others)
	put := func(s int32, lid mad.LID, port uint8) {
		if differ[[2]int{int(s), int(lid) / mad.LFTBlock}] {
			r.Row(int(s))[lid] = port
		}
	}
	for _, lid := range lids {
		end := p.terminals[p.terminal(int(lid))]
		if !seen[end.Switch] {
			continue
		}
		for _, s := range order[1:] {
			put(s, lid, p.channels[up[s]].Port)
		}
		s := int32(end.Switch)
		for put(s, lid, end.Out); up[s] >= 0; s = p.channels[up[s]].To { // from the root down
			c := p.channels[up[s]]
			put(c.To, lid, c.PeerPort)
		}
	}
	return r
}

// differing returns the blocks that differ in the end, by switch and number. A plan, its
// certificate and its journal have no others.
func (in *Input) differing() map[[2]int]bool {
	blocks := map[[2]int]bool{}
	for _, sd := range in.New.Diff(in.Old).Switches {
		for _, b := range sd.Blocks {
			blocks[[2]int{sd.Switch, b}] = true
		}
	}
	return blocks
}

// changing returns the LIDs whose entries change, and to which packets are sent.
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

// withoutLIDs returns the LIDs that are not in group; both are ascending.
func withoutLIDs(lids, group []mad.LID) (rest []mad.LID) {
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
	deps  *verify.DependencyGraph
	edges map[mad.LID][][2]int32 // dependencies of mixed tables
	// strict are the precedences of LIDs under which no packet that an entry sent meets
	// an entry of the other tables.
	strict map[mad.LID][]precedence
	kept   int // edges
	tests  int
	group  []mad.LID
}

// group chooses LIDs that may change together, among the LIDs that are left.
func (p *planner) group(ctx context.Context, now, to *routes.Routes, left []mad.LID) (*grouping, error) {
	in := *p.in
	in.Old = now
	h, err := newHistory(p.net, &in, &Schedule{Rounds: []certificate.Round{in.switchLanes()}})
	if err != nil {
		return nil, err
	}
	e := epoch{old: p.in.sameLanes(), new: true}
	g := &grouping{deps: verify.NewDependencyGraph(p.g, h.vls()), edges: map[mad.LID][][2]int32{}, strict: map[mad.LID][]precedence{}}
	if err := h.collectExact(ctx, e, g.deps, betweenHosts); err != nil {
		return nil, err
	}
	if !g.deps.Acyclic() {
		return g, nil
	}
	f := newFollower(h)
	for _, lid := range left {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		old, new := f.loadLID(lid, to)
		f.mixBackwards(lid, old, new)
		if h.isEndLID(lid) {
			g.collect(f, e, lid)
		}
		if g.kept > maxEdges {
			return g, nil // no group
		}
	}
	if g.choose(left); len(g.group) == 0 {
		g.chooseStrictly(p, f, e, to, left)
	}
	slices.Sort(g.group)
	return g, nil
}

// chooseStrictly adds LIDs to the group one by one, each with precedences under which no
// packet that an entry sent meets an entry of the other tables.
func (g *grouping) chooseStrictly(p *planner, f *follower, e epoch, to *routes.Routes, left []mad.LID) {
	for _, lid := range left {
		old, new := f.loadLID(lid, to)
		list, ok := p.strictly(lid, old, new)
		if !ok {
			continue
		}
		if f.at.begin(new); f.h.isEndLID(lid) {
			g.collect(f, e, lid)
		}
		g.strict[lid] = list
		g.choose([]mad.LID{lid})
	}
}

// loadLID returns the entries for a LID, by switch: the old ones, and the entries of to.
func (f *follower) loadLID(lid mad.LID, to *routes.Routes) (old, new []uint8) {
	n, b, i := f.h.n, int(lid)/mad.LFTBlock, int(lid)%mad.LFTBlock
	f.load(b, 1<<i)
	old, new = f.old[i*n:][:n], f.new[i*n:][:n]
	for s := range new {
		new[s] = to.Row(s).Port(lid)
	}
	return old, new
}

// collect notes the new dependencies of packets to a LID.
func (g *grouping) collect(f *follower, e epoch, lid mad.LID) {
	g.edges[lid] = nil
	f.credit.wanted = func(v, w int32, _, _ *entry) {
		if !g.deps.Has(v, w) {
			g.edges[lid] = append(g.edges[lid], [2]int32{v, w})
			g.kept++
		}
	}
	f.collect(e, lid, betweenHosts)
}

// strictly returns precedences by which each switch changes its entry for a LID after the
// next switch on the new path, and, when the packets that it sent have left, before the
// next switch on the old path; false: they contradict each other.
func (p *planner) strictly(lid mad.LID, old, new []uint8) (list []precedence, ok bool) {
	var edges []edge
	for s := range int32(p.n) {
		if old[s] == new[s] {
			continue
		}
		if c := p.target(s, old[s]); c.IsChannel() {
			if next := p.channels[c].To; old[next] != new[next] {
				list = append(list, precedence{lid, s, next, true})
				edges = append(edges, edge{from: s, to: next})
			}
		}
		if c := p.target(s, new[s]); c.IsChannel() {
			if next := p.channels[c].To; old[next] != new[next] {
				list = append(list, precedence{lid, next, s, false})
				edges = append(edges, edge{from: next, to: s})
			}
		}
	}
	return list, len(components(p.n, edges)) == p.n
}

// mixBackwards computes the entries of a LID while it changes from the destination
// backwards: each in the round of its distance.
func (f *follower) mixBackwards(lid mad.LID, old, new []uint8) {
	t := f.h.net
	to := graph.ToTerminal(t.terminal(int(lid)))
	f.at.begin(old)
	for s := range old {
		if old[s] == new[s] {
			continue
		}
		f.at.replace(int32(s), new[s], t.distance(int32(s), new, to))
	}
}

// distance returns the number of links that packets cross from switch s to a terminal. If
// they do not arrive, it returns the number of switches, which puts them last.
func (t *net) distance(s int32, ports []uint8, to graph.Target) int32 {
	for links := range int32(t.n) {
		target := t.target(s, ports[s])
		switch {
		case target == to:
			return links
		case !target.IsChannel():
			return int32(t.n)
		}
		s = t.channels[target].To
	}
	return int32(t.n)
}

// choose adds LIDs to the group as long as there is no cycle. If not all can be added, it
// tries halves of them.
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
