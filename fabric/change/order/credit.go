package order

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// credit collects the channel dependencies of the packets in one epoch, LID by LID. Two links
// are dependent if a packet takes first one and then the other by entries that may be in
// force: the first entry when the packet is sent, the second when it reaches the next switch.
// Packets wait on the first link until the epoch ends at the latest. An entry that no packet
// meets while it is in force adds no dependency: a packet reaches a link at the earliest in
// the round of the latest of the entries that led it there.
type credit struct {
	deps  [kinds]*verify.DependencyGraph // by traffic
	into  *verify.DependencyGraph        // the graph of deps to which collect adds
	since []int32                        // by switch, or by vertex: the first round in which packets are there, or never
	queue []int32                        // switches, or vertices, that packets reach earlier than was known
	links []linkEntry
	// wanted, if not nil, is called for each dependency that is found.
	wanted func(v, w int32, first, next *entry)
}

// never is later than every round.
const never = math.MaxInt32

// linkEntry is an entry that sends packets to a vertex of the graph, from one round on.
type linkEntry struct {
	vertex int32
	entry  *entry
	since  int32
}

// forget begins with n switches, or vertices, that no packets reach.
func (c *credit) forget(n int) {
	if len(c.since) == n {
		return
	}
	c.since = slices.Repeat([]int32{never}, n)
}

// collect adds the dependencies of packets to a LID.
func (f *follower) collect(e epoch, lid mad.LID, of traffic) {
	t, c := f.h.net, &f.credit
	if c.deps[of] == nil {
		c.deps[of] = verify.NewDependencyGraph(f.h.g, f.h.vls())
	}
	c.into = c.deps[of]
	if f.h.in.lanesMatter() || c.wanted != nil {
		f.collectLanes(e, lid, of)
		return
	}
	to := t.terminal(int(lid))
	c.forget(t.n)
	c.queue = c.queue[:0]
	if of == fromSwitches {
		c.queue = append(c.queue, t.managed...)
	} else {
		for _, s := range t.sources {
			if len(t.ends[s]) > 1 || t.ends[s][0] != to {
				c.queue = append(c.queue, s)
			}
		}
	}
	for _, s := range c.queue {
		c.since[s] = 0
	}
	for i := 0; i < len(c.queue); i++ {
		since := c.since[c.queue[i]]
		for a := &f.at.first[c.queue[i]]; a != nil; a = f.at.after(a) {
			v := t.target(c.queue[i], a.port)
			if !v.IsChannel() || a.until < since {
				continue
			}
			sent := max(since, a.from)
			s := t.channels[v].To
			c.into.Use(v.Channel())
			for b := &f.at.first[s]; b != nil; b = f.at.after(b) {
				if w := t.target(s, b.port); w.IsChannel() && b.until >= sent {
					c.into.Add(v.Channel(), w.Channel())
				}
			}
			if sent < c.since[s] {
				c.since[s] = sent
				c.queue = append(c.queue, s)
			}
		}
	}
	for _, s := range c.queue {
		c.since[s] = never
	}
}

// after returns the entry that replaces a, or nil.
func (e *entries) after(a *entry) *entry {
	if a.next < 0 {
		return nil
	}
	return &e.more[a.next]
}

// vls returns the number of virtual lanes that are distinguished.
func (h *history) vls() int {
	if h.in.lanesMatter() {
		return mad.DropVL
	}
	return 1
}

// collectLanes is collect for packets with service levels: the lane of the next link
// depends on the port at which they arrive (IBA 7.6.6).
func (f *follower) collectLanes(e epoch, lid mad.LID, of traffic) {
	t, c := f.h.net, &f.credit
	c.forget(len(t.channels) * f.h.vls())
	to := t.terminal(int(lid))
	for sl := range uint8(mad.ServiceLevels) {
		c.links = c.links[:0]
		if of == fromSwitches {
			for _, s := range t.managed { // an answer has the service level of the request
				if f.h.in.uses(int(to), t.terminals[t.selves[s]].LID, sl) {
					f.depart(e, sl, s, 0, nil)
				}
			}
		} else {
			for _, s := range t.sources {
				for _, end := range t.ends[s] {
					if end != to && f.h.in.uses(int(end), lid, sl) {
						f.depart(e, sl, s, t.terminals[end].Out, nil)
					}
				}
			}
		}
		for i := 0; i < len(c.links); i++ {
			l := c.links[i]
			ch := &t.channels[l.vertex/int32(f.h.vls())]
			f.depart(e, sl, ch.To, ch.PeerPort, &l)
		}
		for _, l := range c.links {
			c.since[l.vertex] = never
		}
	}
}

// depart moves packets of a service level that arrived at a port to the next links.
// before is where they were; nil: they come from a CA.
func (f *follower) depart(e epoch, sl uint8, s int32, in uint8, before *linkEntry) {
	t, c := f.h.net, &f.credit
	since := int32(0)
	if before != nil {
		since = before.since
	}
	for a := &f.at.first[s]; a != nil; a = f.at.after(a) {
		channel := t.target(s, a.port)
		if !channel.IsChannel() || a.until < since {
			continue
		}
		for i, tables := range [...]*routes.SL2VL{f.h.in.Old.SL2VL, f.h.in.New.SL2VL} {
			if i == 0 && !e.old || i == 1 && !e.new {
				continue
			}
			vl := tables.VL(int(s), in, a.port, sl)
			if vl >= mad.DropVL {
				continue
			}
			v := c.into.Vertex(channel.Channel(), vl)
			c.into.Use(v)
			if before != nil {
				c.into.Add(before.vertex, v)
				if c.wanted != nil {
					c.wanted(before.vertex, v, before.entry, a)
				}
			}
			if sent := max(since, a.from); sent < c.since[v] {
				c.since[v] = sent
				c.links = append(c.links, linkEntry{v, a, sent})
			}
		}
	}
}

// uses reports whether packets from a terminal to a LID may have a service level: hosts
// keep the service level of the path record that they received.
func (in *Input) uses(terminal int, lid mad.LID, sl uint8) bool {
	return in.SLs>>sl&1 != 0 || in.Old.SL.Of(terminal, lid) == sl || in.New.SL.Of(terminal, lid) == sl
}

// collectStatic adds the dependencies of the packets to the LIDs of CAs and routers whose
// entries never change, as if each switch sent packets to each LID, as it sends answers: this
// reads each table once, row by row. Unless exact is set, it may include old dependencies
// of other LIDs in these blocks, which takes less time.
func (h *history) collectStatic(deps *verify.DependencyGraph, exact bool) {
	in := h.in
	h.each(h.n, func(_, s int) {
		row := in.Old.Row(s)
		targets := h.targets[h.portBase[s]:h.portBase[s+1]]
		// By port: the table of the switch behind it, and the ports there by which
		// packets continue.
		var behind [256]routes.Row
		var out [256][4]uint64
		for port, v := range targets {
			if v.IsChannel() {
				behind[port] = in.Old.Row(int(h.channels[v].To))
			}
		}
		for b := range h.blocks {
			first := b * mad.LFTBlock
			lids := h.ends[b]
			if lids&^h.judged[b] == 0 {
				continue
			}
			if exact {
				lids &^= h.judged[b]
			}
			if lids == ^uint64(0) && first+mad.LFTBlock <= len(row) {
				for i, port := range row[first:][:mad.LFTBlock] {
					if next := behind[port]; first+i < len(next) {
						p := next[first+i]
						out[port][p>>6] |= 1 << (p & 63)
					}
				}
				continue
			}
			for ; lids != 0; lids &= lids - 1 {
				lid := first + bits.TrailingZeros64(lids)
				if lid >= len(row) {
					break
				}
				port := row[lid]
				if next := behind[port]; lid < len(next) {
					p := next[lid]
					out[port][p>>6] |= 1 << (p & 63)
				}
			}
		}
		for port, v := range targets {
			if !v.IsChannel() {
				continue
			}
			next := h.channels[v].To
			for word, set := range out[port] {
				for ; set != 0; set &= set - 1 {
					if w := h.target(next, uint8(word*64+bits.TrailingZeros64(set))); w.IsChannel() {
						deps.Add(v.Channel(), w.Channel())
					}
				}
			}
		}
	})
}

// judgeCredit refuses an epoch in which a credit loop may arise that does not exist in
// the old tables.
func (h *history) judgeCredit(ctx context.Context, e epoch, workers []*follower, fig *Figures) error {
	moving := verify.NewDependencyGraph(h.g, h.vls())
	addDependencies(moving, workers, betweenHosts)
	if !h.in.lanesMatter() {
		all := moving.Clone()
		h.collectStatic(all, false)
		if all.Acyclic() {
			return h.judgeManagement(ctx, e, workers, fig, all)
		}
	}
	all := moving
	if err := h.collectExact(ctx, e, all, betweenHosts); err != nil {
		return err
	}
	if all.Acyclic() {
		return h.judgeManagement(ctx, e, workers, fig, nil)
	}
	before, err := h.oldDependencies(ctx, betweenHosts)
	if err != nil {
		return err
	}
	fig.OldCycle = fig.OldCycle || !before.Acyclic()
	cycle := all.CycleBeyond(before)
	if cycle == nil {
		return h.judgeManagement(ctx, e, workers, fig, nil)
	}
	ways, err := h.ways(ctx, e, cycle)
	if err != nil {
		return err
	}
	h.loop = &creditLoop{cycle, ways}
	links := h.describe(h.loop)
	if h.in.AcceptCreditLoops {
		if fig.Cycle == nil {
			fig.Cycle = links
		}
		return nil
	}
	r := &Refusal{Round: int(e.first), Cycle: links, Reason: fmt.Sprintf("packets may deadlock in a credit loop of %d links", len(links))}
	r.Hint = "keep more of the old tables, stop traffic first, or accept the risk (change apply --accept-credit-loop-risk)"
	if fig.OldCycle {
		r.Hint = "the tables in force have a credit loop already: to remove it, stop traffic first, or accept the risk of further ones during the change (change apply --accept-credit-loop-risk)"
	}
	if h.in.lanesMatter() {
		r.Hint += "; if paths use service levels other than those assumed, give them (--sl FILE)"
	}
	return r
}

// oldDependencies returns the graph of the old tables alone.
func (h *history) oldDependencies(ctx context.Context, of ...traffic) (*verify.DependencyGraph, error) {
	deps := verify.NewDependencyGraph(h.g, h.vls())
	for _, of := range of {
		if err := h.still().collectExact(ctx, epoch{old: true}, deps, of); err != nil {
			return nil, err
		}
	}
	return deps, nil
}

// oldCycleUntil returns the number of the round after which the tables have no credit loop,
// from 1; 0: the new tables have one.
func (h *history) oldCycleUntil(ctx context.Context) (int, error) {
	for done := len(h.s.Rounds); done >= 0; done-- {
		deps, err := h.dependenciesAfter(ctx, int32(done))
		if err != nil {
			return 0, err
		}
		if !deps.Acyclic() {
			return (done + 1) % (len(h.s.Rounds) + 1), nil
		}
	}
	return 0, nil
}

// dependenciesAfter returns the graph of the tables that are in force after some rounds.
func (h *history) dependenciesAfter(ctx context.Context, rounds int32) (*verify.DependencyGraph, error) {
	e := epoch{first: rounds, last: rounds, old: h.lanesAt >= rounds, new: h.in.sameLanes() || h.lanesAt < rounds}
	workers, err := h.eachBlock(ctx, func(f *follower, b int) {
		f.load(b, h.ends[b])
		for i := range mad.LFTBlock {
			if h.ends[b]>>i&1 == 0 {
				continue
			}
			ports := f.old[i*h.n:][:h.n]
			for _, w := range h.blocks[b] {
				if w.round < rounds {
					ports[w.s] = w.entries[i]
				}
			}
			lid := b*mad.LFTBlock + i
			f.begin(rounds, lid, ports)
			f.collect(e, mad.LID(lid), betweenHosts)
		}
	})
	deps := verify.NewDependencyGraph(h.g, h.vls())
	addDependencies(deps, workers, betweenHosts)
	return deps, err
}

// still returns h without the changes.
func (h *history) still() *history {
	return &history{net: h.net, in: h.in, s: h.s, blocks: h.blocks, ends: h.ends, selves: h.selves, judged: make([]uint64, len(h.blocks)), choices: h.choices.still()}
}

// creditLoop is a cycle and, by its edges, the ways in which packets cause the
// dependencies.
type creditLoop struct {
	cycle []int32
	ways  [][]way
}

// way is how packets to a LID depend on the next link: by the entry of switch s, and then
// by the entry of switch to.
type way struct {
	lid         mad.LID
	s, to       int32
	first, next Version
}

// ways returns, by LID, all ways in which the dependencies of a cycle of the graph of an
// epoch arise.
func (h *history) ways(ctx context.Context, e epoch, cycle []int32) ([][]way, error) {
	list := make([][]way, len(cycle))
	place := map[int32]int{}
	for i, v := range cycle {
		place[v] = i
	}
	vls := int32(h.vls())
	f := newFollower(h)
	for b := range h.blocks {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f.load(b, h.ends[b])
		for i := range mad.LFTBlock {
			lid := b*mad.LFTBlock + i
			if h.ends[b]>>i&1 == 0 {
				continue
			}
			old, new := f.old[i*h.n:][:h.n], f.new[i*h.n:][:h.n]
			f.credit.wanted = func(v, w int32, first, next *entry) {
				k, ok := place[v]
				if !ok || cycle[(k+1)%len(cycle)] != w {
					return
				}
				a, b := h.channels[v/vls].From, h.channels[w/vls].From
				x := way{mad.LID(lid), a, b, h.version(a, first.port, old[a], new[a]), h.version(b, next.port, old[b], new[b])}
				if n := len(list[k]); n == 0 || list[k][n-1] != x {
					list[k] = append(list[k], x)
				}
			}
			if h.judged[b]>>i&1 != 0 {
				f.follow(e, b, i)
			} else {
				f.begin(e.first, lid, old)
			}
			f.collect(e, mad.LID(lid), betweenHosts)
		}
	}
	return list, nil
}

// describe returns a credit loop link by link, each with the lowest LID whose packets
// cause the dependency.
func (h *history) describe(l *creditLoop) []Dependency {
	vls := int32(h.vls())
	list := make([]Dependency, len(l.cycle))
	for i, v := range l.cycle {
		list[i] = Dependency{Port: h.g.ChannelPort(int(v / vls)), VL: uint8(v % vls)}
		if len(l.ways[i]) > 0 {
			w := l.ways[i][0]
			list[i].LID, list[i].First, list[i].Next = w.lid, w.first, w.next
		}
	}
	return list
}

// version returns the tables of switch s that a port belongs to.
func (h *history) version(s int32, port, old, new uint8) Version {
	switch {
	case old == new && port == old:
		return Both
	case port == old:
		return Old
	case port == new:
		return New
	case h.choices != nil && h.choices.of[s] != nil:
		return Adaptive
	}
	return Between
}

// traffic is a kind of packets on the lanes for data. Subnet management packets are
// excluded: they have VL 15, whose buffers have no credits, so they wait for none, but
// are dropped (IBA 7.9.4.1).
type traffic uint8

const (
	betweenHosts traffic = iota // CAs and routers
	toSwitches                  // general management packets (GMPs) of hosts to port 0
	fromSwitches                // the answers to these packets
	kinds
)

// maxLanesWork is the largest number of LIDs times switches for which management packets
// are judged if virtual lanes matter: the searches take a second.
const maxLanesWork = 1 << 20

// judgeManagement searches for a credit loop that may arise when packets to and from
// switches are added to those between hosts, and that does not exist in the old tables.
// rough, if not nil, has the dependencies of packets between hosts and of answers, and
// possibly more, of LIDs that do not change.
func (h *history) judgeManagement(ctx context.Context, e epoch, workers []*follower, fig *Figures, rough *verify.DependencyGraph) error {
	if fig.Management != nil || h.skipsManagement() {
		return nil
	}
	if rough != nil {
		addDependencies(rough, workers, toSwitches)
		addDependencies(rough, workers, fromSwitches)
		if err := h.collectExact(ctx, e, rough, toSwitches); err != nil || rough.Acyclic() {
			return err
		}
	}
	all := verify.NewDependencyGraph(h.g, h.vls())
	for of := range kinds {
		addDependencies(all, workers, of)
	}
	if err := h.collectAll(ctx, e, all); err != nil || all.Acyclic() {
		return err
	}
	before := verify.NewDependencyGraph(h.g, h.vls())
	if err := h.still().collectAll(ctx, epoch{old: true}, before); err != nil {
		return err
	}
	for _, v := range all.CycleBeyond(before) {
		fig.Management = append(fig.Management, hop(h.g.ChannelPort(int(v)/h.vls())))
	}
	return nil
}

// skipsManagement reports whether judgeManagement would take too long.
func (h *history) skipsManagement() bool {
	return h.in.lanesMatter() && len(h.blocks)*mad.LFTBlock*h.n > maxLanesWork
}

// collectAll adds the dependencies of all packets to LIDs whose entries never change.
// Answers are sent by each switch, and take all links that packets between hosts take.
func (h *history) collectAll(ctx context.Context, e epoch, deps *verify.DependencyGraph) error {
	if err := h.collectExact(ctx, e, deps, toSwitches); err != nil {
		return err
	}
	if !h.in.lanesMatter() && len(h.managed) == h.n {
		h.collectStatic(deps, true)
		return context.Cause(ctx)
	}
	if err := h.collectExact(ctx, e, deps, betweenHosts); err != nil {
		return err
	}
	return h.collectExact(ctx, e, deps, fromSwitches)
}

// managementNotes states what is not proven of packets to and from switches.
func (h *history) managementNotes(loop []string) []string {
	switch {
	case len(loop) > 0:
		return []string{fmt.Sprintf("management packets (GMPs) to and from switches: they could deadlock in a cycle of %s, such as %s; packets between hosts cannot", plural.Count(len(loop), "link", "links"), loop[0])}
	case h.skipsManagement():
		return []string{"credit loops of management packets (GMPs) to and from switches"}
	}
	return nil
}
