package shell

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fabsh/shell/command"
	"fabsh/shell/session"
)

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
		if flags := c.LocalFlags().FlagUsages(); flags != "" {
			b.WriteString("\nFlags:\n" + flags)
		}
		where := "Session flags may stand here too, except those of the same name"
		if _, ok := c.Annotations[command.SessionFlagsBefore]; ok {
			where = "Session flags stand before the command"
		}
		b.WriteString("\n" + where + ": see \"fabsh --help\".\n")
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
