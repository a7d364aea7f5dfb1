package command

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/shell/session"
)

// checkCommand finds mistakes in scripts.
func checkCommand(p *session.Program) *cobra.Command {
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
		Args: someFiles,
		RunE: func(_ *cobra.Command, words []string) error {
			return withoutFabric(p, "check", func(ctx context.Context, s *session.Session) error {
				return eachFile(ctx, s, words, func(name string) (bool, error) { return checkScript(ctx, p.Stdin, s, name) })
			})
		},
	}
	return c
}

// checkScript writes what is wrong with a script.
func checkScript(ctx context.Context, stdin *os.File, s *session.Session, name string) (found bool, err error) {
	shown, src, err := readSource(ctx, stdin, s, name)
	if err != nil {
		return false, err
	}
	problems, err := check.Script(ctx, s.Interpreter, shown, string(src))
	for _, p := range problems {
		if _, err := fmt.Fprintln(s.Console.Out(), lang.OneLine(p.String())); err != nil {
			return true, err
		}
	}
	return len(problems) > 0, err
}
