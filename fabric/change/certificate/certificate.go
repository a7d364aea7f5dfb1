// Package certificate checks the proof that a plan holds: that packets reach their
// destinations and cannot deadlock while forwarding tables change, whatever the order
// of the writes within a round. It shares no code with package order, which finds and
// proves the rounds, nor with package routing: it takes the fabric and the tables in
// force, and trusts nothing in the certificate.
//
// Check checks a Certificate against a Subnet; it and Make, which makes the proof, only
// compute. Check relies on nothing in Make. Change, Write and Round are the vocabulary of all
// packages of changes: the values that are recorded, planned, proven, kept in a journal, and sent.
//
// Delivery. In a round each switch that changes its entry for a LID may have the old or
// the new one, independently of other switches. Each switch has a rank. Where it is less
// than the number of switches, each entry that may be in force leads to the LID or to a
// lower rank, so packets arrive in all mixtures. Each switch has such a rank from which
// packets arrive both before and after the change. Where the rank is higher, packets may
// fail, but do not loop: entries that lead on lead to lower ranks, too.
//
// Adaptive routing. A switch where it is on has all its choices in force, until the round
// that first writes its table. In this round it has these, its old entry and the new one;
// afterwards its table alone.
//
// Credit loops. A channel is one direction of a link and a virtual lane. Between two
// drains, each channel has a position. It increases along every dependency: of two
// channels that follow each other on the path of packets between hosts, by any two
// entries that were in force simultaneously or one after the other. So no cycle of
// dependencies exists (Dally and Seitz, IEEE TC C-36(5), 1987; for old with new entries:
// Duato, Lysne, Pang and Pinkston, IEEE TPDS 16(5), 2005).
//
// A loop or a credit loop of the tables in force is not caused by the change: along it
// ranks and positions may be equal.
package certificate

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"fabsh/mad"
)

// Certificate is the proof of a plan: its rounds, and why each is safe.
type Certificate struct {
	Rounds []Round
	// Ranks are the ranks of the switches, for each LID and round in which its entries
	// change, by LID, then round, then GUID of the switch: numbers as Pack writes them.
	Ranks []byte
	// Lanes is how many virtual lanes are distinguished; 1: packets of all service levels
	// count as on one lane, which covers all assignments of lanes.
	Lanes int
	// Orders are the positions of the channels: numbers as Pack writes them, for the
	// rounds up to each drain and to the end. Channels are sorted by the GUID of the
	// switch that they leave, then by port, then by lane.
	Orders [][]byte
	// AcceptCreditLoops reports that credit loops were accepted: there are no Orders,
	// and only delivery is proven.
	AcceptCreditLoops bool
	// AcceptLost reports that paths may be lost that exist before the change: a reversal
	// restores tables that lack them.
	AcceptLost bool
	// EndOnly reports that no order is safe at each step: it is proven only that the blocks
	// have their new values after the rounds. A plan has no such certificate.
	EndOnly bool
}

// Round is a set of writes in any order, all of them read back before the next round. It is
// this value that is planned, proven, recorded in a journal, and sent.
type Round struct {
	Writes []Write `json:"steps,omitempty" optional:"the round writes nothing"`
	// Drain is the wait after the round until the packets that were sent before have left
	// the switches; 0: none.
	Drain time.Duration `json:"drain,omitempty" optional:"nothing waits for packets under way"`
}

// Write is one Set: what it writes of a change. All rows of SLtoVLMappingTable of switches
// are written in one round, without forwarding tables. Writes of attributes other than these
// tables are not judged.
type Write struct {
	Change int    `json:"cell"` // its number
	Data   []byte `json:"data"` // the block, or the attribute
}

// FailureError reports why a certificate does not hold.
type FailureError struct{ Reason string }

func (e *FailureError) Error() string { return "the certificate does not hold: " + e.Reason }

func failure(format string, args ...any) error {
	return &FailureError{fmt.Sprintf(format, args...)}
}

// Pack encodes numbers as unsigned varints, compressed (RFC 1951).
func Pack(numbers []uint32) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // fails for invalid levels only
	var one []byte
	for _, n := range numbers {
		one = binary.AppendUvarint(one[:0], uint64(n))
		w.Write(one)
	}
	w.Close()
	return b.Bytes()
}

// packed reads what Pack wrote, number by number: a long list takes no memory.
type packed struct {
	in   *bufio.Reader
	what string
}

func unpack(data []byte, what string) *packed {
	return &packed{bufio.NewReader(flate.NewReader(bytes.NewReader(data))), what}
}

// read reads numbers up to limit.
func (p *packed) read(into []uint32, limit int) error {
	for i := range into {
		n, err := binary.ReadUvarint(p.in)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return failure("too few %s", p.what)
		case err != nil:
			return failure("%s: invalid: %v", p.what, err)
		case n > uint64(limit):
			return failure("%[2]s: %[1]d exceeds the maximum %[3]d", n, p.what, limit)
		}
		into[i] = uint32(n)
	}
	return nil
}

// end checks that the list has ended.
func (p *packed) end() error {
	if _, err := p.in.ReadByte(); !errors.Is(err, io.EOF) {
		return failure("too many %s", p.what)
	}
	return nil
}

// maxPositions bounds the memory for positions, which take few bytes in a file: 256 MB.
const maxPositions = 1 << 26

// Result is the extent of what a certificate proves.
type Result struct {
	LIDs     int // to which packets are sent, and whose entries change
	Channels int // that have a position; 0: credit loops were accepted
	// OldLoop reports that the tables in force have a credit loop. It remains until the end
	// of round OldLoopUntil, from 1; 0: the tables after the change have it, too.
	OldLoop      bool
	OldLoopUntil int
}

// Check checks a certificate. Its time is proportional to the size of the tables, and to
// the number of switches for each LID that changes in a round. The error is a
// *FailureError if the certificate does not hold, or the end of ctx.
func Check(ctx context.Context, sub *Subnet, c *Certificate) (*Result, error) {
	p, err := newProof(sub, c)
	if err != nil {
		return nil, err
	}
	if c.EndOnly {
		return &p.result, nil
	}
	ranks := unpack(c.Ranks, "ranks")
	p.rank = func(int32) error { return ranks.read(p.ranks, 2*len(p.switches)) }
	equal := map[[2]int32]bool{} // dependencies of channels with equal positions
	order := make([][]uint32, len(p.epochs))
	if !c.AcceptCreditLoops {
		if len(c.Orders) != len(p.epochs) {
			return nil, failure("it has %d orders of channels, and its rounds need %d", len(c.Orders), len(p.epochs))
		}
		p.result.Channels = len(p.channels) * c.Lanes
		if p.result.Channels*len(order) > maxPositions {
			return nil, failure("it has %d orders of %d channels: too many", len(order), p.result.Channels)
		}
		for e := range order {
			in := unpack(c.Orders[e], "positions of channels")
			order[e] = make([]uint32, p.result.Channels)
			if err := in.read(order[e], p.result.Channels); err != nil {
				return nil, err
			}
			if err := in.end(); err != nil {
				return nil, err
			}
		}
		p.depends = func(e int, v, w int32) error {
			switch at := order[e]; {
			case at[v] > at[w]:
				return failure("round %d, LID %d: packets on %s wait for %s, whose position is lower", p.epochs[e].first+1, p.lid, p.name(v), p.name(w))
			case at[v] == at[w]:
				equal[[2]int32{v, w}] = true
			}
			return nil
		}
	}
	if err := p.each(ctx); err != nil {
		return nil, err
	}
	if err := ranks.end(); err != nil {
		return nil, err
	}
	alike := maps.Clone(equal)
	if err := p.removeOld(ctx, equal); err != nil {
		return nil, err
	}
	if len(equal) == 0 && len(alike) > 0 {
		if err := p.findOldLoop(ctx, alike); err != nil {
			return nil, err
		}
	}
	for pair := range equal {
		return nil, failure("packets on %s wait for %s, whose position is the same", p.name(pair[0]), p.name(pair[1]))
	}
	return &p.result, nil
}

// proof is a certificate that is checked, or made: that sets rank and depends.
type proof struct {
	*network
	sub     *Subnet
	cert    *Certificate
	blocks  [][]write // by number of the block, in the order of rounds
	epochs  []epoch
	newVLs  map[lanePlace][mad.ServiceLevels]uint8 // rows of SL2VL that change
	lanesAt int32                                  // the round that writes SL2VL; forever: none
	rank    func(round int32) error                // sets ranks
	depends func(epoch int, v, w int32) error      // nil: no channel matters
	result  Result

	// The LID that is followed, and its end; by switch: the entry in force at first,
	// before a round, after it, after all.
	lid                   int
	to                    int32
	old, now, then, final []uint8
	pairs                 []uint8 // memory of ports
	ranks                 []uint32
	delivery              delivery
	credit                credit
	choices               *choices // nil: no switch routes adaptively
}

// each follows the packets to all LIDs through all rounds.
func (p *proof) each(ctx context.Context) error {
	n := len(p.switches)
	p.old, p.now, p.then, p.final, p.ranks = make([]uint8, n), make([]uint8, n), make([]uint8, n), make([]uint8, n), make([]uint32, n)
	p.pairs = make([]uint8, 2*n)
	tables := make([][]uint8, n)
	for s, sw := range p.switches {
		tables[s] = p.sub.Table(sw)
	}
	for p.lid = range p.byLID {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.to = p.endOf(p.lid); p.to == noEnd {
			continue
		}
		for s, table := range tables {
			if p.old[s] = mad.NoPort; p.lid < len(table) {
				p.old[s] = table[p.lid]
			}
		}
		p.choices.at(p.lid)
		if err := p.follow(p.blocks[p.lid/mad.LFTBlock], p.lid%mad.LFTBlock); err != nil {
			return err
		}
	}
	return nil
}

// follow follows the packets to a LID, place i of a block, through the writes of the block.
func (p *proof) follow(list []write, i int) error {
	copy(p.final, p.old)
	changes := p.choices.turns(p.old)
	for _, w := range list {
		changes = changes || w.entries[i] != p.old[w.s]
		p.final[w.s] = w.entries[i]
	}
	if changes {
		p.result.LIDs++
		if err := p.judge(); err != nil {
			return err
		}
	}
	copy(p.now, p.old)
	copy(p.then, p.old)
	for e, epoch := range p.epochs {
		p.credit.begin(p.now)
		p.choose(epoch.first)
		for round, ok := p.next(epoch.first, epoch.last, list); ok; round, ok = p.next(round+1, epoch.last, list) {
			turns := p.turn(round)
			for ; len(list) > 0 && list[0].round == round; list = list[1:] {
				if s, port := list[0].s, list[0].entries[i]; port != p.now[s] {
					p.then[s] = port
					p.credit.replace(s, port, round)
				}
			}
			if !turns && slices.Equal(p.now, p.then) {
				continue
			}
			if err := p.deliver(round); err != nil {
				return err
			}
			copy(p.now, p.then)
		}
		if p.depends != nil && p.ends[p.to].out > 0 {
			if err := p.wait(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// name returns the name of a channel.
func (p *proof) name(v int32) string {
	c := p.channels[v/int32(p.cert.Lanes)]
	name := fmt.Sprintf("%s/%d", p.switches[c.from].Label(), c.out)
	if p.cert.Lanes > 1 {
		name = fmt.Sprintf("%s VL %d", name, v%int32(p.cert.Lanes))
	}
	return name
}

// write is a write of a block of a switch.
type write struct {
	round, s int32
	entries  []byte
}

// epoch is the rounds up to a drain, and which lanes may be in force.
type epoch struct {
	first, last int32
	old, new    bool
}

// lanePlace is a row of an SLtoVLMappingTable.
type lanePlace struct {
	s       int32
	in, out uint8
}

// newProof checks that each block has the value that the plan records as old, that no round
// writes a change twice, and that at the end each has the new value of the plan.
func newProof(sub *Subnet, c *Certificate) (*proof, error) {
	p := &proof{network: newNetwork(sub.Fabric), sub: sub, cert: c, lanesAt: forever, newVLs: map[lanePlace][mad.ServiceLevels]uint8{}}
	if c.Lanes != 1 && c.Lanes != mad.DropVL {
		return nil, failure("%d lanes distinguished; expected 1 or %d", c.Lanes, mad.DropVL)
	}
	if len(p.byLID) == 0 {
		return nil, failure("no port of the fabric has a LID")
	}
	p.choices = newChoices(p.network, sub)
	at := slices.Repeat([]int32{-1}, len(sub.Changes)) // switches
	last := make([][]byte, len(sub.Changes))           // the last write; of forwarding tables at first the block in force
	for i := range sub.Changes {
		ch := &sub.Changes[i]
		if ch.Attr != mad.AttrLinearForwardingTable && ch.Attr != mad.AttrSLtoVLMappingTable {
			continue
		}
		nodes := sub.Fabric.NodeByGUID(ch.Node)
		if len(nodes) != 1 {
			return nil, failure("change %d: %d nodes have GUID %v", i, len(nodes), ch.Node)
		}
		at[i] = p.index[nodes[0].ID()]
		stale := false
		switch {
		case ch.Attr == mad.AttrLinearForwardingTable:
			if at[i] < 0 || len(ch.New) != mad.LFTBlock || ch.Modifier > uint32(mad.MaxUnicastLID)/mad.LFTBlock {
				return nil, failure("change %d: %s has no block %d of a forwarding table", i, nodes[0].Label(), ch.Modifier)
			}
			last[i] = block(sub.Table(nodes[0]), int(ch.Modifier))
			stale = !bytes.Equal(last[i], ch.Old)
		case at[i] >= 0 && !bytes.Equal(ch.Old, ch.New):
			var old, new mad.SLtoVLMappingTable
			if len(ch.Old) != ch.Attr.Size || len(ch.New) != ch.Attr.Size {
				return nil, failure("change %d: a row of SL2VL has %d bytes", i, ch.Attr.Size)
			}
			old.Decode(ch.Old)
			new.Decode(ch.New)
			row := lanePlace{at[i], uint8(ch.Modifier >> 8), uint8(ch.Modifier)}
			p.newVLs[row] = new.SLtoVL
			for sl, vl := range old.SLtoVL {
				stale = stale || c.Lanes > 1 && sub.VL(nodes[0], row.in, row.out, uint8(sl)) != vl
			}
		}
		if stale {
			return nil, failure("change %d: %s %#x of %s has changed since the plan was made", i, ch.Attr.Name, ch.Modifier, nodes[0].Label())
		}
	}
	if err := p.addRounds(at, last); err != nil {
		return nil, err
	}
	for i := range last {
		switch ch := &sub.Changes[i]; {
		case last[i] == nil || bytes.Equal(last[i], ch.New):
		case ch.Attr == mad.AttrLinearForwardingTable:
			return nil, failure("change %d: after all rounds block %d of %s differs from the plan", i, ch.Modifier, p.switches[at[i]].Label())
		default:
			return nil, failure("change %d: after all rounds it differs from the plan", i)
		}
	}
	return p, nil
}

// addRounds adds the writes of the rounds, and finds the epochs.
func (p *proof) addRounds(at []int32, last [][]byte) error {
	p.blocks = make([][]write, len(p.byLID)/mad.LFTBlock+1)
	longest, bound := p.drain()
	lanes := len(p.newVLs) > 0
	e := epoch{old: true, new: !lanes}
	written := make([]int, len(at)) // the last round that wrote the change, from 1
	for r, round := range p.cert.Rounds {
		tables, rows := false, 0
		for _, w := range round.Writes {
			if w.Change < 0 || w.Change >= len(at) {
				return failure("round %d: change %d does not exist", r+1, w.Change)
			}
			if written[w.Change] == r+1 {
				return failure("round %d: change %d is written twice", r+1, w.Change)
			}
			written[w.Change] = r + 1
			last[w.Change] = w.Data
			ch, s := &p.sub.Changes[w.Change], at[w.Change]
			switch {
			case ch.Attr == mad.AttrSLtoVLMappingTable && s >= 0:
				rows++
				if !bytes.Equal(w.Data, ch.New) {
					return failure("round %d: change %d: a row of SL2VL differs from the plan", r+1, w.Change)
				}
			case ch.Attr == mad.AttrLinearForwardingTable:
				if tables = true; len(w.Data) != mad.LFTBlock {
					return failure("round %d: change %d has %d entries, want %d", r+1, w.Change, len(w.Data), mad.LFTBlock)
				}
				p.choices.write(s, int32(r))
				if int(ch.Modifier) < len(p.blocks) { // else no port has its LIDs
					p.blocks[ch.Modifier] = append(p.blocks[ch.Modifier], write{int32(r), s, w.Data})
				}
			}
		}
		if rows > 0 {
			if e.new || tables || rows != len(p.newVLs) {
				return failure("round %d: SL2VL does not change, was written before, or is not written in one round of its own", r+1)
			}
			e.new, p.lanesAt = true, int32(r)
		}
		if round.Drain > 0 && (!bound || round.Drain < longest) {
			return failure("round %d: after a wait of %v packets may still be in the switches (HOQLife)", r+1, round.Drain)
		}
		if e.last = int32(r); round.Drain > 0 || r == len(p.cert.Rounds)-1 {
			p.epochs = append(p.epochs, e)
			e = epoch{first: int32(r) + 1, old: !lanes || !e.new, new: e.new}
		}
	}
	if !e.new {
		return failure("no round writes SL2VL, which the plan changes")
	}
	return nil
}

// block returns a block of a table.
func block(table []uint8, number int) []byte {
	b := bytes.Repeat([]byte{mad.NoPort}, mad.LFTBlock)
	if first := number * mad.LFTBlock; first < len(table) {
		copy(b, table[first:])
	}
	return b
}
