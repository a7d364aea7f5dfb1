package shell

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/diff"
	"fabsh/mad"
)

// diffCommand compares two fabrics.
func (a *app) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD [NEW]",
		Short: "Compare two files of a fabric, or one with the fabric as it is",
		Long: `Compare a fabric with what it was: cables moved, exchanged, gone and new, nodes
replaced, gone and new, settings of ports and switches, forwarding tables. What
follows from a change stands below it.

OLD and NEW are snapshots, or topologies of any format that -F file: reads.
Without NEW the fabric of the session is compared with OLD. What a format does
not hold is left out, and said once; what one side asked for and did not get is
no change, and makes the exit status 3.

Exit status: 0 nothing differs; 1 something does; 2 usage; 3 a file cannot be
read, or a side is incomplete.`,
		Example: `  fabsh diff yesterday.snap today.snap
  fabsh -F ibsim diff yesterday.snap
  fabsh -o csv diff plan.topo today.snap`,
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return errors.New("diff: which files? give OLD and NEW, or OLD alone to compare the fabric with it")
			case len(words) > 2:
				return fmt.Errorf("diff: takes OLD and NEW, and here is also %q", words[2])
			case len(words) == 2 && a.flags.Changed("fabric"):
				return errors.New("diff: OLD and NEW are files: leave -F out, or NEW")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			if len(words) == 1 {
				return a.onFabric("diff", func(ctx context.Context, s *session) error { return s.diff(ctx, words[0]) })
			}
			return a.diffFiles(words[0], words[1])
		},
	}
}

// diffFiles compares two files. It needs no fabric and no session.
func (a *app) diffFiles(paths ...string) error {
	if err := a.settings.check(); err != nil {
		return err
	}
	defer a.startDeadline().stop()
	names, err := a.nodeNames("file")
	if err != nil {
		return late(err)
	}
	return a.interrupts.run(func(ctx context.Context) error {
		defer a.within(ctx)()
		var sides [2]*fabric.Fabric
		for i, path := range paths {
			var err error
			if sides[i], err = a.side(path, names); err != nil {
				return err
			}
		}
		r, err := diff.Compare(ctx, sides[0], sides[1])
		if err != nil {
			return fmt.Errorf("diff: %w", err)
		}
		text, err := builtins.Render(a.shownDiff(r), a.output(), "diff")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(a.console.Out(), text); err != nil {
			return err
		}
		a.status = worse(a.status, diffStatus(r))
		return nil
	})
}

// diff compares the fabric of the session with a file. Its tables, and what --all of
// snapshot reads, are read where the file has some.
func (s *session) diff(ctx context.Context, path string) error {
	names, err := s.app.nodeNames("file")
	if err != nil {
		return late(err)
	}
	old, err := s.app.side(path, names)
	if err != nil {
		return err
	}
	f, err := s.CurrentFabric(ctx)
	if err != nil {
		return err
	}
	if old.HasLFTs() && !f.HasLFTs() && s.engine != nil {
		live, err := s.LiveRoutes(ctx, f)
		if err != nil {
			return err
		}
		f = f.With(fabric.Reading{LFTs: rows(live)})
	}
	if len(old.Answers()) > 0 && len(f.Answers()) == 0 && s.engine != nil {
		if f, err = s.ReadAnswers(ctx, f); err != nil {
			return err
		}
	}
	r, err := diff.Compare(ctx, old, f)
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	if err := s.Show(s.app.shownDiff(r)); err != nil {
		return err
	}
	if status := diffStatus(r); status != lang.StatusClean {
		return &lang.ExitError{Code: status}
	}
	return nil
}

// side reads a file to be compared. That it cannot be read is no fault of the
// command line: a file of yesterday may be lost.
func (a *app) side(path string, names map[mad.GUID]string) (*fabric.Fabric, error) {
	c, err := openFile(&a.settings, path)
	switch {
	case errors.Is(err, lang.ErrInterrupted):
		return nil, err
	case err != nil:
		return nil, &hostError{fmt.Errorf("diff: %w", err)}
	}
	return c.loaded.Renamed(names), nil
}

// shownDiff is r in the format of the output: as rows, the changes alone, and what
// was not compared goes to stderr.
func (a *app) shownDiff(r *diff.Report) starlark.Value {
	d := builtins.WrapDiff(r)
	switch a.output() {
	case lang.FormatText, lang.FormatJSON:
		return d
	}
	for _, note := range r.NotCompared {
		a.warn("not compared: %s", note)
	}
	for _, note := range r.Unread {
		a.warn("unread: %s", note)
	}
	changes, _ := d.Attr("changes")
	return changes
}

// diffStatus is the exit status of a comparison.
func diffStatus(r *diff.Report) int {
	switch {
	case !r.Complete():
		return lang.StatusFabric
	case !r.Same():
		return lang.StatusFindings
	}
	return lang.StatusClean
}
