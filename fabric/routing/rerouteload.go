package routing

import (
	"context"
	"slices"

	"fabsh/mad"
)

// count adds up the pairs whose packets are rerouted, and the load before and now.
// Where few switches differ, the older paths are followed, and what these switches
// change is added; else the newer ones too.
//
// Time: O(S) for each LID of the older tables, and O(D*H) for D switches that differ
// and H hops, or O(S), for each of the newer.
func (x *reroute) count(ctx context.Context) (Rerouted, error) {
	olds, news := endpointsOf(x.old.graph), endpointsOf(x.new.graph)
	p := x.newPatches(olds, news)
	paired, err := x.old.loadOf(ctx, olds.only(p.was), p.patch) // by channel of the older graph
	if err != nil {
		return Rerouted{}, err
	}
	sum := p.found()
	changed := make([][]bool, x.new.graph.workers)
	found := make([]Rerouted, x.new.graph.workers)
	now, err := x.new.loadOf(ctx, news.without(p.is), func(worker int, w *walk, lid mad.LID) {
		if !x.differs[lid] {
			return
		}
		if changed[worker] == nil {
			changed[worker] = make([]bool, len(x.switches))
		}
		x.countTo(w, int(lid), changed[worker], &found[worker])
	})
	for _, f := range found {
		sum.add(f)
	}
	if err != nil || sum.Pairs == 0 {
		return sum, err
	}
	before, err := x.old.loadOf(ctx, olds.without(p.was), nil)
	if err != nil {
		return sum, err
	}
	addTo(before, paired)
	for i := range p.work {
		addTo(paired, p.work[i].gone)
		addTo(now, p.work[i].come)
	}
	for c, was := range x.channels() {
		if was >= 0 {
			now[c] += paired[was]
		}
	}
	sum.Before, sum.After = distributionOf(before).Max, distributionOf(now).Max
	return sum, nil
}

func addTo(sum, more []int64) {
	for i, n := range more {
		sum[i] += n
	}
}

// countTo adds the pairs whose destination is a LID, which w has followed from all
// switches with endpoints. changed is memory, by switch: the path from it differs.
func (x *reroute) countTo(w *walk, lid int, changed []bool, found *Rerouted) {
	g := x.new.graph
	t := g.byLID[lid]
	for s, n := range x.on {
		if n > 0 {
			w.from(int32(s), w.column(mad.LID(lid)), t)
		}
	}
	clear(changed)
	loops := false
	for _, s := range w.order { // each after its next hop, but where packets loop
		c := w.via[s]
		changed[s] = c >= 0 && changed[g.chanTo[c]] || !x.alike[s] && x.hopDiffers(s, lid, int(x.was[lid]))
		loops = loops || w.state[s] == looping
	}
	for _, s := range w.order {
		if c := w.via[s]; loops && c >= 0 && changed[g.chanTo[c]] { // what is so anywhere on a loop
			changed[s] = true
		}
		n := x.on[s]
		if n == 0 || !changed[s] {
			continue
		}
		if int(s) == g.terminals[t].Switch {
			n-- // not to itself
		}
		found.Pairs += n
		if w.state[s] < 0 {
			found.Broken += n
		}
	}
}

// endpointsOf are all CAs and routers.
func endpointsOf(g *Graph) *verification {
	v := &verification{g: g}
	v.selectEndpoints()
	return v
}

// only is v for those of its LIDs that are in set; without, for the others.
func (v *verification) only(set []bool) *verification { return v.where(set, true) }

func (v *verification) without(set []bool) *verification { return v.where(set, false) }

func (v *verification) where(set []bool, in bool) *verification {
	w := *v
	w.wanted = slices.Clone(v.wanted)
	for lid := range w.wanted {
		w.wanted[lid] = w.wanted[lid] && set[lid] == in
	}
	return &w
}

// channels are, by channel, that of the older graph with the same cable; -1: there is
// none.
func (x *reroute) channels() []int32 {
	g, o := x.new.graph, x.old.graph
	list := make([]int32, len(g.channels))
	for s, was := range x.switches {
		for c := g.chanBase[s]; c < g.chanBase[s+1]; c++ {
			list[c] = -1
			port := g.channels[c].Port
			if was < 0 || x.ports[s] != nil && x.ports[s][port] {
				continue
			}
			if i := o.portBase[was] + int32(port); i < o.portBase[was+1] && o.targets[i] >= 0 {
				list[c] = o.targets[i]
			}
		}
	}
	return list
}
