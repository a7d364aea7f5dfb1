package order

import (
	"math"
	"math/bits"
	"slices"

	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// credit collects the channel dependencies of the packets to one LID after the other in
// one epoch. Two links are dependent if a packet takes one after the other by entries
// that may be in force: the first entry when the packet is sent, the second when it
// reaches the next switch. Packets wait on the first link until the epoch ends at the
// latest. An entry that no packet meets while it is in force adds no dependency: a packet
// reaches a link at the earliest in the round of the latest of the entries that led it
// there.
type credit struct {
	deps  [kinds]*verify.DependencyGraph // by traffic
	into  *verify.DependencyGraph        // the one of deps to which collect adds
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

// after is the entry that replaces a, or nil.
func (e *entries) after(a *entry) *entry {
	if a.next < 0 {
		return nil
	}
	return &e.more[a.next]
}

// vls is the number of virtual lanes that are distinguished.
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
// keep that of the path record that they received.
func (in *Input) uses(terminal int, lid mad.LID, sl uint8) bool {
	return in.SLs>>sl&1 != 0 || in.Old.SL.Of(terminal, lid) == sl || in.New.SL.Of(terminal, lid) == sl
}

// collectStatic adds the dependencies of the packets to the LIDs of CAs and routers whose
// entries never change, as if each switch sent packets to each LID, as answers are: this
// reads each table once, row by row. Unless exact is set, it may include old dependencies
// of other LIDs in the same blocks, which takes less time.
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
