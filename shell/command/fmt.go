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

// newlines replaces all line ends by newlines, as the scanner of Starlark reads them,
// also in strings.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// formatScript returns src, a script of that name, formatted. It does not call
// buildifier's rewriter, which sorts lists by their names in build files.
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
		return nil, fmt.Errorf("%w (not supported by the library of buildifier)", err)
	}
	out := restore(string(build.FormatWithoutRewriting(parsed)))
	if _, err := lang.Dialect.Parse(name, out, 0); err != nil {
		return nil, fmt.Errorf("%s: internal error: the library of buildifier produced an invalid script: %w", name, err)
	}
	return []byte(out), nil
}

// hideWhile writes while statements as for statements, and indents by spaces, because
// buildifier's library supports neither while nor tabs; restore undoes the former.
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
	// From the end, so that earlier positions on the line stay valid.
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

// stmtsIn returns all statements of a block and of the blocks in it.
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

// expandTabs replaces the tabs of an indentation by spaces: a tab extends to the next
// column that is a multiple of 8, as in the scanner of Starlark.
func expandTabs(indentation string) string {
	width := 0
	for _, ch := range indentation {
		if width++; ch == '\t' {
			width = (width + 7) / 8 * 8
		}
	}
	return strings.Repeat(" ", width)
}
