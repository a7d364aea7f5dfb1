package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/shell/tour"
)

// The names that statements have in messages.
const (
	promptFile = "<prompt>"
	pipeFile   = "<stdin>"
)

// repl is the read, evaluate, print loop.
type repl struct {
	*session
	interp      *interp
	lines       *statements
	interactive bool // people sit before it
	file        string
	worst       atomic.Int64 // exit status so far, of a piped session
	waits       atomic.Bool  // for the next statement

	remember func(statement string) // puts it into the history; nil: there is none

	fabric *fabric.Fabric // the latest; since is when it came
	since  time.Time

	tour *tour.Tour // that goes along; nil: none does
	seen tour.Seen  // the statement, for it
}

// prompt runs statements from stdin until it ends and returns the exit status. begin,
// unless it is nil, begins a session of its own kind, without rc file and history.
// At a terminal that is what exit() says. From a pipe it is the worst that any
// statement came to; the statements after it are run all the same, as in other
// shells.
func (s *session) prompt(stdin *os.File, begin func(*repl) error) int {
	r := newRepl(s)
	if !s.app.isPrompt() {
		r.read(newPlainReader(stdin), false)
		// While nothing runs, the loop waits for whoever writes to the pipe.
		defer r.deadline.whenOver(func(err error) {
			if r.waits.Load() {
				s.app.interrupts.quit(func() { s.app.fail(&hostError{err}) }, worse(int(r.worst.Load()), lang.StatusFabric))
			}
		})()
		return r.loop()
	}
	past := openHistory("")
	if begin == nil {
		past = openHistory(stateFile("history"))
	}
	in, err := newTerminalReader(stdin, os.Stdout, past, s.completer(r.interp))
	if err != nil {
		s.app.fail(err)
		return s.app.status
	}
	defer in.Close()
	restore := saveTerminal(stdin)
	s.app.interrupts.onExit(func() { fmt.Print(pasteOff); restore(); s.closeEngine() })
	defer s.app.interrupts.atPrompt()()
	r.read(in, true)
	r.remember = in.remember
	r.interp.globals["q"] = r.interp.globals["quit"] // short, so at the prompt only
	if begin != nil {
		if err := begin(r); err != nil {
			s.app.fail(err)
			return s.app.status
		}
		return r.loop()
	}
	if !s.app.quiet {
		fmt.Fprintln(s.app.console.Err(), "help lists what there is to say, TAB completes, Ctrl-D ends.")
	}
	r.startup(configFile("rc.star"))
	return r.loop()
}

// isPrompt: people sit before the statements, and not a pipe.
func (a *app) isPrompt() bool { return isTerminal(a.stdin) && a.console.stdoutTTY }

func newRepl(s *session) *repl {
	r := &repl{session: s}
	r.interp = newInterp(lang.FileOptions(), s.Predeclared(), r.show)
	s.Defined(r.interp.globals.Keys)
	r.interp.check = s.WarnWords
	r.interp.made = r.made
	return r
}

// read sets where statements come from.
func (r *repl) read(in LineReader, interactive bool) {
	r.file = pipeFile
	if interactive {
		r.file = promptFile
	}
	r.interactive = interactive
	r.lines = &statements{in: in}
}

func (r *repl) loop() int {
	for {
		r.waits.Store(true) // before the look at the time, or both might miss its end
		if r.deadline.isOver() {
			break
		}
		text, line, err := r.lines.next(r.promptText())
		r.waits.Store(false)
		switch {
		case errors.Is(err, errInterrupted):
			if text == "" {
				fmt.Fprintln(r.app.console.Err(), "Ctrl-D or exit ends fabsh")
			}
			continue
		case err == io.EOF:
			return r.exitStatus(nil)
		case err != nil:
			r.app.fail(err)
			return r.app.status
		}
		if r.remember != nil {
			r.remember(text)
		}
		r.Remember(r.file, r.lines.source())
		r.seen, r.found = tour.Seen{}, nil
		err = r.attempt(func(ctx context.Context) error {
			if asked, err := r.ask(ctx, text); asked {
				return err
			}
			r.seen.Text = text
			return r.run(ctx, r.file, line, text)
		})
		if r.interactive {
			r.writeMetrics()
		}
		r.report(err)
		r.guide(err)
		r.free(err)
		var exit *lang.ExitError
		if errors.As(err, &exit) || r.app.interrupts.ended() != nil {
			return r.exitStatus(err)
		}
		if !r.interactive {
			worst := worse(int(r.worst.Load()), r.ExitStatus(err))
			r.worst.Store(int64(worst))
			if worst == lang.StatusInterrupted {
				return worst
			}
		}
	}
	return r.exitStatus(nil)
}

// free gives memory back that a statement was stopped for, where err says so.
func (r *repl) free(err error) {
	var limit *lang.LimitError
	if errors.As(err, &limit) {
		debug.FreeOSMemory()
	}
}

func (r *repl) run(ctx context.Context, file string, line int, text string) error {
	return lang.Protect("prompt", func() error {
		return r.interp.exec(r.NewThread(ctx, file), file, line, text)
	})
}

// exitStatus ends the session with err.
func (r *repl) exitStatus(err error) int {
	if !r.interactive {
		return r.finalStatus(int(r.worst.Load()), err)
	}
	var exit *lang.ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return lang.StatusClean
}

// worse is the exit status that counts when both apply: 130 before 2 before 3
// before all others.
func worse(a, b int) int {
	rank := func(status int) int {
		switch status {
		case lang.StatusClean:
			return 0
		case lang.StatusFabric:
			return 2
		case lang.StatusUsage:
			return 3
		case lang.StatusInterrupted:
			return 4
		}
		return 1
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// show writes the value of an expression, by way of a pager where it is long.
func (r *repl) show(v starlark.Value) error {
	r.made(v)
	if !r.interactive {
		return r.Show(v)
	}
	var text bytes.Buffer
	r.app.console.divert(&text)
	err := r.Show(v)
	r.app.console.divert(nil)
	if err != nil {
		return err
	}
	return r.app.page(text.String())
}

// startup runs the user's rc file at the prompt, as if it had been typed, but
// shows no values: the file is for definitions.
func (r *repl) startup(path string) {
	if path == "" {
		return
	}
	src, err := readOwn(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(r.app.console.Err(), "fabsh: %v\n", noFile(err))
		}
		return
	}
	r.Remember(path, string(src))
	r.report(r.quietly(path, string(src)))
}

// quietly runs statements and shows no values.
func (r *repl) quietly(file, text string) error {
	show := r.interp.show
	r.interp.show = func(starlark.Value) error { return nil }
	defer func() { r.interp.show = show }()
	return r.attempt(func(ctx context.Context) error { return r.run(ctx, file, 1, text) })
}

// maxPromptName is how much of the fabric's name is in the prompt, in runes.
const maxPromptName = 30

// promptText says which fabric it is, whether it may be changed, and how old its
// picture is.
func (r *repl) promptText() string {
	if f := r.Fabric(); f != r.fabric {
		r.fabric, r.since = f, time.Now()
	}
	text := truncate(lang.OneLine(r.name), maxPromptName)
	if r.engine != nil && r.engine.Write() {
		text += ", rw"
	} else {
		text += ", ro"
	}
	if r.fabric != nil {
		text += fmt.Sprintf(" (%d nodes", len(r.fabric.Nodes()))
		if r.engine != nil {
			text += ", " + age(time.Since(r.since))
		}
		text += ")"
	}
	return text + "> "
}

// age is a time in one unit: "12s", "3m", "5h", "2d".
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
