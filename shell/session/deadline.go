package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fabsh/builtins/lang"
	"fabsh/mad/engine"
)

const (
	// grace is how long a script may go on reporting after its deadline.
	grace = 10 * time.Second
	// mayCompute is how long it may do so without output and without a request to the
	// fabric: a script that only computed for this long reports nothing.
	mayCompute = time.Second
	// hearsEvery is the interval of the checks for it. A late check counts no more idle
	// time than one in time: the machine may be suspended, or busy.
	hearsEvery = 100 * time.Millisecond
)

// A TimeLimit is the time of a run: --deadline, including the time to open the fabric.
// Several sessions in sequence may share it.
type TimeLimit struct {
	after time.Duration // 0: unlimited
	ends  time.Time
}

// Over reports whether the time has passed.
func (l TimeLimit) Over() bool { return l.after > 0 && !time.Now().Before(l.ends) }

// Context returns a context that ends with the time.
func (l TimeLimit) Context() context.Context {
	if l.after == 0 {
		return context.Background()
	}
	ctx, cancel := context.WithDeadlineCause(context.Background(), l.ends, &lang.DeadlineError{After: l.after})
	context.AfterFunc(ctx, cancel)
	return ctx
}

// Deadline is the end of a session's time, or of a statement's at the prompt. From then
// on all requests to the fabric end with an error, including pending ones, and so do
// sleeps; the script goes on, unless it only computes. After the grace it is stopped in
// any case, and if that has no effect the program is ended: it may hang on a pipe
// without a reader.
type Deadline struct {
	late *lang.DeadlineError
	at   time.Time
	over context.Context // ends when the script must stop
	end  context.CancelCauseFunc
	kill func(why error) // nil: nothing is ended by force

	mu       sync.Mutex     // guards the fields below
	engine   *engine.Engine // nil: no live fabric, or none yet
	activity *lang.Activity // nil: no session yet
	timer    *time.Timer
	word     time.Time     // the last activity of the script
	silent   time.Duration // idle time since then, by the checks
	stopped  bool
}

// StartDeadline starts the time; it returns nil if after is 0, which is unlimited. kill
// ends the program by force; it may be nil.
func StartDeadline(after time.Duration, kill func(why error)) *Deadline {
	if after == 0 {
		return nil
	}
	return deadlineAt(time.Now().Add(after), after, kill)
}

// deadlineAt is StartDeadline with a time that began earlier.
func deadlineAt(at time.Time, after time.Duration, kill func(why error)) *Deadline {
	d := &Deadline{late: &lang.DeadlineError{After: after}, at: at, kill: kill}
	d.over, d.end = context.WithCancelCause(context.Background())
	d.mu.Lock() // the timer may go off before it is stored
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(time.Until(at), d.pass)
	return d
}

func (d *Deadline) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	if d.activity != nil && d.activity.Waits() {
		d.activity.Note() // the wait ends now, and the script has its time from here
	}
	d.halt(d.late)
	d.word = d.lastWord()
	d.silent = d.at.Sub(d.word)
	d.look()
}

// lastWord returns the time of the script's last activity, or its start. d.mu is held.
func (d *Deadline) lastWord() time.Time {
	if d.activity != nil {
		return d.activity.Last()
	}
	return d.at.Add(-d.late.After)
}

// look stops the script if it only computes or its grace has ended, and otherwise
// schedules the next check. d.mu is held.
func (d *Deadline) look() {
	computes, left := mayCompute-d.silent, time.Until(d.at.Add(grace))
	switch next := min(computes, left, hearsEvery); {
	case next > 0:
		d.timer = time.AfterFunc(next, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.stopped {
				return
			}
			d.silent += next
			if word := d.lastWord(); word.After(d.word) {
				d.word, d.silent = word, min(time.Since(word), next)
			}
			d.look()
		})
	case left > 0:
		d.close(d.late)
	default:
		d.close(fmt.Errorf("%w; the session did not end within %v after it", d.late, grace))
	}
}

// close stops the script. d.mu is held.
func (d *Deadline) close(why error) {
	d.end(why)
	if d.kill != nil {
		d.timer = time.AfterFunc(endsWithin, func() { d.kill(why) })
	}
}

// Limit ends requests of e, which may be nil, at the deadline, or now if it has passed.
// a is the other activity of the script.
func (d *Deadline) Limit(e *engine.Engine, a *lang.Activity) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine, d.activity = e, a
	d.activity.Note()
	if d.hasPassed() {
		d.halt(d.late)
	}
}

// Within returns a context that also ends at the deadline, for work that has nothing to
// report after it.
func (d *Deadline) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if d == nil {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, d.at, d.late)
}

func (d *Deadline) halt(cause error) {
	if d.engine != nil {
		d.engine.Halt(cause)
	}
}

// Run calls fn with a context that ends when it is to be stopped.
func (d *Deadline) Run(ctx context.Context, fn func(context.Context) error) error {
	if d == nil {
		return fn(ctx)
	}
	ctx, cancel := context.WithCancelCause(lang.WithDeadline(ctx, d.at, d.late))
	defer cancel(nil)
	defer context.AfterFunc(d.over, func() { cancel(context.Cause(d.over)) })()
	return fn(ctx)
}

// IsOver reports whether the current evaluation must stop.
func (d *Deadline) IsOver() bool { return d != nil && d.over.Err() != nil }

// WhenOver calls fn when the current evaluation must stop; stop cancels that.
func (d *Deadline) WhenOver(fn func(error)) (stop func() bool) {
	if d == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(d.over, func() { fn(context.Cause(d.over)) })
}

// hasPassed reports whether the deadline has passed, by the clock, because a timer may
// be late.
func (d *Deadline) hasPassed() bool { return d != nil && !time.Now().Before(d.at) }

// Stop ends the time early, and lets the engine work again.
func (d *Deadline) Stop() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.timer.Stop()
	d.halt(nil)
	d.end(nil)
}
