package shell

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"fabsh/builtins"
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
	i, out, log := testInterrupts()
	i.run(func(ctx context.Context) error {
		i.ignore(func() { i.handle(os.Interrupt) })
		if ctx.Err() != nil {
			t.Error("Ctrl-C in the pager ended the evaluation")
		}
		i.handle(os.Interrupt)
		if got := context.Cause(ctx); got != builtins.ErrInterrupted {
			t.Errorf("cause is %v", got)
		}
		if out.Len() > 0 || *log != nil {
			t.Errorf("after the first: %q, %q", out, *log)
		}
		i.handle(os.Interrupt)
		if got := out.String(); !strings.HasPrefix(got, "still busy; this is where (once more ends fabsh):\n") || !strings.Contains(got, "TestInterrupts") {
			t.Errorf("after the second: %s", got)
		}
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
	if got, want := fmt.Sprint(*log), "[cleanup exit 130]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
