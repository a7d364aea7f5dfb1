package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/shell/session"
)

// Help returns the command help, on commands and all other topics.
func Help(p *session.Program, root *cobra.Command) *cobra.Command {
	var search bool
	c := &cobra.Command{
		Use:   "help [-k] [TOPIC | WORD...]",
		Short: "Help on a command, a guide, a function or any other topic; -k searches",
		Long: `Help on a topic: a command, a guide, a function, a type, an attribute, a field, a
status, a trap, a check, an audit.

-k searches all topics for words, best match first.`,
		Example: `  fabsh help guides
  fabsh help change-guide
  fabsh help PortInfo.LMC
  fabsh help -k csv`,
		ValidArgsFunction: func(_ *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(words) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			base, _, isPart := strings.Cut(typed, ".")
			if !isPart {
				base = ""
			}
			other := func(t string) bool { return !strings.HasPrefix(t, typed) || strings.Contains(t, " ") }
			return slices.DeleteFunc(topics(p, root, base), other), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, words []string) error {
			topic := strings.Join(words, " ")
			switch {
			case search:
				topic = "search " + topic
			case topic == "":
				return root.Help()
			}
			return printTopic(p, root, topic, true)
		},
	}
	c.Flags().BoolVarP(&search, "search", "k", false, "search all topics for the words")
	return c
}

// HelpText returns what help says of a command, in the lines that its author wrote.
func HelpText(c *cobra.Command) string {
	text := c.Long
	if text == "" {
		text = c.Short
	}
	return strings.TrimRight(text, " \n") + "\n\n" + c.UsageString()
}

// Pages returns the pages of help on commands and their flags.
func Pages(p *session.Program, root *cobra.Command) (pages []help.Page) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		if c != root && !c.IsAvailableCommand() && c.Name() != "help" {
			return
		}
		page := help.Page{Kind: help.KindCommand, Name: strings.TrimPrefix(c.CommandPath(), root.Name()+" "), Summary: c.Short, Text: func(width int) string {
			return lang.Reflow(HelpText(c), width)
		}}
		if c.HasParent() && c.Parent() != root {
			page.Also = []string{c.Name()}
		}
		pages = append(pages, page)
		if c == root {
			for _, g := range p.Settings.Groups() {
				g.VisitAll(func(f *pflag.Flag) { pages = append(pages, flagPage("", f)) })
			}
		} else {
			c.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if f.Name != "help" {
					pages = append(pages, flagPage(page.Name+" ", f))
				}
			})
		}
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(root)
	return pages
}

// flagPage is the page of a flag of a command, whose name and a blank stand before it.
func flagPage(command string, f *pflag.Flag) help.Page {
	value, usage := pflag.UnquoteUsage(f)
	name := command + "--" + f.Name
	page := help.Page{Kind: help.KindFlag, Name: name, Also: []string{f.Name}, Summary: usage}
	of := "A flag of all sessions, before the command or script.\n"
	if command != "" {
		of = "A flag of fabsh " + strings.TrimSpace(command) + ".\n"
	} else {
		page.Also = append(page.Also, "--"+f.Name)
		if f.Shorthand != "" {
			page.Also = append(page.Also, "-"+f.Shorthand)
		}
	}
	page.Text = func(width int) string {
		return lang.Reflow(strings.TrimSpace(name+" "+value)+"\n\n"+usage+"\n\n"+of, width)
	}
	return page
}

// withLibrary calls fn with all pages, as a Unix shell asks for them.
func withLibrary(p *session.Program, root *cobra.Command, fn func(*help.Library) error) error {
	s, err := builtins.NewSession(builtins.SessionOptions{})
	if err != nil {
		return err
	}
	defer s.Close()
	return fn(&help.Library{Globals: s.Interpreter.Globals, More: Pages(p, root), Shell: true})
}

// printTopic prints help on a topic; without commands, on what scripts can say before them.
func printTopic(p *session.Program, root *cobra.Command, topic string, commands bool) error {
	return withLibrary(p, root, func(l *help.Library) error {
		l.CommandsFirst = commands
		text, err := l.Find(topic, p.Console.Width())
		if err != nil {
			return err
		}
		return p.Console.Page(p.Interrupts, text)
	})
}

// topics are the names that fabsh help completes; with a base, those of its parts.
func topics(p *session.Program, root *cobra.Command, base string) (names []string) {
	withLibrary(p, root, func(l *help.Library) error {
		names = l.Topics(base)
		return nil
	})
	return names
}

// WriteManual writes the page of all that help says.
func WriteManual(p *session.Program, root *cobra.Command) error {
	chapters, err := help.Manual(builtins.Functions())
	if err != nil {
		return err
	}
	c := help.Chapter{Title: "Commands", Doc: "What is typed in a Unix shell."}
	for _, page := range Pages(p, root) {
		if page.Kind == help.KindCommand {
			name := "fabsh " + page.Name
			if page.Name == root.Name() {
				name = page.Name
			}
			c.Topics = append(c.Topics, help.Topic{Name: name, Text: page.Text(0)})
		}
	}
	return writeManual(p.Console.Out(), session.Version(), slices.Insert(chapters, 0, c))
}
