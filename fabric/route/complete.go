package route

import (
	"context"
	"fmt"
	"slices"

	"fabsh/mad"
)

// complete gives entries to switches that have none but are connected. Switches
// with CAs get paths whose turns close no credit loop with those of all others;
// the paths there are must be those of up*/down* under ranks. The others, which
// only their own management packets leave from, get the shortest ones. It
// returns how many entries of the former it added, and how many it could not
// give that lead to CAs.
func (r *Routes) complete(ctx context.Context, h *Hops, ranks *Ranks) (added, left int, err error) {
	connected, err := r.graph.Hops(ctx)
	if err != nil {
		return 0, 0, err
	}
	if added, left, err = r.extend(ctx, h, connected, ranks); err != nil {
		return 0, 0, err
	}
	return added, left, r.fillIn(ctx, h, connected)
}

// extend is the part of complete that is about switches with CAs.
func (r *Routes) extend(ctx context.Context, h, connected *Hops, ranks *Ranks) (added, left int, err error) {
	g := r.graph
	var n *nueState
	var w *walk
	on := g.endpointsOn()
	for d := range g.switches {
		missing := false
		for s := range g.switches {
			missing = missing || on[s] > 0 && h.Distance(s, d) < 0 && connected.Distance(s, d) >= 0
		}
		if !missing {
			continue
		}
		if n == nil {
			graph, err := r.dependencies(ctx)
			if err != nil {
				return 0, 0, err
			}
			n, w = newNue(r, graph, ranks), newWalk(g)
			if n.load, err = r.load(ctx); err != nil {
				return 0, 0, err
			}
		}
		for _, dest := range g.destsOf(d) {
			if ctx.Err() != nil {
				return 0, 0, context.Cause(ctx)
			}
			had := n.resume(w, d, dest.lid)
			n.spread()
			for s := range on {
				switch {
				case on[s] == 0 || connected.Distance(s, d) < 0:
				case !n.settled[s] && dest.out > 0:
					left++
				case n.settled[s] && !had[s]:
					added++
				}
			}
			n.finish(dest)
		}
	}
	return added, left, nil
}

// fillIn is the part of complete that is about switches without CAs. Each such
// path leads nearer until it comes upon one that there is. h, if known, says
// which there are.
func (r *Routes) fillIn(ctx context.Context, h, connected *Hops) error {
	g := r.graph
	on := g.endpointsOn()
	nexts := make([]nextHops, g.workers)
	return g.each(ctx, len(g.switches), func(worker, s int) {
		if on[s] > 0 {
			return
		}
		next, loaded := &nexts[worker], false
		row := r.Row(s)
		for d := range g.switches {
			if h != nil && h.Distance(s, d) >= 0 || connected.Distance(s, d) < 0 {
				continue
			}
			for _, dest := range g.destsOf(d) {
				if row[dest.lid] != NoPort {
					continue
				}
				if !loaded {
					next.load(connected, s)
					loaded = true
				}
				ports, _ := next.ports(d)
				row[dest.lid] = ports[int(dest.lid)%len(ports)]
			}
		}
	})
}

// resume begins with the switches that have a way to lid already, and returns
// which these are.
func (n *nueState) resume(w *walk, home int, lid mad.LID) []bool {
	n.begin(home)
	n.queue = n.queue[:0]
	ports := w.column(0)
	for s := range ports {
		ports[s] = n.routes.Row(s).Port(lid)
	}
	ports[home] = n.g.terminals[n.g.byLID[lid]].Out
	w.begin()
	for s := range ports {
		w.from(int32(s), ports, n.g.byLID[lid])
	}
	for _, s := range w.order {
		if w.state[s] >= 0 {
			n.settled[s], n.via[s], n.cost[s] = true, w.via[s], hopCost*int64(w.state[s])
		}
	}
	had := slices.Clone(n.settled)
	for s, has := range had {
		for c := n.g.chanBase[s]; has && c < n.g.chanBase[s+1]; c++ {
			n.offer(n.g.channels[c].Reverse, n.cost[s])
		}
	}
	return had
}

// dependencies are those of all paths between CAs and routers, with SL 0.
func (r *Routes) dependencies(ctx context.Context) (*cdg, error) {
	v := &verification{g: r.graph, lanes: 1}
	v.choose()
	if err := v.judge(ctx, r, false); err != nil {
		return nil, err
	}
	d := newCDG(r.graph, 1)
	for i := range v.workers {
		if v.workers[i].graph != nil {
			d.union(v.workers[i].graph)
		}
	}
	return d, nil
}

// completed completes r, and notes what that took. r.left says what it lacks.
func (r *Routes) completed(ctx context.Context, h *Hops, ranks *Ranks) error {
	added, left, err := r.complete(ctx, h, ranks)
	r.left = left
	if added > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d entries of switches with CAs have no path that goes up and then down: they got one that closes no credit loop with all others", added))
	}
	if left > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d entries of switches with CAs have no path that goes up and then down, nor could one be added without a credit loop", left))
	}
	return err
}
