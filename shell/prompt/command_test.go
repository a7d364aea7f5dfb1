package prompt

import (
	"context"
	"strings"
	"testing"

	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// TestCommandLines: which lines are commands, and which are Starlark.
func TestCommandLines(t *testing.T) {
	r, _ := openTest(t, "-F", "sim:ring:n=2")
	r.commands = Commands{Names: map[string]bool{"graph": true, "route": true, "audit": true, "report": true, "decode": true, "diff": true, "sim": false}}
	command := func(want string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			got := "no"
			if l, ok := r.command(line); ok {
				got = l.line()
			} else if _, ok := r.shadowed(line); ok {
				got = "own"
			}
			if got != want {
				t.Errorf("%q: got %q, want %q", line, got, want)
			}
		}
	}
	command("no", "", " ", "x", "graph.route(3)", "graph(3)", "graph (3)", "graph [1]", "route = 3", "route == 3", "route, x = 1, 2", "route += 1", "decode(x)", `audit("links")`,
		"graph in x", "graph and x", "graph - 1", "audit | x", "diff if x else y", "graphs", "fabsh = 3", "fabsh.x", "fabsh help top", "def graph():\n  pass", "graph\nx")
	command("graph", "graph", " graph ", "fabsh graph")
	command("audit --list", "audit --list", "fabsh audit --list", "fabsh  audit --list")
	command("audit links -v", "audit links -v")
	command("report", "report") // a function of fabsh, and not of the user
	command("report html --out x", "report html --out x")
	command("diff ./a.fab /b.fab", "diff ./a.fab /b.fab")
	command("diff /a.fab", "diff /a.fab")
	command("decode -", "decode -")
	command("decode 0101 (1", "decode 0101 (1")
	command("route a [x", "route a [x")
	command("sim ring", "sim ring")
	command("", "fabsh")
	command("mine.star 1", "fabsh mine.star 1")

	for _, name := range []string{"graph", "report", "fabsh", "audit"} {
		if err := r.run(t.Context(), promptFile, 1, name+" = 7"); err != nil {
			t.Fatal(err)
		}
	}
	command("own", "graph", " graph ", "report", "fabsh", "audit --list")
	command("no", "graph + 1", "graph.x", "graph(1)", "report()")
	command("graph leaf-1 -o svg", "graph leaf-1 -o svg", "fabsh graph leaf-1 -o svg") // no Starlark
	command("diff x", "diff x")
}

// TestOwnName: the user's own name takes precedence, which is reported.
func TestOwnName(t *testing.T) {
	r, out := openTest(t, "-F", "sim:ring:n=2")
	var ran []string
	r.commands = Commands{
		Names:  map[string]bool{"graph": true},
		Direct: func([]string) bool { return false },
		Run: func(_ context.Context, _ *session.Session, words []string, _ *tour.Seen) error {
			ran = append(ran, strings.Join(words, "|"))
			return nil
		},
	}
	r.read(newPlainReader(strings.NewReader("graph 'a b' -o svg\ngraph = 3\ngraph\nfabsh graph c\ngraph x | y\ngraph x > y\n")), true)
	r.loop()
	if got, want := strings.Join(ran, "; "), "graph|a b|-o|svg; graph|c"; got != want {
		t.Errorf("ran %q, want %q", got, want)
	}
	pipes := "graph: the prompt has no pipes and redirections; use --out FILE where the command has it, or run `fabsh graph "
	if got, want := out.String(), "note: graph is your own name here; the command is fabsh graph\n3\n"+pipes+"x | y` in a shell\n"+pipes+"x > y` in a shell\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// From a pipe, no line is a command.
	ran = nil
	r.read(newPlainReader(strings.NewReader("graph x\n")), false)
	r.loop()
	if ran != nil {
		t.Errorf("from a pipe: ran %q", ran)
	}
}
