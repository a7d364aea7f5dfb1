package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/builtins/lang"
)

func testInterrupts() (*interrupts, *bytes.Buffer, *[]string) {
	var out bytes.Buffer
	var log []string
	return &interrupts{
		console: &console{stdout: &out, stderr: &out},
		cleanup: func() { log = append(log, "cleanup") },
		exit:    func(status int) { log = append(log, fmt.Sprint("exit ", status)) },
	}, &out, &log
}

func TestInterrupts(t *testing.T) {
	synctest.Test(t, testSignals)
}

func testSignals(t *testing.T) {
	i, out, log := testInterrupts()
	i.run(func(ctx context.Context) error {
		i.ignore(func() { i.handle(os.Interrupt) })
		if ctx.Err() != nil {
			t.Error("Ctrl-C in the pager ended the evaluation")
		}
		i.handle(os.Interrupt)
		if got := context.Cause(ctx); got != lang.ErrInterrupted {
			t.Errorf("cause is %v", got)
		}
		if out.Len() > 0 || *log != nil {
			t.Errorf("after the first: %q, %q", out, *log)
		}
		i.handle(os.Interrupt) // timeout(1) sends it twice
		if out.Len() > 0 {
			t.Errorf("after the same once more: %q", out)
		}
		time.Sleep(sameSignal)
		i.handle(os.Interrupt)
		if got := out.String(); !strings.HasPrefix(got, "still busy; this is where (once more ends fabsh):\n") || !strings.Contains(got, "TestInterrupts") {
			t.Errorf("after the second: %s", got)
		}
		time.Sleep(sameSignal)
		i.handle(os.Interrupt)
		return nil
	})
	if got, want := fmt.Sprint(*log), "[cleanup exit 130]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if i.status(7) != 7 {
		t.Error("Ctrl-C is the evaluation's, not the program's")
	}
	// A new evaluation begins anew.
	i.run(func(ctx context.Context) error {
		if ctx.Err() != nil {
			t.Error("interrupted from the start")
		}
		return nil
	})
}

func TestInterruptsIdle(t *testing.T) {
	i, _, log := testInterrupts()
	i.handle(syscall.SIGPIPE) // the writer finds out by itself
	if *log != nil {
		t.Errorf("got %s", *log)
	}
	if got := i.status(0); got != 141 {
		t.Errorf("status %d", got)
	}
	i.handle(syscall.SIGTERM)
	if got, want := fmt.Sprint(*log), "[cleanup exit 143]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestInterruptsHanging: what does not let itself be interrupted does not keep
// the program alive.
func TestInterruptsHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _, log := testInterrupts()
		i.run(func(ctx context.Context) error {
			i.handle(syscall.SIGTERM)
			time.Sleep(endsWithin - 1)
			i.set(func() {
				if *log != nil || ctx.Err() == nil {
					t.Errorf("too early: %q, %v", *log, ctx.Err())
				}
			})
			time.Sleep(2 * time.Nanosecond)
			return nil
		})
		i.set(func() {
			if got, want := fmt.Sprint(*log), "[cleanup exit 143]"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	})
}

// TestInterruptsStalledPipe: nor does a pipe that nobody reads.
func TestInterruptsStalledPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("fabsh", "-F", "sim:ring:n=2", "-c", `while True: print("x" * 10000)`)
	cmd.Env = append(testEnv, "PATH="+os.Getenv("PATH"))
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
			cmd.Env, cmd.Dir = append(testEnv, "PATH="+os.Getenv("PATH")), dir
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

func TestFits(t *testing.T) {
	f, err := os.Open(os.DevNull) // taken for 80 by 24
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for line, rows := range map[string]int{"": 1, "x": 1, strings.Repeat("x", 80): 1, strings.Repeat("x", 81): 2, strings.Repeat("x", 160): 2, strings.Repeat("x", 161): 3} {
		rest := strings.Repeat("\n", 23-rows)
		if !fits(line+"\n"+rest, f) || fits(line+"\n"+rest+"\n", f) {
			t.Errorf("a line of %d does not take %d rows", len(line), rows)
		}
	}
}

// TestInterruptsAtPrompt: between two statements Ctrl-C is as nothing typed, and one
// that runs is ended by it.
func TestInterruptsAtPrompt(t *testing.T) {
	i, _, log := testInterrupts()
	end := i.atPrompt()
	i.handle(os.Interrupt)
	i.handle(os.Interrupt)
	i.run(func(ctx context.Context) error {
		i.handle(os.Interrupt)
		if context.Cause(ctx) != lang.ErrInterrupted {
			t.Errorf("cause is %v", context.Cause(ctx))
		}
		return nil
	})
	if *log != nil {
		t.Errorf("it ended: %q", *log)
	}
	end()
	i.handle(os.Interrupt)
	if got, want := fmt.Sprint(*log), "[cleanup exit 130]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
