package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// AtPrompt returns the commands of root that also run at the prompt.
func AtPrompt(p *session.Program, root *cobra.Command) map[string]prompt.Command {
	audit, _, _ := root.Find([]string{"audit"})
	report, _, _ := root.Find([]string{"report"})
	return map[string]prompt.Command{
		"audit": {Words: auditWords, Run: func(ctx context.Context, s *session.Session, words []string, seen *tour.Seen) error {
			return promptAudit(ctx, p, s, audit, words, seen)
		}},
		"report": {Words: reportWords, Run: func(ctx context.Context, s *session.Session, words []string, seen *tour.Seen) error {
			return promptReport(ctx, p, s, report, words, seen)
		}},
	}
}

// promptAudit is the command audit at the prompt.
func promptAudit(ctx context.Context, p *session.Program, s *session.Session, c *cobra.Command, words []string, seen *tour.Seen) error {
	o, err := parseAudit(words)
	switch {
	case err != nil:
		return err
	case o.help:
		return c.Help()
	case o.list:
		return listAudits(p)
	case o.ack != nil:
		return acknowledge(ctx, s, o)
	case o.eachPort:
		return errors.New("audit: --each-port is not available at the prompt, whose session has one port; run fabsh audit --each-port")
	}
	results := new(auditResults)
	err = runAudit(ctx, s, o, results)
	seen.Report = results.latest
	if len(results.reports) == 0 {
		return err
	}
	return results.write(ctx, s.Console, s.Format, o.out)
}

// promptReport is the command report at the prompt.
func promptReport(ctx context.Context, p *session.Program, s *session.Session, c *cobra.Command, words []string, seen *tour.Seen) error {
	switch {
	case len(words) == 0 || lookup(reportFlags(), words[0]) != nil:
		return writeDocs(p.Console.Out(), script.Reports.Shipped())
	case words[0] == "-h" || words[0] == "--help":
		return c.Help()
	case words[0] != htmlReport:
		seen.Named = words[0]
		return program.RunReport(ctx, s.Interpreter, words[0], words[1:])
	}
	seen.Named = htmlReport
	o, err := parsePage(p.Settings, words[1:])
	if err != nil {
		return err
	}
	if o.help {
		return c.Help()
	}
	var exit *lang.ExitError
	seen.Report, err = writePage(ctx, s, o, commandLine(p.Settings, words[1:]))
	if err == nil || errors.As(err, &exit) {
		fmt.Fprintf(s.Console.Out(), "%s: a page for a browser\n", o.out)
	}
	return err
}
