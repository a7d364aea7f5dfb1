package shell

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fabsh/builtins/lang"
	"fabsh/mad/engine"
)

// grace is how long a script may go on reporting after its deadline.
const grace = 10 * time.Second

// deadline is the end of a session's time, or of a statement's at the prompt.
// From then on all that is asked of the fabric ends as an error, also what was
// asked before; the script goes on. After the grace it is stopped, and the
// program is ended where that is of no use: it may hang with a pipe that nobody
// reads.
type deadline struct {
	late *lang.DeadlineError
	at   time.Time
	over context.Context // ends with the grace
	end  context.CancelCauseFunc
	kill func(why error) // nil: nothing is ended by force

	mu      sync.Mutex     // guards all below
	engine  *engine.Engine // nil: no live fabric, or none yet
	timer   *time.Timer
	stopped bool
}

// startDeadline starts the time; nil if after is 0, for then there is no end.
func startDeadline(after time.Duration, kill func(why error)) *deadline {
	if after == 0 {
		return nil
	}
	d := &deadline{late: &lang.DeadlineError{After: after}, at: time.Now().Add(after), kill: kill}
	d.over, d.end = context.WithCancelCause(context.Background())
	d.mu.Lock() // the timer may go off before it is stored
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(after, d.pass)
	return d
}

func (d *deadline) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	d.timer = time.AfterFunc(grace, d.close)
	d.halt(d.late)
}

// close ends the grace.
func (d *deadline) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	why := fmt.Errorf("%w, and the session had not ended %v later", d.late, grace)
	d.end(why)
	if d.kill != nil {
		d.timer = time.AfterFunc(endsWithin, func() { d.kill(why) })
	}
}

// limit has e end when the time does, or now if that is over.
func (d *deadline) limit(e *engine.Engine) {
	if d == nil || e == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine = e
	if d.hasPassed() {
		e.Halt(d.late)
	}
}

func (d *deadline) halt(cause error) {
	if d.engine != nil {
		d.engine.Halt(cause)
	}
}

// run calls fn with a context that ends with the grace.
func (d *deadline) run(ctx context.Context, fn func(context.Context) error) error {
	if d == nil {
		return fn(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.over, func() { cancel(context.Cause(d.over)) })()
	return fn(ctx)
}

// isOver: the grace has ended, too.
func (d *deadline) isOver() bool { return d != nil && d.over.Err() != nil }

// whenOver has fn called when the grace ends; stop takes that back.
func (d *deadline) whenOver(fn func(error)) (stop func() bool) {
	if d == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(d.over, func() { fn(context.Cause(d.over)) })
}

// hasPassed: it came to an end. The clock decides, for a timer may be late.
func (d *deadline) hasPassed() bool { return d != nil && !time.Now().Before(d.at) }

// stop ends the time before it is over, and lets the engine work again.
func (d *deadline) stop() {
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
