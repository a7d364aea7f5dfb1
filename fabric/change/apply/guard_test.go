package apply_test

import (
	"testing"
	"testing/synctest"

	"fabsh/fabric/change/apply"
)

// TestGuardOfOne: a guard keeps the change that it was started for. The next one, which
// may begin before the guard has seen the end of its own, is none of its business.
func TestGuardOfOne(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		run := &apply.Run{Host: &apply.Host{Clock: clock{}}, Dir: dir}
		first, err := apply.NewJournal(apply.JournalIn(dir), &apply.Begin{ID: "first"})
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		gone, ended := make(chan struct{}), make(chan error)
		go func() {
			k, err := apply.NewKeeper(t.Context(), run)
			if err == nil {
				err = k.Keep(t.Context(), gone)
			}
			ended <- err
		}()
		synctest.Wait() // until it sleeps
		if err := first.Append(apply.Record{Kind: apply.KindReverted}); err != nil {
			t.Fatal(err)
		}
		close(gone)
		next, err := apply.NewJournal(apply.JournalIn(dir), &apply.Begin{ID: "next"})
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if j, err := apply.ReadJournal(apply.JournalIn(dir)); err != nil || !j.Open() || j.Begin().ID != "next" {
			t.Errorf("the guard ended the change that it does not keep: %v, %v", j, err)
		}
	})
}
