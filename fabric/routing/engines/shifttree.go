package engines

import (
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// spreadShiftsOf gives switches other next hops, where that spreads the flows of shifts, in tables on
// one lane whose paths may have detours: paths do not get longer, no channel gets more load than the
// largest, and the turns of all paths still close no cycle. Ports of several LIDs (LMC) keep
// their paths, which have little in common.
//
// Time: O(L*(S + C)), and that of the search, which newShifts bounds.
func spreadShiftsOf(ctx context.Context, r *routes.Routes) error {
	g := r.Graph()
	if slices.ContainsFunc(g.Terminals(), func(t graph.Terminal) bool { return t.Count > 1 }) {
		return nil
	}
	b := newBalancer(r, nil)
	b.turns = lanes.NewTurns(network(g))
	x := newShifts(b)
	if x.flows == nil {
		return nil
	}
	x.depth, x.toward.Next = make([]int32, len(g.Switches())), make([]int32, len(g.Channels()))
	for d := range g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, dest := range g.DestsOf(d) {
			if x.readTree(int32(d), dest.LID); !x.addAllTurns(int32(d)) {
				return nil // the turns cannot be ordered in the time that lanes.Turns has
			}
			if dest.Out != 0 {
				x.count(1)
			}
			if x.setLID(dest.LID) {
				x.countPaths(int32(d), dest.LID)
			}
		}
	}
	x.most = slices.Max(append(x.load, 0))
	before := x.squares()
	for range shiftPasses {
		if err := x.passes(ctx, 1); err != nil {
			return err
		}
		after := x.squares()
		if after > treeGain*before {
			return nil
		}
		before = after
	}
	return nil
}

// treeGain is the part of the sum of the squares of flows up to which a pass has gained enough for
// another.
const treeGain = 0.99

// readTree reads the paths to lid, on switch d, from the tables. The next hops are those that are
// nearer on these paths.
func (x *shifts) readTree(d int32, lid mad.LID) {
	g, next := x.g, x.toward.Next
	for s := range x.via {
		x.depth[s], x.via[s] = -1, max(graph.NoChannel, g.Target(int32(s), x.r.Row(s).Port(lid)).Channel())
	}
	x.depth[d], x.via[d] = 0, graph.NoChannel
	x.stack = append(x.stack[:0], d)
	steps, n := x.toward.Steps[:0], int32(0)
	for i := 0; i < len(x.stack); i++ {
		s := x.stack[i]
		for c := g.FirstChannel(int(s)); c < g.FirstChannel(int(s+1)); c++ {
			if from := g.ChannelTo(c); x.via[from] == g.Channels()[c].Reverse {
				x.depth[from] = x.depth[s] + 1
				x.stack = append(x.stack, from)
			}
		}
	}
	for _, s := range x.stack[1:] {
		first := n
		for c := g.FirstChannel(int(s)); c < g.FirstChannel(int(s+1)); c++ {
			if depth := x.depth[g.ChannelTo(c)]; 0 <= depth && depth < x.depth[s] {
				next[n] = c
				n++
			}
		}
		steps = append(steps, graph.Step{Switch: s, First: first, Last: n})
	}
	x.toward.Steps = steps
}

// addAllTurns adds the turns of the paths to a LID on switch d, and reports whether they close no
// cycle.
func (x *shifts) addAllTurns(d int32) bool {
	for _, st := range x.toward.Steps {
		c := x.via[st.Switch]
		if to := x.g.ChannelTo(c); to != d && !x.turns.Add(c, x.via[to]) {
			return false
		}
	}
	return true
}
