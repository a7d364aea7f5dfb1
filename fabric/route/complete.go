package route

import (
	"context"
	"fmt"

	"fabsh/mad"
)

// complete gives entries to switches that have none but are connected. Switches
// with CAs get paths whose turns close no credit loop with those of all others;
// the paths there are must be those of up*/down* under ranks. The others, which
// only their own management packets leave from, get the shortest ones. It
// returns how many entries of the former it added, and how many are left.
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
			known := n.resume(w, d, dest.lid)
			n.spread()
			for _, s := range n.done[known:] {
				if on[s] > 0 {
					added++
				}
			}
			for s := range on {
				if on[s] > 0 && !n.settled[s] && connected.Distance(s, d) >= 0 {
					left++
				}
			}
			n.finish(dest)
		}
	}
	return added, left, nil
}

// fillIn is the part of complete that is about switches without CAs. Each such
// path leads nearer until it comes upon one that there is.
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
			if h.Distance(s, d) >= 0 || connected.Distance(s, d) < 0 {
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
// how many these are.
func (n *nueState) resume(w *walk, home int, lid mad.LID) int {
	n.begin(home)
	n.queue, n.done = n.queue[:0], n.done[:0]
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
			n.done = append(n.done, s)
		}
	}
	for _, s := range n.done {
		for c := n.g.chanBase[s]; c < n.g.chanBase[s+1]; c++ {
			n.offer(n.g.channels[c].Reverse, n.cost[s])
		}
	}
	return len(n.done)
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

// completed completes r, and notes what that took. What is left over then is
// no error: verification tells.
func (r *Routes) completed(ctx context.Context, h *Hops, ranks *Ranks) (*Routes, int, error) {
	added, left, err := r.complete(ctx, h, ranks)
	if err != nil {
		return nil, 0, err
	}
	if added > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d entries have no path that goes up and then down: they got one that closes no credit loop with all others", added))
	}
	if left > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d entries of switches with CAs have no path that goes up and then down, and none could be added without a credit loop", left))
	}
	return r, left, nil
}
