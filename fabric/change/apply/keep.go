package apply

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"fabsh/fabric/lock"
)

// Keep is what the guard process does: it takes the change back when its time is over,
// when it goes no further, or when gone is closed, for the process that makes it has
// ended. It returns when the change has ended. ready is called when it is at work.
func (r *Run) Keep(ctx context.Context, gone <-chan struct{}, ready func()) error {
	seen, err := newView(JournalIn(r.Dir))
	if err != nil {
		return err
	}
	defer seen.close()
	for {
		alive, err := lock.Acquire(filepath.Join(r.Dir, guardName))
		if err == nil {
			defer alive.Release()
			break
		}
		if !errors.Is(err, lock.ErrHeld) { // by the guard of the change before, which is about to end
			return err
		}
		if err := r.Sleep(ctx, poll); err != nil {
			return err
		}
	}
	ready()
	var due time.Time
	for {
		j, err := seen.read()
		if err != nil {
			return err
		}
		if !j.Open() {
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
		if why != "" {
			if _, err := r.revert(ctx, why, nil); !errors.Is(err, lock.ErrHeld) {
				return err
			}
		}
		if err := r.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// open takes the lock and opens the journal.
func (r *Run) open() (*lock.Lock, *Journal, error) {
	held, err := r.lock()
	if err != nil {
		return nil, nil, err
	}
	j, err := OpenJournal(JournalIn(r.Dir))
	if err != nil {
		held.Release()
		return nil, nil, err
	}
	return held, j, nil
}

// lock acquires the lock of the subnet; nil: its journal is in no file.
func (r *Run) lock() (*lock.Lock, error) {
	if r.Dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return nil, err
	}
	return lock.Acquire(filepath.Join(r.Dir, lockName))
}
