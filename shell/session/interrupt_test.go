package session

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/builtins/lang"
)

func testInterrupts() (*Interrupts, *bytes.Buffer, *[]string) {
	var out bytes.Buffer
	var log []string
	return &Interrupts{
		console: &Console{stdout: &out, stderr: &out},
		cleanup: func() { log = append(log, "cleanup") },
		exit:    func(status int) { log = append(log, fmt.Sprint("exit ", status)) },
	}, &out, &log
}

func TestInterrupts(t *testing.T) {
	synctest.Test(t, testSignals)
}

func testSignals(t *testing.T) {
	i, out, log := testInterrupts()
	i.Run(func(ctx context.Context) error {
		i.Ignore(func() { i.handle(os.Interrupt) })
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
		time.Sleep(SameSignal)
		i.handle(os.Interrupt)
		if got := out.String(); !strings.HasPrefix(got, "still busy, at the following place (Ctrl-C again ends fabsh):\n") || !strings.Contains(got, "TestInterrupts") {
			t.Errorf("after the second: %s", got)
		}
		time.Sleep(SameSignal)
		i.handle(os.Interrupt)
		return nil
	})
	if got, want := fmt.Sprint(*log), "[cleanup exit 130]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if i.Status(7) != 7 {
		t.Error("Ctrl-C is the evaluation's, not the program's")
	}
	// A new evaluation begins anew.
	i.Run(func(ctx context.Context) error {
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
	if got := i.Status(0); got != 141 {
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
		i.Run(func(ctx context.Context) error {
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

func TestFits(t *testing.T) {
	f, err := os.Open(os.DevNull) // taken for 80 by 24
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for line, rows := range map[string]int{"": 1, "x": 1, strings.Repeat("x", 80): 1, strings.Repeat("x", 81): 2, strings.Repeat("x", 160): 2, strings.Repeat("x", 161): 3} {
		rest := strings.Repeat("\n", 24-1-rows)
		if !fits(line+"\n"+rest, f) || fits(line+"\n"+rest+"\n", f) {
			t.Errorf("a line of %d does not take %d rows", len(line), rows)
		}
	}
}

// TestInterruptsAtPrompt: between two statements Ctrl-C is as nothing typed, and one
// that runs is ended by it.
func TestInterruptsAtPrompt(t *testing.T) {
	i, _, log := testInterrupts()
	end := i.AtPrompt()
	i.handle(os.Interrupt)
	i.handle(os.Interrupt)
	i.Run(func(ctx context.Context) error {
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
