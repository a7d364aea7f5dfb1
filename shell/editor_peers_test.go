package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// A script with a mistake, and what an operator makes of it: corrected by the code action, with a
// variable renamed, and formatted.
const (
	editedScript = "def audit(fabric):\n    for node in fabric.nodes:\n        for prt in node.ports:\n            if prt.state==\"activ\":\n                print( prt.name )\n"
	wantScript   = "def audit(fabric):\n    for node in fabric.nodes:\n        for port in node.ports:\n            if port.state == \"active\":\n                print(port.name)\n"
	seenMistake  = "finding 3 26 fabsh prt.state is never \"activ\" (did you mean active?)\naction Change to active\n"
)

// editSession runs a session of an editor with testdata/editors/FILE, and compares the script that
// it saves, and what it saw. command starts the editor; its files and libraries come first.
func editSession(t *testing.T, file, want string, command func(script string) *exec.Cmd) {
	t.Helper()
	fabsh, err := exec.LookPath("fabsh")
	if err != nil {
		t.Fatal(err)
	}
	editors, err := filepath.Abs(filepath.Join("..", "examples/editors"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("testdata/editors", file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "links.star"), []byte(editedScript), 0o600); err != nil {
		t.Fatal(err)
	}
	c := command(script)
	c.Dir = dir
	c.WaitDelay = 5 * time.Second // the server may have its standard error
	own := c.Env
	c.Env = append(append(c.Env, testEnv(t)...), "EDITORS="+editors)
	for _, kv := range own {
		switch name, value, _ := strings.Cut(kv, "="); name {
		case "PATH":
			c.Env = append(c.Env, "PATH="+filepath.Dir(fabsh)+":"+value)
		case "LD_LIBRARY_PATH":
			c.Env = append(c.Env, kv)
		}
	}
	shown, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", c.Path, err, shown)
	}
	for name, want := range map[string]string{"seen": want, "links.star": wantScript} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatalf("%v\n%s", err, shown)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s: -want +got:\n%s\n%s", name, diff, shown)
		}
	}
}

// TestNeovim: an editor that was not written here is served.
func TestNeovim(t *testing.T) {
	t.Parallel()
	editSession(t, "session.lua", seenMistake+"completion name\n", func(script string) *exec.Cmd {
		c := ibsimtest.Command(t, "nvim", "--clean", "--headless", "-n", "-c", "luafile "+script, "-c", "cquit")
		if runtime := filepath.Join(filepath.Dir(filepath.Dir(c.Path)), "share/nvim/runtime"); isDir(runtime) {
			c.Env = append(c.Env, "VIMRUNTIME="+runtime)
		}
		return c
	})
}

// TestEmacs: eglot is served. Emacs from Debian's packages finds its files by the environment.
func TestEmacs(t *testing.T) {
	t.Parallel()
	editSession(t, "session.el", seenMistake+"left 0\n", func(script string) *exec.Cmd {
		path := ibsimtest.Path(t, "emacs-nox")
		top := filepath.Dir(filepath.Dir(path)) // usr
		one := func(pattern string) string {
			found, _ := filepath.Glob(filepath.Join(top, pattern))
			if len(found) == 0 {
				t.Fatalf("%s has no %s", top, pattern)
			}
			return found[0]
		}
		args := []string{"--dump-file=" + one("libexec/emacs/*/*/emacs*.pdmp"), "-Q", "--batch"}
		added, _ := filepath.Glob(filepath.Join(top, "share/emacs/site-lisp/elpa-src/*"))
		for _, dir := range added {
			args = append(args, "-L", dir)
		}
		c := ibsimtest.Command(t, "emacs-nox", append(args, "-l", script)...)
		lisp := one("share/emacs/*/lisp")
		dirs := []string{lisp}
		filepath.WalkDir(lisp, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() && path != lisp {
				dirs = append(dirs, path)
			}
			return err
		})
		c.Env = append(c.Env, "EMACSLOADPATH="+strings.Join(dirs, ":"), "EMACSDATA="+one("share/emacs/*/etc"), "EMACSPATH="+filepath.Dir(one("libexec/emacs/*/*/hexl")))
		return c
	})
}

// TestVSCode: the extension starts the server, and the session of VS Code is served, by the library that
// VS Code uses. Its modules are those that make vsix packs.
func TestVSCode(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	modules := filepath.Join("..", "examples/editors/vscode/node_modules")
	if err != nil || !isDir(modules) {
		if os.Getenv("CI") != "" {
			t.Fatalf("no node (%v), or no %s; make peers fetches the modules by npm", err, modules)
		}
		t.Skipf("no node (%v), or no %s: the session of VS Code is not tested; make peers fetches the modules if npm is installed", err, modules)
	}
	editSession(t, "session.js", seenMistake+"left 0\nexit 0\n", func(script string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), node, script)
		c.Env = []string{"PATH=" + os.Getenv("PATH")}
		return c
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
