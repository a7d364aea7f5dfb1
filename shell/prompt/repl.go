// Package prompt reads statements, from a terminal or a pipe, and runs each before the
// next is read. At a terminal it has editing, history, completion, questions and commands.
//
//	repl.go       Run: the loop
//	question.go   lines that are not Starlark: questions, tools; command.go, commands
//	statement.go  from lines to statements
//	exec.go       statements run in one growing set of globals
//	reader.go     sources of lines: readline, or a pipe; keys.go, the terminal's keys and
//	              pasted text
//	block.go      statements of several lines in readline's one
//	history.go    earlier statements, for the arrow keys and Ctrl-R
//	complete.go   completion by TAB; propose.go, proposals from the session
//	name.go       the prompt itself, and the title of the terminal
//	shown.go      hints for text that was copied from the screen
//	guided.go     a tour at the prompt
package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// The names that statements have in messages.
const (
	promptFile = "<prompt>"
	pipeFile   = "<stdin>"
)

// repl is the read, evaluate, print loop.
type repl struct {
	*session.Session
	program     *session.Program
	commands    Commands
	interp      *interp
	lines       *statements
	interactive bool // a user sits at a terminal
	terminal    bool // and it is one: typed statements may save files
	file        string
	worst       atomic.Int64 // the worst exit status so far, of a piped session
	waits       atomic.Bool  // reading the next statement

	title    *title
	remember func(statement string) // adds it to the history; may be nil

	fabric *fabric.Fabric // the latest, and when it was read
	since  time.Time

	tour *tour.Tour // in progress; nil: none
	seen tour.Seen  // the statement, for the tour
}

// Options are the options of a prompt besides its session. The zero value is usable.
type Options struct {
	Commands Commands
	Lines    LineReader // typed lines; nil: standard input
	// Tour starts a tour, without rc file and history; may be nil.
	Tour func(tour.Prompt) (*tour.Tour, error)
}

// Run runs statements from standard input until it ends and returns the exit status. At
// a terminal that is the status of exit(). From a pipe it is the worst of all
// statements; the statements after a failed one run nevertheless, as in other shells.
func Run(p *session.Program, s *session.Session, o Options) int {
	r := newRepl(p, s, o.Commands)
	if o.Lines != nil {
		r.read(o.Lines, true)
		return r.loop()
	}
	if !p.AtTerminal() {
		r.read(newPlainReader(p.Stdin), false)
		// While nothing runs, the loop waits for the writer of the pipe.
		defer r.Runner.Deadline.WhenOver(func(err error) {
			if r.waits.Load() {
				p.Interrupts.Quit(func() { p.Console.Fail(&session.HostError{Err: err}) }, session.Worse(int(r.worst.Load()), lang.StatusFabric))
			}
		})()
		return r.loop()
	}
	past := openHistory("")
	if o.Tour == nil {
		past = openHistory(session.StateFile("history"))
	}
	in, err := newTerminalReader(p.Stdin, os.Stdout, p.Console.KeepAhead(p.Stdin), past, r.completer())
	if err != nil {
		return p.Console.Fail(err)
	}
	defer in.Close()
	restore := session.SaveTerminal(p.Stdin)
	r.title = openTitle(os.Stdout)
	defer r.title.restore()
	p.Interrupts.OnExit(func() { fmt.Print(pasteOff); r.title.restore(); restore(); p.Console.Fail(s.CloseEngine()) })
	defer p.Interrupts.AtPrompt()()
	in.block.isLine = func(text string) bool { _, ok := r.command(text); return ok }
	r.read(in, true)
	r.terminal = true
	r.remember = in.remember
	r.interp.globals["q"] = r.interp.globals["quit"] // short, so only at the prompt
	if o.Tour != nil {
		if r.tour, err = o.Tour(guided{r}); err != nil {
			return p.Console.Fail(err)
		}
		return r.loop()
	}
	if !p.Settings.Quiet {
		fmt.Fprintln(s.Console.Err(), "help lists the topics, TAB completes, Ctrl-D ends.")
	}
	r.startup(session.ConfigFile("rc.star"))
	return r.loop()
}

func newRepl(p *session.Program, s *session.Session, commands Commands) *repl {
	r := &repl{Session: s, program: p, commands: commands, title: new(title)}
	r.interp = newInterp(lang.FileOptions(), maps.Clone(s.Interpreter.Globals), r.show)
	s.Defined = r.interp.globals.Keys
	r.interp.check = func(f *syntax.File) { s.WarnComparisons(f, r.interp.globals) }
	r.interp.made = r.made
	return r
}

// read sets the source of statements.
func (r *repl) read(in LineReader, interactive bool) {
	r.file = pipeFile
	if interactive {
		r.file = promptFile
	}
	r.interactive = interactive
	r.Explainer.Shown = nil
	if interactive {
		r.Explainer.Shown = r.shown
	}
	r.lines = &statements{in: in}
}

func (r *repl) loop() int {
	for {
		r.waits.Store(true) // before the check of the time, or both might miss its end
		if r.Runner.Deadline.IsOver() {
			break
		}
		prompt := r.promptText()
		r.title.set(r.titleText())
		text, line, err := r.lines.next(prompt)
		r.waits.Store(false)
		switch {
		case errors.Is(err, errInterrupted):
			if text == "" {
				fmt.Fprintln(r.Console.Err(), "Ctrl-D or exit ends fabsh")
			}
			continue
		case err == io.EOF:
			return r.exitStatus(nil)
		case err != nil:
			return r.Console.Fail(err)
		}
		if r.remember != nil {
			r.remember(text)
		}
		r.Sources[r.file] = r.lines.source()
		r.seen = tour.Seen{}
		err = r.Runner.Attempt(func(ctx context.Context) error {
			if asked, err := r.ask(ctx, text); asked {
				return err
			}
			if l, ok := r.shadowed(text); r.interactive && ok {
				fmt.Fprintf(r.Console.Err(), "note: %s is your own name here; the command is fabsh %s\n", l.first, l.line())
			}
			if hint := r.guidHint(strings.TrimSpace(text)); r.interactive && hint != "" {
				fmt.Fprintf(r.Console.Err(), "note: %s\n", hint)
			}
			r.seen.Text = text
			return r.run(ctx, r.file, line, text)
		})
		if r.interactive {
			r.Console.Fail(audits.WriteMetrics(r.Runtime))
		}
		r.Runner.Report(err)
		r.guide(err)
		r.free(err)
		var exit *lang.ExitError
		if errors.As(err, &exit) || r.program.Interrupts.Ended() != nil {
			return r.exitStatus(err)
		}
		if !r.interactive {
			worst := session.Worse(int(r.worst.Load()), audits.ExitStatus(r.Runtime, err))
			r.worst.Store(int64(worst))
			if worst == lang.StatusInterrupted {
				return worst
			}
		}
	}
	return r.exitStatus(nil)
}

// free releases memory if a statement was stopped for it, as err states.
func (r *repl) free(err error) {
	var limit *lang.LimitError
	if errors.As(err, &limit) {
		debug.FreeOSMemory()
	}
}

func (r *repl) run(ctx context.Context, file string, line int, text string) error {
	return lang.Protect("prompt", func() error {
		t, _ := r.Thread(ctx, file)
		if r.terminal && file == promptFile {
			r.Typed = &lang.Typed{Thread: t, File: promptFile, Source: r.lines.source, Page: func(text string) error { return r.Console.PageAlways(r.program.Interrupts, text) }}
			defer func() { r.Typed = nil }()
		}
		return r.interp.exec(t, file, line, text)
	})
}

// exitStatus ends the session with err.
func (r *repl) exitStatus(err error) int {
	if !r.interactive {
		return r.Runner.FinalStatus(int(r.worst.Load()), err)
	}
	var exit *lang.ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return lang.StatusClean
}

// show writes the value of an expression, in a pager if it is long.
func (r *repl) show(v starlark.Value) error {
	r.made(v)
	if !r.interactive {
		return r.Show(v)
	}
	var text bytes.Buffer
	r.Console.Divert(&text)
	err := r.Show(v)
	r.Console.Divert(nil)
	if err != nil {
		return err
	}
	return r.Console.Page(r.program.Interrupts, text.String())
}

// startup runs the user's rc file as if it had been typed at the prompt, but shows no
// values: the file is for definitions.
func (r *repl) startup(path string) {
	if path == "" {
		return
	}
	src, err := session.ReadOwn(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(r.Console.Err(), "fabsh: %v\n", format.FileError(err))
		}
		return
	}
	r.Sources[path] = string(src)
	r.Runner.Report(r.quietly(path, string(src)))
}

// quietly runs statements and shows no values.
func (r *repl) quietly(file, text string) error {
	show := r.interp.show
	r.interp.show = func(starlark.Value) error { return nil }
	defer func() { r.interp.show = show }()
	return r.Runner.Attempt(func(ctx context.Context) error { return r.run(ctx, file, 1, text) })
}
