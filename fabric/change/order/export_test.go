package order

import (
	"context"
	"time"

	"fabsh/fabric/change/certificate"
	"fabsh/mad"
)

// Block is the write of a block, as the checkers of tests see it.
type Block struct {
	Switch, Number int
	Entries        [mad.LFTBlock]uint8
}

// Blocks are the writes of a round.
type Blocks struct {
	Blocks []Block
	Drain  time.Duration
}

// BlocksOf are the rounds of a schedule for an input.
func BlocksOf(in Input, s *Schedule) (list []Blocks) {
	in.number()
	for _, r := range s.Rounds {
		x := Blocks{Drain: r.Drain}
		for _, w := range r.Writes {
			if at := in.at[w.Change]; at.s >= 0 {
				x.Blocks = append(x.Blocks, Block{at.s, at.number, [mad.LFTBlock]uint8(w.Data)})
			}
		}
		list = append(list, x)
	}
	return list
}

// Wait is the sum of the drains of s.
func (s *Schedule) Wait() (sum time.Duration) {
	for _, r := range s.Rounds {
		sum += r.Drain
	}
	return sum
}

// Write is the write of a block.
func (in *Input) Write(s, number int, data []byte) certificate.Write {
	in.number()
	return in.write(s, number, data)
}

// Prove proves a schedule that is not from Plan, as Plan proves its own.
func Prove(ctx context.Context, in Input, s *Schedule) (Figures, error) {
	if err := in.check(); err != nil {
		return Figures{}, err
	}
	h, err := newHistory(newNet(in.Old.Graph()), &in, s)
	if err != nil {
		return Figures{}, err
	}
	return h.prove(ctx)
}
