// Package shell is the command line of fabsh: Main, the root command, and fabsh without a
// command, which runs code or a script or opens the prompt. The commands are in shell/command,
// the prompt is in shell/prompt, and what both use is in shell/session.
package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/fabric/change/apply"
	simrun "fabsh/fabric/sim/run"
	"fabsh/mad/engine"
	"fabsh/shell/command"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
)

// Main runs the program and returns its exit status.
func Main() int { return mainBelow("/") }

// mainBelow is Main with the files of the system below root.
func mainBelow(root string) int {
	simrun.Become(os.Args) // this program may be one of those that sim --run starts
	session.CollectAt(session.SmallHeapPercent)
	// One step of a script can occupy one of two processors, and a collection that
	// waits for its end the other: the third is for the watch over memory.
	if runtime.GOMAXPROCS(0) == 2 {
		runtime.GOMAXPROCS(3)
	}
	p := newProgram(session.NewConsole(os.Stdout, os.Stderr))
	p.Stdin, p.Words, p.Settings.Root = os.Stdin, os.Args[1:], root
	p.Interrupts = session.WatchInterrupts(p.Console)
	rootCmd, addCommands := bareRoot(p)
	if command.Named(rootCmd, os.Args[1:]) {
		addCommands()
	}
	status := p.Console.Fail(command.Execute(p, rootCmd, os.Args[1:]))
	switch err := p.Console.Lost(); {
	case errors.Is(err, syscall.EPIPE):
		return session.StatusBrokenPipe // its signal may still be on its way
	case err != nil:
		status = session.Worse(status, p.Fail(&session.HostError{Err: err}))
	}
	return p.Interrupts.Status(status)
}

// newProgram returns a program whose settings are not parsed yet.
func newProgram(c *session.Console) *session.Program {
	p := &session.Program{Settings: new(session.Settings), Console: c}
	p.StartGuard = func(ctx context.Context, e *engine.Engine, journal string) (apply.Guard, error) {
		return command.StartGuard(ctx, p, e, journal)
	}
	return p
}

// rootCommand returns fabsh with all its commands.
func rootCommand(p *session.Program) *cobra.Command {
	root, addCommands := bareRoot(p)
	addCommands()
	return root
}

// bareRoot returns fabsh without commands, and a function that adds them: for code and for the
// prompt, making all of them would be a part of the start time.
func bareRoot(p *session.Program) (root *cobra.Command, addCommands func()) {
	var code []string // -c, which may be given once
	root = &cobra.Command{
		Use:   "fabsh [flags] [script [args]]",
		Short: "A scriptable shell for InfiniBand fabrics",
		Long: `fabsh is a scriptable shell for InfiniBand fabrics.

Without a script, it opens a prompt or reads statements from a pipe. Session flags
come before the script; arguments after its name belong to the script
("fabsh script --help").

Exit status:
  0    clean
  1    findings, or exit(1)
  2    usage or script error; a file that cannot be read
  3    fabric or host error (no answer, no device)
  130  interrupted (143: by SIGTERM)`,
		Example: `  fabsh -F sim                             the prompt, on a simulated fat tree
  fabsh -F sim:ring:n=4 -c 'discover()'    one line of code
  fabsh -F ibsim -o json links.star        a script, its output as JSON`,
		Args:              cobra.ArbitraryArgs,
		TraverseChildren:  true,
		SilenceErrors:     true,
		SilenceUsage:      true,
		ValidArgsFunction: command.CompleteScript,
		RunE: func(c *cobra.Command, words []string) error {
			return runScript(p, c, code, words)
		},
	}
	cobra.AddTemplateFunc("version", session.Version)
	root.Version = root.Use // so that --version exists; its text takes time to find
	root.SetVersionTemplate("{{version}}\n")
	root.SetOut(p.Console.Out())
	root.SetErr(p.Console.Err())
	root.SetFlagErrorFunc(command.FlagError)
	root.Flags().SortFlags = false
	root.Flags().SetInterspersed(false)
	root.Flags().StringArrayVarP(&code, "command", "c", nil, "run `CODE` and show the value of its last expression")
	p.Settings.AddFlags(root.PersistentFlags(), root.Flags())
	root.SetUsageFunc(func(c *cobra.Command) error { return usage(p, c) })
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		io.WriteString(c.OutOrStdout(), lang.Reflow(command.HelpText(c), p.Console.Width()))
	})
	root.CompletionOptions.DisableDefaultCmd = true
	addCommands = sync.OnceFunc(func() {
		root.CompletionOptions.DisableDefaultCmd = false
		completeFlags(root)
		root.AddCommand(command.All(p, rootCommand)...)
		root.SetHelpCommand(command.Help(p, root))
		addCompletion(root)
	})
	p.Help = func() []help.Page {
		addCommands()
		return command.Pages(p, root)
	}
	return root, addCommands
}

// completeFlags declares the values of flags for the shell's completion.
func completeFlags(c *cobra.Command) {
	var formats []string
	for _, f := range lang.Formats {
		formats = append(formats, string(f))
	}
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(session.ColorModes(), cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("fabric", cobra.FixedCompletions(session.FabricKinds(), cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	c.MarkPersistentFlagDirname("include")
	c.MarkPersistentFlagDirname("out")
	c.MarkPersistentFlagDirname("state")
}

// runScript runs fabsh without a command: code, a script, or the prompt.
func runScript(p *session.Program, root *cobra.Command, code, words []string) error {
	hasCode := p.Settings.Given("command")
	if len(code) > 1 {
		return errors.New("-c: given more than once; put all statements into one, separated by newlines or semicolons")
	}
	if hasCode && len(words) > 0 {
		return fmt.Errorf("-c: takes no script, got %q", words[0])
	}
	if p.Line != nil {
		return command.NotAtPrompt(root, words)
	}
	if err := p.Settings.Check(); err != nil {
		return err
	}
	var opening session.Opening
	var limit session.TimeLimit
	var what string // for the plan
	var evaluate func(*session.Session) int
	isPrompt := !hasCode && len(words) == 0 && p.AtTerminal()
	if !isPrompt { // at the prompt each statement has its own time
		limit = p.StartTime()
	}
	switch {
	case hasCode:
		what = "-c"
		evaluate = func(s *session.Session) int {
			return s.Runner.Evaluate(func(ctx context.Context) error {
				return session.Named("", program.RunCode(ctx, s.Interpreter, "<command>", code[0]))
			})
		}
	case len(words) > 0:
		if err := command.CheckScript(root, words[0]); err != nil {
			return err
		}
		what, opening.Script = strings.Join(words, " "), words[0]
		evaluate = func(s *session.Session) int {
			return s.Runner.Evaluate(func(ctx context.Context) error {
				return session.Named("", program.RunFile(ctx, s.Interpreter, words[0], words[1:]))
			})
		}
	default:
		what, opening.Replace = "the prompt", func(absent error) (string, error) { return command.Offer(p, absent) }
		evaluate = func(s *session.Session) int {
			if isPrompt {
				s.Runner.Statement = p.Settings.Deadline.Value
			}
			return prompt.Run(p, s, prompt.Options{Commands: command.AtPrompt(p, rootCommand)})
		}
	}
	open := func(ctx context.Context) (*session.Session, error) { return session.Open(ctx, p, opening) }
	return p.Profiled(func() (status int, err error) {
		if status, err = p.Evaluate(limit, what, open, evaluate); err == command.ErrTour {
			return command.Tour(p, rootCommand, 0)
		}
		return status, err
	})
}

// usage is the part of help after a command's own text: usage, commands, and flags,
// those of the session in their groups.
func usage(p *session.Program, c *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n  " + c.UseLine() + "\n")
	if c.HasAvailableSubCommands() {
		b.WriteString("  " + c.CommandPath() + " [flags] command\n")
	}
	if c.HasExample() {
		b.WriteString("\nExamples:\n" + c.Example + "\n")
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if c.HasParent() {
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		own.SortFlags = c.LocalFlags().SortFlags
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !command.OfScript(f) {
				own.AddFlag(f)
			}
		})
		if flags := own.FlagUsages(); flags != "" {
			b.WriteString("\nFlags:\n" + flags)
		}
		b.WriteString("\nSession flags may stand here too, except those of the same name: see \"fabsh --help\".\n")
	} else {
		for _, g := range p.Settings.Groups() {
			fmt.Fprintf(&b, "\n%s:\n%s", g.Name(), g.FlagUsages())
		}
		b.WriteString("\nOther flags:\n" + c.LocalNonPersistentFlags().FlagUsages())
		b.WriteString("\nMore help:\n")
		for _, line := range [][2]string{
			{"fabsh help guides", "the guides"}, {"fabsh help TOPIC", "a command, a function, an attribute, or any other topic"},
			{"fabsh help -k WORD...", "search all help"}, {"fabsh examples", "the scripts that are part of fabsh"}, {"fabsh tour", "learn fabsh in ten minutes"},
		} {
			fmt.Fprintf(&b, "  %-21s  %s\n", line[0], line[1])
		}
	}
	_, err := io.WriteString(c.OutOrStdout(), b.String())
	return err
}
