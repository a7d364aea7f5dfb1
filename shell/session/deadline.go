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
	// mayCompute is how long it may do so without a word, to people or to the
	// fabric: what has just computed for so long reports nothing.
	mayCompute = time.Second
	// hearsEvery is how often that is looked after. A look that comes late finds no
	// more silence than one in time: the machine may stand still, or be busy.
	hearsEvery = 100 * time.Millisecond
)

// A TimeLimit is the time of a run: --deadline, opening the fabric included. It may
// be that of several sessions, one after the other.
type TimeLimit struct {
	after time.Duration // 0: there is no limit
	ends  time.Time
}

// Context returns a context that ends with the time.
func (l TimeLimit) Context() context.Context {
	if l.after == 0 {
		return context.Background()
	}
	ctx, cancel := context.WithDeadlineCause(context.Background(), l.ends, &lang.DeadlineError{After: l.after})
	context.AfterFunc(ctx, cancel)
	return ctx
}

// Deadline is the end of a session's time, or of a statement's at the prompt.
// From then on all that is asked of the fabric ends as an error, also what was
// asked before, and so do sleeps; the script goes on, unless it just computes.
// After the grace it is stopped in any case, and the program is ended where that
// is of no use: it may hang with a pipe that nobody reads.
type Deadline struct {
	late *lang.DeadlineError
	at   time.Time
	over context.Context // ends when the script is to be stopped
	end  context.CancelCauseFunc
	kill func(why error) // nil: nothing is ended by force

	mu       sync.Mutex     // guards all below
	engine   *engine.Engine // nil: no live fabric, or none yet
	activity *lang.Activity // nil: there is no session yet
	timer    *time.Timer
	word     time.Time     // the last one that was heard
	silent   time.Duration // since then, as the looks found it
	stopped  bool
}

// StartDeadline starts the time; nil if after is 0, for then there is no end. kill
// ends the program by force; nil: nothing does.
func StartDeadline(after time.Duration, kill func(why error)) *Deadline {
	if after == 0 {
		return nil
	}
	return deadlineAt(time.Now().Add(after), after, kill)
}

// deadlineAt is StartDeadline of a time that began before.
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
		d.activity.Note() // the waiting ends now, and the script has its time from here
	}
	d.halt(d.late)
	d.word = d.lastWord()
	d.silent = d.at.Sub(d.word)
	d.look()
}

// lastWord is when the script said something, or began. d.mu is held.
func (d *Deadline) lastWord() time.Time {
	if d.activity != nil {
		return d.activity.Last()
	}
	return d.at.Add(-d.late.After)
}

// look stops the script if it just computes or its grace has ended, and otherwise
// looks again when that may be so. d.mu is held.
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
		d.close(fmt.Errorf("%w, and the session had not ended %v later", d.late, grace))
	}
}

// close stops the script. d.mu is held.
func (d *Deadline) close(why error) {
	d.end(why)
	if d.kill != nil {
		d.timer = time.AfterFunc(endsWithin, func() { d.kill(why) })
	}
}

// Limit has what is sent by e, which may be nil, end when the time does, or now if
// that is over. a is what the script does besides.
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

// Within returns ctx that ends at the deadline too: what runs so has nothing to report
// after it.
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

// IsOver reports whether what runs is to be stopped.
func (d *Deadline) IsOver() bool { return d != nil && d.over.Err() != nil }

// WhenOver has fn called when what runs is to be stopped; stop takes that back.
func (d *Deadline) WhenOver(fn func(error)) (stop func() bool) {
	if d == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(d.over, func() { fn(context.Cause(d.over)) })
}

// hasPassed reports whether it came to an end. The clock decides, for a timer may be late.
func (d *Deadline) hasPassed() bool { return d != nil && !time.Now().Before(d.at) }

// Stop ends the time before it is over, and lets the engine work again.
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
