package builtins

import (
	"context"
	"testing"
	"time"
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
			onSim(t, "fattree:k=4", func(o *Options) { o.Clock = c }, func(t *testing.T, f *fixture) {
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
