package builtins

import (
	"context"
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/diff"
	"fabsh/fabric/routing"
	"fabsh/fabric/sa"
	"fabsh/fabric/table"
)

// What commands written in Go need of a session: the fabric and its tables as
// Go values, with the warnings, the counts of unanswered requests and the error
// texts that scripts get; and Go values wrapped for Show.

// CurrentFabric is the fabric at hand: the latest, else what a sweep finds.
func (s *Session) CurrentFabric(ctx context.Context) (*fabric.Fabric, error) {
	t, release := s.mainThread(ctx, "command")
	defer release()
	f, err := topology.CurrentFabric(t)
	if err != nil {
		return nil, err
	}
	return f.Fabric, nil
}

// Sweep discovers the fabric anew. Of its problems the caller is to warn; those
// that are unanswered requests have been counted.
func (s *Session) Sweep(ctx context.Context) (*fabric.Fabric, error) {
	return topology.SweepQuietly(ctx, s.Runtime)
}

// PollRates reads the counters of ports of the latest fabric once, and compares with
// what p has read before. It warns of nothing; what is unanswered has been counted.
func (s *Session) PollRates(ctx context.Context, p *audits.Poller, ports []*fabric.Port) (rates []audit.PortRates, err error) {
	t, release := lang.NewThread(&lang.Fiber{Runtime: s.Runtime, Context: ctx, Sink: lang.Discard{}, Account: &s.Account}, "command")
	defer release()
	err = lang.Operate(t, "top", func(c *lang.Call) (err error) {
		rates, err = p.Read(c, ports)
		return err
	})
	return rates, err
}

// SA is the client of the subnet administrator; nil without a live fabric.
func (s *Session) SA() *sa.Client { return s.env.SA }

// LiveRoutes reads the tables of all switches of a fabric.
func (s *Session) LiveRoutes(ctx context.Context, f *fabric.Fabric) (*routing.Routes, error) {
	t, release := s.mainThread(ctx, "command")
	defer release()
	return values.ReadRoutes(t, f)
}

// maxWarned is how many requests without an answer warnings name.
const maxWarned = 8

// ReadAnswers is f with what audits read of it besides; table.ReadAnswers has it. What
// got no answer is among the fabric's problems, and is warned of.
func (s *Session) ReadAnswers(ctx context.Context, f *fabric.Fabric) (*fabric.Fabric, error) {
	t, release := s.mainThread(ctx, "command")
	defer release()
	var r fabric.Reading
	err := lang.Operate(t, "snapshot", func(c *lang.Call) (err error) {
		err = c.Block(func(ctx context.Context) (err error) {
			r, err = table.ReadAnswers(ctx, s.env.SA, f, s.Clock.Now)
			return err
		})
		for i, p := range r.Problems {
			if i == maxWarned {
				c.Fiber().Warn("and %s of the kind", fabric.Plural(len(r.Problems)-i, "more", "more"))
				break
			}
			c.Fiber().Warn("%s", p.Text)
		}
		return err
	})
	return f.With(r), err
}

// WrapVerdict is v as scripts see it.
func WrapVerdict(v *routing.Verdict) starlark.Value { return values.WrapVerdict(v) }

// WrapDiff is r as scripts see it.
func WrapDiff(r *diff.Report) *topology.Diff { return topology.WrapDiff(r) }

// WrapReport is r as a value that can be shown. Scripts have no such value.
func WrapReport(r *routing.Report) starlark.Value { return values.WrapReport(r) }

// WrapAudit is r as a value to show in a format.
func WrapAudit(r *audit.Report, format lang.Format) starlark.Value {
	return audits.WrapReport(r, format)
}

// WriteAudits writes what several reports come to in a format: one document.
func WriteAudits(w io.Writer, reports []*audit.Report, format lang.Format) error {
	if _, ok := format.Dialect(); ok {
		return writeRuns(w, reports, format)
	}
	text, err := renderAudits(reports, format)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

func renderAudits(reports []*audit.Report, format lang.Format) (string, error) {
	if len(reports) == 1 {
		return lang.Render(audits.WrapReport(reports[0], format), format)
	}
	var all []starlark.Value
	text := ""
	for _, r := range reports {
		v := audits.WrapReport(r, format)
		if list, ok := v.(*starlark.List); ok {
			all = append(all, lang.Collect(list)...)
		} else {
			all = append(all, v)
		}
		text += lang.RenderText(v)
	}
	if format == lang.FormatText {
		return text, nil
	}
	return lang.Render(starlark.NewList(all), format)
}
