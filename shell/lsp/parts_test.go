package lsp

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
)

// wholeNames returns what parts.names does, of a script that is parsed as a whole.
func wholeNames(o *outline, line int32, load func(module, name string) *lang.Builtin) starlark.StringDict {
	names := starlark.StringDict{}
	stmts := o.file.Stmts
	for stmts != nil {
		define(names, stmts, load)
		var inner []syntax.Stmt
		for _, stmt := range stmts {
			if def, ok := stmt.(*syntax.DefStmt); ok {
				if start, end := def.Span(); start.Line <= line && line <= end.Line {
					parameters(names, def)
					inner = def.Body
				}
			}
		}
		stmts = inner
	}
	return names
}

// samePart reports how a script that is divided differs from the whole; "": it does not.
func samePart(d *document, text string) string {
	list, isDivided := d.partsOf(text)
	whole := outlineOf("", text)
	line := func(err error) string {
		var wrong syntax.Error
		if !errors.As(err, &wrong) {
			return "none"
		}
		return fmt.Sprint(wrong.Pos.Line, wrong.Msg)
	}
	_, err := lang.Dialect.Parse("", text, 0)
	if want, got := line(err), line(d.syntaxError(text)); want != got {
		return fmt.Sprintf("%q: error of the whole: %s; of its parts: %s", text, want, got)
	}
	switch {
	case !isDivided: // the whole is used
		return ""
	case (whole == nil) != (list == nil):
		return fmt.Sprintf("%q: the whole has a syntax error: %v; its parts: %v", text, whole == nil, list == nil)
	case list == nil:
		return ""
	}
	load := func(module, name string) *lang.Builtin { return &lang.Builtin{Name: module + " " + name} }
	show := func(names starlark.StringDict) (lines []string) {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if f, ok := names[name].(*lang.Function); ok {
				name += " " + f.Signature() + f.Doc
			}
			lines = append(lines, name)
		}
		return lines
	}
	for line := range int32(strings.Count(text, "\n") + 2) {
		if diff := cmp.Diff(show(wholeNames(whole, line, load)), show(list.names(line, load))); diff != "" {
			return fmt.Sprintf("%q, line %d: -whole +parts\n%s", text, line, diff)
		}
	}
	return ""
}

var partLines = []string{
	"x = 1\n", "y = [\n  1,\n2]\n", "def f(a, b = \"\"\"\nx = (\n\"\"\"):\n    c = a\n", "    d = 2\n", "\n", "# (\n", "  # \"\n", "if x:\n    z = 1\n", "elif y:\n    w = 2\n", "else:\n    v = 3\n",
	"for i in range(3):\n    u = i\n", "load(\"lib.star\", \"g\", h = \"k\")\n", "def p():\n    def q(r):\n        s = r\n        t = 1\n    return q\n", "s = 'a\\'b' + r\"\\\"\"\n", "t = 1; o = {\n}\n", "x = (1 +\n", ")\n", "m = 1 + \\\n    2\n", "k = 1 + \\\nx\n", "'''\n", "n = 7", "\r\n", "\r", "x = 'a\n", "def f(): pass\n", "\tw = 1\n", "elsewhere = 1\n", "\x00",
}

// TestParts: a script that is divided has the names of the whole, whatever was typed before.
func TestParts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	d, divided := &document{}, 0
	for range 20000 {
		var b strings.Builder
		for range 1 + r.IntN(8) {
			b.WriteString(partLines[r.IntN(len(partLines))])
		}
		text := b.String()
		if diff := samePart(d, text); diff != "" {
			t.Fatal(diff)
		}
		if list, _ := d.partsOf(text); list != nil {
			divided++
		}
	}
	if divided < 1000 {
		t.Errorf("only %d scripts were divided", divided)
	}
}

func FuzzParts(f *testing.F) {
	for _, line := range partLines {
		f.Add(line + "def f(a):\n    b = a\n")
	}
	f.Fuzz(func(t *testing.T, text string) {
		if diff := samePart(&document{}, text); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestTyping: while a line is typed, only its part is parsed again, also with a syntax error elsewhere.
func TestTyping(t *testing.T) {
	const line = "            continue"
	for _, after := range []string{"", "x = = 1\n"} {
		text := longScript(300)
		at := strings.Index(text, line)
		y := startTyping(t, text[:at]+"\n"+text[at:]+after, at)
		y.put(t, "            port.")
		before := map[*part]bool{}
		for _, p := range y.d.kept {
			before[p] = true
		}
		for _, typed := range []string{"            port.p", "            port.pe", "            port."} {
			if words := y.put(t, typed); len(words) == 0 {
				t.Errorf("%q: no completion", typed)
			}
		}
		added := 0
		for _, p := range y.d.kept {
			if !before[p] {
				added++
			}
		}
		if len(before) < 30 || added > 3 {
			t.Errorf("%q: %d of %d parts were parsed again", after, added, len(before))
		}
	}
}
