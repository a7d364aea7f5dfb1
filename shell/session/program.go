package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.starlark.net/starlark"

	"fabsh"
	"fabsh/builtins"
	"fabsh/builtins/audits"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/plural"
	"fabsh/mad/engine"
)

// Program is one run of the program: the common state of its sessions.
type Program struct {
	Settings   *Settings
	Console    *Console
	Stdin      *os.File
	Interrupts *Interrupts
	// StartGuard starts the guard process of a journal of changes that are made by an
	// engine; nil: changes are not possible.
	StartGuard func(ctx context.Context, e *engine.Engine, journal string) (apply.Guard, error)
	Words      []string // of the command line, without the program
	Operation  string   // the command, which its errors name: "change plan"; "": none, so fabsh
	// Line is the command typed at the prompt; nil: the command opens its own session.
	Line *Line
	// Help returns the pages of help on commands; nil: none.
	Help func() []help.Page
}

// With returns p with other settings.
func (p *Program) With(s Settings) *Program {
	other := *p
	other.Settings = &s
	return &other
}

// Warn prints a warning.
func (p *Program) Warn(format string, args ...any) {
	if !p.Settings.Quiet {
		fmt.Fprintf(p.Console.Err(), "warning: "+format+"\n", args...)
	}
}

// AtTerminal reports whether a user types the input and reads the output.
func (p *Program) AtTerminal() bool { return isTerminal(p.Stdin) && p.Console.stdoutTTY }

// StdinIsTerminal reports whether a user types the input.
func (p *Program) StdinIsTerminal() bool { return isTerminal(p.Stdin) }

// StartTime starts the time of a run, limited by --deadline.
func (p *Program) StartTime() TimeLimit {
	after := p.Settings.Deadline.Value
	if after == 0 || p.Line != nil { // the prompt limits the time of each statement
		return TimeLimit{}
	}
	return TimeLimit{after, time.Now().Add(after)}
}

// StartDeadline starts to enforce a time; nil: unlimited. Its last message is not
// written through the console, which may hang.
func (p *Program) StartDeadline(l TimeLimit) *Deadline {
	if l.after == 0 {
		return nil
	}
	return deadlineAt(l.ends, l.after, p.endLate)
}

// endLate ends the program, whose time is over.
func (p *Program) endLate(why error) {
	p.Interrupts.Force(func() { fmt.Fprintf(p.Console.lastWords, "fabsh: %v\n", why) }, lang.StatusFabric)
}

// Evaluate opens a session by open, evaluates in it within the time, ends it, and
// returns the exit status. what is what runs, for a plan that is made of it.
func (p *Program) Evaluate(l TimeLimit, what string, open func(context.Context) (*Session, error), evaluate func(*Session) int) (status int, err error) {
	d := p.StartDeadline(l)
	defer d.Stop()
	s, err := open(l.Context())
	if err != nil {
		return lang.StatusClean, err
	}
	defer func() { status = Worse(status, p.Fail(s.Close())) }()
	s.Runner.LimitTo(d)
	return p.finish(s, evaluate(s), what), nil
}

// finish writes what a session has left to write, and returns its exit status.
func (p *Program) finish(s *Session, status int, what string) int {
	status = s.endPlan(p.Operation, status, what)
	status = Worse(status, p.Fail(audits.WriteMetrics(s.Runtime)))
	s.Runner.Summary()
	return status
}

// Profiled runs run, with --profile under Starlark's profiler. The profile is written
// as a whole when run ends; without one, none is. The error is why it did not run, or
// the exit status.
func (p *Program) Profiled(run func() (status int, err error)) error {
	status, err := lang.StatusClean, error(nil)
	if p.Settings.Profile == "" {
		status, err = run()
	} else {
		err = p.WriteAround(p.Settings.Profile, func(w io.Writer) error {
			if err := starlark.StartProfile(w); err != nil {
				return err
			}
			var ran error
			status, ran = run()
			return errors.Join(ran, starlark.StopProfile())
		})
	}
	if status == lang.StatusClean {
		return err
	}
	return Exit(Worse(status, p.Fail(err)))
}

// WriteAround writes a file while run runs. The time of run starts when the file is
// open; the reader of a pipe gets as much time before. Ctrl-C ends the program while
// nothing runs.
func (p *Program) WriteAround(path string, run func(io.Writer) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if after := p.Settings.Deadline.Value; after > 0 {
		end := time.AfterFunc(after, func() { cancel(&lang.DeadlineError{After: after}) })
		defer end.Stop()
		write := run
		run = func(w io.Writer) error {
			end.Stop()
			return write(w)
		}
	}
	var ran error
	var to failing
	err := WriteNamed(ctx, path, func(w io.Writer) error {
		to.Writer = w
		ran = run(&to)
		return ran
	})
	if ran != nil && to.err == nil {
		return ran // an error that may be about another file
	}
	return Late(err)
}

// failing remembers the error of a write.
type failing struct {
	io.Writer
	err error
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// WriteAfter runs write when all sessions have ended. It has the time until the
// deadline, and the grace: the reader of the output may hang.
func (p *Program) WriteAfter(l TimeLimit, write func(context.Context) error) error {
	ctx := p.TimeContext(l)
	if end, ok := ctx.Deadline(); ok && p.Line == nil {
		defer time.AfterFunc(max(time.Until(end), 0)+grace, func() { p.endLate(&lang.DeadlineError{After: l.after}) }).Stop()
	}
	return Late(write(ctx))
}

// Version returns the version, the commit if the build recorded it, Go's version and the
// platform that the program was built for.
func Version() string {
	setting := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			setting[s.Key] = s.Value
		}
	}
	commit := "unknown commit"
	if rev := setting["vcs.revision"]; rev != "" {
		commit = "commit " + rev[:min(12, len(rev))]
		if setting["vcs.modified"] == "true" {
			commit += " modified"
		}
	}
	return fmt.Sprintf("fabsh %s (%s, %s, %s/%s)", fabsh.Version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Line is a command that was typed at the prompt: it runs in the prompt's session, and
// opens none.
type Line struct {
	Context context.Context // ends when the command must stop
	Session *Session

	// Results, for the tour.
	Named  string        // the report that ran; "": none
	Report *audit.Report // from audits; nil: none ran
}

// Ran records the report that the command ran. l may be nil.
func (l *Line) Ran(named string) {
	if l != nil {
		l.Named = named
	}
}

// Audited records a report of audits. l may be nil.
func (l *Line) Audited(r *audit.Report) {
	if l != nil {
		l.Report = r
	}
}

// Typed returns p for a command typed at the prompt. Its settings have no flags yet.
func (p *Program) Typed(l *Line) *Program {
	typed := p.With(Settings{})
	typed.Line = l
	return typed
}

// Run calls fn with a context that ends with the first signal, or with the statement at
// the prompt.
func (p *Program) Run(fn func(context.Context) error) error {
	if p.Line != nil {
		return fn(p.Line.Context)
	}
	return p.Interrupts.Run(fn)
}

// TimeContext returns a context that ends with the time of a command.
func (p *Program) TimeContext(l TimeLimit) context.Context {
	if p.Line != nil {
		return p.Line.Context
	}
	return l.Context()
}

// Inherit gives s, whose flags are declared and not yet parsed, the values of an open
// session. Only the output format may then be set.
func (s *Settings) Inherit(from *Settings) {
	flags, groups := s.flags, s.groups
	*s = *from
	s.flags, s.groups = flags, groups
	for _, g := range groups {
		g.VisitAll(func(f *pflag.Flag) {
			f.Changed = from.Given(f.Name)
			if f.Name != "format" && f.Name != "csv-raw" {
				f.Value, f.Hidden = fixed{f.Value, f.Name}, true
			}
		})
	}
}

// fixed is the value of a flag that an open session does not change.
type fixed struct {
	pflag.Value
	flag string
}

func (f fixed) Set(string) error {
	return fmt.Errorf("cannot be changed in an open session; start another one with fabsh --%s", f.flag)
}

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

// Evaluate runs code or a script, reports its findings and errors, and returns the exit status.
func (r *Runner) Evaluate(fn func(context.Context) error) int {
	found := error(nil)
	err := r.Attempt(func(ctx context.Context) error {
		defer func() { found = audits.ReportFindings(r.session.Runtime) }()
		return fn(ctx)
	})
	r.Report(err)
	return Worse(r.FinalStatus(lang.StatusClean, err), r.console.Fail(found))
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
	case n > 0 && topology.EnvOf(r.session.Runtime).Loaded != nil:
		fmt.Fprintf(r.console.Err(), "the file is incomplete: exit status %d\n", code)
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
		fmt.Fprintln(r.console.Err(), Named("", limit))
	case errors.As(err, &stop):
		fmt.Fprintln(r.console.Err(), Named("", stop))
	default:
		r.console.Complain(r.session.Explain(err))
	}
}
