//go:build linux && (amd64 || arm64)

package run_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric/hermetic"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/run"
	"fabsh/mad/ibsim/ibsimtest"
)

// Variables by which this test's program is fabsh sim --run: the topology, and settings.
const (
	specVariable = "FABSH_TEST_RUN_SPEC"
	bareVariable = "FABSH_TEST_RUN_BARE"
	nodeVariable = "FABSH_TEST_RUN_NODE"
)

func TestMain(m *testing.M) {
	run.Become(os.Args)
	switch os.Getenv(probeVariable) {
	case "all":
		probe()
		os.Exit(0)
	case "fast":
		probeFast()
		os.Exit(0)
	}
	if spec, ok := os.LookupEnv(specVariable); ok {
		os.Unsetenv(specVariable)
		status, err := supervise(spec)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 3
		}
		os.Exit(status)
	}
	code := hermetic.Tests(m).Run()
	os.RemoveAll(programFolder)
	os.Exit(code)
}

func supervise(spec string) (int, error) {
	f, o, err := sim.ParseFiles(spec, open, open)
	if err != nil {
		return 0, err
	}
	o.Bare = os.Getenv(bareVariable) != ""
	path, err := exec.LookPath(os.Args[1])
	if err != nil {
		return 0, err
	}
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTERM) // before the command runs, which may have the test send one
	r, err := run.Start(run.ProgramOptions{
		Subnet: sim.New(f, o), Fabric: f, Node: os.Getenv(nodeVariable), Program: os.Args[0], Path: path, Args: os.Args[1:],
		Log: func(text string) { fmt.Fprintln(os.Stderr, text) },
	})
	if errors.Is(err, run.ErrUnsupported) {
		return unsupported, nil
	}
	if err != nil {
		return 0, err
	}
	go func() {
		for s := range ch {
			r.Signal(s.(syscall.Signal))
		}
	}()
	return r.Wait()
}

func open(name string) (io.ReadCloser, error) { return os.Open(name) }

// unsupported is the exit status on a host that cannot do it.
const unsupported = 199

// nobody is the user that programs run as where tests are root.
const nobody = 65534

var programFolder string

// program is a copy of this test's program that other users may execute.
var program = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if programFolder, err = os.MkdirTemp("", "fabsh-run-test-"); err != nil {
		return "", err
	}
	if err := os.Chmod(programFolder, 0o755); err != nil {
		return "", err
	}
	from, err := os.Open(self)
	if err != nil {
		return "", err
	}
	defer from.Close()
	name := filepath.Join(programFolder, "fabsh")
	to, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	defer to.Close()
	_, err = io.Copy(to, from)
	return name, err
})

// subnet is where commands of a test run.
type subnet struct {
	spec   string
	bare   bool
	node   string
	folder string // of their files
}

// on returns a subnet, or skips the test.
func on(t testing.TB, spec string) *subnet {
	t.Helper()
	s := &subnet{spec: spec, folder: t.TempDir()}
	if os.Getuid() == 0 {
		for dir := s.folder; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			os.Chmod(dir, 0o755)
		}
		if err := os.Chown(s.folder, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if c := s.command(t, "true"); c.Run() != nil && c.ProcessState.ExitCode() == unsupported {
		t.Skip(run.ErrUnsupported)
	}
	return s
}

// command prepares a command on the subnet.
func (s *subnet) command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	name, err := program()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = s.folder
	c.Env = append(ibsimtest.Env(t), specVariable+"="+s.spec, nodeVariable+"="+s.node, "OSM_TMP_DIR="+s.folder, "OSM_CACHE_DIR="+s.folder, "TMPDIR="+s.folder)
	if s.bare {
		c.Env = append(c.Env, bareVariable+"=1")
	}
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	c.WaitDelay = 10 * time.Second
	return c
}

// sh runs a script on the subnet, and returns what it writes. The names of peers are in
// PATH.
func (s *subnet) sh(t testing.TB, script string) string {
	t.Helper()
	var out bytes.Buffer
	c := s.command(t, "sh", "-c", "PATH="+peerPath(t)+":$PATH\n"+script)
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out.String())
	}
	return out.String()
}

// peerPath is the folders of the peers' programs.
func peerPath(t testing.TB) string {
	return filepath.Dir(ibsimtest.Path(t, "ibnetdiscover")) + ":" + filepath.Dir(ibsimtest.Path(t, "ibsim"))
}

// lines are the lines of a text that contain a word.
func lines(text, word string) (n int) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			n++
		}
	}
	return n
}
