// Package hermetic runs the tests of a package without anything of the user who runs
// them: with their own home, state, configuration and environment.
package hermetic

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// RootVariable names the directory that programs of tests use in place of / for files of
// the system, such as /var/lib/fabsh. fabsh itself does not read it: only the fabsh that
// a test starts does.
const RootVariable = "FABSHTEST_ROOT"

// controls are the variables that choose which tests run, and against what.
var controls = []string{
	"FABSH_SOAK", "FABSH_PEERS_REQUIRED", "FABSH_CRDS", "FABSH_IBUTILS", "FABSH_INCUMBENTS", "FABSH_RDMA_CORE", "FABSH_WORDS",
	"FABSH_FABRICS", "FABSH_FAULT", "FABSH_SMALL",
}

// users are the variables, or with * their prefixes, by which a user changes what
// programs do.
var users = []string{
	"FABSH_*", "FABSHTEST_*", "XDG_*", "LC_*", "IBSIM_*", "SIM_*", "OSM_*", "IBPATH",
	"LANG", "LANGUAGE", "TZ", "PAGER", "LESS", "EDITOR", "VISUAL", "NO_COLOR", "COLORTERM", "COLUMNS", "LINES",
	"SUDO_USER", "STATE_DIRECTORY", "CONFIGURATION_DIRECTORY",
}

// runner is *testing.M.
type runner interface{ Run() int }

// Tests returns m with a Run that isolates its tests, for a TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(hermetic.Tests(m).Run()) }
func Tests(m runner) interface{ Run() int } { return tests{m} }

type tests struct{ runner }

func (t tests) Run() int {
	root, err := os.MkdirTemp("", "fabshtest-")
	if err == nil {
		defer os.RemoveAll(root)
		err = isolate(root)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "the environment of tests: %v\n", err)
		return 2
	}
	return t.runner.Run()
}

// Environ returns the environment of a program that a test starts, with a home and a root
// of its own below dir, which is a directory of the test.
func Environ(dir string) []string {
	return []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), RootVariable + "=" + dir, "TZ=UTC"}
}

// isolate replaces the environment of this process by an environment for tests, with files below
// root.
func isolate(root string) error {
	keepGo()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); isUsers(name) {
			os.Unsetenv(name)
		}
	}
	home := filepath.Join(root, "home")
	os.Setenv("HOME", home)
	os.Setenv(RootVariable, root)
	return os.Mkdir(home, 0o700)
}

// isUsers reports whether the variable is the user's, and does not choose tests.
func isUsers(name string) bool {
	for _, c := range controls {
		if name == c {
			return false
		}
	}
	for _, u := range users {
		if prefix, ok := strings.CutSuffix(u, "*"); name == u || ok && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// keepGo keeps the caches and modules of the go command, which tests run, where they are
// by default (go help environment): below the home.
func keepGo() {
	set := func(name string, dir func() (string, error), path ...string) {
		if at, err := dir(); err == nil && os.Getenv(name) == "" {
			os.Setenv(name, filepath.Join(append([]string{at}, path...)...))
		}
	}
	set("GOCACHE", os.UserCacheDir, "go-build")
	set("GOPATH", os.UserHomeDir, "go")
	set("GOENV", os.UserConfigDir, "go", "env")
}
