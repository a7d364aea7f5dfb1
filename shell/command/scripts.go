package command

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/shell/lsp"
	"fabsh/shell/session"
)

// starters are scripts to begin with, and their tests. NAME in them is the new name.
//
//go:embed starter/*.star
var starters embed.FS

// starterKinds are the kinds of scripts, and how to run one.
var starterKinds = []struct{ name, run string }{
	{"audit", "fabsh -F sim audit %s"},
	{"report", "fabsh -F sim report %s"},
	{"policy", "fabsh -F sim route %s --verify"},
	{"topology", "fabsh -F sim topology %s"},
	{profileKind, "fabsh -F sim accept %s"},
}

// profileKind is the kind whose script is the shipped profile of that name.
const (
	profileKind   = "profile"
	profileScript = "site"
)

// newCommand writes a script to begin with.
func newCommand(p *session.Program) *cobra.Command {
	var kinds []string
	for _, k := range starterKinds {
		kinds = append(kinds, k.name)
	}
	return &cobra.Command{
		Use:   "new {" + strings.Join(kinds, " | ") + "} NAME",
		Short: "Write a working script to begin with, and its test",
		Long: `Write NAME.star, a working script of the kind, with comments, and its test
NAME_test.star, in the working directory. Existing files are not overwritten. The kinds
are audit (fabsh audit), report (fabsh report), policy for routing (fabsh route),
topology, a file for a job scheduler (fabsh topology), and profile (fabsh accept).`,
		Example: `  fabsh new audit rack_names
  fabsh new policy mine`,
		ValidArgsFunction: func(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(words) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return kinds, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return errors.New("missing kind; supported: " + strings.Join(kinds, ", "))
			case !slices.Contains(kinds, words[0]):
				return fmt.Errorf("unknown kind %q%s; supported: %s", words[0], fabric.DidYouMean(words[0], kinds), strings.Join(kinds, ", "))
			case len(words) == 1:
				return fmt.Errorf("%s: missing NAME", words[0])
			case len(words) > 2:
				return fmt.Errorf("%s: unexpected argument %q; want one NAME", words[0], words[2])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			name, err := starterName(words[1])
			if err != nil {
				return fmt.Errorf("%s: %w", words[0], err)
			}
			if err := writeStarter(words[0], name); err != nil {
				return fmt.Errorf("%s: %w", words[0], format.FileError(err))
			}
			i := slices.Index(kinds, words[0])
			_, err = fmt.Fprintf(p.Console.Out(), "%[1]s.star, %[1]s_test.star\ntry: %s; fabsh test %[1]s_test.star\n", name, fmt.Sprintf(starterKinds[i].run, name+".star"))
			return err
		},
	}
}

// starterName returns the name of a script, without its suffix.
func starterName(text string) (string, error) {
	name := strings.TrimSuffix(text, ".star")
	if !regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`).MatchString(name) || strings.HasSuffix(name, "_test") {
		return "", fmt.Errorf("invalid name %q; use letters, digits, - and _, and not _test at the end", lang.OneLine(text))
	}
	return name, nil
}

// writeStarter writes a script and its test; both, or none.
func writeStarter(kind, name string) error {
	var written []string
	for _, suffix := range []string{"", "_test"} {
		text, err := starterText(kind, suffix)
		if err != nil {
			return err
		}
		path := name + suffix + ".star"
		if err := writeNew(path, strings.ReplaceAll(text, "NAME", name)); err != nil {
			for _, path := range written {
				os.Remove(path)
			}
			return err
		}
		written = append(written, path)
	}
	return nil
}

// starterText returns the text of a script, or of its test.
func starterText(kind, suffix string) (string, error) {
	if kind == profileKind && suffix == "" {
		return script.Profiles.Source(profileScript)
	}
	text, err := starters.ReadFile("starter/" + kind + suffix + ".star")
	return string(text), err
}

// writeNew writes a file that must not exist: under its name, it is complete.
func writeNew(path, text string) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = io.WriteString(temp, text)
	if err == nil {
		err = temp.Chmod(0o644)
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); errors.Is(err, os.ErrExist) { // unlike os.Rename, it replaces nothing
		return fmt.Errorf("%s exists, and is not overwritten; choose another name", path)
	} else if err != nil {
		return err
	}
	return nil
}

// checkCommand finds mistakes in scripts.
func checkCommand(p *session.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Find mistakes in scripts, without running them",
		Long: `Find mistakes in scripts without running them: syntax errors; unknown names,
modules, attributes and fields; wrong arguments; comparisons of an enumerated field
with a word that it cannot have. - reads standard input.

Findings are written as FILE:LINE:COLUMN: text. What cannot be known without
running, such as the type of a parameter, is assumed to be correct.

Exit status: 0 no findings; 1 findings; 2 a file cannot be read.`,
		Example: `  fabsh check links.star
  fabsh check scripts/*.star`,
		Args: someFiles,
		RunE: func(_ *cobra.Command, words []string) error {
			return withoutFabric(p, func(ctx context.Context, s *session.Session) error {
				return eachFile(ctx, p, s, words, func(name string) (bool, error) { return checkScript(ctx, p.Stdin, s, name) })
			})
		},
	}
	return c
}

// checkScript prints the mistakes in a script.
func checkScript(ctx context.Context, stdin *os.File, s *session.Session, name string) (found bool, err error) {
	shown, src, err := readSource(ctx, stdin, s, name)
	if err != nil {
		return false, err
	}
	problems, err := check.Script(ctx, s.Interpreter, shown, string(src))
	for _, p := range problems {
		if _, err := fmt.Fprintln(s.Console.Out(), lang.OneLine(p.String())); err != nil {
			return true, err
		}
	}
	return len(problems) > 0, err
}

// fmtCommand formats scripts.
func fmtCommand(p *session.Program) *cobra.Command {
	var onlyDiff bool
	c := &cobra.Command{
		Use:   "fmt [-d] FILE...",
		Short: "Format scripts as buildifier does",
		Long: `Format scripts as buildifier does: spaces, line breaks, quotes. Meaning and order
do not change. Each file that changes is replaced atomically, and its name is
printed. - formats standard input, and writes the result to standard output.

With -d no file is changed: the difference is shown as a unified diff, and the exit
status is 1. An invalid script makes the exit status 2, and is not changed.`,
		Example: `  fabsh fmt links.star
  fabsh fmt -d scripts/*.star
  fabsh fmt - < links.star`,
		Args: someFiles,
		RunE: func(_ *cobra.Command, words []string) error {
			return withoutFabric(p, func(ctx context.Context, s *session.Session) error {
				return eachFile(ctx, p, s, words, func(name string) (bool, error) {
					changed, err := formatFile(ctx, p.Stdin, s, name, onlyDiff)
					return changed && onlyDiff, err
				})
			})
		},
	}
	c.Flags().BoolVarP(&onlyDiff, "diff", "d", false, "show the difference, and change no file; exit with 1 if there is any")
	return c
}

// formatFile formats a script, or shows the difference; - is standard input.
func formatFile(ctx context.Context, stdin *os.File, s *session.Session, name string, onlyDiff bool) (changed bool, err error) {
	shown, src, err := readSource(ctx, stdin, s, name)
	if err != nil {
		return false, err
	}
	name = shown
	out, err := script.Format(name, src)
	if err != nil {
		return false, err
	}
	changed = !bytes.Equal(src, out)
	switch {
	case onlyDiff && changed:
		_, err = s.Console.Out().Write(diff.Diff(name, src, name+" formatted", out))
	case onlyDiff:
	case name == "<input>":
		_, err = s.Console.Out().Write(out)
	case changed:
		if err = session.WriteNamed(ctx, name, func(w io.Writer) error { _, err := w.Write(out); return err }); err == nil {
			s.Print(name + "\n")
		}
	}
	return changed, err
}

// testOptions are the options of test on the command line.
type testOptions struct {
	run     string
	verbose bool
	junit   string
}

// testCommand runs the tests of scripts.
func testCommand(p *session.Program) *cobra.Command {
	var o testOptions
	c := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the test_* functions of scripts, on simulated fabrics",
		Long: `Run the functions of scripts whose names begin with test_. A PATH is a script,
or a directory, which stands for all .star files in it and in directories below
(default: the working directory).

The default value of a test's parameter sim is the SPEC of its fabric, as after
-F sim:. The test is called with the sim value of that fabric:

    def test_unlink(sim = "ring:n=3"):
        sim.unlink("switch-1/2")
        expect.eq(len(discover().links), 5)

A test without this parameter has no fabric. Each test has its own session, in
which its script runs from the start, and a virtual clock, which advances only while
everything sleeps: sleep("1h") returns at once. A request without an answer takes real
time (--timeout). help("expect") lists what a test can expect.

--deadline (default here: 1m), --memory and --max-steps apply to each test.
Exit status: 0 all passed; 1 a test failed; 2 a script does not load, or there is
no test.`,
		Example: `  fabsh test scripts
  fabsh -o json test --run 'links?$' audits/links_test.star
  fabsh test --junit report.xml`,
		RunE: func(_ *cobra.Command, words []string) error { return runTests(p, words, o) },
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&o.run, "run", "", "run only the tests whose names match `REGEXP`")
	c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "list the tests that passed too, and show their output")
	c.Flags().StringVar(&o.junit, "junit", "", "also write the results to `FILE`, in the XML of JUnit")
	c.MarkFlagFilename("junit")
	return c
}

// testTime is how long a test may take without --deadline.
const testTime = time.Minute

// runTests is the command.
func runTests(p *session.Program, paths []string, o testOptions) error {
	filter, err := regexp.Compile(o.run)
	switch {
	case err != nil:
		return fmt.Errorf("--run: %w", err)
	case p.Settings.Given("fabric"):
		return errors.New(`-F: not supported: each test names its fabric, def test_x(sim="fattree:k=4")`)
	case p.Settings.Record != "":
		return errors.New("--record: not supported: each test has its own fabric")
	}
	if err := noTable(p, "tests are selected with --run"); err != nil {
		return err
	}
	if err := p.Settings.Check(); err != nil {
		return err
	}
	keys, secrets, err := p.ReadKeys(context.Background())
	if err != nil {
		return err
	}
	r := &testRun{program: p, options: o, filter: filter, base: session.Base{Keys: keys, Secrets: secrets}}
	if len(paths) == 0 {
		paths = []string{"."}
	}
	return p.Profiled(func() (int, error) {
		var err error
		if o.junit == "" {
			err = r.all(paths)
		} else {
			err = p.WriteAround(o.junit, func(w io.Writer) error {
				if err := r.all(paths); err != nil {
					return err
				}
				return program.WriteJUnit(w, r.results)
			})
		}
		return r.status, err
	})
}

// testRun is one run of the command.
type testRun struct {
	program *session.Program
	options testOptions
	filter  *regexp.Regexp
	base    session.Base // of all sessions
	status  int          // exit status so far
	results []program.TestResult
	scripts int // that have tests, or do not load
	found   int // number of tests, including those that the filter leaves out
}

// all runs the tests of all scripts, and writes the results.
func (r *testRun) all(paths []string) error {
	var files []string
	err := r.program.Interrupts.Run(func(ctx context.Context) (err error) {
		files, err = scriptsAt(ctx, paths)
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range files {
		if err := r.script(path); err != nil {
			return err
		}
	}
	switch {
	case len(r.results) > 0:
		return r.summary()
	case r.found > 0:
		return fmt.Errorf("--run %s: matches none of %s", r.options.run, plural.Count(r.found, "test", "tests"))
	}
	return fmt.Errorf("%s: no function whose name begins with test_", strings.Join(paths, ", "))
}

// scriptsAt returns the scripts that paths name, in the order of paths and names, each
// once.
func scriptsAt(ctx context.Context, paths []string) ([]string, error) {
	var files []string
	add := func(path string) {
		if path = filepath.Clean(path); !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	for _, path := range paths {
		if strings.HasPrefix(path, "@") { // an embedded one
			files = append(files, path)
			continue
		}
		st, err := os.Stat(path)
		if err != nil {
			return nil, format.FileError(err)
		}
		if !st.IsDir() {
			add(path)
			continue
		}
		// The slash: the path itself may be a symbolic link.
		err = filepath.WalkDir(path+"/", func(name string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				return format.FileError(err)
			case d.IsDir() && name != path+"/" && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case d.Type().IsRegular() && filepath.Ext(name) == ".star":
				add(name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// script runs the tests of one script. An error ends the run.
func (r *testRun) script(path string) error {
	s, out, err := r.session(nil, path)
	if err != nil {
		return err
	}
	defer func() { r.status = session.Worse(r.status, r.program.Fail(s.Close())) }()
	var tests []program.Test
	message, err := r.attempt(s, func(ctx context.Context) (err error) {
		tests, err = program.ListTests(ctx, s.Interpreter, path)
		return err
	})
	if err != nil {
		return err
	}
	if message != "" || len(tests) > 0 {
		r.scripts++
	}
	if message != "" {
		return r.add(program.TestResult{Test: program.Test{File: path}, Outcome: program.TestError, Message: message, Output: out.String()})
	}
	r.found += len(tests)
	for _, t := range tests {
		if !r.filter.MatchString(t.Name) {
			continue
		}
		result, err := r.test(s, t)
		if err != nil {
			return err
		}
		if err := r.add(result); err != nil {
			return err
		}
	}
	return nil
}

// test runs one test; loaded is the session that its script was loaded in.
func (r *testRun) test(loaded *session.Session, t program.Test) (program.TestResult, error) {
	result := program.TestResult{Test: t, Outcome: program.TestPassed}
	var c *session.Connection
	if t.Fabric != "" {
		message, err := r.attempt(loaded, func(ctx context.Context) (err error) {
			opener := session.OpenNamed(ctx, openAsScript(loaded))
			c, err = session.Simulate(r.program.Settings, t.Fabric, opener, opener)
			return err
		})
		if err != nil || message != "" {
			result.Outcome, result.Message = program.TestFailed, message
			return result, err
		}
	}
	s, out, err := r.session(c, t.File+": "+t.Name)
	if err != nil {
		return result, err
	}
	defer func() { r.status = session.Worse(r.status, r.program.Fail(s.Close())) }()
	message, err := r.attempt(s, func(ctx context.Context) error { return program.RunTest(ctx, s.Interpreter, t) })
	if message != "" {
		result.Outcome, result.Message = program.TestFailed, message
	}
	result.Output = out.String()
	return result, err
}

// openAsScript returns a function that opens a file that a script names, if it may be
// read. A name that is not a file gets an error that says so, because it may be a
// misspelled kind of fabric.
func openAsScript(s *session.Session) func(context.Context, string) (*lang.File, error) {
	return func(ctx context.Context, path string) (*lang.File, error) {
		if !strings.Contains(path, "/") {
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		return s.Files.Open(ctx, path)
	}
}

// session makes a session on c, or without a fabric if c is nil. Its output is kept.
func (r *testRun) session(c *session.Connection, doing string) (*session.Session, *testOutput, error) {
	absent := errors.New(`this test has no fabric: name one by a parameter, def test_x(sim="fattree:k=4")`)
	base := r.base
	base.Connection, base.Absent = c, absent
	s, err := session.New(r.program, base)
	if err != nil {
		return nil, nil, err
	}
	out := new(testOutput)
	s.Stdout, s.Stderr, s.Format, s.Width = out, out, lang.FormatText, nil
	s.Clock = lang.NewVirtualClock()
	s.Runner.Statement = cmp.Or(r.program.Settings.Deadline.Value, testTime)
	s.Runner.Describe(doing)
	return s, out, nil
}

// attempt runs fn within the limits of a test. message is why it failed; an error ends
// the run.
func (r *testRun) attempt(s *session.Session, fn func(context.Context) error) (message string, err error) {
	var inner error // knows where it was stopped
	err = s.Runner.Attempt(func(ctx context.Context) error {
		inner = lang.Protect("test", func() error { return fn(ctx) })
		return inner
	})
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, lang.ErrInterrupted):
		return "", err
	}
	return program.ExplainTest(s.Explainer, inner), nil
}

// add keeps a result, and as text prints it at once.
func (r *testRun) add(t program.TestResult) error {
	r.results = append(r.results, t)
	switch t.Outcome {
	case program.TestFailed:
		r.status = session.Worse(r.status, lang.StatusFindings)
	case program.TestError:
		r.status = session.Worse(r.status, lang.StatusUsage)
	}
	passed := t.Outcome == program.TestPassed
	if r.program.Settings.Output() != lang.FormatText || passed && !r.options.verbose {
		return nil
	}
	var b strings.Builder
	switch {
	case passed:
		fmt.Fprintf(&b, "ok   %s:%d: %s\n", t.File, t.Line, t.Name)
	case t.Outcome == program.TestError:
		fmt.Fprintf(&b, "FAIL %s: does not load\n%s", t.File, indent(t.Message, "    "))
	default:
		fmt.Fprintf(&b, "FAIL %s:%d: %s\n%s", t.File, t.Line, t.Name, indent(t.Message, "    "))
	}
	if t.Output != "" {
		b.WriteString("    output:\n" + indent(t.Output, "      "))
	}
	_, err := io.WriteString(r.program.Console.Out(), lang.Harmless(b.String()))
	return err
}

// summary ends the output: as text with the counts, otherwise with the results.
func (r *testRun) summary() error {
	if format := r.program.Settings.Output(); format != lang.FormatText {
		text, err := audits.RenderMetrics(program.WrapTestResults(r.results), format, "test")
		if err != nil {
			return err
		}
		_, err = io.WriteString(r.program.Console.Out(), text)
		return err
	}
	count := map[string]int{}
	for _, t := range r.results {
		count[t.Outcome]++
	}
	text := fmt.Sprintf("%s in %s: %d passed", plural.Count(len(r.results)-count[program.TestError], "test", "tests"), plural.Count(r.scripts, "script", "scripts"), count[program.TestPassed])
	if n := count[program.TestFailed]; n > 0 {
		text += fmt.Sprintf(", %d failed", n)
	}
	if n := count[program.TestError]; n > 0 {
		text += fmt.Sprintf("; not loaded: %d", n)
	}
	_, err := fmt.Fprintln(r.program.Console.Out(), text)
	return err
}

// indent puts a margin before each line.
func indent(text, margin string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		b.WriteString(margin + line)
	}
	return b.String()
}

// maxTestOutput is how much of a test's output is kept, in bytes.
const maxTestOutput = 16 << 10

// testOutput keeps the beginning of what is written.
type testOutput struct {
	text []byte
	lost int // bytes
}

func (o *testOutput) Write(p []byte) (int, error) {
	n := min(len(p), maxTestOutput-len(o.text))
	o.text = append(o.text, p[:n]...)
	o.lost += len(p) - n
	return len(p), nil
}

func (o *testOutput) String() string {
	if o.lost == 0 {
		return string(o.text)
	}
	return fmt.Sprintf("%s\n... %d more bytes\n", o.text, o.lost)
}

// lspCommand serves editors.
func lspCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor: findings, completion and help for scripts (Language Server Protocol)",
		Long: `Serve an editor by the Language Server Protocol, over standard input and output: the
findings of check while a script is typed, with the correct word as a fix, and unused
names; completion as at the prompt; help on the word at the cursor, and the parameters
of a call; definitions, references and new names, also in modules; the outline of a
script, and names of the workspace; colours and folding; the format of fmt. "fabsh help
language" has the configuration of editors. A directory of -I is relative to the first
folder of the workspace.

The editor starts this command. It never runs a script, opens no fabric, and reads only
the modules beside a script in the editor's workspace, those of -I, and those that are
part of fabsh. When a definition is in one of the latter, a copy is written in the
user's cache directory for the editor.

Exit status: 0 the editor ended the session; 2 it ended otherwise.`,
		Example: `  fabsh lsp -I lib
  nvim: vim.lsp.start_client({name = "fabsh", cmd = {"fabsh", "lsp"}, root_dir = vim.fn.getcwd()})`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if p.StdinIsTerminal() {
				return errors.New("standard input is a terminal; an editor starts this command (fabsh help lsp)")
			}
			settings := *p.Settings // -I is relative to the workspace, which the editor names later
			included := settings.Include
			settings.Include = nil
			return withoutFabric(p.With(settings), func(ctx context.Context, s *session.Session) error {
				server := &lsp.Server{Interpreter: s.Interpreter, Library: help.Of(s.Runtime), Version: session.Version(), Include: included}
				if cache, err := os.UserCacheDir(); err == nil {
					server.Modules = filepath.Join(cache, "fabsh", "modules")
				}
				return server.Serve(ctx, p.Stdin, p.Console.Out())
			})
		},
	}
}
