package order

import (
	"context"

	"fabsh/mad"
)

// Plan finds an order in which a change is safe, by Prove. The error is a *Refusal if
// none is found.
func Plan(ctx context.Context, in Input) (*Schedule, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	t := newNet(in.Old.Graph())
	s := in.atOnce()
	in.tops(s)
	fig, err := prove(ctx, t, &in, s)
	if err != nil {
		return nil, err
	}
	s.Figures = fig
	return s, nil
}

// atOnce is all writes in one round.
func (in *Input) atOnce() *Schedule {
	s := &Schedule{}
	if !in.sameLanes() {
		s.Rounds = append(s.Rounds, Round{Lanes: true})
	}
	d := in.New.Diff(in.Old)
	if d.Blocks == 0 {
		return s
	}
	round := Round{Blocks: make([]Block, 0, d.Blocks)}
	for _, sd := range d.Switches {
		for _, b := range sd.Blocks {
			block := Block{Switch: sd.Switch, Number: b}
			fillBlock(&block.Entries, in.New.Row(sd.Switch), b)
			round.Blocks = append(round.Blocks, block)
		}
	}
	s.Rounds = append(s.Rounds, round)
	return s
}

func fillBlock(entries *[mad.LFTBlock]uint8, row []uint8, b int) {
	for i := range entries {
		entries[i] = mad.NoPort
	}
	if first := b * mad.LFTBlock; first < len(row) {
		copy(entries[:], row[first:])
	}
}

// tops are the writes of LinearFDBTop.
func (in *Input) tops(s *Schedule) {
	for i := range in.New.Graph().Switches() {
		was, is := highest(in.Old.Row(i)), highest(in.New.Row(i))
		if in.OldTop != nil {
			was = in.OldTop[i]
		}
		if in.NewTop != nil {
			is = in.NewTop[i]
		}
		switch {
		case is > was:
			s.Raise = append(s.Raise, Top{i, is})
		case is < was && in.NewTop != nil:
			s.Lower = append(s.Lower, Top{i, is})
		}
	}
}

// highest is the highest LID with an entry.
func highest(row []uint8) mad.LID {
	for lid := len(row) - 1; lid > 0; lid-- {
		if row[lid] != mad.NoPort {
			return mad.LID(lid)
		}
	}
	return 0
}
