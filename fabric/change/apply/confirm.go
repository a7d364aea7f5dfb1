package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"fabsh/fabric/format"
	"fabsh/fabric/plural"
)

// UnderWayError reports that the change cannot be confirmed yet: its rounds are being written.
type UnderWayError struct {
	Done, Rounds int           // rounds that are written and read back, of all; 0: unknown
	Left         time.Duration // estimated from the time of these; 0: unknown
}

func (e *UnderWayError) Error() string {
	left := "the time left is unknown"
	if e.Left > 0 {
		left = fmt.Sprintf("about %v left", e.Left)
	}
	if e.Rounds > 0 {
		left = fmt.Sprintf("%d of %s done, %s", e.Done, plural.Count(e.Rounds, "round", "rounds"), left)
	}
	return fmt.Sprintf("the change is not applied yet: %s; change confirm --wait waits until it is applied", left)
}

// notYet returns an *UnderWayError if err is that another process has the lock, and that is because
// it applies the change; else err.
func (r *Run) notYet(err error) error {
	if errors.Is(err, format.ErrLockHeld) {
		if j, damage := r.Read(); damage == nil {
			return cmp.Or(underWay(j, r.Host.Clock.Now()), err)
		}
	}
	return err
}

// underWay returns an *UnderWayError if the change of j is being applied, as far as its journal
// shows; nil: it is not.
func underWay(j *Journal, now time.Time) error {
	e := &UnderWayError{}
	var began, done time.Time
	for _, rec := range j.Records {
		switch rec.Kind {
		case KindBegin:
		case KindRound:
			if e.Rounds = rec.Rounds; rec.Number == 1 { // the first, or the first again of a change that is resumed
				began, e.Done = rec.At, 0
			}
		case KindDone:
			done, e.Done = rec.At, rec.Number
		default:
			return nil
		}
	}
	if e.Done > 0 && e.Rounds >= e.Done && done.After(began) && !now.Before(done) { // else the clock was set back
		// As long for each other round, less what has passed since the last one.
		left := done.Sub(began) * time.Duration(e.Rounds-e.Done) / time.Duration(e.Done)
		e.Left = max(left-now.Sub(done), time.Second).Round(time.Second)
	}
	return e
}

// ConfirmWhenApplied is Confirm that waits while the change is being applied. It returns an error if
// the change fails or is reverted meanwhile.
func (r *Run) ConfirmWhenApplied(ctx context.Context, force bool) (Outcome, error) {
	waited, id := false, ""
	for {
		outcome, err := r.Confirm(ctx, force)
		switch j, e := r.Read(); {
		case waited && (errors.Is(e, fs.ErrNotExist) || e == nil && id != "" && j.Begin().ID != id): // no journal, or that of an earlier change
			return Unresolved, &CheckError{"not confirmed: nothing of the change was sent"}
		case errors.As(err, new(*UnderWayError)):
			if e == nil {
				id = j.Begin().ID
			}
		case errors.Is(err, format.ErrLockHeld) && e == nil && j.Records[len(j.Records)-1].Kind == KindApplied:
			// The process that applied it has not released the lock yet.
		case waited && e == nil && j.Last(KindApplied) == nil:
			why := cmp.Or(j.Records[len(j.Records)-1].Why, "the process that applied it has ended")
			return Unresolved, &CheckError{fmt.Sprintf("not confirmed: the change could not be applied: %s; see fabsh change status", why)}
		default:
			return outcome, err
		}
		waited = true
		if err := r.Host.Clock.Sleep(ctx, poll); err != nil {
			return Unresolved, err
		}
	}
}
