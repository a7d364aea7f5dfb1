package apply

import (
	"context"
	"errors"
	"fmt"
)

// Abandon ends a change without a write, whatever the fabric has of it: for blocks that
// stay somebody else's, or switches that are gone. left says what is not as before.
func (r *Run) Abandon(ctx context.Context) (left []string, err error) {
	held, j, err := r.open()
	if err != nil {
		return nil, err
	}
	defer held.Release()
	defer j.Close()
	if !j.Open() {
		return nil, errors.New("change: the change has ended already: there is nothing to abandon")
	}
	if j.Last(KindRound) != nil {
		if left, err = r.left(ctx, j); err != nil {
			return nil, err
		}
	}
	return left, j.Append(Record{Kind: KindAbandoned, Why: whyAsked})
}

// left are the cells that are not as before the change, and what they are.
func (r *Run) left(ctx context.Context, j *Journal) (texts []string, err error) {
	c := Change{Journal: j, access: newAccess(r.Host.Engine, j.Begin().Cells)}
	read, err := c.read(ctx, c.all())
	if err != nil {
		return nil, err
	}
	for i := range read {
		if err := read[i].err; err != nil {
			texts = append(texts, fmt.Sprintf("%s: it cannot be read: %v", c.cells[i].Name, err))
			continue
		}
		data := c.cells[i].only(read[i].data)
		switch s := c.classify(i, data); s {
		case Old:
		case Foreign:
			texts = append(texts, c.describe(i, data))
		default:
			texts = append(texts, fmt.Sprintf("%s is %v", c.cells[i].Name, s))
		}
	}
	return texts, nil
}
