package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// room makes room on a lane for an escape tree. A few links of the tree that existed are gone, so
// that the dependencies of the paths allow only the trees of a forest. These are joined by the links
// for which the fewest other LIDs lose a dependency.
type room struct {
	*patching
	set   settings // of the searches beside the tree
	d     *verify.DependencyGraph
	tree  []int32 // of the forest, by switch: the channel to its parent
	at    []int32 // by switch: the first of its tree
	users map[dependency][]mad.LID
	gone  map[mad.LID]bool // LIDs that get other paths
	cut   []dependency
	join  int32 // the channel that is tried
	work  int   // channels that searches may still go through

	others int // LIDs that change and have no gaps
}

// dependency is an edge of the channel dependency graph.
type dependency [2]int32

// maxRoomWork bounds the searches for the best links to some seconds.
const maxRoomWork = 1 << 27

// maxLinks is how many links are tried to join the first trees.
const maxLinks = 16

// makeRoom closes all gaps on a lane, beside an escape tree that begins at root. Other LIDs whose
// paths close a cycle with its turns get other paths from the switches that take these. Among several
// links that make the forest a tree, it takes the link by which few blocks of tables, and the fewest
// other LIDs, change. False: no links make it a tree.
//
// Time: for each link between two trees of the forest, a search of the dependency graph for
// each turn, and for each dependency in its way; and searches of nue for each link that is tried.
func (a *patching) makeRoom(ctx context.Context, lane, root int, gaps []gap, set settings) (ok bool, err error) {
	d, err := verify.Dependencies(ctx, a.r, a.onLane(lane))
	if err != nil {
		return false, err
	}
	m := room{patching: a, set: set, d: d, users: map[dependency][]mad.LID{}, gone: map[mad.LID]bool{}, work: maxRoomWork}
	for _, x := range gaps {
		m.gone[x.dest.LID] = true
	}
	m.findUsers(lane)
	m.growForest(root)
	links := m.links(ctx, maxLinks)
	tried, failed := make([]*room, max(1, len(links))), make([]error, max(1, len(links)))
	err = graph.Each(ctx, a.r.Graph().Workers(), len(tried), func(_, i int) {
		t := m.clone()
		if len(links) > 0 {
			t.joinBy(links[i])
		}
		for rest := t.links(ctx, 1); len(rest) > 0; rest = t.links(ctx, 1) {
			t.joinBy(rest[0])
		}
		if t.isWhole() {
			tried[i], failed[i] = t, t.finish(ctx, lane, slices.Clone(gaps))
		}
	})
	if err = cmp.Or(err, errors.Join(failed...)); err != nil || ctx.Err() != nil {
		return false, cmp.Or(err, context.Cause(ctx))
	}
	if tried = slices.DeleteFunc(tried, func(t *room) bool { return t == nil }); len(tried) == 0 {
		return false, nil
	}
	few := fewBlocks * a.least
	best := slices.MinFunc(tried, func(t, u *room) int {
		return cmp.Or(cmp.Compare(max(few, t.changed.size), max(few, u.changed.size)), cmp.Compare(t.others, u.others), cmp.Compare(t.changed.size, u.changed.size))
	})
	for s := range a.r.Graph().Switches() {
		copy(a.r.Row(s), best.r.Row(s))
	}
	a.graphs[lane], a.dropped, a.changed, a.toCAs.missing = best.graphs[lane], best.dropped, best.changed, 0
	if best.others > 0 {
		a.r.Notes = append(a.r.Notes, fmt.Sprintf("repair: other paths were needed for %s, to leave room for those of %s", plural.Count(best.others, "LID that used nothing that is gone", "LIDs that used nothing that is gone"), plural.Count(len(gaps), "other", "others")))
	}
	return true, nil
}

// isWhole reports whether the forest is a tree in each component.
func (m *room) isWhole() bool {
	for c := range m.r.Graph().Channels() {
		if ch := &m.r.Graph().Channels()[c]; m.at[ch.From] != m.at[ch.To] {
			return false
		}
	}
	return true
}

// clone returns a copy that writes tables of its own.
func (m *room) clone() *room {
	t := *m
	t.patching, t.d, t.at, t.tree = m.patching.clone(), m.d.Clone(), slices.Clone(m.at), slices.Clone(m.tree)
	t.gone, t.cut = maps.Clone(m.gone), slices.Clone(m.cut)
	return &t
}

// finish closes all gaps beside the tree, and counts what changes.
func (m *room) finish(ctx context.Context, lane int, gaps []gap) error {
	others := m.dropCut(gaps)
	gaps = append(gaps, others...)
	if err := m.close(ctx, lane, gaps); err != nil {
		return err
	}
	m.changed.addChanged(m.r, gaps)
	for _, x := range others {
		for s, port := range m.r.Column(x.dest.LID) {
			if port != x.old[s] && port != routes.NoPort {
				m.others++
				break
			}
		}
	}
	return nil
}

// close closes gaps beside the tree, so that none is left.
func (m *room) close(ctx context.Context, lane int, gaps []gap) error {
	d, err := verify.Dependencies(ctx, m.r, m.onLane(lane))
	if err != nil {
		return err
	}
	n := newNueSearch(m.r, d, d.Positions(), m.set)
	n.load, n.changed = slices.Clone(m.load), m.changed
	n.setTree(m.tree)
	for _, x := range gaps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if m.addition.close(n, x, &m.toCAs) {
			continue
		}
		m.blank([]gap{x})
		n.keep(x)
		n.bound = nil
		n.route(x.d, x.dest)
		m.changed.addChanged(m.r, []gap{x})
	}
	m.graphs[lane], m.toCAs.missing = n.order.DependencyGraph, 0
	return nil
}

// findUsers finds which LIDs have each dependency on a lane.
func (m *room) findUsers(lane int) {
	g, w := m.r.Graph(), verify.NewWalk(m.r.Graph())
	for d := range g.Switches() {
		for _, dest := range g.DestsOf(d) {
			if dest.Out == 0 || m.lane(dest.LID) != lane {
				continue
			}
			m.follow(w, dest, m.r.Column(dest.LID))
			for _, s := range w.Order {
				if c := w.Via[s]; c >= 0 && w.State[s] >= 0 {
					if next := w.Via[g.ChannelTo(c)]; next >= 0 {
						m.users[dependency{c, next}] = append(m.users[dependency{c, next}], dest.LID)
					}
				}
			}
		}
	}
}

// follow walks from all switches with CAs.
func (m *room) follow(w *verify.Walk, dest graph.Dest, entries []uint8) {
	w.Begin()
	for s, endpoints := range m.r.Graph().Endpoints() {
		if endpoints > 0 {
			w.From(int32(s), entries, dest.Terminal)
		}
	}
}

// growForest grows trees whose turns close no cycle with the present dependencies, the first from
// root.
func (m *room) growForest(root int) {
	g := m.r.Graph()
	m.at, m.tree = slices.Repeat([]int32{-1}, len(g.Switches())), slices.Repeat([]int32{graph.NoChannel}, len(g.Switches()))
	n := newNueSearch(m.r, m.d, m.d.Positions(), settings{})
	n.tree = m.tree
	for s := -1; s < len(g.Switches()); s++ {
		from := s
		if s < 0 {
			from = root
		}
		if m.at[from] >= 0 {
			continue
		}
		for _, t := range n.grow(from, func(s int32) bool { return m.at[s] >= 0 }) {
			m.at[t] = int32(from)
		}
	}
}

// links returns at most so many links between two trees: the links for which the fewest LIDs lose a
// dependency, the best first. If ctx ends, the list is empty.
func (m *room) links(ctx context.Context, most int) (best []int32) {
	g := m.r.Graph()
	var users []int
	for c := range g.Channels() {
		ch := &g.Channels()[c]
		if ctx.Err() != nil {
			return nil
		}
		if m.at[ch.From] == m.at[ch.To] || ch.Reverse < int32(c) || m.work < 0 && len(best) > 0 {
			continue
		}
		limit := math.MaxInt
		if len(users) == most {
			limit = users[most-1]
		}
		n, undo := m.tryLink(int32(c), limit)
		if n < 0 {
			continue
		}
		undo()
		at, _ := slices.BinarySearch(users, n+1)
		users, best = slices.Insert(users, at, n), slices.Insert(best, at, int32(c))
		users, best = users[:min(most, len(users))], best[:min(most, len(best))]
	}
	return best
}

// joinBy joins two trees by a link.
func (m *room) joinBy(c int32) {
	g := m.r.Graph()
	cut := len(m.cut)
	m.tryLink(c, math.MaxInt)
	for _, e := range m.cut[cut:] {
		for _, lid := range m.users[e] {
			m.gone[lid] = true
		}
	}
	// The tree where the link begins gets its root there.
	s, from := g.Channels()[c].From, m.at[g.Channels()[c].From]
	for up := c; up >= 0; {
		next := m.tree[s]
		m.tree[s] = up
		if up = next; up >= 0 {
			s, up = g.ChannelTo(up), g.Channels()[up].Reverse
		}
	}
	for s, at := range m.at {
		if at == from {
			m.at[s] = m.at[g.ChannelTo(c)]
		}
	}
}

// tryLink adds the turns of a link between two trees, and removes the dependencies in their way, of
// fewer other LIDs than limit. It returns how many; -1: there are more.
func (m *room) tryLink(c int32, limit int) (users int, undo func()) {
	g := m.r.Graph()
	m.join = c
	cut := len(m.cut)
	var added []dependency
	undo = func() {
		for _, e := range added {
			m.d.Remove(e[0], e[1])
		}
		for _, e := range m.cut[cut:] {
			m.d.Add(e[0], e[1])
		}
		m.cut = m.cut[:cut]
	}
	for _, x := range []int32{c, g.Channels()[c].Reverse} {
		back := g.Channels()[x].Reverse
		to := int(g.ChannelTo(x))
		for out := g.FirstChannel(to); out < g.FirstChannel(to+1); out++ {
			if out == back || !m.inTree(out) {
				continue
			}
			for _, e := range []dependency{{x, out}, {g.Channels()[out].Reverse, back}} {
				n := m.clear(e, limit-users)
				if n < 0 {
					undo()
					return -1, nil
				}
				if users += n; !m.d.Has(e[0], e[1]) {
					m.d.Add(e[0], e[1])
					added = append(added, e)
				}
			}
		}
	}
	return users, undo
}

// inTree reports whether a channel is in the forest, or on the link that is tried.
func (m *room) inTree(c int32) bool {
	ch := &m.r.Graph().Channels()[c]
	return c == m.join || ch.Reverse == m.join || m.tree[ch.From] == c || m.tree[ch.To] == ch.Reverse
}

// clear removes dependencies such that turn closes no cycle, and returns how many other LIDs
// have these: fewer than limit. -1: there are more.
func (m *room) clear(turn dependency, limit int) (users int) {
	for {
		path := m.d.Path(turn[1], turn[0])
		if path == nil {
			return users
		}
		m.work -= len(m.r.Graph().Channels())
		var rarest dependency
		fewest := math.MaxInt
		for i := range path[1:] {
			e := dependency{path[i], path[i+1]}
			if m.inTree(e[0]) && m.inTree(e[1]) {
				continue
			}
			n := 0
			for _, lid := range m.users[e] {
				if !m.gone[lid] {
					n++
				}
			}
			if n < fewest {
				rarest, fewest = e, n
			}
		}
		if users += fewest; users >= limit {
			return -1
		}
		m.d.Remove(rarest[0], rarest[1])
		m.cut = append(m.cut, rarest)
	}
}

// dropCut drops the entries that lead to dependencies that were cut, and what comes by these, of
// gaps and of other LIDs, which it returns.
func (m *room) dropCut(gaps []gap) (others []gap) {
	g, w := m.r.Graph(), verify.NewWalk(m.r.Graph())
	byLID := map[mad.LID][]dependency{}
	for _, e := range m.cut {
		for _, lid := range m.users[e] {
			byLID[lid] = append(byLID[lid], e)
		}
	}
	drop := func(x gap) gap {
		entries := slices.Clone(m.r.Column(x.dest.LID))
		for _, e := range byLID[x.dest.LID] {
			entries[g.Channels()[e[0]].From] = routes.NoPort
		}
		delete(byLID, x.dest.LID)
		m.follow(w, x.dest, entries)
		x.before = slices.Repeat([]uint8{routes.NoPort}, len(entries))
		for _, s := range w.Order {
			if w.State[s] >= 0 {
				x.before[s] = entries[s]
			}
		}
		x.before[x.d] = x.dest.Out
		for s, port := range x.before { // shortest sets the entries of switches without CAs
			m.r.Row(s)[x.dest.LID] = port
		}
		m.dropped = append(m.dropped, x)
		return x
	}
	for i, x := range gaps {
		gaps[i] = drop(x)
	}
	for d := range g.Switches() {
		for _, dest := range g.DestsOf(d) {
			if byLID[dest.LID] != nil {
				others = append(others, drop(gap{d: d, dest: dest, old: m.r.Column(dest.LID)}))
			}
		}
	}
	return others
}
