package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"fabsh/fabric/format"
	"fabsh/fabric/plural"
)

// await waits until the change has ended. It reverts the change itself if the guard has
// ended before, the journal is damaged, a check fails, or ctx ends. failed is the reason
// if the change cannot continue.
func (r *Run) await(ctx context.Context, begun *Journal, guard Guard, checks *Checks, failed error) (Outcome, error) {
	released := failed != nil
	stay := context.WithoutCancel(ctx)
	seen, err := newView(begun.path)
	if err != nil {
		return Unresolved, err
	}
	defer seen.close()
	revert := "" // why
	var checked time.Time
	var failing error // the reason recorded in the journal if the change has failed
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
				if err := r.asBefore(stay, j); err != nil {
					return Unresolved, err
				}
			}
			return ended(last, failed)
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
		if failed == nil && failing == nil && ctx.Err() == nil && time.Since(checked) >= watchEvery {
			if err := checks.Waiting(ctx, begun.Begin().Cells); err != nil && ctx.Err() == nil {
				failing = err
				r.Host.log(fmt.Sprintf("%v: reverting the change", err))
			}
			checked = time.Now()
		}
		if failing != nil { // the guard process reverts it
			if err := r.fail(failing); !errors.Is(err, format.ErrLockHeld) {
				failed, failing = failing, nil
			}
		}
		if revert != "" {
			if outcome, err := r.revert(stay, begun.Begin(), revert, failed); !errors.Is(err, format.ErrLockHeld) {
				return outcome, err
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
	}
}

// ended returns the outcome that the last record states.
func ended(last *Record, failed error) (Outcome, error) {
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

// revert reverts the change b in this process, whether or not its journal is damaged.
func (r *Run) revert(ctx context.Context, b *Begin, why string, failed error) (Outcome, error) {
	held, err := r.lock()
	if err != nil {
		return Unresolved, err
	}
	defer held.Release()
	j, err := r.openReplacing(func(*Journal) (*Begin, error) { return b, nil })
	if err != nil {
		return Unresolved, err
	}
	defer j.Close()
	switch {
	case j.Begin().ID != b.ID:
		return Unresolved, &CheckError{"the journal belongs to another change"}
	case j.Open():
		if err := r.revertJournal(ctx, j, nil, why); err != nil {
			return Unresolved, err
		}
	case j.Last(KindReverted) != nil: // by another process
		if err := r.asBefore(ctx, j); err != nil {
			return Unresolved, err
		}
	}
	return ended(&j.Records[len(j.Records)-1], failed)
}

// asBefore reads all blocks, and returns an error if some are not as before the change.
func (r *Run) asBefore(ctx context.Context, j *Journal) error {
	blocks, err := r.blocks(ctx, j)
	if err != nil {
		return err
	}
	var unread, left []string
	for _, b := range blocks {
		switch b.State {
		case Unread:
			unread = append(unread, b.Text)
		case Old:
		default:
			left = append(left, b.left())
		}
	}
	switch {
	case left != nil:
		return &CheckError{fmt.Sprintf("the journal records the change as reverted, but %s not as before it: %s; change revert --from-fabric reverts all blocks but foreign ones",
			plural.Count(len(left), "block is", "blocks are"), firstOf(5, left))}
	case unread != nil:
		return &CheckError{fmt.Sprintf("the journal records the change as reverted, but %s not be read: %s", plural.Count(len(unread), "block could", "blocks could"), firstOf(5, unread))}
	}
	return nil
}
