package apply

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"fabsh/fabric/format"
)

// Guard is a process that reverts a change when the process that applies it no longer
// can.
type Guard interface {
	// Done is closed when the guard process has ended.
	Done() <-chan struct{}
	// Release reports to the guard that this process no longer applies the change.
	Release()
}

// Unguarded reports whether no guard process reverts the change of the journal
// automatically.
func (r *Run) Unguarded() bool { return isFree(JournalIn(r.Dir), guardName) }

// Keeper is the work of a guard process: it reverts the change of a journal when the time
// to confirm has expired, when the change cannot continue, or when the process that
// applies it has ended.
type Keeper struct {
	run   *Run
	seen  *view
	alive *format.FileLock // shows other processes that the change is guarded
}

// NewKeeper begins to guard the change of r's journal. It waits until the guard of the
// previous change has ended.
func NewKeeper(ctx context.Context, r *Run) (*Keeper, error) {
	seen, err := newView(JournalIn(r.Dir))
	if err != nil {
		return nil, err
	}
	for {
		alive, err := format.AcquireLock(filepath.Join(r.Dir, guardName))
		if err == nil {
			return &Keeper{r, seen, alive}, nil
		}
		if errors.Is(err, format.ErrLockHeld) {
			err = r.Host.Clock.Sleep(ctx, poll)
		}
		if err != nil {
			seen.close()
			return nil, err
		}
	}
}

// Keep returns when the change has ended. gone is closed when the process that applies it
// has ended.
func (k *Keeper) Keep(ctx context.Context, gone <-chan struct{}) error {
	defer k.seen.close()
	defer k.alive.Release()
	var due time.Time
	for {
		j, err := k.seen.read()
		var damage *DamageError
		switch {
		case errors.As(err, &damage) && j != nil && !damage.Last.ends():
		case err != nil:
			return err
		case !j.Open():
			return nil
		}
		why := ""
		last := j.Records[len(j.Records)-1]
		if last.Kind == KindApplied && due.IsZero() {
			due = time.Now().Add(last.Within)
		}
		select {
		case <-gone:
			why = whyGone
		default:
			if !due.IsZero() && !time.Now().Before(due) {
				why = whyExpired
			}
		}
		if last.Kind == KindFailed {
			why = last.Why
		}
		if damage != nil {
			why = whyDamaged
		}
		if why != "" {
			if _, err := k.run.revert(ctx, j.Begin(), why, nil); !errors.Is(err, format.ErrLockHeld) {
				return err
			}
		}
		if err := k.run.Host.Clock.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}
