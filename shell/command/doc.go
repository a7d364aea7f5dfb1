package command

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

func versionCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { fmt.Fprintln(p.Console.Out(), session.Version()) },
	}
}

func docCommand(p *session.Program) *cobra.Command {
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
				return WriteManual(p, c.Root())
			case len(words) == 0:
				_, err := fmt.Fprint(p.Console.Out(), help.Reference(builtins.Functions()))
				return err
			}
			return printHelp(p, words[0])
		},
	}
	c.Flags().BoolVar(&page, "html", false, "write all that help says as one page of HTML")
	return c
}

// Help helps with commands and with what scripts can say alike.
func Help(p *session.Program, root *cobra.Command) *cobra.Command {
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
			return printHelp(p, words[0])
		},
	}
}

// printHelp prints help on a topic.
func printHelp(p *session.Program, topic string) error {
	s, err := builtins.NewSession(builtins.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	text, err := help.Name(s.Interpreter.Globals, topic)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(p.Console.Out(), text)
	return err
}

// WritePrograms lists the embedded scripts that can be run.
func WritePrograms(b *strings.Builder) {
	var list []script.Doc
	for _, p := range script.Programs() {
		list = append(list, script.Doc{Name: "  " + p.Name, Doc: p.Doc})
	}
	writeDocs(b, list)
}

// writeDocs lists scripts with the first lines of their docstrings.
func writeDocs(w io.Writer, list []script.Doc) error {
	width := 0
	for _, d := range list {
		width = max(width, len(d.Name))
	}
	for _, d := range list {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, d.Name, d.Doc); err != nil {
			return err
		}
	}
	return nil
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
			WritePrograms(&b)
			_, err := io.WriteString(p.Console.Out(), b.String())
			return err
		},
	}
}

// WriteManual writes the page of all that help says.
func WriteManual(p *session.Program, root *cobra.Command) error {
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
