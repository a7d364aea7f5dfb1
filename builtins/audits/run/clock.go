package run

import (
	"context"
	"sync/atomic"
	"time"

	"fabsh/builtins/lang"
)

// hastyClock is the clock of a run on a simulated fabric, where nothing changes by
// itself: whoever waits goes on at once, and it is later. Otherwise time goes by, for
// audits tell how long the fabric takes to answer, which a lang.VirtualClock does not.
type hastyClock struct {
	lang.Clock
	ahead atomic.Int64 // nanoseconds
}

func (c *hastyClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *hastyClock) Sleep(ctx context.Context, d time.Duration) error {
	c.ahead.Add(int64(max(0, d)))
	return context.Cause(ctx)
}
