package search

import (
	"context"
	"fmt"
	"math/bits"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// maxLevelled is the number of paths up to which levels are chosen again.
const maxLevelled = 1 << 22

// relevelled are the tables with other service levels of paths that changed, if the verifier then finds no
// credit loop; else nil.
func (a *patching) relevelled(ctx context.Context) (*routes.Routes, error) {
	x := *a
	x.r = a.r.Clone()
	moved, ok, err := x.relevel(ctx)
	if !ok || err != nil {
		return nil, err
	}
	v, err := verify.Tables(ctx, x.r, verify.Options{})
	if err != nil || !v.Acyclic {
		return nil, err
	}
	x.r.Notes = append(x.r.Notes, fmt.Sprintf("repair: %s another service level; hosts read path records again", plural.Count(moved, "path has", "paths have")))
	return x.r, nil
}

// relevel gives paths that changed other service levels, of those in use, where they close a credit
// loop with the levels that they had, and returns how many. Lanes may depend on ports of switches.
// False: for one of them no level does.
//
// Time: O(P*H) for P paths of H links, and a search of the dependency graph for each dependency of those
// that changed.
func (a *patching) relevel(ctx context.Context) (moved int, ok bool, err error) {
	g, t := a.r.Graph(), a.r
	if len(g.Terminals())*len(g.Dests()) > maxLevelled || !t.SL.Any() {
		return 0, false, nil
	}
	changed := map[mad.LID][]bool{} // by switch: the entry
	for _, x := range a.dropped {
		entries := make([]bool, len(g.Switches()))
		for s, port := range t.Column(x.dest.LID) {
			entries[s] = port != x.old[s]
		}
		changed[x.dest.LID] = entries
	}
	type open struct {
		from int
		lid  mad.LID
	}
	var list []open
	d := verify.NewDependencyGraph(g, t.Lanes())
	for i := range g.Terminals() {
		if ctx.Err() != nil {
			return 0, false, context.Cause(ctx)
		}
		if x := &g.Terminals()[i]; x.Switch < 0 || !x.IsEndpoint(0) {
			continue
		}
		for _, dest := range g.Dests() {
			if dest.Out == 0 || int(dest.Terminal) == i {
				continue
			}
			edges, by, _ := a.dependencies(d, i, dest.LID, t.SL.Of(i, dest.LID), changed[dest.LID])
			if by {
				list = append(list, open{i, dest.LID})
				continue
			}
			for _, e := range edges {
				d.Add(e[0], e[1])
			}
		}
	}
	for _, o := range list {
		if ctx.Err() != nil {
			return 0, false, context.Cause(ctx)
		}
		was, fits := t.SL.Of(o.from, o.lid), false
		levels := []uint8{was}
		for left := t.SL.Used(); left != 0; left &= left - 1 {
			levels = append(levels, uint8(bits.TrailingZeros16(left)))
		}
		for _, level := range levels {
			edges, _, arrives := a.dependencies(d, o.from, o.lid, level, nil)
			if fits = arrives && addAll(d, edges); !fits {
				continue
			}
			if level != was {
				moved++
				if err := t.SetSL([]int{o.from}, []mad.LID{o.lid}, level); err != nil {
					return 0, false, err
				}
			}
			break
		}
		if !fits {
			return 0, false, nil
		}
	}
	return moved, true, nil
}

// dependencies are those of a path with a service level, whether it comes by an entry that changed, and
// whether no switch drops its packets.
func (a *patching) dependencies(d *verify.DependencyGraph, from int, lid mad.LID, sl uint8, changed []bool) (edges [][2]int32, by, arrives bool) {
	g, t := a.r.Graph(), a.r
	at, in, last := int32(g.Terminals()[from].Switch), g.Terminals()[from].Out, int32(-1)
	for range g.Switches() {
		port := t.Row(int(at)).Port(lid)
		by = by || changed != nil && changed[at]
		c := g.Target(at, port).Channel()
		if c < 0 {
			return edges, by, g.Target(at, port) != graph.NoTarget
		}
		vl := t.SL2VL.VL(int(at), in, port, sl)
		if int(vl) >= t.Lanes() {
			return edges, by, false
		}
		v := d.Vertex(c, vl)
		if last >= 0 {
			edges = append(edges, [2]int32{last, v})
		}
		at, in, last = g.ChannelTo(c), g.Channels()[g.Channels()[c].Reverse].Port, v
	}
	return edges, by, false
}

// addAll adds edges to d, or none of them if they close a cycle.
func addAll(d *verify.DependencyGraph, edges [][2]int32) bool {
	for i, e := range edges {
		switch {
		case d.Has(e[0], e[1]):
			edges[i][0] = -1 // it stays
		case d.Path(e[1], e[0]) != nil:
			for _, e := range edges[:i] {
				if e[0] >= 0 {
					d.Remove(e[0], e[1])
				}
			}
			return false
		default:
			d.Add(e[0], e[1])
		}
	}
	return true
}
