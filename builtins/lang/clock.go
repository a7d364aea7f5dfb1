package lang

import (
	"context"
	"time"

	"go.starlark.net/starlark"
)

// Clock is the time that scripts see; a simulation may provide it.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or, if ctx ends earlier, with its cause.
	Sleep(ctx context.Context, d time.Duration) error
}

// UptimeClock is a Clock that also counts the time since the machine booted, which setting
// the clock does not change.
type UptimeClock interface {
	Clock
	// Uptime returns an identifier of the boot, "" if unknown, and the time since then.
	Uptime() (boot string, up time.Duration)
}

// RealClock is the machine's time.
type RealClock struct{}

func (RealClock) Now() time.Time { return time.Now() }

func (RealClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Sleep is sleep(), which uses the session's clock.
var Sleep = Builtin{
	Name:   "sleep",
	Group:  GroupRest,
	Params: []Param{{Name: "duration", Kind: KindDuration, Doc: `"500ms", "10s", or a number of seconds`}},
	Doc:    "Waits for a duration; other items of parallel continue.\nAt the deadline it fails.",
	Example: `
> sleep("1ms")
`,
	Run: Do(func(c *Call, a *struct{ Duration time.Duration }) (starlark.Value, error) {
		if err := c.Sleep(a.Duration); err != nil {
			return nil, err
		}
		return starlark.None, nil
	}),
}

// Wait waits by a clock, for functions in Block. It fails at the deadline.
func Wait(ctx context.Context, clock Clock, d time.Duration) error {
	ctx, cancel := untilDeadline(ctx)
	defer cancel()
	return clock.Sleep(ctx, d)
}

// Sleep waits, by the session's clock; other items of parallel continue. It fails at
// the deadline.
func (c *Call) Sleep(d time.Duration) error {
	err := c.Block(func(ctx context.Context) error { return Wait(ctx, c.Runtime().Clock, d) })
	if err != nil && c.Fiber().Stopped() == nil {
		return Errorf("%w", err)
	}
	return err
}
