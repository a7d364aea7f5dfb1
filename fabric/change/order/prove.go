package order

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Prove reports whether a schedule is safe, whoever computed it: it leads to the new
// tables, and at each step, whatever the order within a round,
//
//   - no packet loops, except those that loop in the old tables already;
//   - no pair loses its path that has one in the old and in the new tables, and unless
//     Input.AcceptLost no pair with a path in the old tables lacks one in the new ones;
//   - no cycle of channel dependencies arises that is not in the old tables, unless
//     Input.AcceptCreditLoops. Dependencies are those of mixed tables, of packets
//     between CAs and routers, which stay on their way until a drain ends.
//
// A switch that routes adaptively may use any of its choices, and those count as its old
// entries, until the round that first writes its table, in which it may use either.
//
// The figures report whether a cycle may arise with management packets to and from
// switches.
//
// The error is a *Refusal if the schedule is not safe. The figures then still describe
// the whole change.
//
// Time: O(S) for each LID whose entries change and each epoch between drains, and one
// pass over all tables; O(S*L) if that finds a cycle.
func Prove(ctx context.Context, in Input, s *Schedule) (Figures, error) {
	if err := in.check(); err != nil {
		return Figures{}, err
	}
	h, err := newHistory(newNet(in.Old.Graph()), &in, s)
	if err != nil {
		return Figures{}, err
	}
	tops := &Schedule{}
	if in.tops(tops); !slices.Equal(tops.Raise, s.Raise) || !slices.Equal(tops.Lower, s.Lower) {
		return Figures{}, &Refusal{Round: -1, Reason: "LinearFDBTop is not raised before, or lowered after, as the entries need it"}
	}
	return h.prove(ctx)
}

func (h *history) prove(ctx context.Context) (Figures, error) {
	in := h.in
	if err := h.end(); err != nil {
		return Figures{}, err
	}
	fig := h.figures()
	if n := in.MaxBlocks; n > 0 && fig.Blocks > n {
		return fig, &Refusal{Round: -1, Reason: fmt.Sprintf("%d blocks would be written, more than %d", fig.Blocks, n), Hint: "allow more, or keep more of the old tables"}
	}
	for _, e := range h.epochs {
		workers, err := h.followAll(ctx, e)
		if err != nil {
			return fig, err
		}
		var all *follower
		for _, f := range workers {
			fig.add(&f.found)
			if f.refused != nil && (all == nil || f.refused.Round < all.refused.Round || f.refused.Round == all.refused.Round && f.refusal < all.refusal) {
				all = f
			}
		}
		if all != nil {
			return fig, all.refused
		}
		if fig.Lost > 0 && !in.AcceptLost {
			return fig, h.lost(workers, fig.Lost)
		}
		if err := h.judgeCredit(ctx, e, workers, &fig); err != nil {
			return fig, err
		}
	}
	fig.Unjudged = append(fig.Unjudged, h.managementNotes(fig.Management)...)
	return fig, nil
}

// eachBlock calls do for each block, on all cores, and returns the followers of the
// workers. The error is the end of ctx.
func (h *history) eachBlock(ctx context.Context, do func(f *follower, b int)) ([]*follower, error) {
	workers := make([]*follower, h.g.Workers())
	h.each(len(h.blocks), func(worker, b int) {
		if ctx.Err() != nil {
			return
		}
		if workers[worker] == nil {
			workers[worker] = newFollower(h)
		}
		do(workers[worker], b)
	})
	return slices.DeleteFunc(workers, func(f *follower) bool { return f == nil }), context.Cause(ctx)
}

// followAll follows the packets to all LIDs whose entries change.
func (h *history) followAll(ctx context.Context, e epoch) ([]*follower, error) {
	return h.eachBlock(ctx, func(f *follower, b int) {
		if h.judged[b] == 0 {
			return
		}
		f.load(b, h.judged[b])
		for i := range mad.LFTBlock {
			if h.judged[b]>>i&1 == 0 {
				continue
			}
			f.follow(e, b, i)
			for of := range kinds {
				if h.lids(b, of)>>i&1 != 0 {
					f.collect(e, mad.LID(b*mad.LFTBlock+i), of)
				}
			}
		}
	})
}

// collectExact adds the actual dependencies of packets to LIDs whose entries never
// change.
func (h *history) collectExact(ctx context.Context, e epoch, deps *verify.DependencyGraph, of traffic) error {
	workers, err := h.eachBlock(ctx, func(f *follower, b int) {
		still := h.lids(b, of) &^ h.judged[b]
		f.load(b, still)
		for i := range mad.LFTBlock {
			if still>>i&1 != 0 {
				lid := b*mad.LFTBlock + i
				f.begin(e.first, lid, f.old[i*h.n:][:h.n])
				f.collect(e, mad.LID(lid), of)
			}
		}
	})
	unite(deps, workers, of)
	return err
}

// unite adds the dependencies that followers collected.
func unite(deps *verify.DependencyGraph, workers []*follower, of traffic) {
	for _, f := range workers {
		if f.credit.deps[of] != nil {
			deps.Union(f.credit.deps[of])
		}
	}
}

// lost returns the refusal of pairs that have no path in the new tables.
func (h *history) lost(workers []*follower, pairs int64) error {
	r := &Refusal{Round: -1, Reason: fmt.Sprintf("%d pairs have a path now, and none in the new tables", pairs), Hint: "route them in the new tables, or accept the loss"}
	for _, f := range workers {
		if f.found.lost > 0 && (r.LID == 0 || f.found.lostTo < r.LID) {
			r.LID = f.found.lostTo
			r.Reason = fmt.Sprintf("%d pairs have a path now, and none in the new tables: as from %s to LID %d", pairs, f.found.lostFrom.Label(), r.LID)
		}
	}
	return r
}

// figures returns those that follow from the schedule alone.
func (h *history) figures() Figures {
	fig := Figures{Rounds: len(h.s.Rounds)}
	written := make([]bool, h.n)
	for r := range h.s.Rounds {
		round := &h.s.Rounds[r]
		fig.Blocks += len(round.Blocks)
		fig.Wait += round.Drain
		for i := range round.Blocks {
			if s := round.Blocks[i].Switch; !written[s] {
				written[s] = true
				fig.Switches++
			}
		}
	}
	fig.Unjudged = h.unjudged()
	return fig
}

// unjudged lists what the proof does not cover.
func (h *history) unjudged() []string {
	var list []string
	if h.in.Adaptive == nil {
		list = append(list, "adaptive routing: not determined; only the forwarding tables are judged")
	}
	switch {
	case !h.in.lanesMatter():
		list = append(list, "virtual lanes: all packets are assumed to be on one")
	case h.in.Old.SL == nil && h.in.New.SL == nil && h.in.SLs == 0:
		list = append(list, "service levels: all packets are assumed to have SL 0")
	}
	return list
}

func (fig *Figures) add(f *tally) {
	fig.LIDs += f.lids
	fig.Entries += f.entries
	fig.Pairs += f.rerouted
	fig.Lost += f.lost
	fig.Gained += f.gained
}
