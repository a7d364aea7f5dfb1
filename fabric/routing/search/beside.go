package search

import (
	"context"
	"errors"
	"fmt"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// turnGraph is the channel dependency graph of turns.
func turnGraph(g *graph.Graph, turns []graph.Turn) (*verify.DependencyGraph, error) {
	d := verify.NewDependencyGraph(g, 1)
	for _, t := range turns {
		channels, err := t.Channels(g)
		if err != nil {
			return nil, err
		}
		for _, c := range channels {
			d.Use(c[0])
			d.Use(c[1])
			d.Add(c[0], c[1])
		}
	}
	return d, nil
}

// Nue gives lids (nil: all) paths as the engine nue, such that all of them together
// close no cycle in the channel dependency graph with turns; nil: with the turns of the
// paths to the other LIDs in r. It returns how many of the LIDs some switch with CAs
// has no such path to, which get no entries: none, where turns is empty, but not nil, as
// for LIDs that have a virtual lane of their own, and the network is connected.
//
// Time: that of the engine nue.
func Nue(ctx context.Context, r *routes.Routes, lids []mad.LID, turns []graph.Turn) (unreached int, err error) {
	g := r.Graph()
	if len(g.Switches()) == 0 {
		return 0, errors.New("nue: the fabric has no switch")
	}
	if lids == nil {
		lids = g.LIDs(0)
	}
	wanted := make([]bool, int(g.Top())+1)
	for _, lid := range lids {
		t := g.TerminalByLID(lid)
		if t < 0 || g.Terminals()[t].Switch < 0 {
			return 0, fmt.Errorf("nue: no port on a switch has LID %d", lid)
		}
		wanted[lid] = true
	}
	r.ForgetOrigin()
	r.CopyShared()
	var given *verify.DependencyGraph
	if turns == nil {
		given, err = verify.Dependencies(ctx, r, verify.SelectEndpoints(g, 0).Without(wanted))
	} else {
		given, err = turnGraph(g, turns)
	}
	if err != nil {
		return 0, err
	}
	if cycle := given.Cycle(); cycle != nil {
		return 0, fmt.Errorf("nue: the existing turns already close a credit loop, through %s", g.ChannelPort(int(cycle[0])).Label())
	}
	n, err := newNueBeside(ctx, r, given)
	if err != nil {
		return 0, err
	}
	for _, toSwitches := range []bool{false, true} {
		if toSwitches {
			n.order.Budget = testsOfLast * len(g.Channels())
		}
		for d := range g.Switches() {
			for _, dest := range g.DestsOf(d) {
				if !wanted[dest.LID] || (dest.Out == 0) != toSwitches {
					continue
				}
				if ctx.Err() != nil {
					return 0, context.Cause(ctx)
				}
				for s := range g.Switches() {
					r.Row(s)[dest.LID] = routes.NoPort
				}
				n.avoidSiblings(dest)
				if !n.route(d, dest) {
					unreached++
				}
			}
		}
	}
	return unreached, fillSome(ctx, r, wanted)
}

// newNueBeside begins a search beside given dependencies. Without any it has an escape
// tree, so that it finds a path to every LID.
func newNueBeside(ctx context.Context, r *routes.Routes, given *verify.DependencyGraph) (*nueSearch, error) {
	if _, edges := given.Size(); edges > 0 {
		return newNueSearch(r, given, given.Positions()), nil
	}
	root, ranks, err := EscapeRoot(ctx, r.Graph(), nil)
	if err != nil {
		return nil, err
	}
	n := newNueSearch(r, given, verify.UpDownOrder(r.Graph(), ranks))
	n.addTree(root)
	return n, nil
}

// fillSome gives switches without CAs, from which only their own management packets
// come, shortest paths to the LIDs that are wanted, where they have none.
func fillSome(ctx context.Context, r *routes.Routes, wanted []bool) error {
	g := r.Graph()
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return err
	}
	endpoints := g.Endpoints()
	return graph.Each(ctx, g.Workers(), len(g.Switches()), func(_, s int) {
		for d := range g.Switches() {
			if endpoints[s] > 0 || connected.Distance(s, d) < 0 || s == d {
				continue
			}
			var ports []uint8
			for _, dest := range g.DestsOf(d) {
				if !wanted[dest.LID] || r.Row(s)[dest.LID] != routes.NoPort {
					continue
				}
				if ports == nil {
					ports = connected.Next(s, d)
				}
				r.Row(s)[dest.LID] = ports[int(dest.LID)%len(ports)]
			}
		}
	})
}
