package lang

import (
	"context"
	"time"
)

// Clock is the time that scripts live in; a simulation may own it.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or earlier with the cause when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// RealClock is the time of the machine.
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
