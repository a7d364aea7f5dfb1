package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fabsh/builtins"
	"fabsh/builtins/lang"
)

const reportHelp = `Report on the fabric, as the tools of infiniband-diags do.

A report is a .star file that defines main(...), or one that is shipped, by name
(--list): iblinkinfo, ibqueryerrors, ibtracert and others, which have the long
options of the tools of these names. What follows the name belongs to the report:
"fabsh report NAME --help" tells its words and options; session flags that it has
not may stand there too. At the prompt the name alone runs it. Exit status: 1 if
the report says that something is wrong, 3 if something did not answer.

Usage:
  fabsh [flags] report NAME | FILE.star [words and options of the report]
  fabsh report --list

Examples:
  fabsh report iblinkinfo --switches-only
  fabsh -o json report ibqueryerrors --over 10s
  fabsh report ibtracert leaf-1 "node-0007 HCA-1"
  fabsh report saquery PathRecord slid=5 dlid=12
`

// reportCommand parses its own flags by itself, for all others are the report's.
func (a *app) reportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:                "report NAME | FILE.star [words and options] [--list]",
		Short:              "Report on the fabric: links, errors, paths, tables, as the tools of infiniband-diags do",
		DisableFlagParsing: true,
		ValidArgsFunction:  completeReport,
		RunE: func(_ *cobra.Command, words []string) error {
			words, err := a.takeReport(words)
			if err != nil {
				return err
			}
			if len(words) == 0 {
				return errors.New(`report: which one? "fabsh report --list" lists the shipped ones; or name a .star file`)
			}
			name, words := words[0], words[1:]
			switch {
			case name == "-h" || name == "--help":
				_, err := io.WriteString(a.console.Out(), reportHelp)
				return err
			case name == "--list":
				return a.listShipped(builtins.ShippedReports())
			case strings.HasPrefix(name, "-"):
				return fmt.Errorf("report: %s stands before the name of the report: write it behind", name)
			case strings.HasSuffix(name, ".star"):
				if err := checkScript(name); err != nil {
					return err
				}
			default:
				if _, err := builtins.ReportPath(name); err != nil {
					return fmt.Errorf("report: %w", err)
				}
			}
			run := func(ctx context.Context, s *session) error { return s.RunReport(ctx, name, words) }
			if slices.Contains(words, "--help") || slices.Contains(words, "-h") {
				return a.withoutFabric("report", run)
			}
			return a.onFabric("report", run)
		},
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), reportHelp) })
	return c
}

// takeReport takes the session flags out of the words behind report: those that
// the report does not have.
func (a *app) takeReport(words []string) ([]string, error) {
	none := func(string) bool { return false }
	plain, _ := a.takeSession(words, none, func(string, string) error { return nil })
	own := none
	if len(plain) > 0 && !strings.HasPrefix(plain[0], "-") {
		p := reportProgram(plain[0])
		own = func(flag string) bool { return !p.Entry || slices.Contains(p.Options, flag) }
	}
	return a.takeSession(words, own, a.flags.Set)
}

// reportProgram is what a report says of itself.
func reportProgram(name string) builtins.Program {
	path, err := builtins.ReportPath(name)
	if err != nil {
		return builtins.Program{}
	}
	return programAt(path)
}

// completeReport proposes reports, then their options.
func completeReport(_ *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return matching(reportProgram(words[0]).Options, typed), cobra.ShellCompDirectiveDefault
	}
	names := []string{"--list"}
	for _, d := range builtins.ShippedReports() {
		names = append(names, d.Name+"\t"+d.Doc)
	}
	return matching(names, typed), cobra.ShellCompDirectiveDefault
}

// listShipped lists shipped scripts with the first lines of their docstrings.
func (a *app) listShipped(list []builtins.ShippedDoc) error {
	width := 0
	for _, d := range list {
		width = max(width, len(d.Name))
	}
	for _, d := range list {
		if _, err := fmt.Fprintf(a.console.Out(), "%-*s  %s\n", width, d.Name, d.Doc); err != nil {
			return err
		}
	}
	return nil
}

// runReport runs a report at the prompt: words are what was typed behind its name.
// That it found something ends nothing here.
func (r *repl) runReport(ctx context.Context, name, words string) error {
	args, err := splitWords(words)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var text bytes.Buffer
	r.app.console.divert(&text)
	err = lang.Protect(name, func() error { return r.RunReport(ctx, name, args) })
	r.app.console.divert(nil)
	if paged := r.app.page(text.String()); paged != nil && err == nil {
		err = paged
	}
	var exit *lang.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// splitWords cuts a line into words, as Unix shells do: blanks part them, but
// not between quotes.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
