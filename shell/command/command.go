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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// All returns the commands, without help. newRoot returns the root command of a program.
func All(p *session.Program, newRoot func(*session.Program) *cobra.Command) []*cobra.Command {
	return []*cobra.Command{
		auditCommand(p), remedyCommand(p), reportCommand(p), routeCommand(p), verifyCommand(p), snapshotCommand(p), diffCommand(p), exporterCommand(p),
		changeCommand(p), topologyCommand(p), graphCommand(p), topCommand(p), tourCommand(p, newRoot), simCommand(p), decodeCommand(p),
		portsCommand(p), trialCommand(p), mcpCommand(p, newRoot), newCommand(p), testCommand(p), checkCommand(p), fmtCommand(p), lspCommand(p), versionCommand(p), docCommand(p), examplesCommand(p),
	}
}

// Named reports whether the arguments may name a command or a script, or ask for help.
// Without that, fabsh runs the code of -c, or the prompt.
func Named(p *session.Program, words []string) bool {
	i := firstWord(p, words)
	return i < len(words) || slices.ContainsFunc(words, func(w string) bool { return w == "-h" || w == "--help" || w == "--version" })
}

// firstWord returns the index of the first argument that is not a session flag, or the value
// of one; len(words): none.
func firstWord(p *session.Program, words []string) int {
	i := 0
	for ; i < len(words) && strings.HasPrefix(words[i], "-"); i++ {
		takes := words[i] == "-c" || words[i] == "--command"
		for _, g := range p.Settings.Groups() {
			takes = takes || takesValue(g, words[i]) && len(words[i]) > 1 && !strings.Contains(words[i], "=") && isWhole(words[i])
		}
		if takes {
			i++
		}
	}
	return min(i, len(words))
}

// task is the work of a command in a session.
type task struct {
	name string // of the command
	plan string // origin of a plan, for its file; "": the name
	time session.TimeLimit
	open func(context.Context) (*session.Session, error)
	run  func(context.Context, *session.Session) error
}

// onFabric runs a command on the fabric that the session flags name. name is the
// command's.
func onFabric(p *session.Program, name string, run func(context.Context, *session.Session) error) error {
	return execute(p, task{name: name, time: p.StartTime(), run: run})
}

// withoutFabric runs a command that needs none.
func withoutFabric(p *session.Program, name string, run func(context.Context, *session.Session) error) error {
	open := func(context.Context) (*session.Session, error) {
		return session.New(p, session.Base{Absent: topology.ErrNoFabric})
	}
	return execute(p, task{name: name, time: p.StartTime(), open: open, run: run})
}

// execute runs a task on the fabric that the session flags name, unless the task opens
// a session itself. The error is why it did not run, or the exit status.
func execute(p *session.Program, t task) error {
	if p.Settings.Given("command") {
		return errors.New("-c: not supported by commands; leave it out")
	}
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
		return p.Evaluate(t.time, cmp.Or(t.plan, t.name), t.open, func(s *session.Session) int {
			return s.Runner.Evaluate(func(ctx context.Context) error {
				return lang.Protect(t.name, func() error { return t.run(ctx, s) })
			})
		})
	})
}

// atPrompt runs a task in the session of the prompt.
func (t task) atPrompt(p *session.Program) error {
	s := p.Line.Session
	format, levels, risk := s.Format, s.Env.Levels, s.Env.AcceptCreditLoops
	defer func() { s.Format, s.Env.Levels, s.Env.AcceptCreditLoops = format, levels, risk }()
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
	return lang.Protect(t.name, func() error { return t.run(p.Line.Context, s) })
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
	r := &lang.Runtime{View: s.View(), Format: s.Output(), DidYouMean: fabric.DidYouMean, Quiet: s.Quiet, Stderr: warnings, Activity: new(lang.Activity)}
	return func(v starlark.Value) (starlark.Value, error) { return r.ViewOf(nil, v, r.Format) }
}

// noTable returns an error if the command line selects rows or columns of a command that shows
// no table; why is the reason.
func noTable(p *session.Program, command, why string) error {
	for _, flag := range []string{"where", "columns"} {
		if p.Settings.Given(flag) {
			return fmt.Errorf("%s: --%s: not supported: %s", command, flag, why)
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
	root := func(l *session.Line) *cobra.Command {
		typed := p.Typed(l)
		c := newRoot(typed)
		typed.Settings.Inherit(p.Settings)
		return c
	}
	names := map[string]bool{} // whether the command runs at the prompt
	for _, c := range newRoot(p.Typed(nil)).Commands() {
		_, names[c.Name()] = c.Annotations[atPrompt]
	}
	return prompt.Commands{
		Names: names,
		Direct: func(words []string) bool {
			how, _ := annotated(root(&session.Line{}), words)
			return how == direct
		},
		Run: func(ctx context.Context, s *session.Session, words []string, seen *tour.Seen) error {
			line := &session.Line{Context: ctx, Session: s, Words: words}
			err := runLine(root(line), words)
			seen.Named, seen.Report = line.Named, line.Report
			return err
		},
		Complete: func(s *session.Session, words []string, typed string) (list []string, files bool) {
			return completeLine(root(&session.Line{Context: context.Background(), Session: s}), words, typed)
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
func runLine(root *cobra.Command, words []string) error {
	if c, _, err := root.Find(words); err == nil && c != root {
		if _, ok := annotated(root, words); !ok {
			return fmt.Errorf("%s is not available at the prompt; run `%s` in a shell", c.Name(), c.CommandPath())
		}
	}
	root.SetArgs(append([]string{}, words...)) // not nil: cobra would take the program's own
	err := root.Execute()
	var fixed *session.FixedError
	if errors.As(err, &fixed) {
		return fixed
	}
	return err
}

// completeLine returns the words that may follow words and begin with typed, by cobra's
// own completion; files reports that names of files may.
func completeLine(root *cobra.Command, words []string, typed string) (list []string, files bool) {
	if len(words) > 0 {
		if _, ok := annotated(root, words); !ok {
			return nil, false
		}
	}
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(slices.Concat([]string{cobra.ShellCompNoDescRequestCmd}, words, []string{typed}))
	if root.Execute() != nil {
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
	st, err := os.Stat(path)
	if err == nil {
		if st.IsDir() {
			return fmt.Errorf("%s: is a directory", path)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return format.FileError(err)
	}
	if !strings.ContainsAny(path, "./") {
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
	if n := fabric.Nearest(filepath.Base(path), filesIn(filepath.Dir(path))); n != "" {
		return fmt.Errorf("%s: no such file (did you mean %s?)", path, filepath.Join(filepath.Dir(path), n))
	}
	return fmt.Errorf("%s: no such file", path)
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

// FlagError adds the nearest flag to an unknown one.
func FlagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if n := fabric.Nearest(unknown.GetSpecifiedName(), names); n != "" {
		return fmt.Errorf("%w (did you mean --%s?)", err, n)
	}
	return fmt.Errorf(`%w (see "fabsh --help")`, err)
}

// policyProgram returns what a routing policy declares in its text.
func policyProgram(name string) script.Program {
	path, err := script.Policies.Locate(name)
	if err != nil {
		return script.Program{}
	}
	return programAt(path)
}

// programAt reads the declarations of the script at path; none if it is not a regular
// file, because a pipe can be read only once.
func programAt(path string) script.Program {
	for _, p := range script.Programs() {
		if p.Name == path {
			return p
		}
	}
	return script.ProgramOf(path, sourceAt(path))
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
		return fmt.Errorf("%s: missing files; name them, or give - for standard input", c.Name())
	}
	return nil
}

// eachFile runs run on each file. An error in one does not stop the others; found
// reports whether run found anything in a file, which sets the exit status.
func eachFile(ctx context.Context, s *session.Session, files []string, run func(name string) (found bool, err error)) error {
	failed, some := false, false
	for _, name := range files {
		found, err := run(name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = true
			s.Console.Complain(s.Explain(err))
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

// Some commands share their command line with a script: a policy, a report, audits.
// They declare their own flags in a pflag.FlagSet, from which usage, completion and the
// names that no script may use are derived. Session flags may also follow the command's
// word. All other options belong to the script, as its keyword-only parameters; so the
// flags are taken out of the words one by one, and pflag sets them.

// newFlags returns an empty set of flags, which help lists in the order of declaration.
func newFlags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	return f
}

// lookup returns the flag that a word without its value names; nil: none. Letters may be
// followed by their values at once, as in -ojson.
func lookup(f *pflag.FlagSet, word string) *pflag.Flag {
	if name, ok := strings.CutPrefix(word, "--"); ok {
		return f.Lookup(name)
	}
	if len(word) < 2 || word[0] != '-' {
		return nil
	}
	flag := f.ShorthandLookup(word[1:2])
	if flag != nil && len(word) > 2 && flag.NoOptDefVal != "" {
		return nil
	}
	return flag
}

// takesValue reports whether the word after flag is its value.
func takesValue(f *pflag.FlagSet, flag string) bool {
	known := lookup(f, flag)
	return known != nil && known.NoOptDefVal == ""
}

// withFlags returns c with flags that help and completion show, and that c parses itself.
func withFlags(c *cobra.Command, f *pflag.FlagSet) *cobra.Command {
	c.Flags().SortFlags = false
	c.Flags().AddFlagSet(f)
	propose := c.ValidArgsFunction
	c.ValidArgsFunction = func(c *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
		list, directive := propose(c, words, typed)
		if strings.HasPrefix(typed, "-") { // cobra proposes them, with their docs
			list = slices.DeleteFunc(list, func(w string) bool { return lookup(f, w) != nil })
		}
		return list, directive
	}
	return c
}

// hasOption reports whether a flag is an option of a script. If the options cannot be
// read from the script's text, it is true for all flags.
func hasOption(p script.Program, flag string) bool {
	return !p.Entry || slices.Contains(p.Options, flag)
}

// extract gives the flags among words that find knows to set, and returns the other
// words. attached reports whether the value stands in the flag's own word; a missing
// value is "".
func extract(words []string, find func(word string) *pflag.Flag, set func(f *pflag.Flag, value string, attached bool) error) (rest []string, err error) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		name, value, attached := strings.Cut(w, "=")
		f := find(name)
		if f == nil {
			rest = append(rest, w)
			continue
		}
		if w[1] != '-' && len(w) > 2 { // -ojson
			value, attached = strings.TrimPrefix(w[2:], "="), true
		}
		switch {
		case attached:
		case f.NoOptDefVal != "":
			value = f.NoOptDefVal
		case i+1 < len(words):
			i++
			value = words[i]
		}
		if err := set(f, value, attached); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// invalidValue is the format of an error in the value of a command's own flag: %[1]s is
// the flag's name, %[2]s the value, %[3]w the cause.
const invalidValue = "--%[1]s: %[3]w"

// finder returns a function that finds the flags of f.
func finder(f *pflag.FlagSet) func(word string) *pflag.Flag {
	return func(word string) *pflag.Flag { return lookup(f, word) }
}

// extractOwn sets the flags of a command among words, those that find knows, and returns
// the other words, which are the script's. invalid is like invalidValue.
func extractOwn(words []string, find func(word string) *pflag.Flag, invalid string) ([]string, error) {
	return extract(words, find, func(f *pflag.Flag, value string, attached bool) error {
		_, isSwitch := f.Value.(interface{ IsBoolFlag() bool })
		switch what := f.Annotations[valueIs]; {
		case isSwitch && attached:
			return fmt.Errorf("--%s: unexpected value %q; the flag takes none", f.Name, value)
		case value == "" && f.NoOptDefVal == "" && what != nil:
			return fmt.Errorf("--%s needs %s", f.Name, what[0])
		case value == "" && f.NoOptDefVal == "":
			return fmt.Errorf("--%s needs a value", f.Name)
		}
		if err := f.Value.Set(value); err != nil {
			return fmt.Errorf(invalid, f.Name, value, err)
		}
		return nil
	})
}

// valueIs annotates a flag with a description of its value, for the error if it is
// missing.
const valueIs = "value"

// extractSession sets the session flags among words, which follow a command's word, and
// returns the other words. own are the command's flags, which take precedence; isOption
// reports whether a flag is an option of the script.
func extractSession(s *session.Settings, words []string, own *pflag.FlagSet, isOption func(flag string) bool) (rest []string, err error) {
	return extract(words, sessionFinder(s, own, isOption), func(f *pflag.Flag, value string, _ bool) error { return s.Set(f.Name, value) })
}

// withoutSession returns words without session flags, where the script is not known
// yet: options of the script with the name of a session flag are removed too.
func withoutSession(s *session.Settings, words []string, own *pflag.FlagSet) []string {
	none := func(string) bool { return false }
	rest, _ := extract(words, sessionFinder(s, own, none), func(*pflag.Flag, string, bool) error { return nil })
	return rest
}

// sessionFinder returns a function that finds the session flags, up to --, that are
// neither own flags nor options.
func sessionFinder(s *session.Settings, own *pflag.FlagSet, isOption func(flag string) bool) func(word string) *pflag.Flag {
	ended := false
	return func(word string) *pflag.Flag {
		ended = ended || word == "--"
		for _, g := range s.Groups() {
			if f := lookup(g, word); f != nil && !ended && lookup(own, word) == nil && !isOption(word) {
				return f
			}
		}
		return nil
	}
}

// SessionFlagsBefore annotates a command behind which no session flags may stand.
const SessionFlagsBefore = "session flags before"
