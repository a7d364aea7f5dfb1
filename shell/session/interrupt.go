package session

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"fabsh/builtins/lang"
)

// Interrupts handles signals. Ctrl-C ends the evaluation; a second one, while the
// evaluation hangs, prints where it is; a third one ends the program. At the prompt
// readline reads Ctrl-C as a key; between two statements, when the terminal sends a
// signal, it is ignored. Other signals end the evaluation and then the program, without
// waiting for the former if needed: it may hang on a pipe without a reader.
type Interrupts struct {
	console *Console
	ch      chan os.Signal

	mu      sync.Mutex
	cancel  context.CancelCauseFunc // of the evaluation; nil: none
	count   int                     // signals since it began
	last    os.Signal               // the latest of them
	came    time.Time               // when it did
	ignored bool                    // a pager handles Ctrl-C
	forward func(os.Signal)         // another program handles all signals; nil: none does
	prompt  bool                    // a user types statements
	final   os.Signal               // the signal that ends the program
	cleanup func()                  // run before the program ends
	exit    func(status int)
}

// WatchInterrupts starts to handle signals, until Stop.
func WatchInterrupts(c *Console) *Interrupts {
	i := &Interrupts{console: c, ch: make(chan os.Signal, 4), cleanup: func() {}, exit: os.Exit}
	// A write to a pipe without a reader returns an error instead of ending the program
	// at once: transports must close properly. The signal itself does not identify the
	// pipe, and a pager may close its own; the console reports it.
	signal.Notify(i.ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		for sig := range i.ch {
			if sig != syscall.SIGPIPE {
				go i.handle(sig) // may also hang in a write
			}
		}
	}()
	c.broken = func() { go i.handle(syscall.SIGPIPE) }
	return i
}

// Stop restores the system's handling of signals.
func (i *Interrupts) Stop() {
	signal.Stop(i.ch)
	close(i.ch)
}

func (i *Interrupts) handle(sig os.Signal) {
	if i.act(sig) {
		stack := make([]byte, 1<<20)
		stack = stack[:runtime.Stack(stack, true)]
		fmt.Fprintf(i.console.Err(), "still busy, at the following place (Ctrl-C again ends fabsh):\n%s\n", stack)
	}
}

// act does what the signal requests, except for messages.
func (i *Interrupts) act(sig os.Signal) (tellWhere bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.forward != nil {
		i.forward(sig)
		return false
	}
	if sig == syscall.SIGINT && (i.ignored || i.prompt && i.cancel == nil) {
		return false
	}
	if sig != syscall.SIGINT {
		i.final = sig
	}
	if i.cancel == nil {
		if sig == syscall.SIGPIPE {
			return false // the writer gets an error as well, and ends on its own
		}
		i.end()
		return false
	}
	if i.count > 0 && sig == i.last && time.Since(i.came) < SameSignal {
		return false
	}
	i.last, i.came = sig, time.Now()
	i.count++
	switch {
	case i.count == 1:
		i.cancel(lang.ErrInterrupted)
		if i.final != nil {
			time.AfterFunc(endsWithin, func() { i.set(i.end) })
		}
	case sig == syscall.SIGPIPE: // one for each write
	case i.count == 2:
		return true
	default:
		i.end()
	}
	return false
}

// SameSignal is how soon after a signal another one counts as a copy of it: timeout(1)
// sends it to the program and to its group.
const SameSignal = 100 * time.Millisecond

// endsWithin is how long an evaluation may go on after a signal that ends the program,
// or after its deadline.
const endsWithin = 5 * time.Second

// end ends the program. i.mu is held.
func (i *Interrupts) end() {
	i.console.leave()
	i.cleanup()
	i.exit(signalStatus(i.final))
}

// Run calls fn with a context that ends with the first signal.
func (i *Interrupts) Run(fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	i.mu.Lock()
	i.cancel, i.count = cancel, 0
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		i.cancel = nil
		i.mu.Unlock()
	}()
	return fn(ctx)
}

// Apart returns interrupts for evaluations that no signal ends, because a server ends them. What
// ends the program by force does so like i.
func (i *Interrupts) Apart() *Interrupts {
	return &Interrupts{console: i.console, cleanup: func() {}, exit: func(status int) { i.exit(status) }}
}

// AtPrompt reports that a user types statements, until end is called.
func (i *Interrupts) AtPrompt() (end func()) {
	i.set(func() { i.prompt = true })
	return func() { i.set(func() { i.prompt = false }) }
}

// Quit ends the program while nothing runs; otherwise it does nothing.
func (i *Interrupts) Quit(why func(), status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cancel == nil {
		why()
		i.cleanup()
		i.exit(status)
	}
}

// Force ends the program in any case. If messages hang, it ends without them.
func (i *Interrupts) Force(why func(), status int) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		why()
	}()
	select {
	case <-told:
	case <-time.After(time.Second):
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.console.leave()
	i.cleanup()
	i.exit(status)
}

// Ignore leaves Ctrl-C to another program on the terminal while fn runs.
func (i *Interrupts) Ignore(fn func()) {
	i.set(func() { i.ignored = true })
	defer i.set(func() { i.ignored = false })
	fn()
}

// Also adds a function to call first before a signal ends the program, until undo is
// called.
func (i *Interrupts) Also(cleanup func()) (undo func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	others := i.cleanup
	i.cleanup = func() { cleanup(); others() }
	return func() { i.OnExit(others) }
}

// Forward passes all signals that usually end programs to send while fn runs, and does
// nothing else with them.
func (i *Interrupts) Forward(send func(os.Signal), fn func()) {
	i.set(func() { i.forward = send })
	defer i.set(func() { i.forward = nil })
	more := make(chan os.Signal, 4)
	signal.Notify(more, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM)
	defer close(more)
	defer signal.Stop(more)
	go func() {
		for sig := range more {
			send(sig)
		}
	}()
	fn()
}

// OnExit sets a function to call before a signal ends the program.
func (i *Interrupts) OnExit(cleanup func()) { i.set(func() { i.cleanup = cleanup }) }

func (i *Interrupts) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// Ended returns the signal, other than Ctrl-C, that ends the program; nil: none.
func (i *Interrupts) Ended() os.Signal {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.final
}

// StatusBrokenPipe is the exit status of a program whose output has lost its reader.
const StatusBrokenPipe = 128 + int(syscall.SIGPIPE)

// Status returns the program's exit status; a signal takes precedence.
func (i *Interrupts) Status(otherwise int) int {
	if sig := i.Ended(); sig != nil {
		return signalStatus(sig)
	}
	return otherwise
}

// signalStatus returns the status that a shell reports for a program ended by a signal:
// 143 for SIGTERM. Ctrl-C, which leaves no final signal, is 130 likewise.
func signalStatus(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return lang.StatusInterrupted
}
