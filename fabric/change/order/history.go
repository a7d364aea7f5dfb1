package order

import (
	"fmt"
	"math"

	"fabsh/mad"
)

// history is what a schedule writes, by block.
type history struct {
	*net
	in     *Input
	s      *Schedule
	blocks [][]write // by number of the block: its writes, round by round
	ends   []uint64  // by number: a bit for each LID of a CA or router
	selves []uint64  // by number: a bit for each LID of a switch
	judged []uint64  // by number: a bit for each LID whose entries change, and to which packets are sent
	needs  []uint64  // the same: LIDs to which packets would loop or be dropped
	epochs []epoch
	loop   *creditLoop // the one that was found last
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
	h := &history{net: t, in: in, s: s}
	number := func(lid mad.LID) int { return int(lid) / mad.LFTBlock }
	h.blocks = make([][]write, max(t.blocks(), number(in.Old.Top())+1, number(in.New.Top())+1))
	h.judged, h.needs = make([]uint64, len(h.blocks)), make([]uint64, len(h.blocks))
	same := in.sameLanes()
	lanes := same
	e := epoch{old: true, new: lanes}
	drain := t.longestDrain(in)
	written := make([]bool, t.n*len(h.blocks)) // in the round
	for r := range s.Rounds {
		round := &s.Rounds[r]
		clear(written)
		if round.Lanes {
			if len(round.Blocks) > 0 || lanes {
				return nil, fmt.Errorf("round %d: SL2VL must be written in one round, without other writes", r+1)
			}
			lanes, e.new = true, true
		}
		for i := range round.Blocks {
			b := &round.Blocks[i]
			if b.Switch < 0 || b.Switch >= t.n || b.Number < 0 || b.Number >= len(h.blocks) {
				return nil, fmt.Errorf("round %d: block %d of switch %d is neither of the old nor of the new tables", r+1, b.Number, b.Switch)
			}
			at := b.Switch*len(h.blocks) + b.Number
			if written[at] {
				return nil, fmt.Errorf("round %d: block %d of switch %d is written twice", r+1, b.Number, b.Switch)
			}
			written[at] = true
			h.blocks[b.Number] = append(h.blocks[b.Number], write{int32(r), int32(b.Switch), &b.Entries})
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

// lids returns, as one bit each, those of a block that packets are sent to.
func (h *history) lids(b int, of traffic) uint64 {
	if of == toSwitches {
		return h.selves[b]
	}
	return h.ends[b]
}

// isEndLID reports whether a LID is that of a CA or router.
func (h *history) isEndLID(lid mad.LID) bool {
	return h.ends[int(lid)/mad.LFTBlock]>>(int(lid)%mad.LFTBlock)&1 != 0
}

// sameLanes reports whether the tables have the same SL2VL.
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
// from the one that writes it to the one that replaces it.
type entry struct {
	port        uint8
	from, until int32
	next        int32 // in entries.more: the next one; -1: the last
}

// entries are those of all switches for one LID in one epoch.
type entries struct {
	first []entry // by switch: at the beginning of the epoch
	more  []entry // the others; each links to the next
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
