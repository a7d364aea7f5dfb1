package traffic

import (
	"bytes"
	"context"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Rerouted is the change of paths from one Routes to another.
type Rerouted struct {
	// Pairs are those of an endpoint and a LID of another whose packets take other
	// cables, or other ports, than before: they leave a switch through another
	// port, or what is behind the port is another switch or endpoint. Where switches route
	// adaptively, some switch that packets may pass has other choices.
	Pairs int64
	// Broken are those of Pairs whose packets no longer arrive.
	Broken int64
	// Before and After are the most routes on a link, as Balance counts them; 0
	// where Pairs is.
	Before, After int64
}

// CountRerouted compares the paths of r with those of old, between CAs and routers that
// both have. before is the port of the older fabric that a port of the newer one
// is; or nil.
//
// Time: O(S) for each LID whose paths may differ, and O(S*L) to find these.
func CountRerouted(ctx context.Context, r *routes.Routes, old *routes.Routes, before func(*fabric.Port) *fabric.Port) (Rerouted, error) {
	x := &reroute{new: r, old: old, switches: make([]int32, len(r.Graph().Switches()))}
	x.pair(before)
	if r.HasChoices() || old.HasChoices() {
		return x.countChoices(ctx)
	}
	x.compare()
	if !slices.Contains(x.differs, true) {
		return Rerouted{}, nil
	}
	return x.count(ctx)
}

// reroute is a comparison of paths. Numbers are those of the newer graph.
type reroute struct {
	new, old  *routes.Routes
	switches  []int32  // the older number of a switch, or -1
	terminals []int32  // and of a terminal
	ports     [][]bool // by switch: the ports behind which there is something else
	on        []int64  // endpoints that both have, by switch
	was       []int32  // the older LID of a LID of an endpoint, or -1
	differs   []bool   // by LID: some hop towards it differs
	alike     []bool   // by switch: no hop differs at it
}

// pair finds the older numbers, and the ports that lead elsewhere.
func (x *reroute) pair(before func(*fabric.Port) *fabric.Port) {
	g, o := x.new.Graph(), x.old.Graph()
	x.terminals = slices.Repeat([]int32{-1}, len(g.Terminals()))
	x.on = make([]int64, len(g.Switches()))
	for t := range g.Terminals() {
		if p := before(g.Terminals()[t].Port); p != nil {
			x.terminals[t] = int32(o.TerminalOf(p))
		}
		if e := &g.Terminals()[t]; e.Switch >= 0 && e.IsEndpoint(0) && x.terminals[t] >= 0 && o.Terminals()[x.terminals[t]].IsEndpoint(0) {
			x.on[e.Switch]++
		}
	}
	x.ports = make([][]bool, len(g.Switches()))
	for s, n := range g.Switches() {
		x.switches[s] = -1
		if p := before(n.Port(0)); p != nil {
			x.switches[s] = int32(o.SwitchOf(p.Node()))
		}
		for p := range n.Ports() {
			was := before(p)
			same := was != nil && (was.Peer() == nil) == (p.Peer() == nil)
			if same && p.Peer() != nil {
				same = before(p.Peer()) == was.Peer() && x.switches[s] >= 0 &&
					(g.Target(int32(s), uint8(p.Num())) != graph.NoTarget) == (o.Target(x.switches[s], uint8(p.Num())) != graph.NoTarget)
			}
			if same {
				continue
			}
			if x.ports[s] == nil {
				x.ports[s] = make([]bool, n.NumPorts()+1)
			}
			x.ports[s][p.Num()] = true
		}
	}
}

// compare finds the LIDs towards which some switch sends packets through another port
// than before, or through one that leads elsewhere.
func (x *reroute) compare() {
	g, o := x.new.Graph(), x.old.Graph()
	x.was = slices.Repeat([]int32{-1}, int(g.Top())+1)
	x.differs = make([]bool, int(g.Top())+1)
	for t, e := range g.Terminals() {
		if x.terminals[t] < 0 || e.Switch < 0 || e.Out == 0 {
			continue
		}
		f := &o.Terminals()[x.terminals[t]]
		for k := range min(e.Count, f.Count) {
			if lid := int(e.LID) + k; lid < len(x.was) {
				x.was[lid] = int32(f.LID) + int32(k)
			}
		}
	}
	moved := false // some LID is another than before
	for lid, was := range x.was {
		moved = moved || was >= 0 && int(was) != lid
	}
	x.alike = make([]bool, len(g.Switches()))
	for s, was := range x.switches {
		if !moved && was >= 0 && x.ports[s] == nil && sameEntries(x.new.Row(s), x.old.Row(int(was))) {
			x.alike[s] = true
			continue
		}
		for lid, was := range x.was {
			if was >= 0 && x.hopDiffers(int32(s), lid, int(was)) {
				x.differs[lid] = true
			}
		}
	}
}

// sameEntries reports whether tables are equal, but for LIDs at the end of the longer one that it
// drops.
func sameEntries(a, b routes.Row) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	rest := b[len(a):]
	return bytes.Equal(a, b[:len(a)]) && bytes.Count(rest, []byte{routes.NoPort}) == len(rest)
}

// hopDiffers reports whether switch s, which is not alike, sends packets to a LID elsewhere.
func (x *reroute) hopDiffers(s int32, lid, was int) bool {
	p := x.new.Entry(s, mad.LID(lid))
	return x.switches[s] < 0 || p != x.old.Entry(x.switches[s], mad.LID(was)) || x.ports[s] != nil && int(p) < len(x.ports[s]) && x.ports[s][p]
}

// count adds up the pairs whose packets are rerouted, and the load before and now.
// Where few switches differ, the older paths are followed, and what these switches
// change is added; else the newer ones too.
//
// Time: O(S) for each LID of the older tables, and O(D*H) for D switches that differ
// and H hops, or O(S), for each of the newer.
func (x *reroute) count(ctx context.Context) (Rerouted, error) {
	olds, news := verify.SelectEndpoints(x.old.Graph(), 0), verify.SelectEndpoints(x.new.Graph(), 0)
	p := x.newPatches(olds, news)
	paired, err := verify.CountRoutes(ctx, x.old, olds.Only(p.was), p.patch) // by channel of the older graph
	if err != nil {
		return Rerouted{}, err
	}
	sum := p.found()
	changed := make([][]bool, x.new.Graph().Workers())
	found := make([]Rerouted, x.new.Graph().Workers())
	now, err := verify.CountRoutes(ctx, x.new, news.Without(p.is), func(worker int, w *verify.Walk, lid mad.LID) {
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
	before, err := verify.CountRoutes(ctx, x.old, olds.Without(p.was), nil)
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
	sum.Before, sum.After = DistributionOf(before).Max, DistributionOf(now).Max
	return sum, nil
}

func addTo(sum, more []int64) {
	for i, n := range more {
		sum[i] += n
	}
}

// countTo adds the pairs whose destination is a LID, which w has followed from all
// switches with endpoints. changed is memory, by switch: the path from it differs.
func (x *reroute) countTo(w *verify.Walk, lid int, changed []bool, found *Rerouted) {
	g := x.new.Graph()
	t := int32(g.TerminalByLID(mad.LID(lid)))
	for s, n := range x.on {
		if n > 0 {
			w.From(int32(s), w.Column(mad.LID(lid)), t)
		}
	}
	clear(changed)
	loops := false
	for _, s := range w.Order { // each after its next hop, but where packets loop
		c := w.Via[s]
		changed[s] = c >= 0 && changed[g.ChannelTo(c)] || !x.alike[s] && x.hopDiffers(s, lid, int(x.was[lid]))
		loops = loops || w.State[s] == verify.Looping
	}
	for _, s := range w.Order {
		if c := w.Via[s]; loops && c >= 0 && changed[g.ChannelTo(c)] { // what is so anywhere on a loop
			changed[s] = true
		}
		n := x.on[s]
		if n == 0 || !changed[s] {
			continue
		}
		if int(s) == g.Terminals()[t].Switch {
			n-- // not to itself
		}
		found.Pairs += n
		if w.State[s] < 0 {
			found.Broken += n
		}
	}
}

// channels are, by channel, that of the older graph with the same cable; -1: there is
// none.
func (x *reroute) channels() []int32 {
	g, o := x.new.Graph(), x.old.Graph()
	list := make([]int32, len(g.Channels()))
	for s, was := range x.switches {
		for c := g.FirstChannel(s); c < g.FirstChannel(s+1); c++ {
			list[c] = -1
			port := g.Channels()[c].Port
			if was < 0 || x.ports[s] != nil && x.ports[s][port] {
				continue
			}
			if target := o.Target(was, port); target.IsChannel() {
				list[c] = target.Channel()
			}
		}
	}
	return list
}
