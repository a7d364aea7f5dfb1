package apply

import (
	"context"
	"errors"
)

// Abandon ends a change without a write, whatever the fabric has of it: for blocks that
// stay another writer's, or switches that are gone. left says what is not as before. A
// damaged journal is replaced, or where its first line, which has the change, does not
// verify, set aside: no block is read then, and the *DamageError is returned.
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
	return left, j.Append(Record{Kind: KindAbandoned, Why: whyAsked})
}
