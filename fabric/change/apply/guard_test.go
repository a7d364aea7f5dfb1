package apply_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/sim"
)

// TestGuardOfOne: a guard keeps the change that it was started for. The next one, which
// may begin before the guard has seen the end of its own, is none of its business.
func TestGuardOfOne(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		run := &apply.Run{Host: &apply.Host{Clock: clock{}}, Dir: dir}
		first, err := apply.NewJournal(apply.JournalIn(dir), &apply.Begin{ID: "first"}, clock{})
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
		next, err := apply.NewJournal(apply.JournalIn(dir), &apply.Begin{ID: "next"}, clock{})
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

// jumpingClock is a host's clock that is set in the middle of a change, or stops. It waits
// in the time that passes.
type jumpingClock struct {
	clock
	by    *atomic.Int64 // nanoseconds that it is ahead
	still *time.Time    // nil: it goes on
}

func (c jumpingClock) Now() time.Time {
	if c.still != nil {
		return *c.still
	}
	return time.Now().Round(0).Add(time.Duration(c.by.Load()))
}

// TestClockOfChange: the guard process reverts after the time to confirm, whatever the clock
// does meanwhile, and a change that is confirmed before stays.
func TestClockOfChange(t *testing.T) {
	for _, x := range []struct {
		what  string
		by    time.Duration
		still bool
	}{{"an hour back", -time.Hour, false}, {"a day forward", 24 * time.Hour, false}, {"standing", 0, true}} {
		for _, confirm := range []bool{false, true} {
			t.Run(x.what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, "fattree:k=4")
					r.uplinks()
					dir := filepath.Join(t.TempDir(), "x")
					now := jumpingClock{by: new(atomic.Int64)}
					if start := time.Now(); x.still {
						now.still = &start
					}
					r.clock = now
					run, end := r.run(dir)
					defer end()
					run.Host.StartGuard = r.guard(dir)
					defer r.guards.Wait()
					other, endOther := r.run(dir)
					defer endOther()
					start := time.Now()
					var confirmer sync.WaitGroup // it has the lock until after the end
					confirmer.Go(func() {
						time.Sleep(30 * time.Second)
						now.by.Store(int64(x.by))
						time.Sleep(10 * time.Second)
						if confirm {
							if outcome, err := other.Confirm(t.Context(), false); outcome != apply.Confirmed {
								t.Error(outcome, err)
							}
						}
					})
					f := r.sweep(run)
					sm, err := run.Host.SA.FindSM(t.Context(), f)
					if err != nil {
						t.Fatal(err)
					}
					b := begin(r, sm)
					b.Within = time.Minute
					outcome, err := run.Apply(t.Context(), f, sm, b)
					took := time.Since(start)
					confirmer.Wait()
					switch {
					case confirm && (outcome != apply.Confirmed || err != nil || !r.are(after)):
						t.Errorf("confirmed: %v, %v", outcome, err)
					case !confirm && (outcome != apply.Expired || err != nil || !r.are(before) || took < time.Minute || took > 70*time.Second):
						t.Errorf("not confirmed: %v, %v after %v", outcome, err, took)
					}
					// Later ones go by the journal's order, not by its times.
					text, err := os.ReadFile(apply.JournalIn(dir))
					if err != nil || bytes.Count(text, []byte("\n")) < 4 {
						t.Error(err, string(text))
					}
					if outcome, err := run.Revert(t.Context(), r.sweep(run)); err != nil || !r.are(before) {
						t.Error(outcome, err)
					}
				})
			})
		}
	}
}

// TestLate: datagrams are lost, doubled, and later than the time-out, so that Sets come
// after the ones that followed them. What is said to be made is; all else is taken back
// when they have come.
func TestLate(t *testing.T) {
	made := 0
	for seed := range 20 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "fattree:k=4")
			f, o, err := sim.Parse(fmt.Sprintf("fattree:k=4,loss=5%%,dup=5%%,jitter=1500ms,seed=%d", seed))
			if err != nil {
				t.Fatal(err)
			}
			r.subnet, r.retries = sim.New(f, o), 12
			e := r.engine(-1, nil)
			j, err := apply.NewJournal("", &apply.Begin{Cells: r.cells}, clock{})
			if err != nil {
				t.Fatal(err)
			}
			err = r.change(e, j).Make(t.Context())
			e.Close()
			if err == nil {
				made++
			}
			time.Sleep(10 * time.Second) // they are all there, or lost
			quiet := r.engine(-1, nil)
			defer quiet.Close()
			for range 3 { // what takes it back may meet late ones of its own
				if err = r.change(quiet, j).Revert(t.Context(), "test"); err == nil {
					break
				}
				time.Sleep(10 * time.Second)
			}
			if err != nil || !r.are(before) {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
	t.Log(made, "of 20 were made")
}
