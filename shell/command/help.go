package command

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
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

// topics are the names that fabsh help completes; with a base, the names of its parts.
func topics(p *session.Program, root *cobra.Command, base string) (names []string) {
	withLibrary(p, root, func(l *help.Library) error {
		names = l.Topics(base)
		return nil
	})
	return names
}

// WriteManual writes the page of all that help says.
func WriteManual(p *session.Program, root *cobra.Command) error {
	chapters, list, err := help.Manual(builtins.Functions())
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
	return writeManual(p.Console.Out(), session.Version(), append(append(chapters, c), list...))
}

func versionCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  atMost(0),
		Run:   func(*cobra.Command, []string) { fmt.Fprintln(p.Console.Out(), session.Version()) },
	}
}

func docCommand(p *session.Program) *cobra.Command {
	var page bool
	var stubs string
	c := &cobra.Command{
		Use:   "doc [topic] [--html] [--stubs DIR]",
		Short: "Print the reference of the language of scripts, or help on one topic",
		Long: `Print the reference of the language of scripts, as Markdown, or help on one topic.

--html writes all help as one page: commands, functions, values, attributes of
datagrams, audits, reports, routing policies. The page can be searched, and needs no
network.

--stubs writes DIR/__builtins__.pyi, the declarations of all names and types in the
syntax of Python's stub files, for editors without the language server (fabsh lsp) and
for type checkers.`,
		Example: `  fabsh doc PortInfo
  fabsh doc --html > fabsh.html
  fabsh doc --stubs .`,
		Args: atMost(1),
		RunE: func(c *cobra.Command, words []string) error {
			switch {
			case stubs != "" && (page || len(words) > 0):
				return errors.New("--stubs writes one file; leave out --html and the topic")
			case stubs != "":
				return writeStubs(p, stubs)
			case page && len(words) > 0:
				return fmt.Errorf("unexpected argument %q; --html writes all topics as one page", words[0])
			case page:
				return WriteManual(p, c.Root())
			case len(words) == 0:
				_, err := fmt.Fprint(p.Console.Out(), help.Reference(builtins.Functions()))
				return err
			}
			return printTopic(p, c.Root(), words[0], false)
		},
	}
	c.Flags().StringVar(&stubs, "stubs", "", "write declarations for type checkers in this `directory`")
	c.Flags().BoolVar(&page, "html", false, "write all help as one page of HTML")
	return c
}

// writeStubs writes the declarations for type checkers in a directory.
func writeStubs(p *session.Program, dir string) error {
	return withoutFabric(p, func(ctx context.Context, s *session.Session) error {
		file := filepath.Join(dir, help.StubsFile)
		err := session.WriteNamed(ctx, file, func(w io.Writer) error {
			_, err := io.WriteString(w, help.Stubs(s.Interpreter.Globals))
			return err
		})
		if err == nil {
			s.Print(file + "\n")
		}
		return err
	})
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
		Short: "List the programs that are part of fabsh, including the examples",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			var b strings.Builder
			b.WriteString("Each runs by its name: \"fabsh -F sim @examples//links.star\"; \"fabsh NAME --help\" lists its options.\n")
			WritePrograms(&b)
			_, err := io.WriteString(p.Console.Out(), b.String())
			return err
		},
	}
}

//go:embed manual.css
var manualStyle string

//go:embed manual.js
var manualScript string

// writeManual writes all help as one page of HTML, which can be searched, and needs neither
// a network nor scripts to be read. The same chapters give the same bytes.
func writeManual(w io.Writer, version string, chapters []help.Chapter) error {
	b := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(b, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>fabsh: the manual</title>
<style>%s</style>
</head>
<body>
<header>
<h1>fabsh: the manual</h1>
<p>All pages of <code>help</code>, on one page. %s.</p>
<p id="search" role="search" hidden><label for="words">Search</label> <input id="words" type="search" autocomplete="off" spellcheck="false" placeholder="words, such as smp_get or link width"> <span id="found" role="status"></span></p>
</header>
<nav aria-label="Contents">
`, hashed(manualStyle), hashed(manualScript), manualStyle, html.EscapeString(version))
	for i, c := range chapters {
		fmt.Fprintf(b, "<details><summary><a href=\"#c%d\">%s</a> (%d)</summary><p>", i+1, html.EscapeString(c.Title), len(c.Topics))
		for _, t := range c.Topics {
			fmt.Fprintf(b, "<a href=\"#%s\">%s</a> ", manualID(i, t.Name), html.EscapeString(t.Name))
		}
		b.WriteString("</p></details>\n")
	}
	b.WriteString("</nav>\n<main>\n")
	for i, c := range chapters {
		fmt.Fprintf(b, "<section id=\"c%d\">\n<h2>%s</h2>\n", i+1, html.EscapeString(c.Title))
		if c.Doc != "" {
			fmt.Fprintf(b, "<p>%s</p>\n", html.EscapeString(c.Doc))
		}
		for _, t := range c.Topics {
			at := manualID(i, t.Name)
			fmt.Fprintf(b, "<article id=\"%s\">\n<h3><a href=\"#%s\">%s</a></h3>\n<pre tabindex=\"0\">%s</pre>\n</article>\n", at, at, html.EscapeString(t.Name), html.EscapeString(strings.TrimRight(t.Text, "\n")))
		}
		b.WriteString("</section>\n")
	}
	tables, err := json.Marshal(help.TablesOfSearch()) // in which < and > are escaped
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "</main>\n<script type=\"application/json\" id=\"tables\">%s</script>\n<script>%s</script>\n</body>\n</html>\n", tables, manualScript)
	return b.Flush()
}

// manualID returns the id of a topic: two chapters may have topics of the same name, and
// names differ in case.
func manualID(chapter int, name string) string {
	return fmt.Sprintf("c%d-%s", chapter+1, html.EscapeString(strings.ReplaceAll(name, " ", "-")))
}

// hashed returns the source of a Content-Security-Policy that allows only this text.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
