package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

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
	c := reportCapability(p).asCommand(p)
	addSubcommand(c, pageCommand(p))
	return c
}

// reportCapability runs reports.
func reportCapability(p *session.Program) *capability[*reportOptions] {
	return &capability[*reportOptions]{command: &cobra.Command{
		Use:   "report NAME | FILE.star [words and options of the report]",
		Short: "Report on the fabric: links, errors, paths, tables, as the tools of infiniband-diags do",
		Long: `Report on the fabric, as the tools of infiniband-diags do.

A report is a .star file that defines main(...), or the name of a shipped report
(--list): iblinkinfo, ibqueryerrors, ibtracert and others. Words and options behind the
name belong to the report: "fabsh report NAME --help" lists those long options of the
tool of this name that it has. Session flags may stand there too, also as the tools
spell them (--Ca, --sm_port), unless the report has an option of that name. At the
prompt the name alone runs the report. Exit status: 1 if the report finds a fault, 3 if
something did not answer.

"fabsh report html" writes the results of audits as one page for a browser.`,
		Example: `  fabsh report iblinkinfo --switches-only
  fabsh -o json report ibqueryerrors --over 10s
  fabsh report ibtracert leaf-1 "node-0007 HCA-1"
  fabsh report html --out fabric.html
  fabsh report saquery PathRecord slid=5 dlid=12`,
		Annotations:       map[string]string{atPrompt: ""},
		ValidArgsFunction: completeReport,
	},
		options: fresh[reportOptions],
		line: func(o *reportOptions, c *cobra.Command, words []string) error {
			if len(words) == 0 && p.Line != nil {
				return c.Flags().Set("list", "true")
			}
			return o.take(p, c, words)
		},
		scripts: script.Reports, missing: "report",
		run: func(ctx context.Context, s *session.Session, o *reportOptions) (starlark.Value, error) {
			return nil, program.RunReport(ctx, s.Interpreter, o.name, o.words)
		},
		tool: "report",
		doc:  "For \"run iblinkinfo\". Reports have the options of the tools that they are named after; help NAME lists them.",
		words: []mcp.Param{
			{Name: "name", Kind: mcp.KindText, Required: true, Doc: "the report: " + docsOf(script.Reports) + "; or a .star file below a directory of -I"},
			{Name: "words", Kind: mcp.KindTexts, Doc: "words behind the name, such as nodes: [\"leaf-1\", \"node-0007 HCA-1\"] of ibtracert"},
			optionsParam("the report, such as {\"switches_only\": true}"),
		},
		take: func(ctx context.Context, s *session.Session, a mcp.Arguments, o *reportOptions) error {
			name, words, err := clientScript(ctx, s, a, script.Reports, a.Text("name"))
			o.name, o.words = name, slices.Concat(words, []string{"--"}, a.Texts("words"))
			return err
		},
	}
}

// reportOptions are the options of report on the command line.
type reportOptions struct {
	name  string   // a .star file, or the name of a shipped report
	words []string // of the report
}

// params declares the parameters.
func (o *reportOptions) params() params {
	return params{{name: "list", to: new(bool), doc: "list the shipped reports", withheld: listsNames}}
}

// take sets what the command line has besides the flags of the command.
func (o *reportOptions) take(p *session.Program, c *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	o.name, o.words = words[0], scriptWords(c, words)
	p.Line.Ran(o.name)
	if file := session.ThresholdFile(p.Settings); o.name == "ibqueryerrors" && file != "" && !slices.ContainsFunc(o.words, func(w string) bool {
		return strings.HasPrefix(w, "--threshold") || strings.HasPrefix(w, "--over") || w == "--help"
	}) {
		o.words = append([]string{"--threshold-file=" + file}, o.words...)
	}
	return nil
}

// infinibandDiags are options of the tools of infiniband-diags that no report has (rdma-core
// infiniband-diags/ibdiag_common.c, and the tools).
var infinibandDiags = toolOptions{
	session: map[string]string{"sm-port": "sm-lid", "outstanding-smps": "window"},
	letters: map[string]map[string]string{"saquery": { // rdma-core infiniband-diags/saquery.c, query_cmds and opts
		"-p": "PathRecord", "-N": "NodeRecord", "-x": "LinkRecord", "-c": "ClassPortInfo", "-S": "ServiceRecord",
		"-g": "MCMemberRecord", "-m": "MCMemberRecord", "-D": "--list",
		"-L": "--columns=lid", "-l": "--columns=lid", "-G": "--columns=port_guid", "-O": "--columns=node_string", "-U": "--columns=node_string",
	}},
	remedies: map[string]string{
		"all":        "unsupported; --hops N lists the links of all nodes within N hops",
		"config":     "unsupported; every session reads /etc/infiniband-diags/ibdiag.conf, and flags take precedence",
		"debug":      "unsupported; use --verbose, or --record FILE for all MADs",
		"diff":       "unsupported; use fabsh diff FILE",
		"diffcheck":  "unsupported; use fabsh diff FILE, which compares everything",
		"direct":     "unsupported; omit it: words such as 0,1,3 are directed routes",
		"errors":     "unsupported; errors are always shown",
		"force":      "unsupported; a switch that does not answer ends the trace",
		"gndn":       "unsupported; it is obsolete",
		"guid":       "unsupported; omit it: words such as 0x0002c90300001234 are GUIDs",
		"lid":        "unsupported; omit it: numbers are LIDs",
		"line":       "unsupported; omit it: each link is one row",
		"load-cache": "unsupported; use -F file:FILE, before the word report or behind it",
		"loop-ports": "unsupported; omit it: without --all-ports each port is shown",
		"m-key":      "unsupported: other users see command lines; use --keys FILE",
		"no-info":    "unsupported; use --columns NAMES",
		"show-keys":  "unsupported; keys are never shown",
		"skip-sl":    "unsupported; omit it: service levels are read only where they are needed",
		"smkey":      "unsupported: other users see command lines; use --keys FILE",
		"version":    "unsupported; use fabsh version",
	},
}

// pageReport is the report that is not a script: a page with the results of audits.
const pageReport = "html"

// pageCommand runs audits as the command audit does, and writes a page of their results.
func pageCommand(p *session.Program) *cobra.Command {
	o := newAuditOptions()
	c := &cobra.Command{
		Use:   pageReport + " [NAME | FILE.star] --out FILE [audits' options]",
		Short: "Write the results of audits as a page: findings, topology, heat maps, routing",
		Long: `Write the results of "fabsh audit" as one page: findings by cause, the topology
with the links of each group of switches, heat maps, and the routing; with --baseline
also the changes, and with --over last trends of the values that earlier runs of the
job read. The page needs neither a network nor scripts to be read. Tables are those of
the file, or of a simulated fabric; on a live fabric they are read with --deep. The exit
status is that of audit, and 1 if the routing is wrong. Names and options of audits may
follow; --out FILE is required. In scripts report() makes the page.`,
		Example: `  fabsh report html --out fabric.html
  fabsh report html counters links --over 10s --out fabric.html`,
		ValidArgsFunction: completeAudit,
		RunE: func(c *cobra.Command, words []string) error {
			if err := cmp.Or(o.take(c, words), o.checkPage(p.Settings)); err != nil {
				return err
			}
			command := commandLine(p.Settings, slices.Concat(words, ownWords(c)))
			p.Line.Ran(pageReport)
			return onFabric(p, func(ctx context.Context, s *session.Session) error {
				report, err := writePage(ctx, s, *o, command)
				p.Line.Audited(report)
				var exit *lang.ExitError
				if p.Line != nil && (err == nil || errors.As(err, &exit)) {
					fmt.Fprintf(s.Console.Out(), "%s: a page for a browser\n", o.out)
				}
				return err
			})
		},
	}
	o.pageParams().addTo(c)
	return c
}

// pageParams declares the parameters of a page: those of audit that make sense there.
func (o *auditOptions) pageParams() params {
	return slices.DeleteFunc(o.params(), func(p param) bool {
		return slices.Contains([]string{"list", "each-port", "for", "resume", "drain", "hosts"}, p.name)
	})
}

// checkPage finds contradictions before anything is opened.
func (o *auditOptions) checkPage(s *session.Settings) error {
	switch {
	case s.Given("format"):
		return errors.New("-o: not supported: the output is HTML; use fabsh audit")
	case o.out == "":
		return errors.New("missing --out FILE, such as --out fabric.html")
	}
	if i, err := os.Stat(filepath.Dir(o.out)); err != nil || !i.IsDir() {
		return fmt.Errorf("--out %s: no such directory", o.out)
	}
	return nil
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
	return strings.Join(quotedForShell(slices.Concat(line, []string{"report", pageReport}, words)), " ")
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
		return results.latest, fmt.Errorf("--out: %w", err)
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

// completeReport proposes reports.
func completeReport(_ *cobra.Command, words []string, typed string) (list []string, _ cobra.ShellCompDirective) {
	if len(words) == 0 {
		list = docWords(script.Reports)
	}
	return check.Matching(list, typed), cobra.ShellCompDirectiveDefault
}
