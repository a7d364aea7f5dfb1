package prompt

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"fabsh/builtins/audits"
	"fabsh/builtins/program"
	"fabsh/fabric/format"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// testProgram is a program with session flags, that writes to out.
func testProgram(t *testing.T, out io.Writer, flags ...string) *session.Program {
	t.Helper()
	p := &session.Program{Settings: new(session.Settings), Console: session.NewConsole(out, out)}
	p.Interrupts = session.WatchInterrupts(p.Console)
	t.Cleanup(p.Interrupts.Stop)
	f := pflag.NewFlagSet("fabsh", pflag.ContinueOnError)
	p.Settings.AddFlags(f, f)
	if err := f.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return p
}

// openSession opens a session.
func openSession(t *testing.T, p *session.Program) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), p, session.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openTest opens a session with session flags, and gives what it wrote.
func openTest(t *testing.T, flags ...string) (*repl, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	p := testProgram(t, &out, flags...)
	return newRepl(p, openSession(t, p), Commands{}), &out
}

// TestPromptText: which fabric it is, and whether it may be changed, on every
// transport that a test can have.
func TestPromptText(t *testing.T) {
	t.Chdir(t.TempDir())
	r, _ := openTest(t, "-F", "sim:ring:n=2", "--record", "today.pcap")
	f, err := audits.ReadFabric(context.Background(), r.Runtime)
	if err != nil {
		t.Fatal(err)
	}
	var snapshot bytes.Buffer
	if err := errors.Join(format.WriteSnapshot(&snapshot, f), os.WriteFile("a\x1b[31m\u202e.snap", snapshot.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.CloseEngine()
	if err := os.Rename("today.pcap", "a_recording_whose_name_is_very_long.pcap"); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, flags := range [][]string{
		{"-F", "sim"}, {"-F", "sim:ring:n=2,mkey=0x5ec2e7"}, {"-F", "sim:ring:n=2"}, {"-F", "sim:ring:n=2", "--read-only"},
		{"-F", "file:a\x1b[31m\u202e.snap"}, {"-F", "replay:a_recording_whose_name_is_very_long.pcap"},
	} {
		r, _ := openTest(t, flags...)
		got[flags[len(flags)-1]] = r.promptText()
	}
	want := map[string]string{
		"sim":                        "sim rw> ",
		"sim:ring:n=2,mkey=0x5ec2e7": "sim ring rw> ",
		"sim:ring:n=2":               "sim ring rw> ",
		"--read-only":                "sim ring ro> ",
		"file:a\x1b[31m\u202e.snap":  `file a\x1b[31m\u2… 4n ro> `,
		"replay:a_recording_whose_name_is_very_long.pcap": "replay a_recording_w… rw> ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestShownTexts: a text with line breaks that is the whole result prints as it
// is, at the prompt and by -c; within other values, and on one line, it is quoted.
func TestShownTexts(t *testing.T) {
	for code, want := range map[string]string{
		`"a\n  b\n"`:   "a\n  b\n",
		`"a\n\nb"`:     "a\n\nb\n",
		`"a b"`:        "\"a b\"\n",
		`["a\nb"]`:     `["a\nb"]` + "\n",
		`show("a\nb")`: "a\nb\n",
	} {
		r, out := openTest(t, "-F", "sim:ring:n=2")
		if err := program.RunCode(context.Background(), r.Interpreter, "<command>", code); err != nil {
			t.Fatal(err)
		}
		r.read(newPlainReader(bytes.NewBufferString(code+"\n")), true)
		r.loop()
		if got := out.String(); got != want+want {
			t.Errorf("%s: got %q, want %q twice", code, got, want)
		}
	}
}

// TestPromptNames: names of fabrics in the prompt and the title.
func TestPromptNames(t *testing.T) {
	for name, want := range map[string]string{
		"sim": "sim", "sim:fattree:k=8,levels=3": "sim fattree", "sim:traffic=10GB/s": "sim", "sim:a/b.snap,loss=0.1": "sim b.snap", "umad:mlx5_0/1": "mlx5_0/1",
		"ibsim H-1/1": "ibsim H-1/1", "no fabric": "no fabric", "file:x:y,z.fab": "file x:y", "tour": "tour",
	} {
		if got := shortName(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	var out bytes.Buffer
	title := &title{out: &out}
	title.set("fabsh file:a\x1b]2;evil\x07\u009c\u202e\n rw")
	title.set("fabsh file:a\x1b]2;evil\x07\u009c\u202e\n rw") // unchanged
	title.set(strings.Repeat("x", 1000))
	want := "\x1b]2;" + `fabsh file:a\x1b]2;evil\a\u009c\u202e\n rw` + "\a" + "\x1b]2;" + strings.Repeat("x", maxTitle) + "\a"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	for _, term := range []string{"", "dumb", "linux"} {
		t.Setenv("TERM", term)
		out.Reset()
		none := openTitle(&out)
		none.set("x")
		none.restore()
		if out.Len() > 0 {
			t.Errorf("TERM=%s: wrote %q", term, out.String())
		}
	}
}

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
	out.Reset()
	r.read(newPlainReader(strings.NewReader("ibhosts | wc\nibhosts > x\n")), true)
	r.loop()
	pipes = "ibhosts: the prompt has no pipes and redirections; use --out FILE where the command has it, or run `fabsh report ibhosts "
	if got, want := out.String(), pipes+"| wc` in a shell\n"+pipes+"> x` in a shell\n"; got != want {
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

// openTyped opens a prompt at a terminal in an empty directory with these files.
func openTyped(t *testing.T, files map[string]string, args ...string) (run func(line string) string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, out := openTest(t, append([]string{"-F", "sim:ring:n=2", "-q"}, args...)...)
	r.terminal = true
	in := &typist{echo: io.Discard}
	r.read(in, true)
	return func(line string) string {
		out.Reset()
		in.lines = strings.Split(line, "\n")
		r.loop()
		first, _, _ := strings.Cut(out.String(), "\n")
		return first
	}
}

// names lists all files below the working directory.
func names(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if path != "." && !d.IsDir() {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func content(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSave: a typed statement saves values in the format of the suffix.
func TestSave(t *testing.T) {
	run := openTyped(t, map[string]string{"old.csv": "old"})
	if err := os.Mkdir("sub", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"f = discover()",
		`save([{"a": 1, "b": "=x"}], "rows.csv")`,
		`show([{"a": 1}], format="csv", out="sub/rows.dat")`,
		`show([{"a": 1}], out="rows.json")`,
		`save([1, 2], "./rows.jsonl")`,
		`save({"a": 1}, "a.txt")`,
		`save(f, "f.fab")`,
		`save(report("links"), "r.html")`,
		`save(f.matrix(f.switches, f.cas), "m.svg")`,
		`save(1, "old.csv", overwrite=True)`,
		"def mine(x, path):\n    return save(x, path)",
		`mine(7, "mine.csv")`,
		`(lambda v: save(v, "lambda.csv"))(8)`,
	} {
		if got := run(line); got != "" {
			t.Errorf("%s: %s", line, got)
		}
	}
	want := []string{"a.txt", "f.fab", "lambda.csv", "m.svg", "mine.csv", "old.csv", "r.html", "rows.csv", "rows.json", "rows.jsonl", "sub/rows.dat"}
	if diff := cmp.Diff(want, names(t)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for name, want := range map[string]string{
		"rows.csv": "a,b\n1,'=x\n", "sub/rows.dat": "a\n1\n", "rows.json": "[\n  {\n    \"a\": 1\n  }\n]\n", "rows.jsonl": "1\n2\n", "old.csv": "value\n1\n", "mine.csv": "value\n7\n",
	} {
		if got := content(t, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if f, err := format.Load(bytes.NewReader([]byte(content(t, "f.fab"))), "f.fab", nil); err != nil || len(f.Nodes()) != 4 {
		t.Errorf("f.fab: %v", err)
	}
	if err := xml.Unmarshal([]byte(content(t, "m.svg")), new(struct{})); err != nil || !strings.Contains(content(t, "m.svg"), "<title>switch-1 - node-0001 HCA-1: ") {
		t.Errorf("m.svg: %v\n%s", err, content(t, "m.svg"))
	}
	if text := content(t, "r.html"); !strings.HasPrefix(text, "<!") {
		t.Errorf("r.html begins with %.20q", text)
	}
}

// TestSaveMode: a replaced file keeps its mode.
func TestSaveMode(t *testing.T) {
	run := openTyped(t, map[string]string{"old.csv": "old"})
	for _, mode := range []os.FileMode{0o600, 0o664, 0o440} {
		if err := os.Chmod("old.csv", mode); err != nil {
			t.Fatal(err)
		}
		if got := run(`save(1, "old.csv", overwrite=True)`); got != "" {
			t.Error(got)
		}
		st, err := os.Stat("old.csv")
		if err != nil || st.Mode() != mode || content(t, "old.csv") != "value\n1\n" {
			t.Errorf("mode %v: %v, %v", mode, st.Mode(), err)
		}
	}
}

// TestSaveView: files have the rows and columns of --where and --columns.
func TestSaveView(t *testing.T) {
	run := openTyped(t, nil, "--where", "a > 1", "--columns", "b")
	for _, line := range []string{
		`t = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]`, `save(t, "rows.csv")`, `save(t, "rows.txt")`, `save(t, "rows.jsonl")`, `show(t, format="json", out="rows.dat")`,
	} {
		if got := run(line); got != "" {
			t.Errorf("%s: %s", line, got)
		}
	}
	for name, want := range map[string]string{"rows.csv": "b\n4\n", "rows.txt": "b\n4\n", "rows.jsonl": "{\"b\":4}\n", "rows.dat": "[\n  {\n    \"b\": 4\n  }\n]\n"} {
		if got := content(t, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestSaveRefuses: paths that are not new files below the working directory, and values
// without the format.
func TestSaveRefuses(t *testing.T) {
	run := openTyped(t, map[string]string{"old.csv": "old"})
	for _, err := range []error{
		os.Mkdir("dir", 0o700), os.Symlink("old.csv", "link.csv"), os.Symlink("dir", "linked"), os.Symlink("/tmp", "tmp"), os.Symlink("nowhere", "dangling.csv"), os.Mkdir("folder.csv", 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := names(t)
	below := ": not a file below the working directory; give a relative path that does not lead up"
	for _, test := range [][2]string{
		{`save(1, "old.csv")`, "save: old.csv: exists; overwrite=True replaces it"},
		{`save(1, "/tmp/x.csv")`, "save: /tmp/x.csv" + below},
		{`save(1, "../x.csv")`, "save: ../x.csv" + below},
		{`save(1, "dir/../../x.csv")`, "save: dir/../../x.csv" + below},
		{`save(1, ".bashrc.csv")`, "save: .bashrc.csv: names that begin with a dot are refused"},
		{`save(1, ".ssh/x.csv")`, "save: .ssh/x.csv: names that begin with a dot are refused"},
		{`save(1, "dir/.x.csv")`, "save: dir/.x.csv: names that begin with a dot are refused"},
		{`save(1, "a\nb.csv")`, `save: "a\nb.csv": names with control characters are refused`},
		{`save(1, "link.csv")`, "save: link.csv: is a symbolic link, which is refused"},
		{`save(1, "link.csv", overwrite=True)`, "save: link.csv: is a symbolic link, which is refused"},
		{`save(1, "dangling.csv", overwrite=True)`, "save: dangling.csv: is a symbolic link, which is refused"},
		{`save(1, "linked/x.csv")`, "save: linked/x.csv: linked is a symbolic link, which is refused"},
		{`save(1, "tmp/x.csv")`, "save: tmp/x.csv: tmp is a symbolic link, which is refused"},
		{`save(1, "folder.csv", overwrite=True)`, "save: folder.csv: is not a regular file, so it cannot be replaced"},
		{`save(1, "old.csv/x.csv")`, "save: old.csv/x.csv: not a directory"},
		{`save(1, "none/x.csv")`, "save: none/x.csv: no such file"},
		{`save(1, "x.svg")`, "save: x.svg: int cannot be saved as svg; svg is for a matrix, html for report(), fab for a fabric"},
		{`save("x", "x.fab")`, "save: x.fab: string cannot be saved as fab; svg is for a matrix, html for report(), fab for a fabric"},
		{`save(1, "x.sh")`, `save: x.sh: unknown format "sh"; supported: csv, json, jsonl, txt, svg, html, fab`},
		{`save(1, "x")`, `save: x: unknown format ""; supported: csv, json, jsonl, txt, svg, html, fab`},
		{`show(1, format="exe", out="x")`, `show: for parameter format: got "exe", want text, json, jsonl or csv`},
		{`show(1, overwrite=True)`, "show: for parameter overwrite: needs out, the file to replace"},
	} {
		if got := run(test[0]); got != test[1] {
			t.Errorf("%s:\n got %s\nwant %s", test[0], got, test[1])
		}
	}
	if diff := cmp.Diff(before, names(t)); diff != "" || content(t, "old.csv") != "old" {
		t.Errorf("files changed: -want +got\n%s", diff)
	}
}

// TestSaveHostile: modules that try to save when a typed statement calls them.
func TestSaveHostile(t *testing.T) {
	hostile := `
def direct(x): save(x, "direct.csv")
def shown(x): show(x, out="shown.csv")
def nested(x):
    def inner(): save(x, "nested.csv")
    inner()
lambdas = [lambda x: save(x, "lambda.csv")]
def sorts(x): sorted([x], key = lambda v: save(v, "sorted.csv"))
def calls(fn, x, path): fn(x, path)
def keys(fn): sorted(["k.csv"], key = fn)
def spreads(fn, items): parallel(fn, items)
def caught(x): return catch(save, x, "caught.csv")
def default(x, s = save): s(x, "default.csv")
def pages(x): show(x, pager = True)
computes = save
summary = show
options = {"value": 1, "out": "options.csv"}
box = struct(save = lambda x: save(x, "box.csv"))
`
	run := openTyped(t, map[string]string{
		"evil.star":     strings.ReplaceAll(hostile, "box = struct(save = lambda x: save(x, \"box.csv\"))", "box = {\"save\": lambda x: save(x, \"box.csv\")}"),
		"<prompt>":      "def typed(x): save(x, \"typed.csv\")\n",
		"toplevel.star": "save(1, \"toplevel.csv\")\n",
	})
	before := names(t)
	for _, line := range []string{
		`load("evil.star", "direct", "shown", "nested", "lambdas", "sorts", "calls", "keys", "spreads", "caught", "default", "pages", "box", "computes", "summary", "options")`,
		`x = 1`, `mine = save`, `ok = lambda v, p = "mine.csv": save(v, p)`,
	} {
		if got := run(line); got != "" {
			t.Fatalf("%s: %s", line, got)
		}
	}
	for _, line := range []string{
		`direct(x)`, `shown(x)`, `nested(x)`, `lambdas[0](x)`, `sorts(x)`, `calls(save, x, "value.csv")`, `calls(ok, x, "typed-lambda.csv")`, `keys(ok)`, `keys(lambda p: save(1, p))`,
		`spreads(ok, [1])`, `caught(x)`, `default(x)`, `box["save"](x)`, `pages(x)`, `computes(x, "computes.csv")`, `summary(**options)`, `summary(x, pager=True)`, `mine(x, "alias.csv")`, `[save][0](x, "index.csv")`, `{"save": computes}["save"](x, "key.csv")`,
		`sorted([x], key=lambdas[0])`, `sorted([x], key=lambda v: direct(v))`, `sorted([x], key=ok)`, `parallel(ok, [x])`, `catch(direct, x)`, `catch(save, x, "catch.csv")`,
		`[direct(v) for v in [x]]`, `load("toplevel.star", "y")`, `load("<prompt>", "typed")`, `load("./<prompt>", "typed")`, `typed(x)`,
	} {
		got := run(line)
		if got == "" {
			t.Errorf("%s: no error", line)
		}
	}
	if diff := cmp.Diff(before, names(t)); diff != "" {
		t.Errorf("hostile modules saved: -want +got\n%s", diff)
	}
}

// TestSaveElsewhere: not from a pipe, not in the rc file, not from a reader that is no
// terminal.
func TestSaveElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("rc.star", []byte("def later(): save(1, 'later.csv')\n\nsave(1, 'rc.csv')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, out := openTest(t, "-F", "sim:ring:n=2")
	for _, interactive := range []bool{true, false} {
		r.read(newPlainReader(strings.NewReader("save(1, 'x.csv')\n")), interactive)
		r.loop()
	}
	r.terminal = true
	r.read(newPlainReader(strings.NewReader("save(1, 'x.csv')\n")), false)
	r.loop()
	r.startup(filepath.Join(r.Files.Cwd, "rc.star"))
	r.read(newPlainReader(strings.NewReader("later()\n")), true)
	r.loop()
	if got := names(t); !slices.Equal(got, []string{"rc.star"}) {
		t.Errorf("files: %v\n%s", got, out)
	}
	if n := strings.Count(out.String(), "only statements typed at the prompt may do this"); n != 5 {
		t.Errorf("%d refusals in\n%s", n, out)
	}
}

// typist is somebody typing.
type typist struct {
	lines []string
	echo  io.Writer
}

func (s *typist) ReadLine(prompt string) (string, error) {
	if len(s.lines) == 0 {
		return "", io.EOF
	}
	l := s.lines[0]
	s.lines = s.lines[1:]
	if prompt != morePrompt {
		prompt = "> "
	}
	io.WriteString(s.echo, strings.TrimRight(prompt+l, " ")+"\n")
	return l, nil
}

func (s *typist) Close() error { return nil }
