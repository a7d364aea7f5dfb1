package order

import (
	"fmt"
	"math/bits"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// What becomes of packets at a switch.
const (
	unknown = iota
	onWay   // the packets are followed now
	arrives // whichever entries are in force
	fails   // with some entries they loop or are dropped
)

// follower follows the packets to one LID after the other. Each worker has one.
type follower struct {
	h        *history
	old, new []uint8 // entries of a block of LIDs in the tables, by LID, then switch
	now      []uint8 // by switch: the entry before a round
	then     []int16 // by switch: the entry after it; -1: the same
	changed  []int32 // switches with one
	was, is  []uint8 // by switch: what becomes of packets in the old and the new tables
	state    []uint8
	stack    []int32
	tried    []bool // by switch on the stack: its new entry is followed
	failed   []bool // by switch on the stack: an entry fails
	at       entries
	credit   credit
	found    tally
	refused  *Refusal
	refusal  int // the LID of it
}

// tally are figures.
type tally struct {
	lids                   int
	entries                int
	rerouted, lost, gained int64
	lostFrom               *fabric.Port // an example
	lostTo                 mad.LID
}

func newFollower(h *history) *follower {
	n := h.n
	f := &follower{h: h, old: make([]uint8, mad.LFTBlock*n), new: make([]uint8, mad.LFTBlock*n), then: slices.Repeat([]int16{-1}, n), now: make([]uint8, n)}
	f.was, f.is, f.state = make([]uint8, n), make([]uint8, n), make([]uint8, n)
	f.tried, f.failed = make([]bool, n), make([]bool, n)
	return f
}

// load takes the entries of the LIDs of a block that have a bit. The new ones are those
// that are written last.
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

// column writes the LIDs of a block of a table that have a bit down a column.
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

// follow proves the rounds of an epoch for LID i of block b, and notes the entries
// that are in force in it.
func (f *follower) follow(e epoch, b, i int) {
	n := f.h.n
	lid := b*mad.LFTBlock + i
	to := f.h.terminal(lid)
	old, new := f.old[i*n:][:n], f.new[i*n:][:n]
	clear(f.was)
	f.walk(old, to, f.was)
	entries := f.compare(old, new)
	for s, way := range f.state {
		if f.is[s] = unknown; way == sameWay {
			f.is[s] = f.was[s]
		}
	}
	f.walk(new, to, f.is)
	if e.first == 0 {
		f.found.lids++
		f.found.entries += entries
		f.count(to, mad.LID(lid))
	}
	copy(f.now, old)
	list := f.h.blocks[b]
	k := 0
	for ; k < len(list) && list[k].round < e.first; k++ {
		f.now[list[k].s] = list[k].entries[i]
	}
	f.at.begin(f.now)
	for k < len(list) && list[k].round <= e.last {
		round := list[k].round
		f.changed = f.changed[:0]
		for ; k < len(list) && list[k].round == round; k++ {
			if w := list[k]; w.entries[i] != f.now[w.s] {
				f.then[w.s] = int16(w.entries[i])
				f.changed = append(f.changed, w.s)
				f.at.replace(w.s, w.entries[i], round)
			}
		}
		if len(f.changed) == 0 {
			continue
		}
		f.mix(old, to, lid, round)
		for _, s := range f.changed {
			f.now[s], f.then[s] = uint8(f.then[s]), -1
		}
	}
}

// walk finds what becomes of packets from each switch of which it is unknown, where
// only one entry is in force.
func (f *follower) walk(ports []uint8, to int32, state []uint8) {
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
			if target < 0 {
				if state[at] = fails; target == -2-to {
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
// changes may send them by either entry. Packets that arrive with the old tables and
// with the new ones must arrive with all mixtures; and none may loop but those that
// loop in the old tables.
func (f *follower) mix(old []uint8, to int32, lid int, round int32) {
	clear(f.state)
	safe := true
	for _, s := range f.changed {
		f.mixFrom(s, old, to, lid, round)
		safe = safe && f.state[s] == arrives
	}
	if safe { // what becomes of packets that meet none of these does not change
		return
	}
	for s := range f.state {
		f.mixFrom(int32(s), old, to, lid, round)
	}
	for s, state := range f.state {
		if state == fails && f.was[s] == arrives && f.is[s] == arrives {
			f.lose(int32(s), to, lid, round)
			return
		}
	}
}

// mixFrom is mix for the packets from one switch.
func (f *follower) mixFrom(from int32, old []uint8, to int32, lid int, round int32) {
	t := f.h.net
	if f.state[from] == unknown {
		f.state[from] = onWay
		f.stack = append(f.stack[:0], from)
		f.tried[from], f.failed[from] = false, false
		port := f.now[from]
		for len(f.stack) > 0 {
			s := f.stack[len(f.stack)-1]
			target := t.target(s, port)
			end := uint8(unknown)
			switch {
			case target == -2-to:
				end = arrives
			case target < 0:
				end = fails
			default:
				next := t.channels[target].To
				switch f.state[next] {
				case unknown:
					f.state[next] = onWay
					f.stack = append(f.stack, next)
					f.tried[next], f.failed[next] = false, false
					port = f.now[next]
					continue
				case onWay:
					end = fails
					f.loop(old, next, lid, round)
				default:
					end = f.state[next]
				}
			}
			// Back to the last switch with an entry that was not followed.
			for {
				s = f.stack[len(f.stack)-1]
				f.failed[s] = f.failed[s] || end == fails
				if f.then[s] >= 0 && !f.tried[s] {
					f.tried[s], port = true, uint8(f.then[s])
					break
				}
				if end = arrives; f.failed[s] {
					end = fails
				}
				f.state[s] = end
				f.stack = f.stack[:len(f.stack)-1]
				if len(f.stack) == 0 {
					break
				}
			}
		}
	}
}

// loop refuses a loop of the switches on the stack from s on, unless the packets loop
// in the old tables too.
func (f *follower) loop(old []uint8, s int32, lid int, round int32) {
	first := slices.Index(f.stack, s)
	same := true
	var path []*fabric.Port
	for _, s := range f.stack[first:] {
		port := f.now[s]
		if f.tried[s] {
			port = uint8(f.then[s])
		}
		same = same && port == old[s]
		path = append(path, f.h.g.Switches()[s].Port(int(port)))
	}
	if !same {
		f.refuse(lid, &Refusal{Round: int(round), Reason: fmt.Sprintf("packets to LID %d may loop", lid), LID: mad.LID(lid), Path: path})
	}
}

// lose refuses that packets from switch s may be dropped: by which switches they go
// there is found again, as the first way that fails.
func (f *follower) lose(s, to int32, lid int, round int32) {
	t := f.h.net
	r := &Refusal{Round: int(round), Reason: fmt.Sprintf("packets from %s to LID %d may be dropped", t.g.Switches()[s].Label(), lid), LID: mad.LID(lid)}
	for range t.n {
		port := f.now[s]
		if next := t.target(s, port); next == -2-to || next >= 0 && f.state[t.channels[next].To] != fails {
			port = uint8(f.then[s]) // the other one it is
		}
		if p := t.g.Switches()[s].Port(int(port)); p != nil {
			r.Path = append(r.Path, p)
		}
		next := t.target(s, port)
		if next < 0 {
			break
		}
		s = t.channels[next].To
	}
	f.refuse(lid, r)
}

// refuse keeps the refusal of the first round, then of the lowest LID.
func (f *follower) refuse(lid int, r *Refusal) {
	f.h.needs[lid/mad.LFTBlock] |= 1 << (lid % mad.LFTBlock)
	if f.refused == nil || r.Round < f.refused.Round || r.Round == f.refused.Round && lid < f.refusal {
		f.refused, f.refusal = r, lid
	}
}

// The ways of packets from a switch in the old and in the new tables.
const (
	sameWay = 1 + iota
	otherWay
)

// compare finds the ways, in state, and counts the entries that change.
func (f *follower) compare(old, new []uint8) (entries int) {
	t := f.h.net
	clear(f.state)
	for s := range f.state {
		at := int32(s)
		f.stack = f.stack[:0]
		for f.state[at] == unknown {
			f.stack = append(f.stack, at)
			f.state[at] = sameWay // of a loop
			if old[at] != new[at] {
				entries++
				f.state[at] = otherWay
				break
			}
			target := t.target(at, old[at])
			if target < 0 {
				break
			}
			at = t.channels[target].To
		}
		way := f.state[at]
		for _, s := range f.stack {
			f.state[s] = way
		}
	}
	return entries
}

// count adds up the pairs whose packets take other ways in the end, which are in state.
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
		if n == 0 || f.state[s] == sameWay {
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
