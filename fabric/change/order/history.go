package order

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// history is what a schedule writes, by block.
type history struct {
	*net
	in      *Input
	s       *Schedule
	blocks  [][]write // by number of the block: its writes, round by round
	ends    []uint64  // by number: a bit for each LID of a CA or router
	selves  []uint64  // by number: a bit for each LID of a switch
	judged  []uint64  // by number: a bit for each LID whose entries change, and to which packets are sent
	needs   []uint64  // by number: a bit for each LID to which packets would loop or be dropped
	epochs  []epoch
	lanesAt int32       // the round that writes SL2VL of switches; forever: none
	loop    *creditLoop // that was found last
	// choices is nil if no switch routes adaptively. Else all LIDs are judged: the
	// forwarding tables alone do not have the paths of their packets.
	choices *choices
}

// write is a write of one block of one switch.
type write struct {
	round, s int32
	entries  *[mad.LFTBlock]uint8
}

// epoch is the rounds from one drain to the next: packets that an entry sent may be on
// their way until the end of the epoch in which the entry was last in force.
type epoch struct {
	first, last int32 // rounds
	old, new    bool  // the SL2VL tables that may be in force
}

// forever is the round in which an entry is replaced that is never replaced.
const forever = math.MaxInt32

func newHistory(t *net, in *Input, s *Schedule) (*history, error) {
	in.number()
	h := &history{net: t, in: in, s: s, lanesAt: forever}
	number := func(lid mad.LID) int { return int(lid) / mad.LFTBlock }
	h.blocks = make([][]write, max(t.blocks(), number(in.Old.Top())+1, number(in.New.Top())+1))
	h.judged, h.needs = make([]uint64, len(h.blocks)), make([]uint64, len(h.blocks))
	same := in.sameLanes()
	lanes := same
	e := epoch{old: true, new: lanes}
	drain := t.longestDrain(in)
	written := make([]int, len(in.Changes)) // the last round that wrote it, from 1
	for r := range s.Rounds {
		round := &s.Rounds[r]
		blocks, rows := 0, 0
		for _, w := range round.Writes {
			if w.Change < 0 || w.Change >= len(in.Changes) {
				return nil, fmt.Errorf("round %d: change %d does not exist", r+1, w.Change)
			}
			if written[w.Change] == r+1 {
				return nil, fmt.Errorf("round %d: change %d is written twice", r+1, w.Change)
			}
			written[w.Change] = r + 1
			switch c, at := &in.Changes[w.Change], in.at[w.Change]; {
			case c.Attr == mad.AttrSLtoVLMappingTable && t.g.SwitchByGUID(c.Node) >= 0:
				rows++
			case at.s < 0:
			case at.number >= len(h.blocks) || len(w.Data) != mad.LFTBlock:
				return nil, fmt.Errorf("round %d: block %d of switch %d is neither of the old nor of the new tables", r+1, at.number, at.s)
			default:
				blocks++
				h.blocks[at.number] = append(h.blocks[at.number], write{int32(r), int32(at.s), (*[mad.LFTBlock]uint8)(w.Data)})
			}
		}
		if rows > 0 {
			if blocks > 0 || lanes {
				return nil, fmt.Errorf("round %d: SL2VL must be written in one round, without other writes", r+1)
			}
			lanes, e.new, h.lanesAt = true, true, int32(r)
		}
		if e.last = int32(r); drain > 0 && round.Drain >= drain || r == len(s.Rounds)-1 {
			h.epochs = append(h.epochs, e)
			e = epoch{first: int32(r) + 1, old: !lanes || same, new: lanes}
		}
	}
	if !lanes {
		return nil, fmt.Errorf("the virtual lanes differ, but no round writes SL2VL")
	}
	if len(s.Rounds) == 0 {
		h.epochs = []epoch{{old: true, new: true}}
	}
	h.ends, h.selves = make([]uint64, len(h.blocks)), make([]uint64, len(h.blocks))
	for lid := range int(t.top) + 1 {
		switch to := t.terminal(lid); {
		case to < 0:
		case t.isEnd(to):
			h.ends[lid/mad.LFTBlock] |= 1 << (lid % mad.LFTBlock)
		default:
			h.selves[lid/mad.LFTBlock] |= 1 << (lid % mad.LFTBlock)
		}
	}
	if h.choices = newChoices(in, s); h.choices != nil {
		for b := range h.blocks {
			h.judged[b] = h.ends[b] | h.selves[b]
		}
		return h, nil
	}
	h.judge()
	return h, nil
}

// judge finds the LIDs whose entries change at any time.
func (h *history) judge() {
	h.each(len(h.blocks), func(_, b int) {
		for _, w := range h.blocks[b] {
			row := h.in.Old.Row(int(w.s))
			for i, port := range w.entries {
				lid := b*mad.LFTBlock + i
				if h.judged[b]>>i&1 == 0 && port != row.Port(mad.LID(lid)) && h.terminal(lid) >= 0 {
					h.judged[b] |= 1 << i
				}
			}
		}
	})
}

// lids returns, as one bit each, the LIDs of a block to which packets are sent.
func (h *history) lids(b int, of traffic) uint64 {
	if of == toSwitches {
		return h.selves[b]
	}
	return h.ends[b]
}

// isEndLID reports whether a LID belongs to a CA or router.
func (h *history) isEndLID(lid mad.LID) bool {
	return h.ends[int(lid)/mad.LFTBlock]>>(int(lid)%mad.LFTBlock)&1 != 0
}

// sameLanes reports whether SL2VL does not change.
func (in *Input) sameLanes() bool { return in.Old.SL2VL.Equal(in.New.SL2VL) }

// lanesMatter reports whether packets have other lanes than VL 0.
func (in *Input) lanesMatter() bool { return in.Old.SL2VL != nil || in.New.SL2VL != nil }

// end checks that the schedule ends at the new tables.
func (h *history) end() error {
	d := h.in.New.Diff(h.in.Old)
	last := make([]map[int32]*[mad.LFTBlock]uint8, len(h.blocks))
	for b, list := range h.blocks {
		last[b] = make(map[int32]*[mad.LFTBlock]uint8, len(list))
		for _, w := range list {
			last[b][w.s] = w.entries
		}
	}
	wrong := func(s int32, b int) error {
		return &Refusal{Round: -1, Reason: fmt.Sprintf("%s: after all rounds block %d (LIDs from %d) is not that of the new tables", h.g.Switches()[s].Label(), b, b*mad.LFTBlock)}
	}
	for _, sd := range d.Switches {
		for _, b := range sd.Blocks {
			if last[b][int32(sd.Switch)] == nil {
				return wrong(int32(sd.Switch), b)
			}
		}
	}
	for b, list := range h.blocks {
		for _, w := range list {
			row := h.in.New.Row(int(w.s))
			for i, port := range last[b][w.s] {
				if port != row.Port(mad.LID(b*mad.LFTBlock+i)) {
					return wrong(w.s, b)
				}
			}
		}
	}
	return nil
}

// entry is an entry of a switch for one LID, and the rounds in which it may be in force:
// from the round that writes it to the round that replaces it.
type entry struct {
	port        uint8
	from, until int32
	next        int32 // in entries.more: the next one; -1: the last
}

// entries are the entries of all switches for one LID in one epoch.
type entries struct {
	first []entry // by switch: at the beginning of the epoch
	more  []entry // later entries; each links to the next
}

// begin sets the entries at the beginning of an epoch.
func (e *entries) begin(ports []uint8) {
	if e.first == nil {
		e.first = make([]entry, len(ports))
	}
	for s, port := range ports {
		e.first[s] = entry{port: port, until: forever, next: -1}
	}
	e.more = e.more[:0]
}

// replace notes that a round writes another entry. An entry that is written again later
// counts as in force all the time.
func (e *entries) replace(s int32, port uint8, round int32) {
	at := &e.first[s]
	for ; ; at = &e.more[at.next] {
		if at.until == forever {
			at.until = round
		}
		if at.port == port {
			at.until = forever
			return
		}
		if at.next < 0 {
			break
		}
	}
	at.next = int32(len(e.more))
	e.more = append(e.more, entry{port: port, from: round, until: forever, next: -1})
}

// prove proves that a schedule is safe, whoever computed it: it leads to the new tables, and
// at each step, whatever the order within a round,
//
//   - no packet loops, unless it already loops in the old tables;
//   - no pair loses its path that has one in the old and in the new tables, and unless
//     Input.AcceptLost no pair with a path in the old tables lacks one in the new ones;
//   - no cycle of channel dependencies arises that is not in the old tables, unless
//     Input.AcceptCreditLoops. Dependencies are caused, also by mixed tables, by packets
//     between CAs and routers, which stay on their way until a drain ends.
//
// A switch that routes adaptively may use any of its choices, and those count as its old
// entries, until the round that first writes its table, in which it may use either.
//
// The figures report whether a cycle may arise with management packets to and from
// switches.
//
// The error is a *Refusal if the schedule is not safe. The figures then still describe
// the whole change.
//
// Time: O(S) for each LID whose entries change and each epoch between drains, and one
// pass over all tables; O(S*L) if that finds a cycle.
func (h *history) prove(ctx context.Context) (Figures, error) {
	in := h.in
	if err := h.end(); err != nil {
		return Figures{}, err
	}
	fig := Figures{Unjudged: h.unjudged()}
	for _, e := range h.epochs {
		workers, err := h.followAll(ctx, e)
		if err != nil {
			return fig, err
		}
		var all *follower
		for _, f := range workers {
			fig.add(&f.found)
			if f.refused != nil && (all == nil || f.refused.Round < all.refused.Round || f.refused.Round == all.refused.Round && f.refusal < all.refusal) {
				all = f
			}
		}
		if all != nil {
			return fig, all.refused
		}
		if fig.Lost > 0 && !in.AcceptLost {
			return fig, h.lost(workers, fig.Lost)
		}
		if err := h.judgeCredit(ctx, e, workers, &fig); err != nil {
			return fig, err
		}
	}
	fig.Unjudged = append(fig.Unjudged, h.managementNotes(fig.Management)...)
	if fig.OldCycle {
		var err error
		fig.OldCycleUntil, err = h.oldCycleUntil(ctx)
		return fig, err
	}
	return fig, nil
}

// eachBlock calls do for each block, on all cores, and returns the followers of the
// workers. The error is the end of ctx.
func (h *history) eachBlock(ctx context.Context, do func(f *follower, b int)) ([]*follower, error) {
	workers := make([]*follower, h.g.Workers())
	h.each(len(h.blocks), func(worker, b int) {
		if ctx.Err() != nil {
			return
		}
		if workers[worker] == nil {
			workers[worker] = newFollower(h)
		}
		do(workers[worker], b)
	})
	return slices.DeleteFunc(workers, func(f *follower) bool { return f == nil }), context.Cause(ctx)
}

// followAll follows the packets to all LIDs whose entries change.
func (h *history) followAll(ctx context.Context, e epoch) ([]*follower, error) {
	return h.eachBlock(ctx, func(f *follower, b int) {
		if h.judged[b] == 0 {
			return
		}
		f.load(b, h.judged[b])
		for i := range mad.LFTBlock {
			if h.judged[b]>>i&1 == 0 {
				continue
			}
			f.follow(e, b, i)
			for of := range kinds {
				if h.lids(b, of)>>i&1 != 0 {
					f.collect(e, mad.LID(b*mad.LFTBlock+i), of)
				}
			}
		}
	})
}

// collectExact adds the actual dependencies of packets to LIDs whose entries never
// change.
func (h *history) collectExact(ctx context.Context, e epoch, deps *verify.DependencyGraph, of traffic) error {
	workers, err := h.eachBlock(ctx, func(f *follower, b int) {
		still := h.lids(b, of) &^ h.judged[b]
		f.load(b, still)
		for i := range mad.LFTBlock {
			if still>>i&1 != 0 {
				lid := b*mad.LFTBlock + i
				f.begin(e.first, lid, f.old[i*h.n:][:h.n])
				f.collect(e, mad.LID(lid), of)
			}
		}
	})
	addDependencies(deps, workers, of)
	return err
}

// addDependencies adds the dependencies that followers collected.
func addDependencies(deps *verify.DependencyGraph, workers []*follower, of traffic) {
	for _, f := range workers {
		if f.credit.deps[of] != nil {
			deps.Union(f.credit.deps[of])
		}
	}
}

// lost returns the refusal of pairs that have no path in the new tables.
func (h *history) lost(workers []*follower, pairs int64) error {
	r := &Refusal{Round: -1, Reason: plural.Count(int(pairs), "pair has", "pairs have") + " a path now, and none in the new tables", Hint: "route them in the new tables, or accept the loss"}
	for _, f := range workers {
		if f.found.lost > 0 && (r.LID == 0 || f.found.lostTo < r.LID) {
			r.LID = f.found.lostTo
			r.Reason = fmt.Sprintf("%s a path now, and none in the new tables: as from %s to LID %d", plural.Count(int(pairs), "pair has", "pairs have"), f.found.lostFrom.Label(), r.LID)
		}
	}
	return r
}

// unjudged lists what the proof does not cover.
func (h *history) unjudged() []string {
	var list []string
	if h.in.Adaptive == nil {
		list = append(list, "adaptive routing: not determined; only the forwarding tables are judged")
	}
	switch {
	case !h.in.lanesMatter():
		list = append(list, "virtual lanes: all packets are assumed to be on one")
	case h.in.Old.SL == nil && h.in.New.SL == nil && h.in.SLs == 0:
		list = append(list, "service levels: all packets are assumed to have SL 0")
	}
	return list
}

func (fig *Figures) add(f *tally) {
	fig.Pairs += f.rerouted
	fig.Lost += f.lost
	fig.Gained += f.gained
}

// net is the fabric in the form that the proofs need.
type net struct {
	g         *graph.Graph
	n         int // number of switches
	terminals []graph.Terminal
	channels  []graph.Channel
	chanBase  []int32 // first channel of each switch, and the end
	// Port p of switch s leads to targets[portBase[s]+p].
	targets  []graph.Target
	portBase []int32
	sources  []int32   // switches with CAs or routers
	ends     [][]int32 // by switch: the CAs' and routers' terminals
	managed  []int32   // switches that have a LID
	selves   []int32   // by switch: its own terminal, or -1
	top      mad.LID   // the highest LID that is judged
}

func newNet(g *graph.Graph) *net {
	t := &net{g: g, n: len(g.Switches()), terminals: g.Terminals(), channels: g.Channels(), top: g.Top()}
	for _, n := range g.Switches() {
		t.portBase = append(t.portBase, int32(len(t.targets)))
		t.targets = append(t.targets, slices.Repeat([]graph.Target{graph.NoTarget}, n.NumPorts()+1)...)
	}
	t.portBase = append(t.portBase, int32(len(t.targets)))
	t.chanBase = make([]int32, t.n+1)
	for c, ch := range t.channels {
		t.targets[t.portBase[ch.From]+int32(ch.Port)] = graph.Target(c)
		t.chanBase[ch.From+1] = int32(c) + 1
	}
	for s := range t.n {
		t.chanBase[s+1] = max(t.chanBase[s], t.chanBase[s+1])
	}
	t.ends = make([][]int32, t.n)
	t.selves = slices.Repeat([]int32{-1}, t.n)
	for i, e := range t.terminals {
		if e.Switch < 0 {
			continue
		}
		t.targets[t.portBase[e.Switch]+int32(e.Out)] = graph.ToTerminal(int32(i))
		if e.Out > 0 && e.Count > 0 {
			t.ends[e.Switch] = append(t.ends[e.Switch], int32(i))
		}
		if e.Out == 0 && e.Count > 0 {
			t.selves[e.Switch] = int32(i)
		}
	}
	for s, self := range t.selves {
		if self >= 0 {
			t.managed = append(t.managed, int32(s))
		}
	}
	for s, on := range t.ends {
		if len(on) > 0 {
			t.sources = append(t.sources, int32(s))
		}
	}
	return t
}

// target returns what port p of switch s leads to.
func (t *net) target(s int32, p uint8) graph.Target {
	if at := t.portBase[s] + int32(p); at < t.portBase[s+1] {
		return t.targets[at]
	}
	return graph.NoTarget
}

// terminal returns the terminal of a LID to which packets are sent, or -1.
func (t *net) terminal(lid int) int32 {
	if lid > int(t.top) {
		return -1
	}
	to := t.g.TerminalByLID(mad.LID(lid))
	if to >= 0 && t.terminals[to].Switch < 0 {
		return -1
	}
	return int32(to)
}

// isEnd reports whether a terminal is a CA or router.
func (t *net) isEnd(terminal int32) bool { return t.terminals[terminal].Out > 0 }

// blocks returns the number of blocks with LIDs to which packets are sent.
func (t *net) blocks() int { return int(t.top)/mad.LFTBlock + 1 }

// each calls do for 0..n-1 on all cores; each worker has a number.
func (t *net) each(n int, do func(worker, i int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for worker := range min(t.g.Workers(), n) {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(worker, i)
			}
		})
	}
	wait.Wait()
}

// check returns an error if the input is inconsistent.
func (in *Input) check() error {
	if in.Old == nil || in.New == nil || in.Old.Graph() != in.New.Graph() {
		return fmt.Errorf("order of writes: the old and the new tables must be on one graph")
	}
	in.number()
	n := len(in.Old.Graph().Switches())
	if in.Drain != nil && len(in.Drain) != n {
		return fmt.Errorf("order of writes: expected a drain time for each of %d switches, or none", n)
	}
	if in.Adaptive != nil && len(in.Adaptive) != n || slices.ContainsFunc(in.Disable, func(i int) bool {
		s := in.at[i].s
		return s < 0 || s >= len(in.Adaptive) || !in.Adaptive[s].Active()
	}) {
		return fmt.Errorf("order of writes: expected adaptive routing for each of %d switches, or none, and none to disable where it is off", n)
	}
	return nil
}
