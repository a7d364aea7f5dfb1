package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins"
	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/fabric/audit"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// reportCommand runs reports.
func reportCommand(p *session.Program) *cobra.Command {
	own := reportFlags()
	c := &cobra.Command{
		Use:   "report NAME | FILE.star | html [words and options of the report]",
		Short: "Report on the fabric: links, errors, paths, tables, as the tools of infiniband-diags do",
		Long: `Report on the fabric, as the tools of infiniband-diags do.

A report is a .star file that defines main(...), or the name of a shipped report
(--list): iblinkinfo, ibqueryerrors, ibtracert and others, which have the long options
of the tools with these names. Words and options behind the name belong to the report:
"fabsh report NAME --help" lists them. Session flags may stand there too, unless the
report has an option of that name. At the prompt the name alone runs the report. Exit
status: 1 if the report finds a fault, 3 if something did not answer.

html writes the results of "fabsh audit" as one page: findings by cause, the topology
with the links of each group of switches, heat maps, and the routing; with --baseline
also the changes, and with --over last trends of the values that earlier runs of the
job read. The page needs neither a network nor scripts to be read. Tables are those of
the file, or of a simulated fabric; on a live fabric they are read with --deep. The exit
status is that of audit, and 1 if the routing is wrong. Names and options of audits,
and all flags of audit, may follow; --out FILE is required. In scripts report() makes
the page.`,
		Example: `  fabsh report iblinkinfo --switches-only
  fabsh -o json report ibqueryerrors --over 10s
  fabsh report ibtracert leaf-1 "node-0007 HCA-1"
  fabsh report html --out fabric.html
  fabsh report html counters links --over 10s --out fabric.html
  fabsh report saquery PathRecord slid=5 dlid=12`,
		Annotations:        map[string]string{atPrompt: ""},
		DisableFlagParsing: true, // session flags are distinguishable only when the report is known
		ValidArgsFunction:  completeReport,
		RunE: func(c *cobra.Command, words []string) error {
			words, err := takeReport(p, words)
			if err != nil {
				return err
			}
			if len(words) == 0 && p.Line != nil {
				return writeDocs(p.Console.Out(), script.Reports.Shipped())
			}
			if len(words) == 0 {
				return errors.New(`report: missing report; give a name ("fabsh report --list" lists the shipped ones) or a .star file`)
			}
			name, words := words[0], words[1:]
			switch {
			case name == htmlReport:
				return reportPage(p, c, words)
			case name == "-h" || name == "--help":
				return c.Help()
			case lookup(own, name) != nil:
				return writeDocs(p.Console.Out(), script.Reports.Shipped())
			case strings.HasPrefix(name, "-"):
				return fmt.Errorf("report: %s: unknown option of fabsh report; options of the report follow its name", name)
			case strings.HasSuffix(name, ".star"):
				if err := CheckScript(c, name); err != nil {
					return err
				}
			default:
				if _, err := script.Reports.Locate(name); err != nil {
					return fmt.Errorf("report: %w", err)
				}
			}
			p.Line.Ran(name)
			if file := session.ThresholdFile(p.Settings); name == "ibqueryerrors" && file != "" && !slices.ContainsFunc(words, func(w string) bool {
				return strings.HasPrefix(w, "--threshold") || strings.HasPrefix(w, "--over") || w == "--help" || w == "-h"
			}) {
				words = append(slices.Clone(words), "--threshold-file="+file)
			}
			run := func(ctx context.Context, s *session.Session) error {
				return program.RunReport(ctx, s.Interpreter, name, words)
			}
			if slices.Contains(words, "--help") || slices.Contains(words, "-h") {
				return withoutFabric(p, "report", run)
			}
			return onFabric(p, "report", run)
		},
	}
	return withFlags(c, own)
}

// reportFlags declares the flag of the command, which takes the place of a report's
// name.
func reportFlags() *pflag.FlagSet {
	f := newFlags("report")
	f.Bool("list", false, "list the shipped reports")
	return f
}

// htmlReport is the report that is not a script: a page with the results of audits.
const htmlReport = "html"

// reportPage runs audits as the command audit does, and writes a page of their results.
func reportPage(p *session.Program, c *cobra.Command, words []string) error {
	command := commandLine(p.Settings, words)
	words, err := takeAudit(p, words)
	if err != nil {
		return err
	}
	o, err := parsePage(p.Settings, words)
	if err != nil {
		return err
	}
	if o.help {
		return c.Help()
	}
	p.Line.Ran(htmlReport)
	return onFabric(p, "report", func(ctx context.Context, s *session.Session) error {
		report, err := writePage(ctx, s, o, command)
		p.Line.Audited(report)
		var exit *lang.ExitError
		if p.Line != nil && (err == nil || errors.As(err, &exit)) {
			fmt.Fprintf(s.Console.Out(), "%s: a page for a browser\n", o.out)
		}
		return err
	})
}

// parsePage parses what follows report html, without session flags.
func parsePage(s *session.Settings, words []string) (o auditOptions, err error) {
	if slices.Contains(words, "-h") || slices.Contains(words, "--help") {
		return auditOptions{help: true}, nil
	}
	o, err = parseAudit(words)
	switch {
	case err != nil:
		return o, err
	case len(words) > 0 && words[0] == "ack" || o.list || o.eachPort:
		err = errors.New("report html: ack, --list and --each-port: not supported; use fabsh audit")
	case s.Given("format"):
		err = errors.New("report html: -o: not supported: the output is HTML; use fabsh audit")
	case o.out == "":
		err = errors.New("report html: missing --out FILE, such as --out fabric.html")
	default:
		if i, failed := os.Stat(filepath.Dir(o.out)); failed != nil || !i.IsDir() {
			err = fmt.Errorf("report html: --out %s: no such directory", o.out)
		}
	}
	return o, err
}

// repeated are the session flags that select the fabric and how it is read.
var repeated = []string{"fabric", "ca", "port", "sl", "sm-lid", "node-name-map", "timeout", "retries", "virtual-time", "state"}

// commandLine returns the command that makes the page again: words are those behind the
// name of the report, after the session flags were taken out.
func commandLine(s *session.Settings, words []string) string {
	line := []string{"fabsh"}
	for _, name := range repeated {
		f := s.Lookup(name)
		switch {
		case f != nil && f.Changed:
			line = append(line, "--"+name+"="+f.Value.String())
		case name == "fabric" && os.Getenv(session.FabricVariable) != "":
			line = append(line, "--fabric="+os.Getenv(session.FabricVariable))
		}
	}
	return strings.Join(quotedForShell(slices.Concat(line, []string{"report", htmlReport}, words)), " ")
}

// writePage writes a page of the results of audits, and returns their report. command
// is what makes the page again.
func writePage(ctx context.Context, s *session.Session, o auditOptions, command string) (*audit.Report, error) {
	results := new(auditResults)
	err := runAudit(ctx, s, o, results)
	var exit *lang.ExitError
	if len(results.reports) == 0 || err != nil && !errors.As(err, &exit) {
		return results.latest, err
	}
	status := lang.StatusClean
	if exit != nil {
		status = exit.Code
	}
	options := builtins.PageOptions{FailOn: o.failOn, Deep: o.deep, Commands: []string{command}}
	if o.baseline != "" {
		if options.Baseline, err = loadBaseline(ctx, s, o.baseline); err != nil {
			return results.latest, fmt.Errorf("--baseline: %w", err)
		}
	}
	page, routed, failed := builtins.ReportPage(ctx, s.Runtime, results.reports[0], options)
	if failed != nil {
		s.Console.Complain("report html: routing: " + s.Explain(failed))
	}
	if err := session.WriteNamed(ctx, o.out, page.Write); err != nil {
		return results.latest, fmt.Errorf("report html: --out: %w", err)
	}
	return results.latest, session.Exit(session.Worse(status, routed))
}

// quotedForShell returns words quoted for a Unix shell.
func quotedForShell(words []string) []string {
	list := make([]string, len(words))
	for i, w := range words {
		if list[i] = w; w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r))
		}) {
			list[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return list
}

// takeReport takes the session flags out of the words behind report: those that
// the report does not have.
func takeReport(p *session.Program, words []string) ([]string, error) {
	own := newFlags("report")
	isOption := func(string) bool { return false }
	if rest := withoutSession(p.Settings, words, own); len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		p := reportProgram(rest[0])
		isOption = func(flag string) bool { return hasOption(p, flag) }
	}
	return extractSession(p.Settings, words, own, isOption)
}

// reportProgram returns what a report declares in its text.
func reportProgram(name string) script.Program {
	path, err := script.Reports.Locate(name)
	if err != nil {
		return script.Program{}
	}
	return programAt(path)
}

// completeReport proposes words for report.
func completeReport(_ *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
	return check.Matching(reportWords(words), typed), cobra.ShellCompDirectiveDefault
}

// reportWords returns what may follow words: reports, then their options.
func reportWords(words []string) []string {
	switch {
	case len(words) > 0 && words[0] == htmlReport:
		return auditWords(words[1:])
	case len(words) > 0:
		return reportProgram(words[0]).Options
	}
	names := append(session.FlagNames(reportFlags()), htmlReport+"\tone page: findings, topology, heat maps, routing")
	for _, d := range script.Reports.Shipped() {
		names = append(names, d.Name+"\t"+d.Doc)
	}
	return names
}

// reportTool runs reports.
func reportTool() *agentTool {
	return &agentTool{
		name: "report", command: "report",
		doc: "Reports have the options of the tools that they are named after; help NAME lists them.",
		params: []mcp.Param{
			{Name: "name", Kind: mcp.KindText, Required: true, Doc: "the report: " + docsOf(script.Reports) + "; or a .star file below a directory of -I"},
			{Name: "words", Kind: mcp.KindTexts, Doc: "words behind the name, such as nodes: [\"leaf-1\", \"node-0007 HCA-1\"] of ibtracert"},
			optionsParam("the report, such as {\"switches_only\": true}"),
		},
		flags: reportFlags(), withheld: map[string]string{"list": listsNames},
		run: func(ctx context.Context, s *session.Session, a mcp.Arguments) error {
			names, err := clientScripts(ctx, s, script.Reports, []string{a.Text("name")})
			if err != nil {
				return err
			}
			words, err := a.Words("options", reportProgram(names[0]).Options)
			if err != nil {
				return fmt.Errorf("report %s: %w", a.Text("name"), err)
			}
			return program.RunReport(ctx, s.Interpreter, names[0], slices.Concat(words, []string{"--"}, a.Texts("words")))
		},
	}
}
