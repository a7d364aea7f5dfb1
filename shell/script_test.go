package shell

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"fabsh/fabric/hermetic"
	simrun "fabsh/fabric/sim/run"
)

// deviceFolder is where Linux lists its InfiniBand devices.
const deviceFolder = "/sys/class/infiniband"

var update = flag.Bool("update", false, "rewrite what testdata/script and README.md expect")

// testEnv returns the environment of a fabsh that a test runs, with a home and a root of
// its own. The race detector would have it sleep for a second at its end.
func testEnv(t testing.TB) []string {
	return append(hermetic.Environ(t.TempDir()), "GORACE=atexit_sleep_ms=0")
}

// concurrentScripts are the scripts of commands that do several things at a time, which the race detector
// runs (-short). The others check texts, or times and retries, which it changes.
const concurrentScripts = "accept audit auditjob auditnodes badinput exporter findings grace history hostile limits parts pipe recursion replay scenario simrun simserve snapshot subscribe top virtual_time watch"

// TestScripts runs testdata/script. The command "session FILE" types the lines
// of FILE that begin with "$ " into a shell and writes what a terminal would
// show: those lines, all output, and exit statuses other than 0. So
//
//	session want
//	cmp stdout want
//
// checks whole sessions with all that they write.
func TestScripts(t *testing.T) {
	t.Parallel()
	roots := t.TempDir()
	dir, only := "testdata/script", []string(nil)
	if testing.Short() {
		dir = ""
		for name := range strings.FieldsSeq(concurrentScripts) {
			only = append(only, filepath.Join("testdata", "script", name+".txtar"))
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               only,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TZ", "UTC")
			root, err := os.MkdirTemp(roots, "")
			e.Setenv(hermetic.RootVariable, root)
			return err
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "device":
			case "supervise":
				return simrun.Supported(), nil
			default:
				return false, fmt.Errorf("unknown condition")
			}
			devices, _ := os.ReadDir(deviceFolder)
			return len(devices) > 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"session": func(ts *testscript.TestScript, _ bool, args []string) {
				env := []string{"GORACE=atexit_sleep_ms=0", "TZ=UTC"}
				for _, name := range []string{"HOME", "PATH", "FABSH_FABRIC", hermetic.RootVariable} {
					env = append(env, name+"="+ts.Getenv(name))
				}
				fmt.Fprint(ts.Stdout(), replay(ts.MkAbs("."), env, ts.ReadFile(args[0])))
			},
		},
	})
}

// replay types a transcript's commands and returns what comes of it.
func replay(dir string, env []string, transcript string) string {
	var out bytes.Buffer
	for line := range strings.Lines(transcript) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		out.WriteString(line)
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir, cmd.Env = dir, env
		cmd.Stdout, cmd.Stderr = &out, &out
		var exit *exec.ExitError
		if err := cmd.Run(); errors.As(err, &exit) {
			fmt.Fprintf(&out, "[exit status %d]\n", exit.ExitCode())
		} else if err != nil {
			fmt.Fprintf(&out, "[%v]\n", err)
		}
	}
	return out.String()
}
