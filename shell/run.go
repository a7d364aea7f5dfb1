package shell

import (
	"cmp"
	"context"
	"errors"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/shell/session"
)

// task is what a command runs in a session.
type task struct {
	name string // of the command
	plan string // what a plan says that it is made from; "": the name
	time session.TimeLimit
	open func(context.Context) (*session.Session, error)
	run  func(context.Context, *session.Session) error
}

// onFabric runs a command on the fabric that the session flags name. name is the
// command's.
func onFabric(p *session.Program, name string, run func(context.Context, *session.Session) error) error {
	return execute(p, task{name: name, time: p.StartTime(), run: run})
}

// withoutFabric runs a command that needs none.
func withoutFabric(p *session.Program, name string, run func(context.Context, *session.Session) error) error {
	open := func(context.Context) (*session.Session, error) {
		return session.New(p, session.Base{Absent: topology.ErrNoFabric})
	}
	return execute(p, task{name: name, time: p.StartTime(), open: open, run: run})
}

// execute runs a task on the fabric that the session flags name, unless it opens a session
// by itself. The error is why it did not run, or the exit status.
func execute(p *session.Program, t task) error {
	if p.Settings.Given("command") {
		return errors.New("-c takes no command")
	}
	if err := p.Settings.Check(); err != nil {
		return err
	}
	if t.open == nil {
		t.open = func(ctx context.Context) (*session.Session, error) { return session.Open(ctx, p, session.Opening{}) }
	}
	return p.Profiled(func() (status int, err error) {
		return p.Evaluate(t.time, cmp.Or(t.plan, t.name), t.open, func(s *session.Session) int {
			return s.Runner.Evaluate(func(ctx context.Context) error {
				return lang.Protect(t.name, func() error { return t.run(ctx, s) })
			})
		})
	})
}
