package engines

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
)

// What a turn costs that would close a cycle with those before, in mean costs of a channel:
// with the one, loads are nearly as even as without; with the other, few such turns
// remain.
const (
	lowToll  = 0.5
	highToll = 4
)

// lowLaneTables are tables of shortest paths that need few lanes: the paths by the lowest
// ports, which in many networks are those of dimension order; and balanced ones where a
// turn that would close a cycle with those of the LIDs before costs something, or much; or
// much from the beginning with the turns of the lowest ports. Those that are likely to need
// the fewest lanes come first.
func lowLaneTables(ctx context.Context, g *graph.Graph, h *graph.Hops) ([]laneTables, error) {
	lowest := routes.New(g, 0)
	if err := Assign(ctx, lowest, h, AssignOptions{Policy: First}); err != nil {
		return nil, err
	}
	net := network(g)
	tolled := func(toll float64) *balancer {
		b := newBalancer(routes.New(g, 0), h)
		b.turns, b.toll = lanes.NewTurns(net), toll
		return b
	}
	beside, few, seeded := tolled(lowToll), tolled(highToll), tolled(highToll)
	err := atOnce(ctx, g, []func() error{
		func() error { return errors.Join(beside.run(ctx), beside.separate(ctx)) },
		func() error { return errors.Join(few.run(ctx), few.separate(ctx)) },
		func() error { seeded.seed(lowest); return errors.Join(seeded.refine(ctx), seeded.separate(ctx)) },
	})
	if err != nil {
		return nil, err
	}
	return []laneTables{{r: lowest}, {r: seeded.r}, {r: few.r}, {r: beside.r}}, nil
}

// seed begins with the paths of other tables, and with those of their turns that close no
// cycle, the most frequent first.
func (b *balancer) seed(from *routes.Routes) {
	type turn struct{ c, d int32 }
	count := map[turn]int64{}
	for d := range b.g.Switches() {
		b.begin(d)
		for _, dest := range b.g.DestsOf(d) {
			b.r.Row(d)[dest.LID] = dest.Out
			for _, st := range b.toward.Steps {
				b.r.Row(int(st.Switch))[dest.LID] = from.Row(int(st.Switch))[dest.LID]
			}
			if dest.Out == 0 {
				continue
			}
			b.read(dest.LID)
			b.count(1)
			for _, st := range b.toward.Steps {
				if to := b.g.ChannelTo(b.via[st.Switch]); int(to) != d && b.flow[st.Switch] > 0 {
					count[turn{b.via[st.Switch], b.via[to]}] += b.flow[st.Switch]
				}
			}
		}
	}
	all := make([]turn, 0, len(count))
	for t := range count {
		all = append(all, t)
	}
	slices.SortFunc(all, func(x, y turn) int {
		return cmp.Or(cmp.Compare(count[y], count[x]), cmp.Compare(x.c, y.c), cmp.Compare(x.d, y.d))
	})
	for _, t := range all {
		b.turns.Add(t.c, t.d)
	}
}
