package apply

import (
	"context"
	"errors"
	"fmt"
)

// Status is the state of a change, from its journal and the fabric.
type Status struct {
	Journal *Journal // of a damaged one, the lines that verify
	Damage  *DamageError
	Blocks  []Block // as just read; nil: the change is unknown, as the first line is damaged
}

// Block is the state of a cell in the fabric.
type Block struct {
	State State
	Text  string // its name; for Foreign its content, for Unread the reason
}

// Status reads the journal, and all blocks of the change.
func (r *Run) Status(ctx context.Context) (*Status, error) {
	s := new(Status)
	var err error
	if s.Journal, err = r.Read(); err != nil && !errors.As(err, &s.Damage) {
		return nil, err
	}
	if s.Journal.Begin() != nil {
		s.Blocks, err = r.blocks(ctx, s.Journal)
		return s, err
	}
	return s, nil
}

// blocks reads all cells of a change.
func (r *Run) blocks(ctx context.Context, j *Journal) ([]Block, error) {
	c := Change{Journal: j, access: newAccess(r.Host.Engine, j.Begin().Cells)}
	read, err := c.read(ctx, c.all())
	if err != nil {
		return nil, err
	}
	blocks := make([]Block, len(read))
	for i := range read {
		b := &blocks[i]
		if b.Text = c.cells[i].Name; read[i].err != nil {
			b.State, b.Text = Unread, fmt.Sprintf("%s: not read: %v", b.Text, read[i].err)
			continue
		}
		data := c.cells[i].only(read[i].data)
		if b.State = c.classify(i, data); b.State == Foreign {
			b.Text = c.describe(i, data)
		}
	}
	return blocks, nil
}

// left describes b, a block that is not known to be as before the change.
func (b *Block) left() string {
	if b.State == Foreign || b.State == Unread {
		return b.Text
	}
	return fmt.Sprintf("%s is %v", b.Text, b.State)
}

// left reads all cells, and describes those that are not known to be as before the
// change.
func (r *Run) left(ctx context.Context, j *Journal) (texts []string, err error) {
	blocks, err := r.blocks(ctx, j)
	for _, b := range blocks {
		if b.State != Old {
			texts = append(texts, b.left())
		}
	}
	return texts, err
}
