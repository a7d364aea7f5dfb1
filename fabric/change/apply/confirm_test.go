package apply_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/format"
)

// TestConfirmUnderWay: while a change is being applied, Confirm returns how many rounds are done and how
// long the rest takes; a block may be written in several.
func TestConfirmUnderWay(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		r.uplinks()
		j, err := apply.NewJournal(apply.JournalIn(dir), &apply.Begin{Cells: r.cells}, clock{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		held, err := format.AcquireLock(filepath.Join(dir, "change.lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release()
		run := &apply.Run{Host: &apply.Host{Clock: clock{}}, Dir: dir}
		confirm := func(want string) {
			t.Helper()
			if outcome, err := run.Confirm(t.Context(), false); outcome != apply.Unresolved || err == nil || err.Error() != want {
				t.Errorf("%v, %v\nwant %s", outcome, err, want)
			}
		}
		confirm("the change is not applied yet: the time left is unknown; change confirm --wait waits until it is applied")
		if err := j.Append(apply.Record{Kind: apply.KindRound, Number: 1, Rounds: 3, Round: certificate.Round{Writes: []certificate.Write{{Change: 1, Data: r.cells[1].New}, {Change: 3, Data: r.cells[3].New}}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := j.Append(apply.Record{Kind: apply.KindDone, Number: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		confirm("the change is not applied yet: 1 of 3 rounds done, about 17s left; change confirm --wait waits until it is applied")
		if err := j.Append(apply.Record{Kind: apply.KindFailed}); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Confirm(t.Context(), false); !errors.Is(err, format.ErrLockHeld) {
			t.Error(err)
		}
	})
}

// TestConfirmWhenApplied: it confirms a change that is still being applied when it begins, and ends if
// that change is not applied.
func TestConfirmWhenApplied(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "fattree:k=4")
			r.uplinks()
			dir := filepath.Join(t.TempDir(), "x")
			run, end := r.run(dir)
			defer end()
			defer r.guards.Wait()
			other, endOther := r.run(dir)
			defer endOther()
			f := r.sweep(run)
			sm, err := run.Host.SA.FindSM(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var confirmer sync.WaitGroup
			guard := r.guard(dir)
			run.Host.StartGuard = func(ctx context.Context, path string) (apply.Guard, error) {
				confirmer.Go(func() {
					outcome, err := other.ConfirmWhenApplied(t.Context(), false)
					switch {
					case stopped && (err == nil || err.Error() != "not confirmed: the change could not be applied: nothing was sent: context canceled; see fabsh change status"):
						t.Errorf("stopped: %v, %v", outcome, err)
					case !stopped && (outcome != apply.Confirmed || err != nil):
						t.Errorf("%v, %v", outcome, err)
					}
				})
				synctest.Wait() // until it sleeps
				if stopped {
					stop()
				}
				return guard(ctx, path)
			}
			b := begin(r, sm)
			b.Within = time.Minute
			outcome, err := run.Apply(ctx, f, sm, b)
			confirmer.Wait()
			if (outcome == apply.Confirmed) == stopped {
				t.Errorf("%v, %v", outcome, err)
			}
		})
	}
}
