// Package shell is the program fabsh: command line, prompt, output to people.
// It alone reads the environment and knows of terminals.
//
//	cli.go        the commands, and fabsh without one
//	flags.go      session flags; sessionflag.go, behind commands; usage.go, in help
//	open.go       from -F to a session
//	audit.go      the command audit; auditstate.go: its acks, and where they are
//	exporter.go   the command exporter
//	command.go    what commands on a fabric have in common
//	report.go     the command report, and the reports of tools at the prompt
//	topology.go   the command topology
//	route.go      the command route; routewatch.go: --watch
//	verify.go     the command verify, and the checks that it shares with route
//	snapshot.go   the commands snapshot and graph; diff.go, decode.go, ports.go, sim.go,
//	              test.go, check.go, fmt.go: those of these names
//	change.go     the command change; changeplan.go: its plan and show, and --plan;
//	              changeapply.go: its apply, confirm, revert, resume and status;
//	              changejournal.go: its status, and a change that was broken off;
//	              changeguard.go: the guard process
//	statement.go  from lines to statements
//	exec.go       statements run at the prompt
//	repl.go       the prompt's loop; question.go, what is no Starlark but a question
//	              or a command
//	reader.go     where lines come from: readline, or a pipe
//	block.go      statements of several lines in readline's one; history.go, theirs
//	complete.go   what TAB proposes; locate.go, where the cursor stands
//	interrupt.go  signals
//	deadline.go   --deadline; memory.go, --memory: the watch over what a script uses
//	state.go      where what one run keeps for the next lies
//	terminal.go   output, progress line, what is longer than the screen
//	system_*.go   what differs between Linux and others
package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// Main runs the program and returns its exit status.
func Main() int {
	collectAt(smallHeapPercent)
	// One step of a script can hold one of two processors, and a collection that
	// waits for its end the other: the third is for the watch over memory.
	if runtime.GOMAXPROCS(0) == 2 {
		runtime.GOMAXPROCS(3)
	}
	a := &app{console: newConsole(os.Stdout, os.Stderr), stdin: os.Stdin}
	a.interrupts = watchInterrupts(a.console)
	defer a.interrupts.stop()
	cmd := a.command()
	if err := cmd.Execute(); err != nil {
		a.fail(err)
	}
	switch err := a.console.lost(); {
	case errors.Is(err, syscall.EPIPE):
		return statusBrokenPipe // its signal may be on its way yet
	case err != nil:
		a.fail(&hostError{err})
	}
	return a.interrupts.status(a.status)
}

// app is one run of the program.
type app struct {
	settings
	code       []string // -c, which may be given once
	script     string   // that is run; "": none is
	stdin      *os.File
	console    *console
	interrupts *interrupts
	reports    []*audit.Report // of audits, which are not written yet
	rails      []builtins.Rail // from which audits ran, with --each-port
	ends       time.Time       // when --deadline is over; 0: it has not begun
	status     int
}

// fail writes an error of the command line or of opening the fabric.
func (a *app) fail(err error) {
	if errors.Is(err, lang.ErrInterrupted) {
		fmt.Fprintln(a.console.Err(), lang.ErrInterrupted)
		a.status = worse(a.status, lang.StatusInterrupted)
		return
	}
	fmt.Fprintf(a.console.Err(), "fabsh: %v\n", err)
	status := lang.StatusUsage
	var h *hostError
	if errors.As(err, &h) {
		status = lang.StatusFabric
	}
	a.status = worse(a.status, status)
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "fabsh [flags] [script [args]]",
		Short: "A scriptable shell for InfiniBand fabrics",
		Long: `fabsh is a scriptable shell for InfiniBand fabrics.

Without a script it prompts, or reads statements from a pipe. Flags stand before
the script; what follows its name belongs to it ("fabsh script --help").

Exit status: 0 clean; 1 findings, or exit(1); 2 the command or the script is to
be fixed; 3 the fabric or the host is to be looked at; 130 interrupted,
143 by SIGTERM.`,
		Example: `  fabsh -F sim                             the prompt, on a simulated fat tree
  fabsh -F sim:ring:n=4 -c 'discover()'    one line of code
  fabsh -F ibsim -o json links.star        a script, its output as JSON`,
		Args:              cobra.ArbitraryArgs,
		TraverseChildren:  true,
		SilenceErrors:     true,
		SilenceUsage:      true,
		ValidArgsFunction: completeScript,
		RunE: func(_ *cobra.Command, words []string) error {
			return a.profiled(func() error { return a.run(words) })
		},
	}
	cobra.AddTemplateFunc("version", version)
	root.Version = root.Use // so that there is --version; what it writes takes time to find
	root.SetVersionTemplate("{{version}}\n")
	root.SetOut(a.console.Out())
	root.SetErr(a.console.Err())
	root.SetFlagErrorFunc(flagError)
	root.Flags().SortFlags = false
	root.Flags().SetInterspersed(false)
	root.Flags().StringArrayVarP(&a.code, "command", "c", nil, "run `CODE` and show the value of its last expression")
	a.settings.addFlags(root.PersistentFlags())
	a.flags = root.Flags() // which these join when they are parsed
	completeFlags(root)
	root.SetUsageFunc(a.usage)
	root.AddCommand(a.auditCommand(), a.reportCommand(), a.routeCommand(), a.verifyCommand(), a.snapshotCommand(), a.diffCommand(), a.exporterCommand(), a.changeCommand(), a.topologyCommand(), a.graphCommand(), a.topCommand(), a.tourCommand(), a.simCommand(), a.decodeCommand(), a.portsCommand(), a.testCommand(), a.checkCommand(), a.fmtCommand(), a.versionCommand(), a.docCommand(), a.examplesCommand())
	root.SetHelpCommand(a.helpCommand(root))
	return root
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { fmt.Fprintln(a.console.Out(), version()) },
	}
}

// version is what the build recorded: the module's version, or the revision.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "fabsh (unknown version)"
	}
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	v := "fabsh " + info.Main.Version
	if rev := setting["vcs.revision"]; rev != "" && info.Main.Version == "(devel)" {
		v += " " + rev[:min(12, len(rev))]
		if setting["vcs.modified"] == "true" {
			v += " modified"
		}
	}
	return v + " " + info.GoVersion
}

func (a *app) docCommand() *cobra.Command {
	var page bool
	c := &cobra.Command{
		Use:   "doc [topic] [--html]",
		Short: "Print the reference of all that a script can say, or help on one topic",
		Long: `Print the reference of all that a script can say, as Markdown, or help on one topic.

--html writes all that help says as one page: commands, functions, values, attributes
of datagrams, audits, reports, routing policies. It can be searched, and needs no
network.`,
		Example: `  fabsh doc PortInfo
  fabsh doc --html > fabsh.html`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, words []string) error {
			switch {
			case page && len(words) > 0:
				return fmt.Errorf("doc: --html is all topics on one page: leave %q out", words[0])
			case page:
				return a.manual(c.Root())
			case len(words) == 0:
				_, err := fmt.Fprint(a.console.Out(), builtins.Reference())
				return err
			}
			return a.help(words[0])
		},
	}
	c.Flags().BoolVar(&page, "html", false, "write all that help says as one page of HTML")
	return c
}

// helpCommand helps with commands and with what scripts can say alike.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command or topic]",
		Short: "Help on a command, or on anything a script can say",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 {
				return root.Help()
			}
			for _, c := range root.Commands() {
				if c.Name() == words[0] {
					return c.Help()
				}
			}
			return a.help(words[0])
		},
	}
}

func (a *app) help(topic string) error {
	s, err := builtins.NewSession(builtins.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	text, err := s.Help(topic)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.console.Out(), text)
	return err
}

// flagError adds the nearest flag to an unknown one.
func flagError(c *cobra.Command, err error) error {
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

// completeFlags tells the shell's completion what values flags have.
func completeFlags(c *cobra.Command) {
	var formats, fabrics []string
	for _, f := range lang.Formats {
		formats = append(formats, string(f))
	}
	for _, k := range fabricKinds() {
		fabrics = append(fabrics, k.name)
	}
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{string(colorAuto), string(colorAlways), string(colorNever)}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("fabric", cobra.FixedCompletions(fabrics, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	c.MarkPersistentFlagDirname("include")
	c.MarkPersistentFlagDirname("out")
	c.MarkPersistentFlagDirname("state")
}

// run is fabsh without a command: code, a script, or the prompt.
func (a *app) run(words []string) error {
	hasCode := a.flags.Changed("command")
	if len(a.code) > 1 {
		return errors.New("-c is given more than once: put all of it into one, its statements on lines of their own or behind semicolons")
	}
	if hasCode && len(words) > 0 {
		return fmt.Errorf("-c takes no script, and here is %q too", words[0])
	}
	if err := a.settings.check(); err != nil {
		return err
	}
	if len(words) > 0 {
		if err := checkScript(words[0]); err != nil {
			return err
		}
		a.script = words[0]
	}
	var d *deadline // at the prompt each statement has its own
	prompt := !hasCode && len(words) == 0 && a.isPrompt()
	if !prompt {
		d = a.startDeadline()
		defer d.stop()
	}
	s, err := a.open(!hasCode && len(words) == 0)
	if err == errTour {
		return a.tour(0)
	}
	if err != nil {
		return err
	}
	defer s.close()
	if prompt {
		s.limit = a.deadline.value
	}
	s.deadline = d
	d.limit(s)
	switch {
	case hasCode:
		a.status = s.evaluate(func(ctx context.Context) error { return s.RunCode(ctx, "<command>", a.code[0]) })
	case len(words) > 0:
		a.status = s.evaluate(func(ctx context.Context) error { return s.RunFile(ctx, words[0], words[1:]) })
	default:
		a.status = s.prompt(a.stdin, nil)
	}
	a.status = s.endPlan(a.status, a.what(words))
	s.writeMetrics()
	s.summary()
	return nil
}

// commandWords are the words that name commands, not scripts.
var commandWords = []string{"audit", "report", "route", "verify", "snapshot", "diff", "exporter", "change", "topology", "graph", "top", "tour", "sim", "decode", "ports", "test", "check", "fmt", "version", "doc", "examples", "help", "completion"}

// checkScript fails if there is no such script, before a fabric is opened.
func checkScript(path string) error {
	if strings.HasPrefix(path, "@") {
		return nil // a shipped one
	}
	st, err := os.Stat(path)
	if err == nil {
		if st.IsDir() {
			return fmt.Errorf("%s: is a folder", path)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return noFile(err)
	}
	if !strings.ContainsAny(path, "./") {
		if builtins.IsReport(path) {
			return fmt.Errorf("%s: no such command or file; its report is: fabsh report %[1]s", path)
		}
		if n := fabric.Nearest(path, commandWords); n != "" {
			return fmt.Errorf("%s: no such command or file (did you mean %s?)", path, n)
		}
		return fmt.Errorf(`%s: no such command or file (see "fabsh --help")`, path)
	}
	if n := fabric.Nearest(filepath.Base(path), filesIn(filepath.Dir(path))); n != "" {
		return fmt.Errorf("%s: no such file (did you mean %s?)", path, filepath.Join(filepath.Dir(path), n))
	}
	return fmt.Errorf("%s: no such file", path)
}

// filesIn are the names in a folder, sorted; none if it cannot be read.
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
