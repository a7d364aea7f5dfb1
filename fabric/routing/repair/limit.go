package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
)

// withLanes is keepLanes on as many virtual lanes as the engine may use and all links have, but no fewer
// than r has. Where it needs more, it is a full run on these, or else keepLanes on lanes that links do not
// have, or else a full run. Notes say so, and where lanes were added, whether a full run needs fewer.
func withLanes(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	b, has := engines.BasisOf(r), linkLanes(g)
	o := b.On(g)
	allowed := cmp.Or(o.MaxVLs, engines.DefaultLanes)
	most := max(r.Lanes(), min(allowed, has))
	t, err := keepLanes(ctx, r, g, most)
	if t == nil && err == nil && most < allowed {
		o.MaxVLs = most
		if t, err = engines.Compute(ctx, g, b.Engine, o); err == nil {
			engines.AllowLanes(t, b.On(g).MaxVLs) // links may get more again
			return noteAgain(t, most), nil
		}
		if !errors.As(err, new(*engines.Precondition)) {
			return nil, err
		}
		t, err = keepLanes(ctx, r, g, allowed)
	}
	if err != nil {
		return nil, err
	}
	if t == nil {
		if t, err = engines.Compute(ctx, g, b.Engine, b.On(g)); err != nil {
			return nil, err
		}
		return noteAgain(t, allowed), nil
	}
	if err := noteAdded(ctx, r, t); err != nil {
		return nil, err
	}
	if t.Lanes() > has {
		t.Notes = append(t.Notes, fmt.Sprintf("repair: some links have only %s (operational_vls); updn, ftree and nue find paths on one", plural.Count(has, "virtual lane", "virtual lanes")))
	}
	return t, nil
}

// noteAgain notes that t are tables of a full run.
func noteAgain(t *routes.Routes, most int) *routes.Routes {
	t.Notes = append(t.Notes, fmt.Sprintf("repair: no tables found that keep other paths on %s; computed again by %s", plural.Count(most, "virtual lane", "virtual lanes"), t.Engine))
	return t
}

// linkLanes returns how many virtual lanes for data all links of switches have in use.
func linkLanes(g *graph.Graph) int {
	least := lanes.Max
	for _, s := range g.Switches() {
		for num := range s.NumPorts() + 1 {
			if p := s.Port(num); p != nil && p.Peer() != nil && p.Info() != nil {
				least = min(least, cmp.Or(p.Info().OperationalVLs.Count(), least))
			}
		}
	}
	return least
}

// noteAdded notes on t, a repair of r, that lanes were added, and whether a full run needs fewer.
func noteAdded(ctx context.Context, r, t *routes.Routes) error {
	before, now := r.Lanes(), t.Lanes()
	if now <= before {
		return nil
	}
	g, b := t.Graph(), engines.BasisOf(r)
	o := b.On(g)
	o.MaxVLs = now - 1
	note := fmt.Sprintf("repair: %d virtual lanes, %d before; ", now, before)
	fewer, err := engines.Compute(ctx, g, b.Engine, o)
	switch {
	case err == nil:
		old := r.On(g)
		note += fmt.Sprintf("a new run with max_vls=%d needs %d, but changes %s instead of %d", now-1, fewer.Lanes(), plural.Count(fewer.Diff(old).Blocks, "block", "blocks"), t.Diff(old).Blocks)
	case errors.As(err, new(*engines.Precondition)):
		note += "a new run found no fewer"
	default:
		return err
	}
	t.Notes = append(t.Notes, note)
	return nil
}
