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
	"time"

	"go.starlark.net/starlark"

	"fabsh"
	"fabsh/builtins/audits"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/fabric/change/apply"
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
	defer func() { status = Worse(status, p.Console.Fail(s.Close())) }()
	s.Runner.LimitTo(d)
	return p.finish(s, evaluate(s), what), nil
}

// finish writes what a session has left to write, and returns its exit status.
func (p *Program) finish(s *Session, status int, what string) int {
	status = s.endPlan(status, what)
	status = Worse(status, p.Console.Fail(audits.WriteMetrics(s.Runtime)))
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
	return Exit(Worse(status, p.Console.Fail(err)))
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
