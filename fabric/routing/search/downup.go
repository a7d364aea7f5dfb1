package search

import (
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// downUp closes gaps of the LIDs of switches by paths that turn from down to up once, although
// up*/down* forbids it: up and down to a switch with CAs, as packets to one of its CAs go, and up
// from there. Paths that reach a switch through one channel share their turns, and all their other
// dependencies are already in the dependency graph. So one search of the graph, for what leads to
// that channel, decides for thousands of paths whether they close a credit loop.
//
// The graph has all paths in the tables, which takes a walk to all LIDs. If all other paths go up
// and then down, it has at first all paths of this form, whether or not packets take them: then no
// walk is needed, and nearly all gaps are closed by it.
type downUp struct {
	r     *routes.Routes
	graph *verify.DependencyGraph // the dependencies of all paths so far; nil: up, and the turns
	up    []bool                  // by channel: it goes up
	turns map[[2]int32]bool       // the turns that paths take, from down to up

	in    int32  // the channel
	leads []bool // by channel: it leads to that one
	queue []int32
}

// newDownUp begins with the dependencies of graph.
func newDownUp(r *routes.Routes, graph *verify.DependencyGraph) *downUp {
	return &downUp{r: r, graph: graph, leads: make([]bool, len(r.Graph().Channels()))}
}

// newStaticDownUp begins with the dependencies of all paths that go up and then down under ranks.
func newStaticDownUp(r *routes.Routes, ranks *graph.Ranks) *downUp {
	t := newDownUp(r, nil)
	t.up, t.turns = make([]bool, len(t.leads)), map[[2]int32]bool{}
	for c, ch := range r.Graph().Channels() {
		t.up[c] = ranks.Up(int(ch.From), int(ch.To))
	}
	return t
}

// has reports whether packets on channel c may wait for channel next.
func (t *downUp) has(c, next int32) bool {
	if t.graph != nil {
		return t.graph.Has(c, next)
	}
	if t.up[c] { // no packet goes back on the link on which it came
		return t.r.Graph().Channels()[c].Reverse != next
	}
	return !t.up[next] || t.turns[[2]int32{c, next}]
}

// add notes that packets on channel c wait for channel next.
func (t *downUp) add(c, next int32) {
	switch {
	case t.graph != nil:
		t.graph.Add(c, next)
	case !t.has(c, next):
		t.turns[[2]int32{c, next}] = true
	}
}

// maxTurns is how many channels are tried: each costs a search of the graph. The
// first leads to nearly all that is left.
const maxTurns = 64

// byTurning closes the gaps of the LIDs of switches that it can close, and keeps the others. It
// goes through the switches with CAs that have entries for most of them, and through the channels
// that lead there. t must have the dependencies of all packets from CAs; the dependencies of the
// new paths are added.
func (a *addition) byTurning(ctx context.Context, t *downUp) error {
	g := a.r.Graph()
	endpoints := g.Endpoints()
	tried := make([]bool, len(g.Switches()))
	for turns := 0; turns < maxTurns && len(a.switches) > 0; {
		s := t.best(a.switches, endpoints, tried)
		if s < 0 {
			break
		}
		tried[s] = true
		for c := g.FirstChannel(int(s)); c < g.FirstChannel(int(s+1)) && turns < maxTurns && len(a.switches) > 0; c++ {
			guides := t.guides(s, g.Channels()[c].Reverse)
			if len(guides) == 0 {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			turns++
			t.into(g.Channels()[c].Reverse)
			a.switches = slices.DeleteFunc(a.switches, func(x gap) bool {
				return a.r.Row(int(s))[x.dest.LID] != routes.NoPort && a.turning(t, x, endpoints, guides)
			})
		}
	}
	for i := range a.switches {
		a.switches[i].before = a.r.Column(a.switches[i].dest.LID)
	}
	return nil
}

// turning adds the paths to x that it can, and reports whether none is missing.
func (a *addition) turning(t *downUp, x gap, endpoints []int64, guides []mad.LID) bool {
	all := true
	for s, n := range endpoints {
		if n == 0 || a.r.Row(s)[x.dest.LID] != routes.NoPort || a.connected.Distance(s, x.d) < 0 {
			continue
		}
		if slices.ContainsFunc(guides, func(guide mad.LID) bool { return t.follow(int32(s), x.dest.LID, guide) }) {
			a.toSwitches.added++
		} else {
			all = false
		}
	}
	return all
}

// best returns the switch with CAs that has entries for most of the gaps, or -1.
func (t *downUp) best(gaps []gap, endpoints []int64, tried []bool) int32 {
	best, most := int32(-1), 0
	for s, n := range endpoints {
		if n == 0 || tried[s] {
			continue
		}
		row, has := t.r.Row(s), 0
		for i := range gaps {
			if row[gaps[i].dest.LID] != routes.NoPort {
				has++
			}
		}
		if has > most {
			best, most = int32(s), has
		}
	}
	return best
}

// guides returns the LIDs of CAs on switch s to which packets come through channel in.
func (t *downUp) guides(s, in int32) []mad.LID {
	g := t.r.Graph()
	from := g.Channels()[in]
	var lids []mad.LID
	for _, d := range g.DestsOf(int(s)) {
		if d.Out > 0 && t.r.Row(int(from.From))[d.LID] == from.Port {
			lids = append(lids, d.LID)
		}
	}
	return lids
}

// into sets the channel to in, and searches backwards for what leads to it.
func (t *downUp) into(in int32) {
	g := t.r.Graph()
	clear(t.leads)
	t.in = in
	t.leads[in] = true
	t.queue = append(t.queue[:0], in)
	for i := 0; i < len(t.queue); i++ {
		c := t.queue[i]
		from := g.Channels()[c].From
		for out := g.FirstChannel(int(from)); out < g.FirstChannel(int(from+1)); out++ {
			if before := g.Channels()[out].Reverse; !t.leads[before] && t.has(before, c) {
				t.leads[before] = true
				t.queue = append(t.queue, before)
			}
		}
	}
}

// follow gives packets from switch s to lid the path of packets to the LID guide, up to a switch
// that has an entry for lid. The next dependency must be in the graph already, or a turn out of the
// channel that closes no cycle.
func (t *downUp) follow(s int32, lid, guide mad.LID) bool {
	g := t.r.Graph()
	in, at := int32(-1), s
	for hops := 0; t.r.Row(int(at))[lid] == routes.NoPort; hops++ {
		c := g.Target(at, t.r.Row(int(at))[guide]).Channel()
		if c < 0 || hops > graph.MaxDistance {
			return false
		}
		in, at = c, g.ChannelTo(c)
	}
	next := g.Target(at, t.r.Row(int(at))[lid]).Channel()
	if in < 0 || next < 0 || !t.has(in, next) && (in != t.in || t.leads[next]) {
		return false
	}
	t.add(in, next)
	for s != at {
		port := t.r.Row(int(s))[guide]
		t.r.Row(int(s))[lid] = port
		s = g.ChannelTo(g.Target(s, port).Channel())
	}
	return true
}
