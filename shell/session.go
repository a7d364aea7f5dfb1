package shell

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"fabsh/builtins"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/mad/engine"
)

// session is a builtins.Session with the connection to its fabric and the
// console.
type session struct {
	*builtins.Session
	app      *app
	engine   *engine.Engine // nil: no live fabric
	name     string         // of the fabric, in the prompt
	before   engine.Stats   // when this evaluation began
	progress *progress
	began    time.Time
	deadline *deadline          // of the session; nil: it has none
	planning *builtins.Planning // --plan; nil: what is written is sent
	found    *audit.Report      // by the latest run of audits; nil: none ran
	where    string             // what runs in it, for the last words of a program that is ended by force
	// limit is the time of each statement; 0: there is no limit.
	limit time.Duration
}

// close ends the subscriptions and closes the transport.
func (s *session) close() {
	s.app.interrupts.onExit(func() {})
	s.Session.Close()
	s.closeEngine()
}

// leave does what must be done before the program ends without close: agents
// outside keep subscriptions and places until they are given back.
func (s *session) leave() {
	s.Session.Unsubscribe()
	s.closeEngine()
}

// writeMetrics writes what was shown with -o prom: all of a metric's values stand
// together, so that nothing can be written before.
func (s *session) writeMetrics() {
	if err := s.WriteMetrics(); err != nil {
		s.app.fail(err)
	}
}

// noLive is why a command fails that needs a live fabric, in a session without one:
// the host has no device, or ofFile.
func (s *session) noLive(command, ofFile string) error {
	if absent := topology.EnvOf(s.Runtime).Absent; absent != nil {
		return &hostError{fmt.Errorf("%s: %w: %w", command, topology.ErrNoFabric, absent)}
	}
	return fmt.Errorf("%s: %s", command, ofFile)
}

func (s *session) closeEngine() {
	if s.engine == nil {
		return
	}
	if err := s.engine.Close(); err != nil {
		s.app.fail(&hostError{err})
	}
}

// doing is the progress line of what reports no progress itself: the MADs of
// this evaluation.
func (s *session) doing() string {
	if s.engine == nil {
		return "working"
	}
	st := s.engine.Stats()
	return fmt.Sprintf("%s sent, %d answered", lang.Count(int(st.Sent-s.before.Sent), "MAD"), st.Answered-s.before.Answered)
}

// startDeadline starts the time of the session, opening the fabric included. Its
// last message is not written through the console, which may be what hangs.
func (a *app) startDeadline() *deadline {
	after := a.deadline.value
	if after == 0 {
		return nil
	}
	if a.ends.IsZero() { // else it goes on, with another session
		a.ends = time.Now().Add(after)
	}
	ctx, cancel := context.WithDeadlineCause(context.Background(), a.ends, &lang.DeadlineError{After: after})
	context.AfterFunc(ctx, cancel)
	a.opening = ctx
	return deadlineAt(a.ends, after, a.endLate)
}

// endLate ends the program, whose time is over.
func (a *app) endLate(why error) {
	a.interrupts.force(func() { fmt.Fprintf(a.console.stderr, "fabsh: %v\n", why) }, lang.StatusFabric)
}

// evaluate runs code or a script, reports what went wrong, and returns the
// exit status.
func (s *session) evaluate(fn func(context.Context) error) int {
	err := s.attempt(fn)
	s.report(err)
	return s.finalStatus(lang.StatusClean, err)
}

// finalStatus is the exit status of a session whose last evaluation ended with
// err; worst is that of the evaluations before. It writes the reason where nothing
// else does.
func (s *session) finalStatus(worst int, err error) int {
	status := s.ExitStatus(err)
	var host *hostError
	if status == lang.StatusUsage && errors.As(err, &host) && !s.Refused() {
		status = lang.StatusFabric
	}
	status = worse(worst, status)
	if s.deadline.hasPassed() {
		status = worse(status, lang.StatusFabric)
	}
	var exit *lang.ExitError
	if status != lang.StatusFabric || err != nil && !errors.As(err, &exit) || s.app.quiet {
		return status
	}
	switch n := s.Unanswered(); {
	case s.deadline.hasPassed():
		fmt.Fprintf(s.app.console.Err(), "%v: exit status %d\n", s.deadline.late, status)
	case n == 1:
		fmt.Fprintf(s.app.console.Err(), "1 request got no answer: exit status %d\n", status)
	case n > 1:
		fmt.Fprintf(s.app.console.Err(), "%d requests got no answer: exit status %d\n", n, status)
	}
	return status
}

// attempt runs fn until it ends, fails or is interrupted, or its time is over.
func (s *session) attempt(fn func(context.Context) error) error {
	d := s.deadline
	if s.limit > 0 {
		d = startDeadline(s.limit, nil)
		d.limit(s)
		defer d.stop()
	}
	s.before = s.stats()
	return s.app.interrupts.run(func(ctx context.Context) (err error) {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		defer s.app.within(ctx)()
		defer s.watchMemory(stop)()
		ctx = lang.LimitSteps(ctx, uint64(s.app.maxSteps.value), stop)
		s.progress.during(func() { err = d.run(ctx, fn) })
		cause := context.Cause(ctx)
		if cause == nil && d.isOver() {
			cause = context.Cause(d.over)
		}
		if err != nil && cause != nil {
			return &interruption{cause, s.stats().Cancelled - s.before.Cancelled}
		}
		return err
	})
}

// stats are the counts so far.
func (s *session) stats() engine.Stats {
	if s.engine == nil {
		return engine.Stats{}
	}
	return s.engine.Stats()
}

// interruption is the end of an evaluation by a signal.
type interruption struct {
	cause     error
	abandoned uint64 // calls
}

func (e *interruption) Unwrap() error { return e.cause }
func (e *interruption) Error() string {
	if e.abandoned == 0 {
		return e.cause.Error()
	}
	return fmt.Sprintf("%v (in-flight MADs abandoned: %d)", e.cause, e.abandoned)
}

// summary writes, with -v, the counts of MADs and the time of the session.
func (s *session) summary() {
	if s.app.verbose == 0 || s.engine == nil {
		return
	}
	st := s.engine.Stats()
	fmt.Fprintf(s.app.console.Err(), "MADs: %d sent, %d answered, %d sent again, %d timed out; %d ms\n",
		st.Sent, st.Answered, st.Retried, st.TimedOut, time.Since(s.began).Milliseconds())
}

// report writes to stderr what ended an evaluation.
func (s *session) report(err error) {
	var exit *lang.ExitError
	var stop *interruption
	var limit *lang.LimitError
	stderr := s.app.console.Err()
	switch {
	case err == nil, errors.As(err, &exit), s.app.interrupts.ended() == syscall.SIGPIPE:
	case errors.As(err, &limit):
		fmt.Fprintf(stderr, "fabsh: %v\n", limit)
	case errors.As(err, &stop):
		fmt.Fprintln(stderr, stop)
	default:
		s.app.console.complain(s.Explain(err))
	}
}
