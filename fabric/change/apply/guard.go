package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Keeper is the work of a guard process: it reverts the change of a journal when the time
// to confirm has expired, when the change cannot continue, or when the process that
// applies it has ended.
type Keeper struct {
	run   *Run
	seen  *journalView
	alive *format.FileLock // shows other processes that the change is guarded
}

// NewKeeper begins to guard the change of r's journal. It waits until the guard of the
// previous change has ended.
func NewKeeper(ctx context.Context, r *Run) (*Keeper, error) {
	seen, err := newJournalView(JournalIn(r.Dir))
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
	// Time is counted by the waits: the clock may be set meanwhile.
	var waited, within time.Duration
	applied := false
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
		if last.Kind == KindApplied && !applied {
			applied, waited, within = true, 0, last.Within
		}
		select {
		case <-gone:
			why = whyGone
		default:
			if applied && waited >= within {
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
			if _, err := k.run.revert(ctx, j.Begin(), why); !errors.Is(err, format.ErrLockHeld) {
				return err
			}
		}
		if err := k.run.Host.Clock.Sleep(ctx, poll); err != nil {
			return err
		}
		waited += poll
	}
}

// Unguarded reports whether no guard process reverts the change of the journal
// automatically.
func (r *Run) Unguarded() bool { return isUnlocked(JournalIn(r.Dir), guardName) }

// await waits until the change has ended. It reverts the change itself if the guard has
// ended before, the journal is damaged, a check fails, or ctx ends. failed is the reason
// if the change cannot continue.
func (r *Run) await(ctx context.Context, begun *Journal, guard Guard, checks *Checks, failed error) (Outcome, error) {
	released := failed != nil
	stay := context.WithoutCancel(ctx)
	seen, err := newJournalView(begun.path)
	if err != nil {
		return Unresolved, err
	}
	defer seen.close()
	revert := ""            // why
	unchecked := watchEvery // time since the last check
	var failing error       // the reason recorded in the journal if the change has failed
	for {
		j, err := seen.read()
		var damage *DamageError
		switch {
		case errors.As(err, &damage) && damage.Last.ends():
			return Unresolved, withCopy(err)
		case damage != nil:
			revert, failed = whyDamaged, withCopy(err)
		case err != nil:
			return Unresolved, err
		case !j.Open():
			last := &j.Records[len(j.Records)-1]
			if last.Kind == KindReverted {
				r.Host.log("reverted: " + last.Why)
				return r.reverted(stay, j, failed)
			}
			return outcomeOf(last, failed)
		case j.Records[len(j.Records)-1].Kind == KindStopped:
			return Unresolved, &CheckError{j.Records[len(j.Records)-1].Why + "; the change is neither applied nor reverted: see fabsh change status; then resume or revert it, or end it without a write (change revert --abandon)"}
		}
		select {
		case <-guard.Done():
			// It may have ended the change just now.
			if j, err := seen.read(); err == nil && !j.Open() {
				continue
			}
			if revert == "" {
				r.Host.log("the guard process has ended: this process reverts the change")
				revert = whyUnguarded
			}
			failed = cmp.Or(failed, error(&CheckError{whyUnguarded}))
		default:
		}
		if failed == nil && failing == nil && ctx.Err() == nil && unchecked >= watchEvery {
			if err := checks.Waiting(ctx, begun.Begin().Cells); err != nil && ctx.Err() == nil {
				failing = err
				r.Host.log(fmt.Sprintf("%v: reverting the change", err))
			}
			unchecked = 0
		}
		if failing != nil { // the guard process reverts it
			if err := r.fail(failing); !errors.Is(err, format.ErrLockHeld) {
				failed, failing = failing, nil
			}
		}
		if revert != "" {
			j, err := r.revert(stay, begun.Begin(), revert)
			switch {
			case err == nil && j.Last(KindReverted) != nil:
				return r.reverted(stay, j, failed)
			case err == nil:
				return outcomeOf(&j.Records[len(j.Records)-1], failed)
			case !errors.Is(err, format.ErrLockHeld):
				return Unresolved, err
			}
		}
		if ctx.Err() != nil && !released {
			released = true
			failed = context.Cause(ctx)
			r.Host.log("interrupted: the change is reverted")
			guard.Release()
		}
		if err := r.Host.Clock.Sleep(stay, poll); err != nil {
			return Unresolved, err
		}
		unchecked += poll
	}
}

// outcomeOf returns the outcome that the last record states.
func outcomeOf(last *Record, failed error) (Outcome, error) {
	switch {
	case last.Kind == KindConfirmed:
		return Confirmed, nil
	case last.Kind == KindAbandoned:
		return Unresolved, &CheckError{"the change was abandoned: blocks already written stay"}
	case failed != nil:
		return Failed, failed
	}
	return Expired, nil
}

// Reasons for reverting a change.
const (
	whyExpired   = "it was not confirmed in time"
	whyGone      = "the process that applied it has ended"
	whyUnguarded = "the guard process has ended"
	whyDamaged   = "its journal is damaged"
	whyRequested = "on request"
)

// fail records in the journal that a change that waits to be confirmed cannot continue.
func (r *Run) fail(why error) error {
	held, j, err := r.open()
	if err != nil {
		return err
	}
	defer held.Release()
	defer j.Close()
	if j.Records[len(j.Records)-1].Kind != KindApplied {
		return nil
	}
	return j.Append(Record{Kind: KindFailed, Why: why.Error()})
}

// revert reverts the change b in this process, whether or not its journal is damaged. It
// returns the journal after that.
func (r *Run) revert(ctx context.Context, b *Begin, why string) (*Journal, error) {
	held, err := r.lock()
	if err != nil {
		return nil, err
	}
	defer held.Release()
	j, err := r.openReplacing(func(*Journal) (*Begin, error) { return b, nil })
	if err != nil {
		return nil, err
	}
	defer j.Close()
	if j.Begin().ID != b.ID {
		return nil, &CheckError{"the journal belongs to another change"}
	}
	if j.Open() {
		err = r.revertJournal(ctx, j, nil, why)
	}
	return j, err
}
