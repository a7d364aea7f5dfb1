package builtins

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/fabric/sim"
)

const entryScript = `
def main(name, count=1, *rest, threshold=5, ratio=0.5, verbose=False, quick=True, tag=None, only=[], ids=[0]):
    """Does things to a name.

    The second paragraph
      is indented.
    """
    print(repr((name, count, rest, threshold, ratio, verbose, quick, tag, only, ids)))
`

func TestEntry(t *testing.T) {
	usage := "\nusage: s.star [--threshold N] [--ratio X] [--verbose] [--no-quick] [--tag TEXT] [--only TEXT] [--ids N] NAME [COUNT] [REST...]"
	for _, test := range []struct {
		name string
		args []string
		out  string
		err  string
	}{
		{"words", []string{"a", "7", "b", "c"}, `("a", 7, ("b", "c"), 5, 0.5, False, True, None, [], [0])` + "\n", ""},
		{"options", []string{"--threshold", "9", "a", "--ratio=2", "--verbose", "--no-quick", "--tag", "x", "--only", "p", "--only=q", "--ids", "3"},
			`("a", 1, (), 9, 2.0, True, False, "x", ["p", "q"], [3])` + "\n", ""},
		{"hexadecimal and negative", []string{"a", "-0x10", "--threshold=-1"}, `("a", -16, (), -1, 0.5, False, True, None, [], [0])` + "\n", ""},
		{"end of options", []string{"--", "--threshold", "3"}, `("--threshold", 3, (), 5, 0.5, False, True, None, [], [0])` + "\n", ""},
		{"truth", []string{"a", "--verbose=yes", "--quick=off"}, `("a", 1, (), 5, 0.5, True, False, None, [], [0])` + "\n", ""},
		{"other letters", []string{"a", "--Threshold", "9", "--no-Quick"}, `("a", 1, (), 9, 0.5, False, False, None, [], [0])` + "\n", ""},
		{"missing word", nil, "", "s.star: missing NAME" + usage},
		{"unknown option", []string{"a", "--treshold", "3"}, "", "s.star: --treshold: unknown flag (did you mean --threshold?)" + usage},
		{"one letter", []string{"a", "-T", "3"}, "", "s.star: -T: unknown flag (options have long names: --threshold, --tag)" + usage},
		{"no value", []string{"a", "--threshold"}, "", "s.star: --threshold: missing value" + usage},
		{"bad value", []string{"a", "--threshold=x"}, "", `s.star: --threshold "x": want an integer` + usage},
		{"bad word", []string{"a", "x"}, "", `s.star: COUNT "x": want an integer` + usage},
		{"bad truth", []string{"a", "--verbose=maybe"}, "", `s.star: --verbose "maybe": want true or false` + usage},
		{"help", []string{"a", "--help"}, `usage: s.star [--threshold N] [--ratio X] [--verbose] [--no-quick] [--tag TEXT] [--only TEXT] [--ids N] NAME [COUNT] [REST...]

Does things to a name.

The second paragraph
  is indented.

options:
  --threshold N  default 5
  --ratio X      default 0.5
  --verbose      default False
  --no-quick     turns off quick
  --tag TEXT     default None
  --only TEXT    default []
  --ids N        default [0]
`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := plain(t, nil)
			write(t, f.fs, "/work/s.star", entryScript)
			err := program.RunFile(context.Background(), f.Interpreter, "s.star", test.args)
			if diff := cmp.Diff(test.err, f.Explain(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.out, f.stdout.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if got, want := audits.ExitStatus(f.Runtime, err), map[bool]int{true: lang.StatusClean, false: lang.StatusUsage}[test.err == ""]; got != want {
				t.Errorf("status %d, want %d", got, want)
			}
		})
	}
}

func TestRunFile(t *testing.T) {
	for _, test := range []struct {
		name, script, path string
		args               []string
		out, err           string
		status             int
	}{
		{"no entry function", "print(1)", "s.star", nil, "1\n", "", 0},
		{"arguments for nobody", "print(1)", "s.star", []string{"x"}, "", "s.star: takes no arguments; it does not define main(), audit() or route()", 2},
		{"an entry function by assignment", "def f(x):\n    print(x)\nif True:\n    main = f", "s.star", []string{"x"}, "x\n", "", 0},
		{"no entry function after all", "print(1)\nmain = 1", "s.star", []string{"x"}, "1\n", "s.star: takes no arguments; it does not define main(), audit() or route()", 2},
		{"globals stay open", "seen = []\ndef main():\n    seen.append(1)\n    print(seen)", "s.star", nil, "[1]\n", "", 0},
		{"audit", "def audit(*, n=1):\n    print(n)", "s.star", []string{"--n", "2"}, "2\n", "", 0},
		{"required option", "def main(*, n):\n    pass", "s.star", nil, "", "s.star: missing --n\nusage: s.star --n TEXT", 2},
		{"unexpected word", "def main():\n    pass", "s.star", []string{"x"}, "", "s.star: unexpected argument \"x\"\nusage: s.star", 2},
		{"missing file", "", "none.star", nil, "", "none.star: no such file", 2},
		{"exit", "exit(1)", "s.star", nil, "", "", 1},
		{"fail", "def f():\n    fail(\"no\")\ndef main():\n    f()", "s.star", nil, "",
			"fail: no\n  s.star:4:5: in main\n  s.star:2:5: in f\n        fail(\"no\")\n        ^", 2},
		{"syntax", "x = (\n", "s.star", nil, "", "s.star:2:1: syntax error: got end of file, want primary expression", 2},
		{"undefined", "prnt(1)", "s.star", nil, "", "s.star:1:1: undefined: prnt (did you mean print?)\n    prnt(1)\n    ^", 2},
		{"inside parallel", "def f(i):\n    fail(\"no\")\nparallel(f, [7])", "s.star", nil, "",
			"parallel: item 0, 7: fail: no\n  s.star:3:1: in <toplevel>\n    parallel(f, [7])\n    ^\n  s.star:2:5: in f\n        fail(\"no\")\n        ^", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := plain(t, nil)
			write(t, f.fs, "/work/s.star", test.script)
			err := program.RunFile(context.Background(), f.Interpreter, test.path, test.args)
			got := []any{f.stdout.String(), f.Explain(err), audits.ExitStatus(f.Runtime, err)}
			if diff := cmp.Diff([]any{test.out, test.err, test.status}, got); diff != "" {
				t.Errorf("output, error, status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	tree := map[string]string{
		"/work/main.star":          "",
		"/work/lib.star":           "x = 1\ndef f():\n    return x",
		"/work/sub/a.star":         `load("b.star", "b")` + "\na = b + 1",
		"/work/sub/b.star":         "b = 10",
		"/work/sub/root.star":      `load("//lib.star", "x")` + "\ny = x",
		"/work/up/u.star":          `load("../lib.star", "x")` + "\nu = x",
		"/inc/shared.star":         "s = 5",
		"/work/c1.star":            `load("c2.star", "c2")` + "\nc1 = 1",
		"/work/c2.star":            `load("c3.star", "c3")` + "\nc2 = 1",
		"/work/c3.star":            `load("c1.star", "c1")` + "\nc3 = 1",
		"/work/self.star":          `load("self.star", "s")`,
		"/work/broken.star":        "def f(:\n",
		"/work/fails.star":         "fail(\"no\")",
		"/work/exits.star":         "exit(4)",
		"/work/prints.star":        "print(\"once\")\nx = []",
		"/secret/outside.star":     "x = 1",
		"/work/sub/outwards.star":  `load("../../secret/outside.star", "x")`,
		"/work/loads_twice.star":   `load("prints.star", "x")` + "\ny = x",
		"/work/deep/er/first.star": `load("@examples//links.star", "main")` + "\nok = main",
	}
	for _, test := range []struct{ name, code, out, err string }{
		{"beside", `load("lib.star", "f"); f()`, "1\n", ""},
		{"below, relative to itself", `load("sub/a.star", "a"); a`, "11\n", ""},
		{"from the root", `load("sub/root.star", "y"); y`, "1\n", ""},
		{"through ..", `load("up/u.star", "u"); u`, "1\n", ""},
		{"from -I", `load("shared.star", "s"); s`, "5\n", ""},
		{"renamed", `load("lib.star", g="f"); g()`, "1\n", ""},
		{"embedded", `load("deep/er/first.star", "ok"); type(ok)`, "\"function\"\n", ""},
		{"runs once", `load("prints.star", "x"); load("loads_twice.star", "y"); x == y`, "once\nTrue\n", ""},
		{"frozen", `load("prints.star", "x"); x.append(1)`, "once\n",
			"append: cannot append to frozen list\n  <test>:1:29: in <toplevel>\n    load(\"prints.star\", \"x\"); x.append(1)\n                                ^"},
		{"cycle", `load("c1.star", "c1")`, "",
			"cannot load c1.star: cannot load c2.star: cannot load c3.star: cannot load c1.star: load cycle: c1.star -> c2.star -> c3.star -> c1.star"},
		{"itself", `load("self.star", "s")`, "", "cannot load self.star: cannot load self.star: load cycle: self.star -> self.star"},
		{"missing", `load("none.star", "x")`, "", "cannot load none.star: no such file; searched none.star, /inc/none.star"},
		{"missing in a package", `load("@examples//link.star", "x")`, "", "cannot load @examples//link.star: no such file in @examples (did you mean links.star?)"},
		{"unknown package", `load("@exmples//links.star", "x")`, "", "cannot load @exmples//links.star: unknown package @exmples (did you mean @examples?)"},
		{"out of a package", `load("@examples//../x.star", "x")`, "", "cannot load @examples//../x.star: @examples//../x.star: outside of package @examples"},
		{"syntax error", `load("broken.star", "x")`, "", "broken.star:1:8: syntax error: got ':', want ')'\n    def f(:\n           ^"},
		{"unknown name", `load("lib.star", "ff")`, "", "load: name ff not found in module lib.star"},
		{"outside", `load("sub/outwards.star", "x")`, "",
			"cannot load sub/outwards.star: cannot load ../../secret/outside.star: /secret/outside.star: scripts may not read here, only below ., /inc; allow its directory with -I"},
		{"absolute", `load("/secret/outside.star", "x")`, "",
			"cannot load /secret/outside.star: /secret/outside.star: scripts may not read here, only below ., /inc; allow its directory with -I"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := plain(t, func(o *SessionOptions) {
				for name, content := range tree {
					write(t, o.FS, name, content)
				}
				o.Include = []string{"/inc"}
			})
			out, explained, _ := f.run(test.code)
			explained = firstLines(explained, test.err)
			if diff := cmp.Diff([]string{test.out, test.err}, []string{out, explained}); diff != "" {
				t.Errorf("output, error (-want +got):\n%s", diff)
			}
		})
	}
}

// firstLines cuts the trace off an explanation, where want has none.
func firstLines(got, want string) string {
	if n := len(want); n > 0 && len(got) > n && got[:n] == want && got[n] == '\n' {
		return want
	}
	return got
}

func TestLoadStopsAtExit(t *testing.T) {
	f := plain(t, nil)
	write(t, f.fs, "/work/exits.star", "exit(4)")
	if _, explained, status := f.run(`load("exits.star", "x")`); status != 4 || explained != "" {
		t.Errorf("status %d, %q; want 4 and no words", status, explained)
	}
}

// TestRealFiles reads through os.Root, which keeps links from leading out.
func TestRealFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"work/s.star": `load("lib.star", "x"); print(x)`, "work/lib.star": "x = 1",
		"other/o.star": "x = 2", "script/t.star": `load("beside.star", "x"); print(x)`, "script/beside.star": "x = 3",
	} {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "other/o.star"), filepath.Join(dir, "work/link.star")); err != nil {
		t.Fatal(err)
	}
	f := plain(t, func(o *SessionOptions) { o.FS, o.Dir = nil, filepath.Join(dir, "work") })
	if err := program.RunFile(context.Background(), f.Interpreter, filepath.Join(dir, "work/s.star"), nil); err != nil {
		t.Error(f.Explain(err))
	}
	// A script's own folder is readable, wherever it lies.
	if err := program.RunFile(context.Background(), f.Interpreter, filepath.Join(dir, "script/t.star"), nil); err != nil {
		t.Error(f.Explain(err))
	}
	if got := f.stdout.String(); got != "1\n3\n" {
		t.Errorf("printed %q", got)
	}
	_, explained, _ := f.run(`load("link.star", "x")`)
	want := "cannot load link.star: link.star: path escapes from parent"
	if explained = firstLines(explained, want); explained != want {
		t.Errorf("got  %s\nwant %s", explained, want)
	}
}

// TestShippedExamples runs each program of examples/ as a command.
func TestShippedExamples(t *testing.T) {
	for _, test := range []struct {
		golden, script string
		args           []string
		format         lang.Format
		status         int
	}{
		{"first_look.txt", "first_look.star", nil, "", lang.StatusClean},
		{"links.txt", "links.star", nil, "", lang.StatusClean},
		{"links.csv", "links.star", nil, lang.FormatCSV, lang.StatusClean},
		{"links.jsonl", "links.star", nil, lang.FormatJSONL, lang.StatusClean},
		{"links_down.json", "links.star", []string{"--down"}, lang.FormatJSON, lang.StatusClean},
		{"trace.txt", "trace.star", []string{"node-0001 HCA-1", "4"}, "", lang.StatusClean},
		{"trace_usage.txt", "trace.star", []string{"1"}, "", lang.StatusUsage},
		{"trace_help.txt", "trace.star", []string{"--help"}, "", lang.StatusClean},
		{"trace_unknown.txt", "trace.star", []string{"1", "nobody"}, "", lang.StatusUsage},
	} {
		t.Run(test.golden, func(t *testing.T) {
			src, err := os.ReadFile("../examples/" + test.script)
			if err != nil {
				t.Fatal(err)
			}
			adapt := func(o *SessionOptions) { o.Format = test.format }
			onSim(t, "ring:n=2", adapt, func(t *testing.T, f *fixture) {
				afero.WriteFile(f.fs, "/work/"+test.script, src, 0o644)
				err := program.RunFile(context.Background(), f.Interpreter, test.script, test.args)
				got := f.stdout.String() + f.stderr.String()
				if text := f.Explain(err); text != "" {
					got += text + "\n"
				}
				golden(t, "testdata/examples/"+test.golden, got)
				if got := audits.ExitStatus(f.Runtime, err); got != test.status {
					t.Errorf("status %d, want %d", got, test.status)
				}
			})
		})
	}
}

// TestPlayInRealTime: by the machine's clock, the actions happen at their times while the
// script sleeps, and end with the session.
func TestPlayInRealTime(t *testing.T) {
	onSim(t, "fattree:seed=3", nil, func(t *testing.T, f *fixture) {
		begun := time.Now()
		got, explained, _ := f.run(`
sim.play("flap")
sleep("25s")
print([(a["at"], a["action"]) for a in sim.actions()])
print(len(discover().links))
sim.play("flap", seed=1)
`)
		if want := "[(10, \"unlink\"), (12, \"link\"), (20, \"unlink\"), (22, \"link\")]\n64\n"; got != want || explained != "" {
			t.Errorf("got %s%s, want %s", got, explained, want)
		}
		if took := time.Since(begun); took.Round(time.Second) != 25*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// steps is a clock by which each reading is a second after the one before.
type steps struct {
	lang.RealClock
	mu  sync.Mutex
	now time.Time
}

func (s *steps) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(time.Second)
	return s.now
}

// TestScenarioLog: the log has the time before a change, of another program and of a scenario, so that
// nothing that follows from the change is earlier: here the begin of a flow.
func TestScenarioLog(t *testing.T) {
	clock := &steps{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	var subnet *sim.Subnet
	adapt := func(o *SessionOptions) { o.Clock, subnet = clock, o.Sim }
	onSim(t, "fattree", adapt, func(t *testing.T, f *fixture) {
		var began time.Time // of the first reading by the subnet
		subnet.SetClock(func() time.Time {
			now := clock.Now()
			if began.IsZero() {
				began = now
			}
			return now
		})
		began = time.Time{} // SetClock reads it too
		var logged []time.Time
		observed := &topology.Sim{Subnet: subnet, Acted: func(since time.Time, _ string, _ map[string]any, err error) {
			if logged = append(logged, since); err != nil {
				t.Error(err)
			}
		}}
		thread := f.newThread(t.Context(), "test")
		if _, err := observed.Execute(thread, "traffic", []byte(`{"pairs": [["node-0001 HCA-1", "node-0009 HCA-1"]]}`)); err != nil {
			t.Fatal(err)
		}
		method, err := observed.Attr("traffic")
		if err != nil {
			t.Fatal(err)
		}
		if len(logged) != 1 || began.IsZero() || !logged[0].Before(began) {
			t.Errorf("logged %v, began %v", logged, began)
		}
		began = time.Time{}
		pairs := starlark.NewList([]starlark.Value{starlark.Tuple{starlark.String("node-0002 HCA-1"), starlark.String("node-0009 HCA-1")}})
		if _, err := starlark.Call(thread, method, starlark.Tuple{pairs}, nil); err != nil {
			t.Fatal(err)
		}
		if len(logged) != 2 || began.IsZero() || !logged[1].Before(began) {
			t.Errorf("logged %v, began %v", logged, began)
		}
	})
}
