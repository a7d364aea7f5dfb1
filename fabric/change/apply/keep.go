package apply

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"fabsh/fabric/audit"
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
		alive, err := audit.Lock(filepath.Join(r.Dir, guardName))
		if err == nil {
			defer alive.Unlock()
			break
		}
		if !errors.Is(err, audit.ErrLocked) { // by the guard of the change before, which is about to end
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
			if _, err := r.revert(ctx, why, nil); !errors.Is(err, audit.ErrLocked) {
				return err
			}
		}
		if err := r.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// open takes the lock and opens the journal.
func (r *Run) open() (*held, *Journal, error) {
	lock, err := r.lock()
	if err != nil {
		return nil, nil, err
	}
	j, err := OpenJournal(JournalIn(r.Dir))
	if err != nil {
		lock.release()
		return nil, nil, err
	}
	return lock, j, nil
}

// held is the lock of a subnet, which may be given back before its owner ends.
type held struct{ lock *audit.Held }

func (r *Run) lock() (*held, error) {
	if r.Dir == "" {
		return &held{}, nil
	}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := audit.Lock(filepath.Join(r.Dir, lockName))
	if err != nil {
		return nil, err
	}
	return &held{lock}, nil
}

func (h *held) release() {
	if h.lock != nil {
		h.lock.Unlock()
		h.lock = nil
	}
}
