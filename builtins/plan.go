package builtins

import (
	"context"

	"go.starlark.net/starlark"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/routing"
)

// Planning is a session whose writes are recorded instead of sent.
type Planning struct {
	s    *Session
	rec  *plan.Recorder
	stop func()
}

// StartPlan has all writes of the session recorded from now on.
func (s *Session) StartPlan(ctx context.Context) (*Planning, error) {
	p := &Planning{s: s}
	err := s.operate(ctx, func(c *lang.Call) (err error) {
		p.rec, p.stop, err = changes.Start(c)
		return err
	})
	return p, err
}

// Finish makes a plan of what was recorded since, with a report. from is what the plan
// says that it was made from.
func (p *Planning) Finish(ctx context.Context, from string) (made *plan.Plan, err error) {
	p.stop()
	err = p.s.operate(ctx, func(c *lang.Call) (err error) {
		if made, err = changes.Finish(c, p.rec, from); err != nil {
			return err
		}
		return changes.Judge(c, made)
	})
	return made, err
}

// LevelsOf has plans proven for the service levels of a file.
func (s *Session) LevelsOf(file string) { s.env.Levels = file }

// WriteRoutes writes the entries of the forwarding tables by which r differs from live,
// those that the switches have now.
func (s *Session) WriteRoutes(ctx context.Context, r, live *routing.Routes) error {
	return s.operate(ctx, func(c *lang.Call) error {
		return changes.WriteRoutes(c, r, live)
	})
}

// WrapPlan is p as scripts see it.
func WrapPlan(p *plan.Plan) starlark.Value { return &changes.Value{Plan: p} }

// operate runs fn as the builtin plan would be.
func (s *Session) operate(ctx context.Context, fn func(c *lang.Call) error) error {
	t, release := s.mainThread(ctx, "command")
	defer release()
	return lang.Operate(t, "plan", fn)
}
