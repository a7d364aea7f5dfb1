package shell

import (
	"context"
	"errors"
	"fmt"
	"io"

	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// promptCommands are the commands that run at the prompt too.
func promptCommands(p *session.Program) map[string]prompt.Command {
	return map[string]prompt.Command{
		"audit": {Help: auditHelp, Words: auditWords, Run: func(ctx context.Context, s *session.Session, words []string, seen *tour.Seen) error {
			return promptAudit(ctx, p, s, words, seen)
		}},
		"report": {Help: reportHelp, Words: reportWords, Run: func(ctx context.Context, s *session.Session, words []string, seen *tour.Seen) error {
			return promptReport(ctx, p, s, words, seen)
		}},
	}
}

// promptAudit is the command audit at the prompt.
func promptAudit(ctx context.Context, p *session.Program, s *session.Session, words []string, seen *tour.Seen) error {
	o, err := parseAudit(words)
	switch {
	case err != nil:
		return err
	case o.help:
		_, err := io.WriteString(s.Console.Out(), auditHelp)
		return err
	case o.list:
		return listAudits(p)
	case o.ack != nil:
		return acknowledge(ctx, s, o)
	case o.eachPort:
		return errors.New("audit: --each-port is for the command line: this session has one port")
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
func promptReport(ctx context.Context, p *session.Program, s *session.Session, words []string, seen *tour.Seen) error {
	switch {
	case len(words) == 0 || words[0] == "--list":
		return listShipped(p, script.Reports.Shipped())
	case words[0] == "-h" || words[0] == "--help":
		_, err := io.WriteString(s.Console.Out(), reportHelp)
		return err
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
		_, err := io.WriteString(s.Console.Out(), reportHelp)
		return err
	}
	var exit *lang.ExitError
	seen.Report, err = writePage(ctx, s, o, commandLine(p.Settings, words[1:]))
	if err == nil || errors.As(err, &exit) {
		fmt.Fprintf(s.Console.Out(), "%s: a page for a browser\n", o.out)
	}
	return err
}
