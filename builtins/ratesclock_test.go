package builtins

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
)

// setClock is a clock that is set when it has been read some times.
type setClock struct {
	by    time.Duration
	after int
	reads int
	slept time.Duration
}

func (c *setClock) Now() time.Time {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	if c.reads++; c.reads > c.after {
		now = now.Add(c.by)
	}
	return now
}

func (c *setClock) Sleep(_ context.Context, d time.Duration) error {
	c.slept = max(c.slept, d)
	return nil
}

// TestRatesClock: whenever the clock is set back, or stops, rates over 2 s wait 2 s at
// most, and are not known.
func TestRatesClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, 0} {
		for after := range 40 {
			c := &setClock{by: by, after: after}
			onSim(t, "fattree:k=4", func(o *SessionOptions) { o.Clock = c }, func(t *testing.T, f *fixture) {
				out, explained, exit := f.run(`perf_rates(discover().switches[0].ports[1], over="2s").unknown.get("too_short", []) != []`)
				if out != "True\n" || exit != 0 {
					t.Errorf("set by %v after %d: %s%s", by, after, out, explained)
				}
				if c.slept > 2*time.Second {
					t.Errorf("set by %v after %d: it waits %v", by, after, c.slept)
				}
			})
		}
	}
}

// bootClock is a machine's clock that is set, with the time since its boot.
type bootClock struct {
	lang.RealClock
	by   time.Duration
	boot string
	at   time.Time // of the boot
}

func (c *bootClock) Now() time.Time { return time.Now().Round(0).Add(c.by) }

func (c *bootClock) Uptime() (boot string, up time.Duration) { return c.boot, time.Since(c.at) }

// TestRunsClock: whatever the clock does between two runs, rates are over the time since
// boot. After another boot they are over the clock's time, or not judged, with the reason.
func TestRunsClock(t *testing.T) {
	t.Run("a file", func(t *testing.T) { runsClock(t, nil) })
	t.Run("in memory", func(t *testing.T) { runsClock(t, new(audit.State)) }) // as the exporter keeps it
}

func runsClock(t *testing.T, kept *audit.State) {
	c := &bootClock{boot: "a"}
	var got strings.Builder
	onSim(t, "ring:n=2", func(o *SessionOptions) { o.Clock, o.State = c, t.TempDir() }, func(t *testing.T, f *fixture) {
		c.at = time.Now().Add(-time.Hour)
		write(t, f.fs, "/work/a.star", `
def audit(fabric):
    finding("a.window", fabric, "%s" % perf_rates(fabric.switches[0].ports[1], over="last").window, severity="info")
`)
		check := func(what string) {
			time.Sleep(10 * time.Minute)
			r := ran(t, f, audits.RunOptions{Kept: kept}, "a.star")
			for _, x := range r.Findings {
				fmt.Fprintln(&got, what+":", x.Message, "since", c.Now().Sub(x.Since).Round(time.Minute), r.Notes)
			}
		}
		check("first")
		check("second")
		c.by = -time.Hour
		check("an hour back")
		c.by += 24 * time.Hour
		check("a day forward")
		c.by -= 10 * time.Minute
		check("standing")
		c.boot, c.at = "b", time.Now()
		check("another boot")
		c.boot, c.at, c.by = "c", time.Now(), c.by-time.Hour
		check("another boot, an hour back")
	})
	want := `first: None since 0s [counters were not judged: no earlier run of this job has read them]
second: 600.0 since 10m0s []
an hour back: 600.0 since 20m0s []
a day forward: 600.0 since 30m0s []
standing: 600.0 since 40m0s []
another boot: 600.0 since 50m0s []
another boot, an hour back: None since 0s [counters were not judged: the clock stopped or was set back since the previous run of this job]
`
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
