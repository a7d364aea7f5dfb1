// Package command has the commands of fabsh, a file for each, or for a few that belong
// together. A command declares its flags, parses its words into a struct, runs on an open
// session, and ends with an error or an exit status. All lists them; those with the
// annotation atPrompt also run at the prompt, in its session.
package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// All returns the commands, without help. newRoot returns the root command of a program.
func All(p *session.Program, newRoot func(*session.Program) *cobra.Command) []*cobra.Command {
	return []*cobra.Command{
		auditCommand(p), remedyCommand(p), reportCommand(p), routeCapability(p).asCommand(p), verifyCapability().asCommand(p), acceptCapability(p).asCommand(p), evidenceCapability(p).asCommand(p), snapshotCommand(p), diffCapability(p, nil).asCommand(p), cablingCapability(p).asCommand(p), exporterCapability(p).asCommand(p), serveCapability(p, func() *cobra.Command { return newRoot(p.With(*p.Settings)) }).asCommand(p),
		changeCommand(p), topologyCapability(p).asCommand(p), graphCommand(p), topCommand(p), tourCommand(p, newRoot), simCommand(p), decodeCommand(p),
		portsCommand(p), historyCommand(p), trialCommand(p), mcpCommand(p, newRoot), newCommand(p), testCommand(p), checkCommand(p), fmtCommand(p), lspCommand(p), versionCommand(p), docCommand(p), examplesCommand(p),
	}
}

// Named reports whether the arguments may name a command or a script, or ask for help.
// Without that, fabsh runs the code of -c, or the prompt.
func Named(root *cobra.Command, words []string) bool {
	return firstWord(root, words) < len(words) || slices.ContainsFunc(words, func(w string) bool { return w == "-h" || w == "--help" || w == "--version" })
}

// task is the work of a command in a session.
type task struct {
	plan string // origin of a plan, for its file; "": the command
	time session.TimeLimit
	open func(context.Context) (*session.Session, error)
	run  func(context.Context, *session.Session) error
}

// onFabric runs a command on the fabric that the session flags name.
func onFabric(p *session.Program, run func(context.Context, *session.Session) error) error {
	return execute(p, task{time: p.StartTime(), run: run})
}

// withoutFabric runs a command that needs none.
func withoutFabric(p *session.Program, run func(context.Context, *session.Session) error) error {
	open := func(context.Context) (*session.Session, error) {
		return session.New(p, session.Base{Facts: topology.Facts{Absent: topology.ErrNoFabric}})
	}
	return execute(p, task{time: p.StartTime(), open: open, run: run})
}

// execute runs a task on the fabric that the session flags name, unless the task opens
// a session itself. The error is why it did not run, or the exit status.
func execute(p *session.Program, t task) error {
	if err := p.Settings.Check(); err != nil {
		return err
	}
	if p.Line != nil {
		return t.atPrompt(p)
	}
	if t.open == nil {
		t.open = func(ctx context.Context) (*session.Session, error) { return session.Open(ctx, p, session.Opening{}) }
	}
	return p.Profiled(func() (status int, err error) {
		return p.Evaluate(t.time, cmp.Or(t.plan, p.Operation), t.open, func(s *session.Session) int {
			return s.Runner.Evaluate(func(ctx context.Context) error {
				return session.Named(p.Operation, lang.Protect(p.Operation, func() error { return t.run(ctx, s) }))
			})
		})
	})
}

// atPrompt runs a task in the session of the prompt.
func (t task) atPrompt(p *session.Program) error {
	s := p.Line.Session
	format := s.Format
	defer func() { s.Format = format }()
	s.Format = p.Settings.Output()
	defer s.Files.Scope()() // a script of the command has its own
	if s.Engine != nil {    // the command reads the current fabric
		before := s.Env.Current
		s.Env.Current = nil
		defer func() {
			if s.Env.Current == nil {
				s.Env.Current = before
			}
		}()
	}
	return lang.Protect(p.Operation, func() error { return t.run(p.Line.Context, s) })
}

// renderTable returns a table of a command that opens no fabric, in the format of -o, with
// the rows and columns of --where and --columns. name is the prefix of its metrics.
func renderTable(s *session.Settings, warnings io.Writer, v starlark.Value, name string) (string, error) {
	v, err := viewOf(s, warnings)(v)
	if err != nil {
		return "", err
	}
	return audits.RenderMetrics(v, s.Output(), name)
}

// viewOf returns the function that selects the rows and columns of --where and --columns.
func viewOf(s *session.Settings, warnings io.Writer) func(starlark.Value) (starlark.Value, error) {
	r := &lang.Runtime{View: s.View(), Format: s.Output(), DidYouMean: fabric.DidYouMean, IsMeasure: mad.IsRate, Quiet: s.Quiet, Stderr: warnings, Activity: new(lang.Activity)}
	return func(v starlark.Value) (starlark.Value, error) { return r.ViewOf(nil, v, r.Format) }
}

// noTable returns an error if the command line selects rows or columns of a command that shows
// no table; why is the reason.
func noTable(p *session.Program, why string) error {
	for _, flag := range []string{"where", "columns"} {
		if p.Settings.Given(flag) {
			return fmt.Errorf("--%s: not supported: %s", flag, why)
		}
	}
	return nil
}

// atPrompt annotates a command that also runs at the prompt, with its subcommands: in the
// session of the prompt. Its value is "", or direct.
const atPrompt = "at the prompt"

// direct is the value of atPrompt for a command that uses the terminal, or reports while
// it runs. The output of others is shown when they have ended, in a pager if it is long.
const direct = "direct"

// AtPrompt returns the commands as the prompt runs them. newRoot returns the root command
// of a program: each line has its own, because flags keep their values.
func AtPrompt(p *session.Program, newRoot func(*session.Program) *cobra.Command) prompt.Commands {
	root := func(l *session.Line) (*session.Program, *cobra.Command) {
		typed := p.Typed(l)
		c := newRoot(typed)
		typed.Settings.Inherit(p.Settings)
		return typed, c
	}
	names := map[string]bool{} // whether the command runs at the prompt
	for _, c := range newRoot(p.Typed(nil)).Commands() {
		_, names[c.Name()] = c.Annotations[atPrompt]
	}
	return prompt.Commands{
		Names: names,
		Direct: func(words []string) bool {
			_, c := root(&session.Line{})
			how, _ := annotated(c, words)
			return how == direct
		},
		Run: func(ctx context.Context, s *session.Session, words []string, seen *tour.Seen) error {
			line := &session.Line{Context: ctx, Session: s}
			typed, c := root(line)
			err := runLine(typed, c, words)
			seen.Named, seen.Report = line.Named, line.Report
			return err
		},
		Complete: func(s *session.Session, words []string, typed string) (list []string, files bool) {
			program, c := root(&session.Line{Context: context.Background(), Session: s})
			return completeLine(program, c, words, typed)
		},
	}
}

// annotated returns the value of atPrompt of the command that words begin with.
func annotated(root *cobra.Command, words []string) (value string, ok bool) {
	c, _, err := root.Find(words)
	if err != nil || c.Hidden {
		return "", false
	}
	for ; c != nil; c = c.Parent() {
		if value, ok = c.Annotations[atPrompt]; ok {
			return value, true
		}
	}
	return "", false
}

// runLine runs the command that words are.
func runLine(p *session.Program, root *cobra.Command, words []string) error {
	if c, _, err := root.Find(words); err == nil && c != root {
		if _, ok := annotated(root, words); !ok {
			return fmt.Errorf("%s: not available at the prompt; run `%s` in a shell", operationOf(c), c.CommandPath())
		}
	}
	return Execute(p, root, words)
}

// completeLine returns the words that may follow words and begin with typed, by cobra's
// own completion; files reports that names of files may.
func completeLine(p *session.Program, root *cobra.Command, words []string, typed string) (list []string, files bool) {
	if len(words) > 0 {
		if _, ok := annotated(root, words); !ok {
			return nil, false
		}
	}
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	if Execute(p, root, slices.Concat([]string{cobra.ShellCompNoDescRequestCmd}, words, []string{typed})) != nil {
		return nil, false
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	last := strings.TrimPrefix(lines[len(lines)-1], ":")
	directive, err := strconv.Atoi(last)
	if err != nil || cobra.ShellCompDirective(directive)&cobra.ShellCompDirectiveError != 0 {
		return nil, false
	}
	for _, w := range lines[:len(lines)-1] {
		w, _, _ = strings.Cut(w, "\t")
		if len(words) == 0 {
			if _, ok := annotated(root, []string{w}); !ok {
				continue
			}
		}
		list = append(list, w)
	}
	return check.Matching(list, typed), cobra.ShellCompDirective(directive)&cobra.ShellCompDirectiveNoFileComp == 0
}

// NotAtPrompt is the error of fabsh without a command at the prompt: words are a script
// and its words, or a misspelt command.
func NotAtPrompt(root *cobra.Command, words []string) error {
	if len(words) == 0 {
		return errors.New("this is the prompt; statements and commands run without the word fabsh")
	}
	if err := CheckScript(root, words[0]); err != nil {
		return err
	}
	return fmt.Errorf("scripts are not available at the prompt; run `fabsh %s` in a shell", strings.Join(quotedForShell(words), " "))
}

// CheckScript returns an error if a script does not exist, before a fabric is opened.
// The error proposes the nearest of the commands.
func CheckScript(c *cobra.Command, path string) error {
	if strings.HasPrefix(path, "@") {
		return nil // a shipped one
	}
	err := fileThere(path)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return format.FileError(err)
	}
	if !c.HasParent() && !strings.ContainsAny(path, "./") {
		if script.IsReport(path) {
			return fmt.Errorf("%s: unknown command or file; the report of this name: fabsh report %[1]s", path)
		}
		var commands []string
		for _, c := range c.Root().Commands() {
			commands = append(commands, c.Name())
		}
		if n := fabric.Nearest(path, commands); n != "" {
			return fmt.Errorf("%s: unknown command or file (did you mean %s?)", path, n)
		}
		return fmt.Errorf(`%s: unknown command or file (see "fabsh --help")`, path)
	}
	if name := "@examples//" + strings.TrimPrefix(filepath.ToSlash(path), "examples/"); slices.Contains(script.Embedded(), name) {
		return fmt.Errorf("%s: no such file; the example that fabsh has is %s", path, name)
	}
	if n := fabric.Nearest(filepath.Base(path), filesIn(filepath.Dir(path))); n != "" {
		return fmt.Errorf("%s: no such file (did you mean %s?)", path, filepath.Join(filepath.Dir(path), n))
	}
	return fmt.Errorf("%s: no such file", path)
}

// fileThere returns an error if a file does not exist or is a directory: not all files of a command line
// are read in all cases.
func fileThere(path string) error {
	st, err := os.Stat(path)
	if err == nil && st.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	}
	return err
}

// checkLevels and checkReload return an error if the file of --sl or --reload is not there; "": none.
func checkLevels(path string) error {
	if err := fileThere(path); path != "" && err != nil {
		return fmt.Errorf("--sl: %w", format.FileError(err))
	}
	return nil
}

func checkReload(text string) error {
	_, notID := strconv.Atoi(text)
	if err := fileThere(text); text != "" && notID != nil && err != nil {
		return fmt.Errorf("--reload: %w", format.FileError(err))
	}
	return nil
}

// filesIn returns the names in a directory, sorted; none if it cannot be read.
func filesIn(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// programAt reads the declarations of the script at path; none if it is not a regular
// file, because a pipe can be read only once. entries are as for script.ProgramOf.
func programAt(path string, entries ...string) script.Program {
	src, err := script.EmbeddedSource(path)
	if err != nil {
		src = sourceAt(path)
	}
	if _, absent := os.Stat(path); src == "" {
		return script.Program{Name: path, Broken: errors.Is(absent, os.ErrNotExist)}
	}
	return script.ProgramOf(path, src, entries...)
}

// sourceAt returns the text of a script, "" if it cannot be read at once.
func sourceAt(path string) string {
	const tooLong = 1 << 20 // bytes
	f, err := session.OpenRegular(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, tooLong+1))
	if err != nil || len(src) > tooLong {
		return ""
	}
	return string(src)
}

// someFiles returns an error if a command that takes files has none.
func someFiles(c *cobra.Command, words []string) error {
	if len(words) == 0 {
		return errors.New("missing files; name them, or give - for standard input")
	}
	return nil
}

// eachFile runs run on each file. An error in one does not stop the others; found
// reports whether run found anything in a file, which sets the exit status.
func eachFile(ctx context.Context, p *session.Program, s *session.Session, files []string, run func(name string) (found bool, err error)) error {
	failed, some := false, false
	for _, name := range files {
		found, err := run(name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = true
			s.Console.Complain(s.Explain(session.Named(p.Operation, err)))
		}
		some = some || found
	}
	switch {
	case failed:
		return &lang.ExitError{Code: lang.StatusUsage}
	case some:
		return session.Exit(lang.StatusFindings)
	}
	return nil
}

// readSource reads a script that is not to run; - is standard input. shown is its name
// in messages.
func readSource(ctx context.Context, stdin *os.File, s *session.Session, name string) (shown string, src []byte, err error) {
	var in io.Reader = stdin
	if name == "-" {
		name = "<input>"
		defer context.AfterFunc(ctx, func() { stdin.Close() })()
	} else {
		f, err := lang.OpenNamed(ctx, name)
		if err != nil {
			return "", nil, format.FileError(err)
		}
		defer f.Close()
		in = f
	}
	if in, err = format.Bounded(in, name, session.MaxOwn); err != nil {
		return "", nil, err
	}
	if src, err = io.ReadAll(in); err != nil {
		return "", nil, err
	}
	s.Sources[name] = string(src)
	return name, src, nil
}

// CompleteScript proposes the embedded programs, and the options of the script that is
// named; other words are left to the shell: files.
func CompleteScript(_ *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
	// Bash takes @ as the end of a word by default.
	at := ""
	if len(words) > 0 && words[0] == "@" {
		words = words[1:]
		at = "@"
		if len(words) > 0 {
			words = append([]string{"@" + words[0]}, words[1:]...)
			at = ""
		}
	}
	var out []string
	if len(words) == 0 {
		for _, p := range script.Programs() {
			if rest, ok := strings.CutPrefix(p.Name, at+typed); ok {
				out = append(out, typed+rest+"\t"+p.Doc)
			}
		}
		return out, cobra.ShellCompDirectiveDefault
	}
	if strings.HasPrefix(typed, "-") {
		for _, flag := range programAt(words[0]).Options {
			if strings.HasPrefix(flag, typed) {
				out = append(out, flag)
			}
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}
