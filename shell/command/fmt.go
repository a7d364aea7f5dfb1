package command

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"fabsh/builtins/script"
	"fabsh/shell/session"
)

// fmtCommand formats scripts.
func fmtCommand(p *session.Program) *cobra.Command {
	var onlyDiff bool
	c := &cobra.Command{
		Use:   "fmt [-d] FILE...",
		Short: "Format scripts as buildifier does",
		Long: `Format scripts as buildifier does: spaces, line breaks, quotes. Meaning and order
do not change. Each file that changes is replaced atomically, and its name is
printed. - formats standard input, and writes the result to standard output.

With -d no file is changed: the difference is shown as a unified diff, and the exit
status is 1. An invalid script makes the exit status 2, and is not changed.`,
		Example: `  fabsh fmt links.star
  fabsh fmt -d scripts/*.star
  fabsh fmt - < links.star`,
		Args: someFiles,
		RunE: func(_ *cobra.Command, words []string) error {
			return withoutFabric(p, "fmt", func(ctx context.Context, s *session.Session) error {
				return eachFile(ctx, s, words, func(name string) (bool, error) {
					changed, err := formatFile(ctx, p.Stdin, s, name, onlyDiff)
					return changed && onlyDiff, err
				})
			})
		},
	}
	c.Flags().BoolVarP(&onlyDiff, "diff", "d", false, "show the difference, and change no file; exit with 1 if there is any")
	return c
}

// formatFile formats a script, or shows the difference; - is standard input.
func formatFile(ctx context.Context, stdin *os.File, s *session.Session, name string, onlyDiff bool) (changed bool, err error) {
	shown, src, err := readSource(ctx, stdin, s, name)
	if err != nil {
		return false, err
	}
	name = shown
	out, err := script.Format(name, src)
	if err != nil {
		return false, err
	}
	changed = !bytes.Equal(src, out)
	switch {
	case onlyDiff && changed:
		_, err = s.Console.Out().Write(diff.Diff(name, src, name+" formatted", out))
	case onlyDiff:
	case name == "<input>":
		_, err = s.Console.Out().Write(out)
	case changed:
		if err = session.WriteNamed(ctx, name, func(w io.Writer) error { _, err := w.Write(out); return err }); err == nil {
			s.Print(name + "\n")
		}
	}
	return changed, err
}
