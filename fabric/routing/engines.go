package routing

import (
	"context"
	"errors"
	"fmt"
)

var updn = Engine{
	Name: "updn",
	Doc: `Up*/down*: no path goes up after it went down, so there are no credit loops. Up
is towards the roots: those given, else the top of a fat tree, else what OpenSM's
histogram finds, else the centre. Pairs without such a path, as from one root to
another where a cable is missing, get one that closes no credit loop.`,
	Heeds:   []string{"roots", "policy", "scope", "seed", "keep"},
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		if len(o.Roots) > 0 {
			return g.upDownRoutes(ctx, "updn", g.Ranks(o.Roots), o)
		}
		if l := g.levels(); l.check() == nil {
			r, err := g.upDownRoutes(ctx, "updn", (&Ranks{l.level}).Reverse(), o)
			return g.orCentre(ctx, r, err, o)
		}
		roots, err := g.FindRoots(ctx, "histogram")
		if err != nil {
			return g.orCentre(ctx, nil, nil, o)
		}
		r, err := g.upDownRoutes(ctx, "updn", g.Ranks(roots), o)
		return g.orCentre(ctx, r, err, o)
	},
}

var dnup = Engine{
	Name: "dnup",
	Doc: `As updn, where up is away from the switches with CAs: for networks whose top is
not all at one level.`,
	Heeds:   []string{"policy", "scope", "seed", "keep"},
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		leaves := g.leaves()
		if leaves == nil {
			return nil, &Precondition{"dnup", errors.New("no switch has a CA")}
		}
		r, err := g.upDownRoutes(ctx, "dnup", g.Ranks(leaves).Reverse(), o)
		return g.orCentre(ctx, r, err, o)
	},
}

// upDownRoutes are up*/down* under ranks, and completed.
func (g *Graph) upDownRoutes(ctx context.Context, engine string, ranks *Ranks, o *Options) (*Routes, error) {
	h, err := g.UpDown(ctx, ranks)
	if err != nil {
		return nil, &Precondition{engine, err}
	}
	l := g.levels()
	h.place = l.places()
	r := NewRoutes(g, 0)
	if err := r.Assign(ctx, h, o.assign(l)); err != nil {
		return nil, err
	}
	return r, r.completed(ctx, h, ranks, o.Keep)
}

// orCentre is r if it lacks nothing, else up*/down* from one root, under which
// all have a path: up to it, and down.
func (g *Graph) orCentre(ctx context.Context, r *Routes, err error, o *Options) (*Routes, error) {
	if err != nil || r != nil && r.left == 0 {
		return r, err
	}
	root, err := g.center(ctx)
	if err != nil {
		return nil, &Precondition{"updn", err}
	}
	one, err := g.upDownRoutes(ctx, "updn", g.Ranks(root), o)
	if err != nil || r != nil && r.left <= one.left {
		return r, err
	}
	one.Notes = append(one.Notes, fmt.Sprintf("no top to be found that all go up to: the one root is the centre, %s", g.switches[root[0]].Label()))
	return one, nil
}

var ftree = Engine{
	Name: "ftree",
	Doc: `Fat trees: up by a digit of the destination's number among its class, then
down: d-mod-k, which meets no contention under shifts of compute nodes in order.
With parts missing, only destinations that would use them go elsewhere. Levels are distances from the
switches with compute nodes, or from the roots given. Aggregation nodes may be on
any level. Pairs without a path up and then down get one that closes no credit loop.`,
	Heeds:   []string{"roots", "keep"},
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		l := g.levels()
		if len(o.Roots) > 0 {
			l = &levels{g: g, level: g.Ranks(o.Roots).Reverse().Rank}
			for _, level := range l.level {
				l.height = max(l.height, level+1)
			}
		}
		if err := l.check(); err != nil {
			return nil, &Precondition{"ftree", err}
		}
		ranks := (&Ranks{l.level}).Reverse()
		h, err := g.UpDown(ctx, ranks)
		if err != nil {
			return nil, &Precondition{"ftree", err}
		}
		h.place = l.places()
		r := NewRoutes(g, 0)
		if err := r.Assign(ctx, h, AssignOptions{Policy: DModK, Keep: o.Keep, levels: l}); err != nil {
			return nil, err
		}
		if err := r.completed(ctx, h, ranks, o.Keep); err != nil {
			return nil, err
		}
		if r.left > 0 {
			return nil, &Precondition{"ftree", fmt.Errorf("too much of the tree is missing: %s", r.Notes[len(r.Notes)-1])}
		}
		return r, nil
	},
}

var dor = Engine{
	Name: "dor",
	Doc: `Dimension order: of the shortest ways the one by the lowest port, or the first
in the port order given. Where each dimension has its ports, in the same order
everywhere, that is free of credit loops on meshes, hypercubes and HyperX; on tori
it is not, on one virtual lane. Parallel links share the LIDs.`,
	Heeds:   []string{"keep"},
	Minimal: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		h, err := g.Hops(ctx)
		if err != nil {
			return nil, &Precondition{"dor", err}
		}
		r := NewRoutes(g, 0)
		return r, r.Assign(ctx, h, AssignOptions{Policy: First, Keep: o.Keep})
	},
}

var file = Engine{
	Name:  "file",
	Doc:   `Takes the tables given, as they are: what a file says, or the switches have.`,
	Heeds: []string{"given"},
	compute: func(_ context.Context, g *Graph, o *Options) (*Routes, error) {
		if o.Given == nil {
			return nil, &Precondition{"file", errors.New("no tables are given")}
		}
		return o.Given.On(g), nil
	},
}
