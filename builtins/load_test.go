package builtins

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/program"
)

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
