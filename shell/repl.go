package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.starlark.net/starlark"

	"fabsh/builtins"
)

// The names that statements have in messages.
const (
	promptFile = "<prompt>"
	pipeFile   = "<stdin>"
)

// repl is the read, evaluate, print loop.
type repl struct {
	*session
	interp *interp
	lines  *statements
	file   string
	worst  int // exit status so far, of a piped session
}

// prompt runs statements from stdin until it ends and returns the exit status.
// At a terminal that is what exit() says. From a pipe it is the worst that any
// statement came to: the statements after it are run all the same, as in other
// shells.
func (s *session) prompt(stdin *os.File) int {
	r := &repl{session: s, file: pipeFile}
	r.interp = newInterp(builtins.FileOptions(), s.Predeclared(), r.show)
	if !isTerminal(stdin) || !s.app.console.stdoutTTY {
		r.lines = &statements{in: newPlainReader(stdin)}
		return r.loop()
	}
	h := openHistory(stateFile("history"))
	in, err := newTerminalReader(stdin, os.Stdout, h, s.completer(r.interp))
	if err != nil {
		s.app.fail(err)
		return s.app.status
	}
	defer in.Close()
	restore := saveTerminal(stdin)
	s.app.interrupts.onExit(func() { restore(); s.closeEngine() })
	r.file = promptFile
	r.lines = &statements{in: in, interactive: true}
	if !s.app.quiet {
		fmt.Fprintln(s.app.console.Err(), s.banner())
	}
	r.startup(configFile("rc.star"))
	return r.loop()
}

func (r *repl) loop() int {
	for {
		text, line, err := r.lines.next(r.promptText())
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
		r.Remember(r.file, r.lines.source())
		err = r.attempt(func(ctx context.Context) error {
			return r.interp.exec(r.NewThread(ctx, r.file), r.file, line, text)
		})
		r.report(err)
		var exit *builtins.ExitError
		if errors.As(err, &exit) || r.app.interrupts.ended() != nil {
			return r.exitStatus(err)
		}
		if !r.lines.interactive {
			r.worst = worse(r.worst, r.ExitStatus(err))
			if r.worst == builtins.StatusInterrupted {
				return r.worst
			}
		}
	}
}

// exitStatus ends the session with err.
func (r *repl) exitStatus(err error) int {
	if !r.lines.interactive {
		return worse(r.worst, r.ExitStatus(err))
	}
	var exit *builtins.ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return builtins.StatusClean
}

// worse is the exit status that counts when both apply: 130 before 2 before 3
// before all others.
func worse(a, b int) int {
	rank := func(status int) int {
		switch status {
		case builtins.StatusClean:
			return 0
		case builtins.StatusFabric:
			return 2
		case builtins.StatusUsage:
			return 3
		case builtins.StatusInterrupted:
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
	if !r.lines.interactive {
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

// startup runs the user's rc file at the prompt, as if it had been typed.
func (r *repl) startup(path string) {
	src, err := os.ReadFile(path)
	if err != nil {
		if path != "" && !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(r.app.console.Err(), "fabsh: %s: %v\n", path, errors.Unwrap(err))
		}
		return
	}
	r.Remember(path, string(src))
	r.report(r.attempt(func(ctx context.Context) error {
		return r.interp.exec(r.NewThread(ctx, path), path, 1, string(src))
	}))
}

// promptText says what is at the other end, and how old its picture is.
func (r *repl) promptText() string {
	if !r.lines.interactive {
		return ""
	}
	text := r.name
	if r.engine == nil {
		return text + "> "
	}
	if r.engine.Write() {
		text += ", rw"
	}
	return text + "> "
}

func (s *session) banner() string {
	return "help() lists what there is to say, TAB completes, Ctrl-D ends."
}
