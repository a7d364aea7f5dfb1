package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/bazelbuild/buildtools/build"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/shell/session"
)

// fmtCommand formats scripts.
func fmtCommand(p *session.Program) *cobra.Command {
	var onlyDiff bool
	c := &cobra.Command{
		Use:   "fmt [-d] FILE...",
		Short: "Format scripts as buildifier does",
		Long: `Format scripts as buildifier does: spaces, line breaks, quotes. Their meaning
stays, and so does the order of all that is in them. Each file that changes is
replaced as a whole, and named. - formats the input, and writes it to the output.

With -d the files stay: what would change is shown as a unified diff, and the
exit status is 1. With a file that is no script it is 2, and that file stays.`,
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
	c.Flags().BoolVarP(&onlyDiff, "diff", "d", false, "show what would change, and change nothing; exit status 1 if anything would")
	return c
}

// formatFile formats a script, or shows what would change; - is the input.
func formatFile(ctx context.Context, stdin *os.File, s *session.Session, name string, onlyDiff bool) (changed bool, err error) {
	shown, src, err := readSource(ctx, stdin, s, name)
	if err != nil {
		return false, err
	}
	name = shown
	out, err := formatScript(name, src)
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

// newlines writes all line ends as the scanner of Starlark reads them, also in texts.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// formatScript is src, a script of that name, formatted. It is not rewritten:
// buildifier's rewriting sorts lists by their names in build files.
func formatScript(name string, src []byte) ([]byte, error) {
	if err := lang.PlainText(name, 1, string(src)); err != nil {
		return nil, err
	}
	file, err := lang.Dialect.Parse(name, src, 0)
	if err != nil {
		return nil, err
	}
	text, restore := hideWhile(file, newlines.Replace(string(src)))
	parsed, err := build.ParseDefault(name, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w (buildifier's library does not take it)", err)
	}
	out := restore(string(build.FormatWithoutRewriting(parsed)))
	if _, err := lang.Dialect.Parse(name, out, 0); err != nil {
		return nil, fmt.Errorf("%s: buildifier's library makes of it what is no script: %w", name, err)
	}
	return []byte(out), nil
}

// hideWhile writes while statements as for statements, and indents by spaces, since
// buildifier's library knows neither while nor tabs; restore takes the former back.
func hideWhile(file *syntax.File, src string) (hidden string, restore func(string) string) {
	mark := "while_"
	for strings.Contains(src, mark) {
		mark += "_"
	}
	lines := strings.SplitAfter(src, "\n")
	at := func(p syntax.Position, token, as string) {
		line := []rune(lines[p.Line-1])
		before, after := string(line[:p.Col-1]), strings.TrimPrefix(string(line[p.Col-1:]), token)
		if strings.Trim(before, " \t") == "" {
			before = expandTabs(before)
		}
		lines[p.Line-1] = before + as + after
	}
	// From the end: what stands before a place on its line is as it was.
	for _, stmt := range slices.Backward(stmtsIn(file.Stmts)) {
		start, _ := stmt.Span()
		switch stmt := stmt.(type) {
		case *syntax.WhileStmt:
			at(start, "while", "for "+mark+" in")
			continue
		case *syntax.IfStmt:
			if stmt.ElsePos.IsValid() {
				at(stmt.ElsePos, "", "")
			}
		}
		at(start, "", "")
	}
	return strings.Join(lines, ""), func(out string) string { return strings.ReplaceAll(out, "for "+mark+" in", "while") }
}

// stmtsIn are all of a block and of the blocks in it.
func stmtsIn(block []syntax.Stmt) []syntax.Stmt {
	var all []syntax.Stmt
	for _, stmt := range block {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			if s, ok := n.(syntax.Stmt); ok {
				all = append(all, s)
			}
			return true
		})
	}
	return all
}

// expandTabs writes an indentation with spaces: a tab goes to the next column that
// is a multiple of 8, as in the scanner of Starlark.
func expandTabs(indentation string) string {
	width := 0
	for _, ch := range indentation {
		if width++; ch == '\t' {
			width = (width + 7) / 8 * 8
		}
	}
	return strings.Repeat(" ", width)
}
