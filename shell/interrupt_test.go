package shell

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fabsh/builtins/lang"
)

// TestInterruptsStalledPipe: nor does a pipe that nobody reads.
func TestInterruptsStalledPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("fabsh", "-F", "sim:ring:n=2", "-c", `while True: print("x" * 10000)`)
	cmd.Env = testEnv(t)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	w.Close()
	if _, err := io.ReadFull(r, make([]byte, 10000)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	limit := time.After(time.Minute)
	for {
		select {
		case <-again.C:
			cmd.Process.Signal(os.Interrupt)
		case <-ended:
			if got := cmd.ProcessState.ExitCode(); got != lang.StatusInterrupted {
				t.Errorf("exit status %d", got)
			}
			return
		case <-limit:
			t.Fatal("Ctrl-C again and again does not end it")
		}
	}
}

// TestInterruptsWaiting: Ctrl-C ends what waits for a pipe that the command line
// names.
func TestInterruptsWaiting(t *testing.T) {
	const sim = "-F sim:ring:n=2 "
	for _, args := range []string{sim + "in.star --roots pipe", sim + "pipe", sim + "verify --lfts pipe", sim + "diff pipe", "diff pipe pipe", sim + "route updn --roots pipe",
		sim + "--keys pipe -c 1", sim + "--node-name-map pipe -c 1", "-F sim:pipe -c 1", "-F file:pipe -c 1", "-F replay:pipe -c 1", "decode pipe", "fmt pipe", "check pipe", "sim pipe"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pipe := filepath.Join(dir, "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "in.star"), []byte("def main(*, roots=''):\n    fs.read(roots)\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("fabsh", strings.Fields(args)...)
			cmd.Env, cmd.Dir = testEnv(t), dir
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			killed := time.AfterFunc(2*time.Minute, func() {
				cmd.Process.Kill()
				if r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // the test waits for a reader, too
					r.Close()
				}
			})
			defer killed.Stop()
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the reader
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			cmd.Process.Signal(os.Interrupt)
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != lang.StatusInterrupted {
				t.Errorf("exit status %d", got)
			}
		})
	}
}

// TestInterruptAnyMoment: Ctrl-C ends fabsh whatever its fibers are doing, from
// the first moment on, and what was printed is what a plain loop would have
// printed by then.
func TestInterruptAnyMoment(t *testing.T) {
	const code = `
def visit(i):
    guids = parallel(lambda lid: smp_get("NodeInfo", lid).node_guid, range(1, 20))
    smp_get("NodeInfo", [1, 2, 3] * 5)
    if i %% 3 == 0:
        sleep("%dms")
    print(i)
parallel(visit, range(1 << 20), width=256)`
	r := rand.New(rand.NewPCG(1, 0))
	var running sync.WaitGroup
	slots := make(chan bool, 2)
	for range 24 {
		moment := time.Duration(r.Int64N(int64(600 * time.Millisecond)))
		cmd := exec.Command("fabsh", "-F", "sim:fattree:k=4,levels=2,loss=0.01", "-c", fmt.Sprintf(code, r.IntN(3)))
		cmd.Env = testEnv(t)
		running.Go(func() {
			slots <- true
			defer func() { <-slots }()
			interruptAt(t, cmd, moment)
		})
	}
	running.Wait()
}

func interruptAt(t *testing.T, cmd *exec.Cmd, moment time.Duration) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	signal := time.AfterFunc(moment, func() { cmd.Process.Signal(os.Interrupt) })
	defer signal.Stop()
	hung := time.AfterFunc(moment+2*time.Minute, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	defer hung.Stop()
	cmd.Wait()
	ended := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ended.Signaled() && ended.Signal() == syscall.SIGINT: // it had not begun yet
	case ended.ExitStatus() != lang.StatusInterrupted || !interruptedLine.MatchString(stderr.String()):
		t.Errorf("Ctrl-C after %v: %v; stderr: %s", moment, cmd.ProcessState, stderr.String())
	}
	for i, line := range strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n") {
		if line != "" && line != fmt.Sprint(i) {
			t.Errorf("line %d is %q", i, line)
			break
		}
	}
}

// interruptedLine is all that stderr tells, and not even that if nothing ran yet.
var interruptedLine = regexp.MustCompile(`^(interrupted( \(in-flight MADs abandoned: \d+\))?\n)?$`)
