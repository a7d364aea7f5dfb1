package order

import (
	"fmt"
	"math/bits"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// fate is the result for packets from a switch.
type fate uint8

const (
	unknown fate = iota
	onWay        // the packets are being followed
	arrives      // whichever entries are in force
	fails        // with some entries they loop or are dropped
)

// comparison states whether packets from a switch take another path in the new tables.
type comparison uint8

const (
	uncompared comparison = iota
	sameWay
	otherWay
)

// visit is a switch on the path that mix follows, and the entry by which packets leave
// it.
type visit struct {
	s     int32
	port  uint8
	last  bool // the last entry that the switch may have: all before it were followed
	fails bool // packets are lost or loop by an entry that was followed
}

// follower follows the packets to LIDs, one by one. Each worker has one.
type follower struct {
	h        *history
	old, new []uint8      // entries of a block of LIDs in the tables, by LID, then switch
	now      []uint8      // by switch: the entry before a round
	then     []uint8      // by switch: the entry after it
	changed  []int32      // switches where the two differ
	was, is  []fate       // by switch, in the old and the new tables
	mixed    []fate       // by switch, in all mixtures of a round
	ways     []comparison // by switch
	stack    []int32      // switches on the path that walk or compare follows
	path     []visit      // the switches on the path that mix follows
	at       entries
	credit   credit
	found    tally
	refused  *Refusal
	refusal  int // the LID of it

	// Where switches route adaptively: by switch, its choices; whether packets loop by the
	// choices before the change.
	every    []adaptive.Ports
	choosing *mixture
	looped   bool
}

// tally counts what a follower has found.
type tally struct {
	rerouted, lost, gained int64
	lostFrom               *fabric.Port // an example
	lostTo                 mad.LID
}

func newFollower(h *history) *follower {
	n := h.n
	f := &follower{h: h, old: make([]uint8, mad.LFTBlock*n), new: make([]uint8, mad.LFTBlock*n), now: make([]uint8, n), then: make([]uint8, n)}
	f.was, f.is, f.mixed, f.ways = make([]fate, n), make([]fate, n), make([]fate, n), make([]comparison, n)
	return f
}

// load reads the entries of the LIDs of a block that have a bit. The new entries are the
// entries that are written last.
func (f *follower) load(b int, lids uint64) {
	n := f.h.n
	for s := range n {
		column(f.old[s:], f.h.in.Old.Row(s), b, n, lids)
	}
	for ; lids != 0; lids &= lids - 1 {
		i := bits.TrailingZeros64(lids)
		new := f.new[i*n:][:n]
		copy(new, f.old[i*n:])
		for _, w := range f.h.blocks[b] {
			new[w.s] = w.entries[i]
		}
	}
}

// column writes the LIDs of a block of a table that have a bit into a column.
func column(to []uint8, row []uint8, b, n int, lids uint64) {
	first := b * mad.LFTBlock
	for ; lids != 0; lids &= lids - 1 {
		i := bits.TrailingZeros64(lids)
		port := uint8(mad.NoPort)
		if first+i < len(row) {
			port = row[first+i]
		}
		to[i*n] = port
	}
}

// follow proves the rounds of an epoch for LID i of block b, and notes the entries that
// are in force during it.
func (f *follower) follow(e epoch, b, i int) {
	if f.h.choices != nil {
		f.followChoices(e, b, i)
		return
	}
	n := f.h.n
	lid := b*mad.LFTBlock + i
	terminal := f.h.terminal(lid)
	to := graph.ToTerminal(terminal)
	old, new := f.old[i*n:][:n], f.new[i*n:][:n]
	clear(f.was)
	f.walk(old, to, f.was)
	f.compare(old, new)
	for s, way := range f.ways {
		if f.is[s] = unknown; way == sameWay {
			f.is[s] = f.was[s]
		}
	}
	f.walk(new, to, f.is)
	if e.first == 0 {
		f.count(terminal, mad.LID(lid))
	}
	copy(f.now, old)
	list := f.h.blocks[b]
	k := 0
	for ; k < len(list) && list[k].round < e.first; k++ {
		f.now[list[k].s] = list[k].entries[i]
	}
	copy(f.then, f.now)
	f.at.begin(f.now)
	for k < len(list) && list[k].round <= e.last {
		round := list[k].round
		f.changed = f.changed[:0]
		for ; k < len(list) && list[k].round == round; k++ {
			if w := list[k]; w.entries[i] != f.now[w.s] {
				f.then[w.s] = w.entries[i]
				f.changed = append(f.changed, w.s)
				f.at.replace(w.s, w.entries[i], round)
			}
		}
		if len(f.changed) == 0 {
			continue
		}
		f.mix(old, to, lid, round)
		for _, s := range f.changed {
			f.now[s] = f.then[s]
		}
	}
}

// walk determines the fate of packets from each switch of which it is unknown, while only
// one entry is in force.
func (f *follower) walk(ports []uint8, to graph.Target, state []fate) {
	t := f.h.net
	for s := range state {
		if state[s] != unknown {
			continue
		}
		at := int32(s)
		f.stack = f.stack[:0]
		for state[at] == unknown {
			state[at] = onWay
			f.stack = append(f.stack, at)
			target := t.target(at, ports[at])
			if !target.IsChannel() {
				if state[at] = fails; target == to {
					state[at] = arrives
				}
				break
			}
			at = t.channels[target].To
		}
		end := state[at]
		if end == onWay {
			end = fails
		}
		for _, s := range f.stack {
			state[s] = end
		}
	}
}

// mix follows the packets from all switches during a round, in which each switch that
// changes may send them by either entry. Packets that arrive with the old tables and with
// the new ones must arrive with all mixtures, and packets may loop only if they loop in the
// old tables.
func (f *follower) mix(old []uint8, to graph.Target, lid int, round int32) {
	clear(f.mixed)
	safe := true
	for _, s := range f.changed {
		f.mixFrom(s, old, to, lid, round)
		safe = safe && f.mixed[s] == arrives
	}
	if safe { // packets that meet none of these keep their fate
		return
	}
	for s := range f.mixed {
		f.mixFrom(int32(s), old, to, lid, round)
	}
	for s, end := range f.mixed {
		if end == fails && f.was[s] == arrives && f.is[s] == arrives {
			f.lose(int32(s), to, lid, round)
			return
		}
	}
}

// mixFrom is mix for the packets from one switch: a depth-first search over all entries.
func (f *follower) mixFrom(from int32, old []uint8, to graph.Target, lid int, round int32) {
	if f.mixed[from] != unknown {
		return
	}
	t := f.h.net
	for f.enter(from); len(f.path) > 0; {
		at := &f.path[len(f.path)-1]
		target := t.target(at.s, at.port)
		switch {
		case target == to:
			f.settle(arrives)
			continue
		case !target.IsChannel():
			f.settle(fails)
			continue
		}
		switch next := t.channels[target].To; f.mixed[next] {
		case unknown:
			f.enter(next)
		case onWay:
			f.loop(old, next, lid, round)
			f.settle(fails)
		default:
			f.settle(f.mixed[next])
		}
	}
}

// enter follows packets to a switch, and on by its entry before the round.
func (f *follower) enter(s int32) {
	f.mixed[s] = onWay
	f.path = append(f.path, visit{s: s, port: f.now[s], last: f.then[s] == f.now[s]})
}

// settle records the fate of packets by the entry that was followed last, and returns to
// the last switch on the path that has another entry.
func (f *follower) settle(end fate) {
	for len(f.path) > 0 {
		at := &f.path[len(f.path)-1]
		at.fails = at.fails || end == fails
		if !at.last {
			at.port, at.last = f.then[at.s], true
			return
		}
		if end = arrives; at.fails {
			end = fails
		}
		f.mixed[at.s] = end
		f.path = f.path[:len(f.path)-1]
	}
}

// loop refuses a loop of the switches on the path from s on, unless the packets also loop
// in the old tables.
func (f *follower) loop(old []uint8, s int32, lid int, round int32) {
	first := slices.IndexFunc(f.path, func(v visit) bool { return v.s == s })
	same := true
	var path []*fabric.Port
	for _, at := range f.path[first:] {
		same = same && at.port == old[at.s]
		path = append(path, f.h.g.Switches()[at.s].Port(int(at.port)))
	}
	if !same {
		f.refuse(lid, &Refusal{Round: int(round), Reason: fmt.Sprintf("packets to LID %d may loop", lid), LID: mad.LID(lid), Path: path})
	}
}

// lose refuses that packets from switch s may be dropped. The switches on their path are
// found again, as the first path that fails.
func (f *follower) lose(s int32, to graph.Target, lid int, round int32) {
	t := f.h.net
	r := &Refusal{Round: int(round), Reason: fmt.Sprintf("packets from %s to LID %d may be dropped", t.g.Switches()[s].Label(), lid), LID: mad.LID(lid)}
	for range t.n {
		port := f.now[s]
		if next := t.target(s, port); next == to || next.IsChannel() && f.mixed[t.channels[next].To] != fails {
			port = f.then[s] // the other entry fails
		}
		if p := t.g.Switches()[s].Port(int(port)); p != nil {
			r.Path = append(r.Path, p)
		}
		next := t.target(s, port)
		if !next.IsChannel() {
			break
		}
		s = t.channels[next].To
	}
	f.refuse(lid, r)
}

// refuse keeps the refusal of the first round and, within it, of the lowest LID.
func (f *follower) refuse(lid int, r *Refusal) {
	f.h.needs[lid/mad.LFTBlock] |= 1 << (lid % mad.LFTBlock)
	if f.refused == nil || r.Round < f.refused.Round || r.Round == f.refused.Round && lid < f.refusal {
		f.refused, f.refusal = r, lid
	}
}

// compare compares the paths in the old and the new tables.
func (f *follower) compare(old, new []uint8) {
	t := f.h.net
	clear(f.ways)
	for s := range f.ways {
		at := int32(s)
		f.stack = f.stack[:0]
		for f.ways[at] == uncompared {
			f.stack = append(f.stack, at)
			f.ways[at] = sameWay // of a loop
			if old[at] != new[at] {
				f.ways[at] = otherWay
				break
			}
			target := t.target(at, old[at])
			if !target.IsChannel() {
				break
			}
			at = t.channels[target].To
		}
		way := f.ways[at]
		for _, s := range f.stack {
			f.ways[s] = way
		}
	}
}

// count adds the pairs whose packets take other paths in the end, which were compared.
func (f *follower) count(to int32, lid mad.LID) {
	t := f.h.net
	if !t.isEnd(to) {
		return
	}
	for _, s := range t.sources {
		n := int64(len(t.ends[s]))
		if int(s) == t.terminals[to].Switch {
			n--
		}
		if n == 0 || f.ways[s] == sameWay {
			continue
		}
		f.found.rerouted += n
		switch {
		case f.was[s] == arrives && f.is[s] != arrives:
			if f.found.lost == 0 {
				f.found.lostFrom, f.found.lostTo = t.terminals[t.ends[s][0]].Port, lid
			}
			f.found.lost += n
		case f.was[s] != arrives && f.is[s] == arrives:
			f.found.gained += n
		}
	}
}
