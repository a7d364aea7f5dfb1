package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"fabsh/builtins"
	"fabsh/builtins/help"
	"fabsh/builtins/script"
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
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, words []string) error {
			switch {
			case stubs != "" && (page || len(words) > 0):
				return errors.New("doc: --stubs writes one file; leave out --html and the topic")
			case stubs != "":
				return writeStubs(p, stubs)
			case page && len(words) > 0:
				return fmt.Errorf("doc: unexpected argument %q; --html writes all topics as one page", words[0])
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
	return withoutFabric(p, "doc", func(ctx context.Context, s *session.Session) error {
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
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var b strings.Builder
			b.WriteString("Each runs by its name: \"fabsh -F sim @examples//links.star\"; \"fabsh NAME --help\" lists its options.\n")
			WritePrograms(&b)
			_, err := io.WriteString(p.Console.Out(), b.String())
			return err
		},
	}
}
