package lang

import (
	"sync/atomic"
	"time"
)

// Activity tells a script that waits or writes from one that just computes.
type Activity struct {
	waiting atomic.Int32 // fibers in Block
	last    atomic.Int64 // when one wrote, or a wait ended: nanoseconds since 1970
}

// Note notes that the script did something else than compute.
func (a *Activity) Note() { a.last.Store(time.Now().UnixNano()) }

// wait notes that a fiber waits, until done is called.
func (a *Activity) wait() (done func()) {
	a.waiting.Add(1)
	return func() {
		a.Note() // before it counts as computing
		a.waiting.Add(-1)
	}
}

// Last is when it last did.
func (a *Activity) Last() time.Time { return time.Unix(0, a.last.Load()) }

// Waits: a fiber waits.
func (a *Activity) Waits() bool { return a.waiting.Load() > 0 }
