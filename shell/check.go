package shell

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fabsh/builtins/lang"
)

// checkCommand finds mistakes in scripts.
func (a *app) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Find mistakes in scripts, without running them",
		Long: `Find what is wrong with scripts as far as that can be told without running
them: syntax; names, modules, attributes and fields that there are not; wrong
arguments; comparisons of an enumerated field with a word that it never is.
- is the input.

What is found is written as FILE:LINE:COLUMN: text. What is not known, such as
the type of a parameter, is taken to be right.

Exit status: 0 nothing found; 1 something is; 2 a file cannot be read.`,
		Example: `  fabsh check links.star
  fabsh check scripts/*.star`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 {
				return errors.New("check: which files? name them, or - for the input")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return a.withoutFabric("check", func(ctx context.Context, s *session) error { return s.checkScripts(ctx, words) })
		},
	}
	c.SetFlagErrorFunc(flagError)
	return c
}

// checkScripts writes what is wrong with files. One that cannot be read does not
// keep the others from it.
func (s *session) checkScripts(ctx context.Context, files []string) error {
	failed, found := false, false
	for _, name := range files {
		shown, src, err := s.readSource(ctx, name)
		if err == nil {
			problems, failure := s.Check(ctx, shown, string(src))
			for _, p := range problems {
				found = true
				if _, err := fmt.Fprintln(s.app.console.Out(), lang.OneLine(p.String())); err != nil {
					return err
				}
			}
			err = failure
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = true
			s.app.console.complain(s.Explain(err))
		}
	}
	switch {
	case failed:
		return &lang.ExitError{Code: lang.StatusUsage}
	case found:
		return findings()
	}
	return nil
}
