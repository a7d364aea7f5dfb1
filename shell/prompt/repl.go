// Package prompt reads statements, from a terminal or a pipe, and runs each before the next
// is read. At a terminal it has editing, history, completion, questions (help in plain words)
// and the commands of a shell.
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
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
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
				p.Interrupts.Quit(func() { p.Fail(&session.HostError{Err: err}) }, session.Worse(int(r.worst.Load()), lang.StatusFabric))
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
		return p.Fail(err)
	}
	defer in.Close()
	restore := session.SaveTerminal(p.Stdin)
	r.title = openTitle(os.Stdout)
	defer r.title.restore()
	p.Interrupts.OnExit(func() { fmt.Print(pasteOff); r.title.restore(); restore(); p.Fail(s.CloseEngine()) })
	defer p.Interrupts.AtPrompt()()
	in.block.isLine = func(text string) bool { _, ok := r.command(text); return ok }
	r.read(in, true)
	r.terminal = true
	r.remember = in.remember
	r.interp.globals["q"] = r.interp.globals["quit"] // short, so only at the prompt
	if o.Tour != nil {
		if r.tour, err = o.Tour(guided{r}); err != nil {
			return p.Fail(err)
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
		r.Runtime.Shown = func(v starlark.Value) { r.interp.globals[lastValue] = v }
		r.Whole = lastValue + ".blocks() shows all"
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
			return r.program.Fail(err)
		}
		if r.remember != nil {
			r.remember(text)
		}
		r.Sources[r.file] = r.lines.source()
		r.seen = tour.Seen{}
		var found error
		err = r.Runner.Attempt(func(ctx context.Context) error {
			defer func() { found = r.reportFindings() }()
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
			r.program.Fail(audits.WriteMetrics(r.Runtime))
		}
		r.Runner.Report(err)
		if status := r.Console.Fail(found); !r.interactive {
			r.worst.Store(int64(session.Worse(int(r.worst.Load()), status)))
		}
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

// reportFindings shows the findings of a statement. At the prompt they do not end the session.
func (r *repl) reportFindings() error {
	report := func() error { return audits.ReportFindings(r.Runtime) }
	if !r.interactive {
		return report()
	}
	return r.showing(report)
}

// show writes the value of an expression, in a pager if it is long, unless it is reported as a
// finding.
func (r *repl) show(v starlark.Value) error {
	r.made(v)
	if audits.WillReport(r.Runtime, v) {
		return nil
	}
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
			r.program.Fail(format.FileError(err))
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

// Commands are the commands of the program, which run in the session of the prompt.
type Commands struct {
	Names map[string]bool // all; true for those that run at the prompt
	// Direct reports whether the command line that is words uses the terminal itself.
	Direct func(words []string) bool
	// Run runs a command line, and records in seen what the tour checks.
	Run func(ctx context.Context, s *session.Session, words []string, seen *tour.Seen) error
	// Complete returns the words that may follow words and begin with typed; files
	// reports that names of files may.
	Complete func(s *session.Session, words []string, typed string) (list []string, files bool)
}

// commandWord may stand before a command, as in a shell.
const commandWord = "fabsh"

// commandLine is a line that begins with the name of a command, perhaps after fabsh.
type commandLine struct {
	first string // "fabsh", or the name
	rest  string // of the line, after the name
	name  string
}

// afterName matches text that only Starlark has after a name and blanks.
var afterName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([=(\[,:;]|[-+*/%<>|&^!]+=|[-+*/%<>|&^]+ |(in|not|and|or|if)\b)`)
})

// cutCommand separates a line into the name of a command and the rest; ok reports
// whether it is the line of a command. Lines that only begin with such a name, as
// graph.route(...) and route = 3 do, are Starlark.
func (c *Commands) cutCommand(line string) (l commandLine, ok bool) {
	l.name, l.rest, _ = strings.Cut(line, " ")
	l.first, l.rest = l.name, strings.TrimLeft(l.rest, " ")
	if afterName().MatchString(l.rest) || strings.Contains(line, "\n") {
		return l, false
	}
	if l.first != commandWord {
		_, ok = c.Names[l.name]
		return l, ok
	}
	l.name, l.rest, _ = strings.Cut(l.rest, " ")
	return l, c.Names != nil && l.name != "help" && !afterName().MatchString(l.rest)
}

// line returns the words of l as typed after fabsh.
func (l commandLine) line() string { return strings.TrimSpace(l.name + " " + l.rest) }

// command returns the command line that text is; ok is false for other text, and for valid
// Starlark with a name that the user has defined.
func (r *repl) command(text string) (l commandLine, ok bool) {
	if l, ok = r.commands.cutCommand(strings.TrimSpace(text)); !ok {
		return l, false
	}
	return l, !r.defined(l.first) || !r.parses(text)
}

// shadowed returns the command that text would be if the user had not defined its name.
func (r *repl) shadowed(text string) (l commandLine, ok bool) {
	l, ok = r.commands.cutCommand(strings.TrimSpace(text))
	return l, ok && r.defined(l.first) && r.parses(text)
}

func (r *repl) parses(text string) bool {
	_, err := r.interp.opts.Parse(promptFile, strings.TrimSpace(text), 0)
	return err == nil
}

// defined reports whether the user has defined a name, also one of fabsh's own.
func (r *repl) defined(name string) bool {
	now, ok := r.interp.globals[name]
	if !ok {
		return false
	}
	is, isFunction := now.(*lang.Function)
	was, wasFunction := r.Interpreter.Globals[name].(*lang.Function)
	return !isFunction || !wasFunction || is != was
}

// promptWords returns the words of a text of the command or report called name, and an error for those of
// shells that the prompt does not have; inShell is what to type behind fabsh there.
func promptWords(name, text, inShell string) ([]string, error) {
	words, err := splitWords(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, w := range words {
		if w == "|" || strings.Trim(w, "012>&<") == "" && strings.ContainsAny(w, "<>") {
			return nil, fmt.Errorf("%s: the prompt has no pipes and redirections; use --out FILE where the command has it, or run `fabsh %s` in a shell", name, inShell)
		}
	}
	return words, nil
}

// runCommand runs a command line in the session of the prompt.
func (r *repl) runCommand(ctx context.Context, l commandLine) error {
	words, err := promptWords(l.name, l.line(), l.line())
	if err != nil {
		return err
	}
	run := func() error { return r.commands.Run(ctx, r.Session, words, &r.seen) }
	if r.commands.Direct(words) {
		return finished(lang.Protect("prompt", run))
	}
	return r.showing(run)
}

// here returns the names of the commands that run at the prompt, sorted.
func (c *Commands) here() (names []string) {
	for name, here := range c.Names {
		if here {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// guided is a prompt as the tour sees it.
type guided struct{ *repl }

func (g guided) Globals() starlark.StringDict { return g.interp.globals }

func (g guided) Run(statement string) error { return g.quietly(promptFile, statement) }

func (g guided) Tables() (r *routes.Routes, err error) {
	err = g.Runner.Attempt(func(ctx context.Context) error {
		f, err := audits.ReadFabric(ctx, g.Runtime)
		if err == nil {
			r, err = audits.ReadRoutes(ctx, g.Runtime, f, false)
		}
		return err
	})
	return r, err
}

// made keeps the results of a statement for the tour.
func (r *repl) made(v starlark.Value) {
	if r.tour != nil && v != nil {
		r.seen.Values = append(r.seen.Values, v)
	}
}

// guide passes a statement that was run to the tour, unless it was a question, or was
// interrupted.
func (r *repl) guide(err error) {
	var stop *session.Interruption
	if r.tour == nil || r.seen.Text == "" || errors.As(err, &stop) || r.program.Interrupts.Ended() != nil {
		return
	}
	r.seen.Failed = err != nil
	r.tour.See(r.seen)
}

// promptText returns the prompt: the fabric, the number of nodes and the age of its
// picture, and whether it may be changed. It takes at most a third of the width; the
// title of the terminal has all of it.
func (r *repl) promptText() string {
	if f := r.Env.Fabric(); f != r.fabric {
		r.fabric, r.since = f, time.Now()
	}
	nodes, old := "", ""
	if r.fabric != nil {
		nodes = fmt.Sprintf(" %dn", len(r.fabric.Nodes()))
		if d := time.Since(r.since); r.Engine != nil && d >= time.Minute {
			old = " " + age(d)
		}
	}
	end := " " + r.rights() + "> "
	room := width(r.Session)/3 - len(end)
	name := shortName(lang.OneLine(r.Name))
	for _, part := range []*string{&old, &nodes} { // the name is the most important
		if room-len(nodes)-len(old) < min(minName, len([]rune(name))) {
			*part = ""
		}
	}
	if room -= len(nodes) + len(old); room < minName && room < len([]rune(name)) {
		return strings.TrimLeft(end, " ")
	}
	if short := session.Truncate(name, room); short != name && room > 1 {
		name = session.Truncate(name, room-1) + "…"
	}
	return name + nodes + old + end
}

// minName is the length from which the beginning of a name says something, in runes.
const minName = 4

func width(s *session.Session) int {
	if columns := s.Console.Width(); columns > 0 {
		return columns
	}
	return 80
}

// rights returns whether the fabric may be changed.
func (r *repl) rights() string {
	if r.Engine != nil && r.Engine.Write() {
		return "rw"
	}
	return "ro"
}

// shortName returns the kind of a fabric, and its name without options: "sim fattree".
func shortName(name string) string {
	kind, rest, ok := strings.Cut(name, ":")
	if !ok {
		return name
	}
	rest, _, _ = strings.Cut(rest, ",")
	switch kind {
	case "umad":
		return rest
	case "sim":
		if rest, _, _ = strings.Cut(rest, ":"); strings.Contains(rest, "=") { // an option alone
			return kind
		}
		rest = path.Base(rest)
	}
	return kind + " " + rest
}

// age formats a time in one unit: "12s", "3m", "5h", "2d".
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

// Sequences of xterm (invisible-island.net/xterm/ctlseqs): OSC 2 sets the title of the
// window; CSI 22 ; 2 t and 23 ; 2 t save and restore it, where the terminal can.
const (
	titleSave    = "\x1b[22;2t"
	titleRestore = "\x1b[23;2t"
	titleSet     = "\x1b]2;%s\a"
)

// maxTitle is the maximum length of a title, in runes.
const maxTitle = 150

// title is the title of a terminal. The zero value is for a terminal without one.
type title struct {
	out  io.Writer // nil: no title
	last string
}

// openTitle returns the title of the terminal out, which is saved.
func openTitle(out io.Writer) *title {
	switch os.Getenv("TERM") {
	case "", "dumb", "linux":
		return new(title)
	}
	io.WriteString(out, titleSave)
	return &title{out: out}
}

// set sets the title to text, without control characters, which could end the sequence.
func (t *title) set(text string) {
	if text = session.Truncate(lang.OneLine(text), maxTitle); t.out != nil && text != t.last {
		fmt.Fprintf(t.out, titleSet, text)
		t.last = text
	}
}

// restore restores the title of before.
func (t *title) restore() {
	if t.out != nil {
		io.WriteString(t.out, titleRestore)
	}
}

// titleText returns the title of the terminal: the whole name of the fabric.
func (r *repl) titleText() string {
	text := "fabsh " + r.Name + " " + r.rights()
	if r.fabric != nil {
		text += ", " + plural.Count(len(r.fabric.Nodes()), "node", "nodes")
	}
	return text
}
