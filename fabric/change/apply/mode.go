package apply

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric/change/certificate"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// mode is how the rounds of a change are written: by fabsh (sets), link by link beside a
// subnet manager (links), or by OpenSM (stager).
type mode interface {
	// arrange returns the rounds to write for those that were planned. They are proven then.
	arrange(rounds []certificate.Round) []certificate.Round
	// begin is called before round n, from 0; now are the cells.
	begin(n int, r *certificate.Round, now [][]byte)
	// write writes over what was read of the cells, reads them back, and notes them in now.
	write(ctx context.Context, writes []certificate.Write, read []exchange, now [][]byte) error
	// settle waits until the fabric has handled what was written.
	settle(ctx context.Context, writes []certificate.Write) error
	// failed returns the error of a change whose round n has failed with cause.
	failed(ctx context.Context, rounds []certificate.Round, n int, now [][]byte, cause error) error
	// reverted is called after a reversal, whether or not it has failed.
	reverted() error
}

// sets is the mode in which fabsh sends Sets, in any order within a round.
type sets struct {
	*Writer
	// canary makes the first write of the first round go alone.
	canary bool
}

func (s *sets) arrange(rounds []certificate.Round) []certificate.Round { return rounds }

func (s *sets) begin(int, *certificate.Round, [][]byte) {}

func (s *sets) settle(context.Context, []certificate.Write) error { return nil }

func (s *sets) failed(_ context.Context, _ []certificate.Round, _ int, _ [][]byte, cause error) error {
	return cause
}

func (s *sets) reverted() error { return nil }

// tries is how often a write that had no effect is sent.
const tries = 3

// write writes over what was read of the cells, and reads them back. Cells that are still as
// before are written again, because the Set may have been lost.
func (s *sets) write(ctx context.Context, writes []certificate.Write, read []exchange, now [][]byte) error {
	all, later, laterRead := writes, []certificate.Write(nil), []exchange(nil)
	if s.canary && len(writes) > 1 {
		writes, later, read, laterRead = writes[:1], writes[1:], read[:1], read[1:]
	}
	s.canary = false
	for try := 1; len(writes) > 0; try++ {
		sent := make([]exchange, len(writes))
		for i, w := range writes {
			sent[i] = exchange{cell: w.Change, data: s.cells[w.Change].Request(read[i].data, w.Data)}
		}
		if err := s.do(ctx, mad.MethodSet, nil, sent); err != nil {
			return err
		}
		back, err := s.read(ctx, cellsOf(writes))
		if err != nil {
			return err
		}
		var left []certificate.Write
		var leftRead []exchange
		var foreign ForeignError
		var refused error
		for i, w := range writes {
			cell := s.cells[w.Change]
			switch {
			case sent[i].err != nil && (traceless(cell) || cell.Same(w.Data, now[w.Change])): // only the answer shows that it arrived
				left, leftRead = append(left, w), append(leftRead, back[i])
				if try == tries && refused == nil || !errors.Is(sent[i].err, engine.ErrTimeout) {
					refused = fmt.Errorf("%s: %w", cell.Name, sent[i].err)
				}
			case cell.Same(back[i].data, w.Data):
				now[w.Change] = w.Data
			case cell.Same(back[i].data, now[w.Change]):
				left, leftRead = append(left, w), append(leftRead, back[i])
				if sent[i].err != nil && !errors.Is(sent[i].err, engine.ErrTimeout) || try == tries && refused == nil {
					refused = fmt.Errorf("%s: %w", cell.Name, setError(sent[i].err))
				}
			default:
				foreign.Cells = append(foreign.Cells, s.describe(w.Change, cell.Masked(back[i].data)))
			}
		}
		switch {
		case foreign.Cells != nil:
			return &foreign
		case refused != nil:
			return &AccessError{len(left), refused}
		}
		if writes, read = left, leftRead; len(writes) == 0 { // what follows the canary
			writes, read, later, laterRead, try = later, laterRead, nil, nil, 0
		}
	}
	return s.trained(ctx, all)
}

// setError returns the reason that a Set had no effect.
func setError(err error) error {
	if err == nil {
		return errors.New("the Set was answered, but it reads back as before")
	}
	return err
}

// trainsWithin is how long a link may take to train.
const trainsWithin = 10 * time.Second

// trained waits until the links that writes have made train again are up, if they were up
// before.
func (s *sets) trained(ctx context.Context, writes []certificate.Write) error {
	state := mad.AttrPortInfo.Field("port_physical_state")
	writes = slices.DeleteFunc(slices.Clone(writes), func(w certificate.Write) bool {
		cell := s.cells[w.Change]
		return !cell.Trains() || mad.PortPhysicalState(state.Uint(cell.Old)) != mad.PortPhysicalStateLinkUp
	})
	for waited := time.Duration(0); len(writes) > 0; waited += poll {
		back, err := s.tryRead(ctx, cellsOf(writes))
		if err != nil {
			return err
		}
		var left []certificate.Write
		for i, w := range writes {
			if back[i].err != nil || mad.PortPhysicalState(state.Uint(back[i].data)) != mad.PortPhysicalStateLinkUp {
				left = append(left, w)
			}
		}
		if writes = left; len(writes) > 0 && waited >= trainsWithin {
			return &CheckError{fmt.Sprintf("%s: the link was reset, and is not up after %v", s.cells[writes[0].Change].Name, trainsWithin)}
		} else if len(writes) > 0 {
			if err := s.Sleep(ctx, poll); err != nil {
				return err
			}
		}
	}
	return nil
}

// Proven are rounds that may be sent, exactly as they were proven: a round that was altered
// since is not sent.
type Proven struct {
	rounds []certificate.Round
	sums   [][sha256.Size]byte // of the rounds, when they were proven
}

// newProven seals rounds. The caller has just checked their proof.
func newProven(rounds []certificate.Round) *Proven {
	p := &Proven{rounds: rounds}
	for i := range rounds {
		p.sums = append(p.sums, sumOf(&rounds[i]))
	}
	return p
}

// round returns round n, from 0. The error is a *CheckError if it is not as it was proven.
func (p *Proven) round(n int) (*certificate.Round, error) {
	if r := &p.rounds[n]; sumOf(r) == p.sums[n] {
		return r, nil
	}
	return nil, &CheckError{fmt.Sprintf("round %d differs from the one that was proven; it is not sent", n+1)}
}

// sumOf returns a checksum of a round.
func sumOf(r *certificate.Round) (sum [sha256.Size]byte) {
	h, number := sha256.New(), []byte(nil)
	for _, w := range r.Writes {
		number = binary.AppendUvarint(binary.AppendUvarint(number[:0], uint64(w.Change)), uint64(len(w.Data)))
		h.Write(number)
		h.Write(w.Data)
	}
	h.Write(binary.AppendUvarint(number[:0], uint64(r.Drain)))
	return [sha256.Size]byte(h.Sum(nil))
}
