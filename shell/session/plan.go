package session

import (
	"context"
	"errors"
	"strings"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
)

// plan is the plan that --plan makes of the writes of a session.
type plan struct {
	file     string
	planning *changes.Recording
}

// startPlan records the writes of the session instead of sending them.
func (s *Session) startPlan(file string) error {
	if s.Engine == nil {
		return s.NoLive("plan", "this session has no fabric that can be changed; a plan needs a live or a simulated one (-F)")
	}
	planning, err := changes.StartRecording(context.Background(), s.Runtime)
	s.plan = &plan{file, planning}
	return err
}

// endPlan writes the plan, if one is being made, and reports its verdict. what is what
// ran, and status its exit status; the result is the status of both.
func (s *Session) endPlan(status int, what string) int {
	if s.plan == nil {
		return status
	}
	if status >= lang.StatusUsage {
		s.Warn("no plan written, because of the error above")
		return status
	}
	return Worse(status, s.Runner.Evaluate(func(ctx context.Context) error {
		return lang.Protect("plan", func() error { return s.writePlan(ctx, what) })
	}))
}

// PlanWhile records the writes of run in a plan file instead of sending them. what is
// the origin of the plan.
func (s *Session) PlanWhile(ctx context.Context, file, what string, run func() error) error {
	if s.plan != nil {
		return errors.New("--plan: this session already records its changes in " + s.plan.file)
	}
	defer func() { s.plan = nil }()
	if err := s.startPlan(file); err != nil {
		return err
	}
	var exit *lang.ExitError
	if err := run(); err != nil && !(errors.As(err, &exit) && exit.Code < lang.StatusUsage) {
		s.plan.planning.Stop()
		return err
	}
	return s.writePlan(ctx, what)
}

func (s *Session) writePlan(ctx context.Context, what string) error {
	p, err := s.plan.planning.Finish(ctx, what)
	if err != nil {
		return err
	}
	if err := p.Save(ctx, s.plan.file); err != nil {
		return NotWritten(s.plan.file, err)
	}
	for line := range strings.Lines(p.Line(p.Report)) { // of several refusals
		s.Print(lang.OneLine(strings.TrimSuffix(line, "\n")) + "\n")
	}
	if p.Report.Effect != nil {
		for _, line := range p.Report.Effect.Lines() {
			s.Print(lang.OneLine(line) + "\n")
		}
	}
	if p.Target != nil && p.Base.Manager != nil && !s.Engine.Traits().Simulated {
		s.Warn("analysis only while %v is in charge: it would assign other service levels, and write other virtual lanes; %s", p.Base.Manager, p.Target.RunInstead())
	}
	if !p.Report.OK {
		return Exit(lang.StatusFindings)
	}
	return nil
}
