package lang

import (
	"sync/atomic"
	"time"
)

// Activity distinguishes a script that waits or writes from one that only computes.
type Activity struct {
	waiting atomic.Int32 // fibers in Block
	last    atomic.Int64 // time of the last write or end of a wait: nanoseconds since 1970
}

// Note records that the script did something other than compute.
func (a *Activity) Note() { a.last.Store(time.Now().UnixNano()) }

// wait records that a fiber waits, until done is called.
func (a *Activity) wait() (done func()) {
	a.waiting.Add(1)
	return func() {
		a.Note() // before it counts as computing
		a.waiting.Add(-1)
	}
}

// Last returns the time of the last Note.
func (a *Activity) Last() time.Time { return time.Unix(0, a.last.Load()) }

// Waits reports whether a fiber waits.
func (a *Activity) Waits() bool { return a.waiting.Load() > 0 }
