package script

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bazelbuild/buildtools/build"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
)

// newlines replaces all line ends by newlines, as the scanner of Starlark reads them,
// also in strings.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Format returns src, a script with a name, formatted as buildifier does. It does not call
// buildifier's rewriter, which sorts lists by their names in build files.
func Format(name string, src []byte) ([]byte, error) {
	if err := lang.PlainText(name, 1, string(src)); err != nil {
		return nil, err
	}
	file, err := lang.Dialect.Parse(name, src, 0)
	if err != nil {
		return nil, err
	}
	if err := checkDepth(file); err != nil {
		return nil, err
	}
	text, restore := replaceWhile(file, newlines.Replace(string(src)))
	parsed, err := build.ParseDefault(name, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w (not supported by the library of buildifier)", err)
	}
	build.Walk(parsed, func(e build.Expr, _ []build.Expr) {
		if s, ok := e.(*build.StringExpr); ok {
			requote(s)
		}
	})
	out := restore(string(build.FormatWithoutRewriting(parsed)))
	if _, err := lang.Dialect.Parse(name, out, 0); err != nil {
		return nil, fmt.Errorf("%s: internal error: the library of buildifier produced an invalid script: %w", name, err)
	}
	return []byte(out), nil
}

// maxDepths limits the sum of the depths of all nodes in the tree of a script. The library of
// buildifier computes the end of each expression from all its parts, which takes 20 ns for each
// node in each of its ancestors: seconds for a sum of 10,000 terms.
const maxDepths = 100_000_000

// checkDepth returns an error if a script would take too long to format.
func checkDepth(file *syntax.File) error {
	depth, sum := 0, 0
	var within syntax.Stmt
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if sum > maxDepths {
			return false
		}
		if s, ok := n.(syntax.Stmt); ok {
			within = s
		}
		depth++
		sum += depth
		return true
	})
	if sum <= maxDepths {
		return nil
	}
	start, _ := within.Span()
	return fmt.Errorf("%s: statement too long to format, such as a sum of 10,000 terms; divide it", start)
}

// requote gives a string with letters beyond ASCII double quotes. The printer keeps such a
// token; in others it escapes each byte, in a form that Starlark does not accept.
func requote(s *build.StringExpr) {
	body, isSingle := strings.CutPrefix(s.Token, "'")
	if !isSingle || strings.Contains(body, `"`) || !strings.ContainsFunc(s.Value, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return
	}
	n := 1
	if s.TripleQuote {
		n = 3
	}
	quotes := strings.Repeat(`"`, n)
	s.Token = quotes + s.Token[n:len(s.Token)-n] + quotes
}

// replaceWhile writes while statements as for statements, and indents by spaces, because
// buildifier's library supports neither while nor tabs; restore restores the while statements.
func replaceWhile(file *syntax.File, src string) (hidden string, restore func(string) string) {
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
		switch stmt := stmt.(type) {
		case *syntax.WhileStmt:
			at(stmt.While, "while", "for "+mark+" in")
		case *syntax.IfStmt: // its Span visits all its branches
			if stmt.ElsePos.IsValid() {
				at(stmt.ElsePos, "", "")
			}
			at(stmt.If, "", "")
		default:
			start, _ := stmt.Span()
			at(start, "", "")
		}
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
