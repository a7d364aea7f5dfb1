package lanes

import (
	"context"
	"slices"
)

// firstFit puts path after path on the first layer where it closes no cycle (Skeie,
// Lysne, Theiss, "Layered shortest path (LASH) routing in irregular system area
// networks", 2002). It returns the layers and their number; 0: it takes more than most. The
// order of paths makes a difference: backward is one more to try.
func (l *Layering) firstFit(ctx context.Context, most int, backward bool) (layer [][]uint8, layers int, err error) {
	layer = make([][]uint8, len(l.layer))
	for s := range layer {
		layer[s] = make([]uint8, len(l.layer[s]))
	}
	var orders []*order
	var trail []int32
	for i := range l.Dests {
		if backward {
			i = len(l.Dests) - 1 - i
		}
		d := &l.Dests[i]
		for _, s := range l.Sources {
			if ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			}
			if l.Both && s < d.Home || !l.follow(s, d) {
				continue // with the path back, or never
			}
			trail = append(trail[:0], l.trail...)
			var back *Dest
			if l.Both {
				if back = &l.Dests[l.source[s]]; l.follow(d.Home, back) {
					trail = append(trail, l.trail...)
				}
			}
			if len(trail) == 0 {
				continue
			}
			if l.work < 0 {
				return nil, 0, nil
			}
			to := slices.IndexFunc(orders, func(o *order) bool { return o.add(trail) })
			if to < 0 {
				to = len(orders)
				orders = append(orders, l.newOrder())
				if to == most || !orders[to].add(trail) {
					return nil, 0, nil
				}
			}
			layer[s][d.Index] = uint8(to)
			if l.Both {
				layer[d.Home][back.Index] = uint8(to)
			}
		}
	}
	return layer, max(1, len(orders)), nil
}
