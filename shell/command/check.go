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
		Long: `Find mistakes in scripts without running them: syntax errors; unknown names,
modules, attributes and fields; wrong arguments; comparisons of an enumerated field
with a word that it cannot have. - reads standard input.

Findings are written as FILE:LINE:COLUMN: text. What cannot be known without
running, such as the type of a parameter, is assumed to be correct.

Exit status: 0 no findings; 1 findings; 2 a file cannot be read.`,
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

// checkScript prints the mistakes in a script.
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
