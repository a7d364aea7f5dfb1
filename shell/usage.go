package shell

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fabsh/builtins"
	"fabsh/builtins/help"
	"fabsh/builtins/script"
	"fabsh/shell/manual"
	"fabsh/shell/session"
)

// usage is what help says after a command's own words: how it is written, the
// commands, and the flags, those of the session in their groups.
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
		where := "Session flags may stand here too, but for those of the same name"
		if _, ok := c.Annotations[sessionFlagsBefore]; ok {
			where = "Session flags stand before the command"
		}
		b.WriteString("\n" + where + ": see \"fabsh --help\".\n")
	} else {
		for _, g := range p.Settings.Groups() {
			fmt.Fprintf(&b, "\n%s:\n%s", g.Name(), g.FlagUsages())
		}
		b.WriteString("\nOther flags:\n" + c.LocalNonPersistentFlags().FlagUsages())
		b.WriteString("\nPrograms, which run as scripts do (\"fabsh PROGRAM --help\"):\n")
		writePrograms(&b)
	}
	_, err := io.WriteString(c.OutOrStdout(), b.String())
	return err
}

// sessionFlagsBefore annotates a command behind which no session flags may stand.
const sessionFlagsBefore = "session flags before"

// writePrograms lists the embedded scripts that can be run.
func writePrograms(b *strings.Builder) {
	list := script.Programs()
	width := 0
	for _, p := range list {
		width = max(width, len(p.Name))
	}
	for _, p := range list {
		fmt.Fprintf(b, "  %-*s  %s\n", width, p.Name, p.Doc)
	}
}

// examplesCommand lists them alone.
func examplesCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "examples",
		Short: "List the programs that are in fabsh, examples among them",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var b strings.Builder
			b.WriteString("Each runs by its name: \"fabsh -F sim @examples//links.star\"; \"fabsh NAME --help\" tells its options.\n")
			writePrograms(&b)
			_, err := io.WriteString(p.Console.Out(), b.String())
			return err
		},
	}
}

// writeManual writes the page of all that help says.
func writeManual(p *session.Program, root *cobra.Command) error {
	chapters, err := help.Manual(builtins.Functions())
	if err != nil {
		return err
	}
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	c := help.Chapter{Title: "Commands", Doc: "What is typed in a Unix shell."}
	var text strings.Builder
	root.SetOut(&text)
	defer root.SetOut(p.Console.Out())
	var add func(*cobra.Command)
	add = func(command *cobra.Command) {
		text.Reset()
		if err = errors.Join(err, command.Help()); command.IsAvailableCommand() || command == root || command.Name() == "help" {
			c.Topics = append(c.Topics, help.Topic{Name: command.CommandPath(), Text: text.String()})
		}
		for _, sub := range command.Commands() {
			add(sub)
		}
	}
	add(root)
	if err != nil {
		return err
	}
	return manual.Write(p.Console.Out(), session.Version(), slices.Insert(chapters, 0, c))
}

// policyProgram is what a routing policy says of itself.
func policyProgram(name string) script.Program {
	path, err := script.Policies.Locate(name)
	if err != nil {
		return script.Program{}
	}
	return programAt(path)
}

// programAt reads what the script at path says of itself; nothing where it is no
// plain file, for a pipe can be read only once.
func programAt(path string) script.Program {
	for _, p := range script.Programs() {
		if p.Name == path {
			return p
		}
	}
	return script.ProgramOf(path, sourceAt(path))
}

// sourceAt is the text of a script, "" where it cannot be read at once.
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

// completeScript proposes the embedded programs, and the options of the script
// that is named; other words it leaves to the shell: files.
func completeScript(_ *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
	// Bash takes @ for the end of a word, unless it is told otherwise.
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
