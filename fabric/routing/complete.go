package routing

import (
	"context"
	"fmt"
	"slices"
)

// complete gives entries to switches that have none but are connected. Switches
// with CAs get paths whose turns close no credit loop with those of all others;
// the paths there are must be those of up*/down* under ranks. The others, which
// only their own management packets leave from, get the shortest ones: those
// that keep, if any, has, or others. It returns how many entries of the former it added, and how many it could not
// give that lead to CAs.
func (r *Routes) complete(ctx context.Context, h *Hops, ranks *Ranks, keep *Routes) (added, left int, err error) {
	connected, err := r.graph.Hops(ctx)
	if err != nil {
		return 0, 0, err
	}
	if added, left, err = r.extend(ctx, h, connected, ranks); err != nil {
		return 0, 0, err
	}
	return added, left, r.fillIn(ctx, h, connected, keep)
}

// tries is how often extend begins anew.
const tries = 8

// extend is the part of complete that is about switches with CAs. Which turns
// are left for a LID depends on those before it: LIDs that come away empty go
// first the next time.
func (r *Routes) extend(ctx context.Context, h, connected *Hops, ranks *Ranks) (added, left int, err error) {
	e := extension{r: r, connected: connected}
	e.find(h)
	if len(e.jobs) == 0 {
		return 0, 0, nil
	}
	graph, err := r.dependencies(ctx)
	if err != nil {
		return 0, 0, err
	}
	load := make([]int64, len(r.graph.channels))
	if e.jobs[0].dest.out > 0 { // little goes to switches
		if load, err = r.load(ctx); err != nil {
			return 0, 0, err
		}
	}
	for try := 1; ; try++ {
		e.added, e.left = 0, 0
		n := newNue(r, graph.clone(), ranks)
		n.load = slices.Clone(load)
		var failed, others []job
		for _, j := range e.jobs {
			if ctx.Err() != nil {
				return 0, 0, context.Cause(ctx)
			}
			if e.do(n, j) {
				others = append(others, j)
			} else {
				failed = append(failed, j)
			}
		}
		if len(failed) == 0 || try == tries {
			return e.added, e.left, nil
		}
		e.jobs = append(failed, others...)
		e.undo()
	}
}

// extension is the work of extend.
type extension struct {
	r           *Routes
	connected   *Hops
	jobs        []job
	added, left int
}

// job is a LID that some switches with CAs have no path to.
type job struct {
	d      int
	dest   dest
	before []uint8 // entries of all switches
}

// find finds the jobs: LIDs of CAs, which matter more, before those of switches.
func (e *extension) find(h *Hops) {
	g := e.r.graph
	on := g.endpointsOn()
	var last []job
	for d := range g.switches {
		missing := false
		for s := range g.switches {
			missing = missing || on[s] > 0 && h.Distance(s, d) < 0 && e.connected.Distance(s, d) >= 0
		}
		if !missing {
			continue
		}
		for _, dest := range g.destsOf(d) {
			j := job{d, dest, make([]uint8, len(g.switches))}
			for s := range g.switches {
				j.before[s] = e.r.Row(s)[dest.lid]
			}
			if dest.out == 0 {
				last = append(last, j)
			} else {
				e.jobs = append(e.jobs, j)
			}
		}
	}
	e.jobs = append(e.jobs, last...)
}

// do adds what it can, and says whether that is all.
func (e *extension) do(n *nueState, j job) bool {
	had := n.resume(j)
	n.spread()
	all := true
	for s, on := range n.on {
		switch {
		case on == 0 || e.connected.Distance(s, j.d) < 0:
		case !n.settled[s]:
			all = false
			if j.dest.out > 0 {
				e.left++
			}
		case !had[s]:
			e.added++
		}
	}
	n.finish(j.dest)
	return all
}

// undo makes the tables as they were.
func (e *extension) undo() {
	for _, j := range e.jobs {
		for s, port := range j.before {
			e.r.Row(s)[j.dest.lid] = port
		}
	}
}

// fillIn is the part of complete that is about switches without CAs. Each such
// path leads nearer until it comes upon one that there is. h, if known, says
// which there are.
func (r *Routes) fillIn(ctx context.Context, h, connected *Hops, keep *Routes) error {
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
				if keep != nil {
					if old := keep.Row(s).Port(dest.lid); connected.leadsOn(s, d, old) {
						row[dest.lid] = old
						continue
					}
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

// resume begins with the switches that have a way to the LID already, and
// returns which these are.
func (n *nueState) resume(j job) []bool {
	n.begin(j.d)
	n.queue = n.queue[:0]
	if n.walk == nil {
		n.walk = newWalk(n.g)
	}
	w := n.walk
	w.begin()
	for s := range j.before {
		w.from(int32(s), j.before, j.dest.terminal)
	}
	for _, s := range w.order {
		if w.state[s] >= 0 {
			n.decide(s, w.via[s], hopCost*int64(w.state[s]))
		}
	}
	var last []int
	for s, on := range n.on {
		if on > 0 && !n.settled[s] {
			last = append(last, s)
		}
	}
	n.toGo = n.g.distancesFrom(last)
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
func (r *Routes) completed(ctx context.Context, h *Hops, ranks *Ranks, keep *Routes) error {
	added, left, err := r.complete(ctx, h, ranks, keep)
	r.left = left
	if added > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d entries of switches with CAs have no path that goes up and then down: they got one that closes no credit loop with all others", added))
	}
	if left > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d entries of switches with CAs have no path that goes up and then down, nor could one be added without a credit loop", left))
	}
	return err
}
