package lang

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestVirtualClockStopped: a sleeper that is stopped counts as awake, and one that
// ends leaves the time to the others.
func TestVirtualClockStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewVirtualClock()
		c.addFibers(1)
		began := c.Now()
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(context.Background())
		ended := make(chan error, 2)
		go func() { ended <- c.Sleep(ctx, time.Hour) }()
		synctest.Wait() // the other fiber runs, so the time stands
		if now := c.Now(); now != began {
			t.Errorf("it is %v", now)
		}
		cancel(stop)
		if err := <-ended; err != stop {
			t.Errorf("stopped: %v", err)
		}
		if err := c.Sleep(ctx, time.Hour); err != stop {
			t.Errorf("stopped before: %v", err)
		}
		go func() { ended <- c.Sleep(context.Background(), time.Minute) }()
		synctest.Wait()
		c.addFibers(-1) // the one that was stopped ends
		if err := <-ended; err != nil || c.Now() != began.Add(time.Minute) {
			t.Errorf("it is %v: %v", c.Now(), err)
		}
	})
}
