package certificate

import (
	"bytes"

	"fabsh/mad"
)

// write is that of a block of a switch.
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

// newProof checks that each block has the value that the plan records as old, that the
// rounds write each at most once, and that at the end it has the new value of the plan.
func newProof(sub *Subnet, c *Certificate) (*proof, error) {
	p := &proof{network: newNetwork(sub.Fabric), sub: sub, cert: c, newVLs: map[lanePlace][mad.ServiceLevels]uint8{}}
	if c.Lanes != 1 && c.Lanes != mad.DropVL {
		return nil, failure("%d lanes distinguished; expected 1 or %d", c.Lanes, mad.DropVL)
	}
	if len(p.byLID) == 0 {
		return nil, failure("no port of the fabric has a LID")
	}
	p.choices = newChoices(p.network, sub)
	at := make([]int32, len(sub.Changes))    // switches
	last := make([][]byte, len(sub.Changes)) // of forwarding tables: the last write
	for i := range sub.Changes {
		ch := &sub.Changes[i]
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
		case ch.Attr == mad.AttrSLtoVLMappingTable && at[i] >= 0:
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
		if ch := &sub.Changes[i]; last[i] != nil && !bytes.Equal(last[i], ch.New) {
			return nil, failure("change %d: after all rounds block %d of %s differs from the plan", i, ch.Modifier, p.switches[at[i]].Label())
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
	for r, round := range p.cert.Rounds {
		if round.Lanes {
			if e.new || len(round.Blocks) > 0 {
				return failure("round %d: SL2VL does not change, was written before, or is written with forwarding tables", r+1)
			}
			e.new = true
		}
		before := -1
		for _, b := range round.Blocks {
			if b.Change <= before || b.Change >= len(at) || last[b.Change] == nil {
				return failure("round %d: change %d is written twice, is out of order, or is not one of a forwarding table", r+1, b.Change)
			}
			before = b.Change
			p.choices.write(at[b.Change], int32(r))
			ch := &p.sub.Changes[b.Change]
			if last[b.Change] = b.Entries; b.Entries == nil {
				last[b.Change] = ch.New
			}
			if len(last[b.Change]) != mad.LFTBlock {
				return failure("round %d: change %d has %d entries, want %d", r+1, b.Change, len(b.Entries), mad.LFTBlock)
			}
			if int(ch.Modifier) < len(p.blocks) { // else no port has its LIDs
				p.blocks[ch.Modifier] = append(p.blocks[ch.Modifier], write{int32(r), at[b.Change], last[b.Change]})
			}
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
