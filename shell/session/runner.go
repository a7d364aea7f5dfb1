package session

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"fabsh/builtins"
	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/fabric/plural"
	"fabsh/mad/engine"
)

// A Runner evaluates code of a session within its limits, one evaluation at a time, and
// reports its result.
type Runner struct {
	Deadline  *Deadline     // of the session; may be nil
	Statement time.Duration // the time of each evaluation; 0: unlimited

	session    *builtins.Session
	engine     *engine.Engine // nil: no live fabric
	console    *Console
	interrupts *Interrupts
	settings   *Settings
	progress   *progress    // nil: no progress line
	before     engine.Stats // when this evaluation began
	began      time.Time
	where      string // what runs, for the last message of a program that is ended by force
}

// Describe sets what runs, for the progress line and the last message of a program that
// is ended by force.
func (r *Runner) Describe(doing string) {
	doing = lang.OneLine(doing)
	r.where = " (in " + doing + ")"
	if r.progress != nil {
		r.progress.idle = func() string { return "testing " + doing }
	}
}

// LimitTo sets the deadline of the session.
func (r *Runner) LimitTo(d *Deadline) {
	r.Deadline = d
	d.Limit(r.engine, r.session.Activity)
}

// Evaluate runs code or a script, reports errors, and returns the exit status.
func (r *Runner) Evaluate(fn func(context.Context) error) int {
	err := r.Attempt(fn)
	r.Report(err)
	return r.FinalStatus(lang.StatusClean, err)
}

// FinalStatus returns the exit status of a session whose last evaluation ended with
// err; worst is that of the evaluations before. It writes the reason if nothing else
// does.
func (r *Runner) FinalStatus(worst int, err error) int {
	code := audits.ExitStatus(r.session.Runtime, err)
	var host *HostError
	if code == lang.StatusUsage && errors.As(err, &host) && !r.session.Refused() {
		code = lang.StatusFabric
	}
	code = Worse(worst, code)
	if r.Deadline.hasPassed() {
		code = Worse(code, lang.StatusFabric)
	}
	var exit *lang.ExitError
	if code != lang.StatusFabric || err != nil && !errors.As(err, &exit) || r.settings.Quiet {
		return code
	}
	switch n := r.session.Unanswered(); {
	case r.Deadline.hasPassed():
		fmt.Fprintf(r.console.Err(), "%v: exit status %d\n", r.Deadline.late, code)
	case n == 1:
		fmt.Fprintf(r.console.Err(), "1 request was not answered: exit status %d\n", code)
	case n > 1:
		fmt.Fprintf(r.console.Err(), "%d requests were not answered: exit status %d\n", n, code)
	}
	return code
}

// Attempt runs fn until it ends, fails or is interrupted, or its time is over.
func (r *Runner) Attempt(fn func(context.Context) error) error {
	d := r.Deadline
	if r.Statement > 0 {
		d = StartDeadline(r.Statement, nil)
		d.Limit(r.engine, r.session.Activity)
		defer d.Stop()
	}
	r.before = r.stats()
	return r.interrupts.Run(func(ctx context.Context) (err error) {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		defer watchMemory(r.settings.Memory, r.where, r.console, r.interrupts, stop)()
		ctx = lang.LimitSteps(ctx, uint64(r.settings.MaxSteps.Value), stop)
		r.progress.during(func() { err = d.Run(ctx, fn) })
		cause := context.Cause(ctx)
		if cause == nil && d.IsOver() {
			cause = context.Cause(d.over)
		}
		if err != nil && cause != nil {
			return &Interruption{cause, r.stats().Cancelled - r.before.Cancelled}
		}
		return err
	})
}

// stats returns the counts so far.
func (r *Runner) stats() engine.Stats {
	if r.engine == nil {
		return engine.Stats{}
	}
	return r.engine.Stats()
}

// doing is the progress line if nothing else reports progress: the MADs of this
// evaluation; "" if it has sent none.
func (r *Runner) doing() string {
	st := r.stats()
	if st.Sent == r.before.Sent {
		return ""
	}
	return fmt.Sprintf("%s sent, %d answered", plural.Count(int(st.Sent-r.before.Sent), "MAD", "MADs"), st.Answered-r.before.Answered)
}

// Interruption is the end of an evaluation by a signal or a limit.
type Interruption struct {
	cause     error
	abandoned uint64 // calls
}

func (e *Interruption) Unwrap() error { return e.cause }
func (e *Interruption) Error() string {
	if e.abandoned == 0 {
		return e.cause.Error()
	}
	return fmt.Sprintf("%v (in-flight MADs abandoned: %d)", e.cause, e.abandoned)
}

// Summary writes, with -v, the counts of MADs and the time of the session.
func (r *Runner) Summary() {
	if r.settings.Verbose == 0 || r.engine == nil {
		return
	}
	st := r.engine.Stats()
	fmt.Fprintf(r.console.Err(), "MADs: %d sent, %d answered, %d retries, %d timed out; %d ms\n",
		st.Sent, st.Answered, st.Retried, st.TimedOut, time.Since(r.began).Milliseconds())
}

// Report prints to stderr what ended an evaluation.
func (r *Runner) Report(err error) {
	var exit *lang.ExitError
	var stop *Interruption
	var limit *lang.LimitError
	switch {
	case err == nil, errors.As(err, &exit), r.interrupts.Ended() == syscall.SIGPIPE:
	case errors.As(err, &limit):
		fmt.Fprintf(r.console.Err(), "fabsh: %v\n", limit)
	case errors.As(err, &stop):
		fmt.Fprintln(r.console.Err(), stop)
	default:
		r.console.Complain(r.session.Explain(err))
	}
}
