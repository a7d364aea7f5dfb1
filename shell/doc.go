package shell

import (
	"fmt"

	"github.com/spf13/cobra"

	"fabsh/builtins"
	"fabsh/builtins/help"
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
				return writeManual(p, c.Root())
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

// helpCommand helps with commands and with what scripts can say alike.
func helpCommand(p *session.Program, root *cobra.Command) *cobra.Command {
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
