package order

import (
	"context"
	"fmt"

	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// judgeCredit refuses an epoch in which a credit loop may arise that does not exist in
// the old tables.
func (h *history) judgeCredit(ctx context.Context, e epoch, workers []*follower, fig *Figures) error {
	moving := verify.NewDependencyGraph(h.g, h.vls())
	unite(moving, workers, betweenHosts)
	if !h.in.lanesMatter() {
		all := moving.Clone()
		h.collectStatic(all, false)
		if all.Acyclic() {
			return h.judgeManagement(ctx, e, workers, fig, all)
		}
	}
	all := moving
	if err := h.collectExact(ctx, e, all, betweenHosts); err != nil {
		return err
	}
	if all.Acyclic() {
		return h.judgeManagement(ctx, e, workers, fig, nil)
	}
	before, err := h.oldDependencies(ctx, betweenHosts)
	if err != nil {
		return err
	}
	fig.OldCycle = fig.OldCycle || !before.Acyclic()
	cycle := all.CycleBeyond(before)
	if cycle == nil {
		return h.judgeManagement(ctx, e, workers, fig, nil)
	}
	ways, err := h.ways(ctx, e, cycle)
	if err != nil {
		return err
	}
	h.loop = &creditLoop{cycle, ways}
	links := h.describe(h.loop)
	if h.in.AcceptCreditLoops {
		if fig.Cycle == nil {
			fig.Cycle = links
		}
		return nil
	}
	r := &Refusal{Round: int(e.first), Cycle: links, Reason: fmt.Sprintf("packets may deadlock in a credit loop of %d links", len(links))}
	r.Hint = "keep more of the old tables, stop traffic first, or accept the risk (change apply --accept-credit-loop-risk)"
	if fig.OldCycle {
		r.Hint = "the tables in force have a credit loop already: to remove it, stop traffic first, or accept the risk of further ones during the change (change apply --accept-credit-loop-risk)"
	}
	if h.in.lanesMatter() {
		r.Hint += "; if paths use service levels other than those assumed, give them (--sl FILE)"
	}
	return r
}

// oldDependencies returns the graph of the old tables alone.
func (h *history) oldDependencies(ctx context.Context, of ...traffic) (*verify.DependencyGraph, error) {
	deps := verify.NewDependencyGraph(h.g, h.vls())
	for _, of := range of {
		if err := h.still().collectExact(ctx, epoch{old: true}, deps, of); err != nil {
			return nil, err
		}
	}
	return deps, nil
}

// still returns h without the changes.
func (h *history) still() *history {
	return &history{net: h.net, in: h.in, s: h.s, blocks: h.blocks, ends: h.ends, selves: h.selves, judged: make([]uint64, len(h.blocks)), choices: h.choices.still()}
}

// creditLoop is a cycle and, by its edges, the ways in which packets cause the
// dependencies.
type creditLoop struct {
	cycle []int32
	ways  [][]way
}

// way is how packets to a LID depend on the next link: by the entry of switch s, and then
// by that of the next switch.
type way struct {
	lid         mad.LID
	s, to       int32
	first, next Version
}

// ways returns, by LID, all ways in which the dependencies of a cycle of the graph of an
// epoch arise.
func (h *history) ways(ctx context.Context, e epoch, cycle []int32) ([][]way, error) {
	list := make([][]way, len(cycle))
	place := map[int32]int{}
	for i, v := range cycle {
		place[v] = i
	}
	vls := int32(h.vls())
	f := newFollower(h)
	for b := range h.blocks {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f.load(b, h.ends[b])
		for i := range mad.LFTBlock {
			lid := b*mad.LFTBlock + i
			if h.ends[b]>>i&1 == 0 {
				continue
			}
			old, new := f.old[i*h.n:][:h.n], f.new[i*h.n:][:h.n]
			f.credit.wanted = func(v, w int32, first, next *entry) {
				k, ok := place[v]
				if !ok || cycle[(k+1)%len(cycle)] != w {
					return
				}
				a, b := h.channels[v/vls].From, h.channels[w/vls].From
				x := way{mad.LID(lid), a, b, h.version(a, first.port, old[a], new[a]), h.version(b, next.port, old[b], new[b])}
				if n := len(list[k]); n == 0 || list[k][n-1] != x {
					list[k] = append(list[k], x)
				}
			}
			if h.judged[b]>>i&1 != 0 {
				f.follow(e, b, i)
			} else {
				f.begin(e.first, lid, old)
			}
			f.collect(e, mad.LID(lid), betweenHosts)
		}
	}
	return list, nil
}

// describe returns a credit loop link by link, each with the lowest LID whose packets
// cause the dependency.
func (h *history) describe(l *creditLoop) []Dependency {
	vls := int32(h.vls())
	list := make([]Dependency, len(l.cycle))
	for i, v := range l.cycle {
		list[i] = Dependency{Port: h.g.ChannelPort(int(v / vls)), VL: uint8(v % vls)}
		if len(l.ways[i]) > 0 {
			w := l.ways[i][0]
			list[i].LID, list[i].First, list[i].Next = w.lid, w.first, w.next
		}
	}
	return list
}

// version returns the tables of switch s that a port belongs to.
func (h *history) version(s int32, port, old, new uint8) Version {
	switch {
	case old == new && port == old:
		return Both
	case port == old:
		return Old
	case port == new:
		return New
	case h.choices != nil && h.choices.of[s] != nil:
		return Adaptive
	}
	return Between
}
