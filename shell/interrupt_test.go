package shell

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
