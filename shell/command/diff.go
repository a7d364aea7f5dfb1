package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/diff"
	"fabsh/mad"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// diffCommand compares two fabrics.
func diffCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD [NEW]",
		Short: "Compare two files of a fabric, or a file with the live fabric",
		Long: `Compare a fabric with an earlier state: cables moved, exchanged, removed and added,
nodes replaced, removed and added, settings of ports and switches, forwarding
tables. The effects of a change are listed below it.

OLD and NEW are snapshots, or topologies of any format that -F file: reads.
Without NEW the fabric of the session is compared with OLD. What one of the formats
does not contain is not compared, which is reported once. What one side could not
read is not a change, and makes the exit status 3.

Exit status: 0 no difference; 1 differences; 2 usage error; 3 a file cannot be
read, or a side is incomplete.`,
		Example: `  fabsh diff yesterday.snap today.snap
  fabsh -F ibsim diff yesterday.snap
  fabsh -o csv diff plan.topo today.snap`,
		Annotations: map[string]string{atPrompt: ""},
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return errors.New("diff: missing files; give OLD and NEW, or OLD alone to compare the fabric with it")
			case len(words) > 2:
				return fmt.Errorf("diff: unexpected argument %q; want OLD and NEW", words[2])
			case len(words) == 2 && p.Line == nil && p.Settings.Given("fabric"):
				return errors.New("diff: -F and NEW exclude each other")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			if len(words) == 1 {
				return onFabric(p, "diff", func(ctx context.Context, s *session.Session) error { return diffSession(ctx, p, s, words[0]) })
			}
			return diffFiles(p, words[0], words[1])
		},
	}
}

// diffFiles compares two files. It needs no fabric and no session.
func diffFiles(p *session.Program, paths ...string) error {
	if err := p.Settings.Check(); err != nil {
		return err
	}
	limit := p.StartTime()
	d := p.StartDeadline(limit)
	defer d.Stop()
	names, err := p.NodeNames(p.TimeContext(limit), "file")
	if err != nil {
		return session.Late(err)
	}
	return p.Run(func(ctx context.Context) error {
		timed, cancel := d.Within(ctx)
		defer cancel()
		var sides [2]*fabric.Fabric
		for i, path := range paths {
			var err error
			if sides[i], err = side(timed, path, nil, names); err != nil {
				return err
			}
		}
		r, err := diff.Compare(ctx, sides[0], sides[1])
		if err != nil {
			return fmt.Errorf("diff: %w", err)
		}
		text, err := renderTable(p.Settings, p.Console.Err(), shownDiff(r, p.Settings.Output(), p.Warn), "diff")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(p.Console.Out(), text); err != nil {
			return err
		}
		return session.Exit(diffStatus(r))
	})
}

// diffSession compares the fabric of the session with a file. Its tables, and what
// snapshot --all reads, are read if the file has any.
func diffSession(ctx context.Context, p *session.Program, s *session.Session, path string) error {
	old, err := sideOf(ctx, p, s, path)
	if err != nil {
		return err
	}
	return diffLive(ctx, s, old)
}

// diffLive compares the fabric of the session with an earlier one.
func diffLive(ctx context.Context, s *session.Session, old *fabric.Fabric) error {
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	if old.HasLFTs() && !f.HasLFTs() && s.Engine != nil {
		live, err := audits.ReadRoutes(ctx, s.Runtime, f, old.HasAdaptive())
		if err != nil {
			return err
		}
		f = f.With(fabric.Reading{LFTs: rows(live), Adaptive: adaptiveOf(live)})
	}
	if len(old.Answers()) > 0 && len(f.Answers()) == 0 && s.Engine != nil {
		if f, err = audits.ReadAnswers(ctx, s.Runtime, f); err != nil {
			return err
		}
	}
	return showDiff(ctx, s, old, f)
}

// showDiff shows the differences of two fabrics.
func showDiff(ctx context.Context, s *session.Session, old, now *fabric.Fabric) error {
	r, err := diff.Compare(ctx, old, now)
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	if err := s.Show(shownDiff(r, s.Format, s.Warn)); err != nil {
		return err
	}
	return session.Exit(diffStatus(r))
}

// sideOf is side for a file that the session may read.
func sideOf(ctx context.Context, p *session.Program, s *session.Session, path string) (*fabric.Fabric, error) {
	timed, cancel := s.Runner.Deadline.Within(ctx)
	defer cancel()
	names, err := p.NodeNames(timed, "file")
	if err != nil {
		return nil, session.Late(err)
	}
	f, err := loadBaseline(timed, s, path)
	return loaded(f, session.Late(err), names)
}

// side reads a file to be compared. A file that cannot be read is not a usage error: it
// may have been lost since.
func side(ctx context.Context, path string, secrets session.Secrets, names map[mad.GUID]string) (*fabric.Fabric, error) {
	f, err := session.LoadFile(ctx, path, secrets)
	return loaded(f, err, names)
}

// loaded returns a side that was read, unless there is an error.
func loaded(f *fabric.Fabric, err error, names map[mad.GUID]string) (*fabric.Fabric, error) {
	switch {
	case errors.Is(err, lang.ErrInterrupted):
		return nil, err
	case err != nil:
		return nil, &session.HostError{Err: fmt.Errorf("diff: %w", err)}
	}
	return f.Renamed(names), nil
}

// shownDiff returns r in the format of the output: as rows, the changes alone, and what
// was not compared goes to stderr.
func shownDiff(r *diff.Report, format lang.Format, warn func(format string, args ...any)) starlark.Value {
	d := topology.WrapDiff(r)
	switch format {
	case lang.FormatText, lang.FormatJSON:
		return d
	}
	for _, note := range r.NotCompared {
		warn("not compared: %s", note)
	}
	for _, note := range r.Unread {
		warn("unread: %s", note)
	}
	changes, _ := d.Attr("changes")
	return changes
}

// diffStatus returns the exit status of a comparison.
func diffStatus(r *diff.Report) int {
	switch {
	case !r.Complete():
		return lang.StatusFabric
	case !r.Same():
		return lang.StatusFindings
	}
	return lang.StatusClean
}

// diffTool compares with an earlier state.
func diffTool(p *session.Program, server func() *mcp.Server) *agentTool {
	return &agentTool{
		name: "diff", command: "diff",
		doc: "Without old, the fabric is compared with the first complete sweep of this server.",
		params: []mcp.Param{
			{Name: "old", Kind: mcp.KindText, Doc: "a snapshot or a topology, the earlier state" + theFile},
			{Name: "new", Kind: mcp.KindText, Doc: "the later state (default: the fabric, which is swept)" + theFile},
		},
		run: func(ctx context.Context, s *session.Session, a mcp.Arguments) error {
			old := server().First()
			switch {
			case a.Has("old"):
				var err error
				if old, err = sideOf(ctx, p, s, a.Text("old")); err != nil {
					return err
				}
			case a.Has("new"):
				return errors.New("diff: new needs old, the earlier state")
			case old == nil:
				return errors.New("diff: no call of this server has swept the whole fabric yet; call run with the script discover(), and diff later; or name a file as old")
			}
			if !a.Has("new") {
				return diffLive(ctx, s, old)
			}
			now, err := sideOf(ctx, p, s, a.Text("new"))
			if err != nil {
				return err
			}
			return showDiff(ctx, s, old, now)
		},
	}
}
