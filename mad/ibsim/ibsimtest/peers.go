// Package ibsimtest provides the programs that tests compare with: the external
// simulator ibsim, OpenSM, the tools of infiniband-diags and ibutils, tshark, and those that
// tests use and a minimal system lacks.
//
// A program that is missing skips the test, or fails it where the environment
// has FABSH_PEERS_REQUIRED=1, as make sets it. `make peers` unpacks them all.
//
// Command prepares any peer. A Fixture is a private ibsim with its programs, an SM an
// OpenSM on it, Slurm a controller of Slurm with its daemons. All processes end with the
// test that started them. Functions and types are for the goroutine of one test.
package ibsimtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Command prepares to run a peer ("tshark") with the test's context and the environment
// it needs. It skips the test if there is no such program.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), Path(t, name), args...)
	c.Env = Env(t)
	return c
}

// Path returns the path of the peer called name. It skips the test if it is missing.
func Path(t testing.TB, name string) string {
	t.Helper()
	return find(t, name, "usr/bin", "usr/sbin")
}

// Env returns the environment of peers: the test's own, with the directories of
// unpacked programs and libraries, without the user's settings for ibsim and its
// clients.
func Env(t testing.TB) []string {
	t.Helper()
	var env []string
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "TCL_LIBRARY", "SIM_HOST", "SIM_SET_ISSM",
			"IBSIM_SOCKNAME", "IBSIM_SERVER_NAME", "IBSIM_SERVER_PORT",
			"IBPATH", "OSM_TMP_DIR", "OSM_CACHE_DIR", "TZ", "LANG", "LC_ALL":
		case "HOME":
			env = append(env, "HOME="+t.TempDir())
		default:
			if !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "FABSH_") {
				env = append(env, kv)
			}
		}
	}
	root := peersDir(t)
	var path, lib []string
	for _, d := range []string{"usr/bin", "usr/sbin"} {
		path = append(path, filepath.Join(root, d))
	}
	for _, pattern := range []string{"usr/lib/*-linux-gnu*", "lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/slurm-wlm"} {
		dirs, _ := filepath.Glob(filepath.Join(root, pattern))
		lib = append(lib, dirs...)
	}
	env = append(env,
		"PATH="+strings.Join(append(path, "/usr/local/bin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"), ":"),
		"LC_ALL=C.UTF-8", "TZ=UTC")
	if len(lib) > 0 {
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(lib, ":"))
	}
	// Data that programs would look for below /usr.
	for _, data := range []struct{ variable, path string }{
		{"WIRESHARK_DATA_DIR", "usr/share/wireshark"},
		{"TCL_LIBRARY", "usr/share/tcltk/tcl8.6"}, // of the ibutils
	} {
		if path := filepath.Join(root, data.path); isThere(path) {
			env = append(env, data.variable+"="+path)
		}
	}
	return env
}

// Programs returns the names of the programs of a Debian package of the peers.
func Programs(t testing.TB, name string) []string {
	t.Helper()
	list, err := os.ReadFile(find(t, name+".md5sums", "var/lib/dpkg/info"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(list)) {
		if _, path, _ := strings.Cut(strings.TrimSpace(line), "  "); strings.Contains(filepath.Dir(path), "bin") {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// Need skips the test, or fails it, because something it needs is missing.
func Need(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("FABSH_PEERS_REQUIRED") == "1" {
		t.Fatalf("no %s: run make peers", what)
	}
	t.Skipf("no %s: run make peers", what)
}

// find looks for name in dirs of what was unpacked, then of the machine.
func find(t testing.TB, name string, dirs ...string) string {
	t.Helper()
	for _, root := range []string{peersDir(t), filepath.Join(Root(t), ".prometheus"), "/"} {
		for _, d := range dirs {
			matches, _ := filepath.Glob(filepath.Join(root, d, name))
			for _, m := range matches {
				if isThere(m) {
					return m
				}
			}
		}
	}
	Need(t, name)
	return ""
}

// peersDir returns the directory .peers beside go.mod, by a path that peers can take: in
// LD_PRELOAD, slurm.conf and scripts of Tcl, blanks separate names.
func peersDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(Root(t), ".peers")
	if !strings.ContainsAny(dir, " :") {
		return dir
	}
	temp, err := os.MkdirTemp("", "fabsh-peers-")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(temp) })
		err = os.Chmod(temp, 0o755) // tests of root run peers as another user
	}
	link := filepath.Join(temp, "peers")
	if err == nil {
		err = os.Symlink(dir, link)
	}
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// Root returns the directory of go.mod: tests run in the directory of their package.
func Root(t testing.TB) string {
	t.Helper()
	d, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !isThere(filepath.Join(d, "go.mod")) {
		if d == filepath.Dir(d) {
			t.Fatal("no go.mod in any directory above the test")
		}
		d = filepath.Dir(d)
	}
	return d
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
