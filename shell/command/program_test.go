package command

import (
	"io"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/shell/session"
)

// testProgram is a program with session flags, that writes to out.
func testProgram(t *testing.T, out io.Writer, flags ...string) *session.Program {
	t.Helper()
	p := &session.Program{Settings: new(session.Settings), Console: session.NewConsole(out, out)}
	p.Interrupts = session.WatchInterrupts(p.Console)
	t.Cleanup(p.Interrupts.Stop)
	f := pflag.NewFlagSet("fabsh", pflag.ContinueOnError)
	p.Settings.AddFlags(f, f)
	if err := f.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return p
}

// commands are all commands below a root.
func commands() *cobra.Command {
	return rootOf(&session.Program{Settings: new(session.Settings), Console: session.NewConsole(io.Discard, io.Discard)})
}

// rootOf is the root command of a program.
func rootOf(p *session.Program) *cobra.Command {
	root := &cobra.Command{Use: "fabsh", SilenceErrors: true, SilenceUsage: true, TraverseChildren: true}
	p.Settings.AddFlags(root.PersistentFlags(), root.Flags())
	root.AddCommand(All(p, rootOf)...)
	return root
}
