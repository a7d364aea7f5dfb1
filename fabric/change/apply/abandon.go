package apply

import (
	"context"
	"errors"
)

// Abandon ends a change without a write, whatever state the blocks are in: for blocks
// that another writer keeps, or switches that are gone. left describes the blocks that
// are not as before the change. A damaged journal is replaced; if its first line, which
// contains the change, does not verify, it is set aside instead, no block is read, and
// the *DamageError is returned.
func (r *Run) Abandon(ctx context.Context) (left []string, err error) {
	held, err := r.lock()
	if err != nil {
		return nil, err
	}
	defer held.Release()
	var damage *DamageError
	old, err := r.Read()
	switch damaged := errors.As(err, &damage); {
	case damaged && old.Begin() == nil:
		if err := r.setAside(damage); err != nil {
			return nil, err
		}
		return nil, damage
	case err != nil && !damaged:
		return nil, err
	case !damaged && !old.Open():
		return nil, errors.New("change: the change has ended already; nothing to abandon")
	}
	if left, err = r.left(ctx, old); err != nil {
		return nil, err
	}
	j, err := r.openReplacing(func(j *Journal) (*Begin, error) { return j.Begin(), nil })
	if err != nil {
		return nil, err
	}
	defer j.Close()
	return left, j.Append(Record{Kind: KindAbandoned, Why: whyRequested})
}
