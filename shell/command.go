package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/format"
)

// onFabric runs a command on the fabric that the session flags name. name is the
// command's.
func (a *app) onFabric(name string, run func(context.Context, *session) error) error {
	return a.inSession(name, func() (*session, error) { return a.open(false) }, run)
}

// withoutFabric runs a command that needs none.
func (a *app) withoutFabric(name string, run func(context.Context, *session) error) error {
	return a.inSession(name, func() (*session, error) { return a.session(nil, topology.ErrNoFabric, nil, nil) }, run)
}

// inSession runs a command in the session that open makes.
func (a *app) inSession(name string, open func() (*session, error), run func(context.Context, *session) error) error {
	if a.flags.Changed("command") {
		return errors.New("-c takes no command")
	}
	if err := a.settings.check(); err != nil {
		return err
	}
	return a.profiled(func() error {
		d := a.startDeadline()
		defer d.stop()
		s, err := open()
		if err != nil {
			return err
		}
		defer s.close()
		s.deadline = d
		d.limit(s)
		a.status = s.evaluate(func(ctx context.Context) error {
			return lang.Protect(name, func() error { return run(ctx, s) })
		})
		a.status = s.endPlan(a.status, name)
		s.writeMetrics()
		s.summary()
		return nil
	})
}

// profiled runs run, with --profile under Starlark's profiler. The profile is
// written as a whole when run ends; without one, none is.
func (a *app) profiled(run func() error) error {
	if a.profile == "" {
		return run()
	}
	return a.writeAround(a.profile, func(w io.Writer) error {
		if err := starlark.StartProfile(w); err != nil {
			return err
		}
		return errors.Join(run(), starlark.StopProfile())
	})
}

// findings is the end of a command that found something: exit status 1.
func findings() error { return &lang.ExitError{Code: lang.StatusFindings} }

// openNamed opens files that the command line names by open, until ctx ends.
func openNamed(ctx context.Context, open func(context.Context, string) (*lang.File, error)) format.Opener {
	return func(path string) (io.ReadCloser, error) {
		f, err := open(ctx, path)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
}

// writeNamed writes the file that the command line names, whole or not at all. Who
// reads a pipe is waited for until ctx ends.
func writeNamed(ctx context.Context, path string, write func(io.Writer) error) error {
	return notWritten(path, format.WriteFile(ctx, path, write))
}

// writeAround writes a file while run runs, whose time begins then: for the reader of a
// pipe there is as much before it. Ctrl-C ends the program while nothing runs.
func (a *app) writeAround(path string, run func(io.Writer) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if after := a.deadline.value; after > 0 {
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
	err := writeNamed(ctx, path, func(w io.Writer) error {
		to.Writer = w
		ran = run(&to)
		return ran
	})
	if ran != nil && to.err == nil {
		return ran // which may be about another file
	}
	return late(err)
}

// failing remembers why it could not be written to.
type failing struct {
	io.Writer
	err error
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// afterSessions runs write, for which there is the time until the deadline, and the
// grace: what reads the output may hang.
func (a *app) afterSessions(write func(context.Context) error) error {
	ctx := a.context()
	if end, ok := ctx.Deadline(); ok {
		defer time.AfterFunc(max(time.Until(end), 0)+grace, func() { a.endLate(&lang.DeadlineError{After: a.deadline.value}) }).Stop()
	}
	return late(write(ctx))
}

// notWritten is err with the name that the user knows, not that of the temporary
// file.
func notWritten(path string, err error) error {
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: there is no such folder", path)
	}
	err = noFile(&fs.PathError{Op: pe.Op, Path: path, Err: pe.Err})
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO} {
		if errors.Is(err, cause) {
			return &hostError{err} // it is not the command that is to be mended
		}
	}
	return err
}
