package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/hosts"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/umad"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

const auditDoc = `Audit the fabric: report what is wrong, and what could not be judged.

An audit is a .star file that defines audit(fabric, *, ...), or the name of a shipped
audit (--list). Without names the standard set runs. Options are passed to every audit
that accepts them: "fabsh audit NAME --help" lists them. Findings on a live fabric
are read again after 10 s before they are reported. Exit status: 0 clean; 1 findings;
2 usage or script error; 3 fabric or host error (no answer, no device), or an audit
that was named could judge nothing.

Each finding has an id, CHECK:GUID/PORT, which is the same in the next run. "fabsh audit
ack ID" acknowledges it: it is not reported for 30 days (fabsh audit ack --help). -v
shows more of each finding.

--over DURATION compares counters over that time. --over last compares them with
those that the previous run of the same job read: it does not wait, and covers the
hours that are needed to judge bit errors. Two jobs that run at the same time need two
names (--job). --over FILE compares with the counters of an earlier snapshot
(snapshot --all), ibdiagnet2.db_csv, or directory or archive with one: those of the
fabric, or with -F file:FILE those of a later file.

The audit host judges the ports of this host instead, without a fabric, a subnet
manager or root, for health checks before jobs: fabsh audit host --help.`

func auditCommand(p *session.Program) *cobra.Command {
	c := auditCapability(p).asCommand(p)
	addSubcommand(c, ackCommand(p))
	return c
}

// auditCapability audits the fabric, or this host.
func auditCapability(p *session.Program) *capability[*auditOptions] {
	return &capability[*auditOptions]{command: &cobra.Command{
		Use:   "audit [NAME | FILE.star] [audits' options]",
		Short: "Audit the fabric: report what is wrong, and what could not be judged",
		Long:  auditDoc + "\n\n" + nodesDoc + "\n" + hosts.HealthDoc(),
		Example: `  fabsh audit
  fabsh -o json audit links mine.star --baseline golden.fab
  fabsh audit ack link.width:leaf-3/7 --reason "cable ordered"
  fabsh audit host --expect 8xNDR
  fabsh -F file:today.fab audit counters --over yesterday.fab
  fabsh -q -o json --deadline 4m audit --over last --out /var/lib/fabsh/audit.json
  fabsh -q -o prom audit counters --over last --out /var/lib/node_exporter/fabsh.prom
  sinfo -a -h -N -o '%N %E' | fabsh audit -o nodes --for slurm --resume - | sh`,
		Annotations:       map[string]string{atPrompt: ""},
		ValidArgsFunction: completeAudit,
	},
		options: newAuditOptions,
		line:    (*auditOptions).take,
		start: func(o *auditOptions, c *cobra.Command, _ func(context.Context, *session.Session) error) error {
			switch {
			case wantsHelp(c):
				return withoutFabric(p, func(ctx context.Context, s *session.Session) error {
					return runAudit(ctx, s, *o, new(auditResults))
				})
			case wantsFlag(c, "list"):
				return listAudits(p)
			}
			host, _ := hostAudits(o.words)
			if err := o.checkNodes(p); err != nil {
				return err
			}
			if o.eachPort && host == nil {
				return auditEachPort(p, *o)
			}
			o.verbose = p.Settings.Verbose > 0
			limit, results := p.StartTime(), new(auditResults)
			var err error
			if host != nil {
				err = auditHost(p, *o, limit, results)
			} else {
				err = execute(p, task{time: limit, run: func(ctx context.Context, s *session.Session) error {
					return runAudit(ctx, s, *o, results)
				}})
			}
			p.Line.Audited(results.latest)
			return results.writeAfter(p, limit, *o, err)
		},
		run: func(ctx context.Context, s *session.Session, o *auditOptions) (starlark.Value, error) {
			results := new(auditResults)
			err := runAudit(ctx, s, *o, results)
			if results.latest == nil {
				return nil, err
			}
			return audits.WrapReport(results.latest, s.Format, false), err
		},
		tool: "audit",
		doc:  "For \"is anything wrong?\", \"are there bad links or errors?\", \"why is node-0012 slow?\" (with node), \"is the fabric healthy?\" Findings on a live fabric are read again after 10 s before they are reported. coverage has requests without answers, not_judged what could not be judged. Option over: \"10s\" compares counters over that time, \"last\" with those of the previous call of the same audits.",
		words: []mcp.Param{
			{Name: "audits", Kind: mcp.KindTexts, Doc: "names of audits (default: the standard set): " + strings.Replace(docsOf(script.Audits), "host, ", "", 1) + "; or .star files below a directory of -I"},
			optionsParam("audits, such as {\"over\": \"10s\"}; help NAME lists them"),
		},
		take: agentAudits(),
	}
}

// auditOptions are the options behind audit on the command line.
type auditOptions struct {
	words []string // names of audits, and their options

	deep, eachPort, verbose bool

	baseline, cache, out, job, subnet string
	node                              string // only findings of it
	failOn                            audit.Severity
	nodes                             nodesOptions
	rail                              string // with --each-port: the port in use

	kept func(job string) *audit.State // state in memory; nil: in files
}

// newAuditOptions returns the defaults.
func newAuditOptions() *auditOptions { return &auditOptions{failOn: audit.Warning} }

// params declares the parameters.
func (o *auditOptions) params() params {
	return append(params{
		{name: "list", to: new(bool), doc: "list the shipped audits", withheld: listsNames},
		{name: "deep", to: &o.deep, doc: "read whole tables too: in the named audits, or in all"},
		{name: "node", to: &o.node, doc: "report only findings of the node or host `NAME`, and of its links"},
		{name: "load-cache", to: &o.cache, file: true, doc: "do not sweep: read the fabric from `FILE`, a snapshot or the cache of ibnetdiscover, as long as its nodes keep their LIDs; for audits of counters", withheld: "each call sweeps"},
		{name: "baseline", to: &o.baseline, file: true, doc: "report only findings that `FILE`, a snapshot or topology, does not have"},
		{name: "fail-on", values: audit.Severities, doc: "exit with 1 if a finding has this `SEVERITY` or a higher one: " + strings.Join(audit.Severities, ", ") + " (default: warning)", to: func(text string) (err error) {
			o.failOn, err = audit.ParseSeverity(text)
			return err
		}},
		{name: "each-port", to: &o.eachPort, doc: "audit from each active InfiniBand port of the host", withheld: "it uses other ports of the host"},
		{name: "out", to: &o.out, doc: "write the report to `FILE`, completely or not at all, instead of standard output", withheld: writesFiles},
		{name: "job", withheld: keepsState, doc: "keep counters and findings for the next run under `NAME` (default: named after the audits; from a terminal nothing is kept)", to: func(name string) error {
			o.job = name
			return audit.CheckJob(name)
		}},
		subnetParam(&o.subnet),
	}, o.nodes.params()...)
}

// subnetParam is the parameter that names the subnet of acknowledgements and state.
func subnetParam(subnet *string) param {
	return param{name: "subnet", withheld: keepsState, doc: "keep acknowledgements and state under `NAME` (default: the GID prefix of the subnet; for the default prefix, its subnet manager)", to: func(name string) error {
		*subnet = name
		return fabric.CheckSubnetName(name)
	}}
}

// take sets what the command line has besides the flags of the command.
func (o *auditOptions) take(c *cobra.Command, words []string) error {
	o.words = append(words, optionWords(c.Flags())...)
	if wantsHelp(c) {
		o.words = append(o.words, "--help")
	}
	return nil
}

// auditsIn returns the audits that words name, or those of the standard set.
func auditsIn(words parsedWords) (list []script.Program) {
	free := words.free()
	for _, d := range script.Audits.Shipped() {
		if slices.Contains(free, d.Name) {
			list = append(list, auditProgram(d.Name))
		}
	}
	for _, w := range words.plain {
		if strings.HasSuffix(w, ".star") {
			list = append(list, auditProgram(w))
		}
	}
	if list == nil {
		for _, d := range script.Audits.Shipped() {
			if d.InSet(words.flags["deep"] != "") {
				list = append(list, auditProgram(d.Name))
			}
		}
	}
	return list
}

// auditProgram returns what an audit declares in its text, except parameters that the command fills.
func auditProgram(name string) script.Program {
	p := programIn(script.Audits, name)
	p.Options = audits.AuditOptions(p)
	return p
}

// auditResults are what runs of audits leave until the program ends.
type auditResults struct {
	reports []*audit.Report // not yet written
	rails   []audits.Rail   // from which audits ran, with --each-port
	latest  *audit.Report   // of the latest run; nil: none ran
	missing []string        // why rails have no report, in words

	baseline *fabric.Fabric
	unknown  bool // with -o nodes: a host is unknown
	npd      *int // the exit status that node-problem-detector wants; nil: the status of the audits
}

// runAudit runs audits and reports what they found. Findings are an error with the exit
// status.
func runAudit(ctx context.Context, s *session.Session, o auditOptions, results *auditResults) error {
	all, err := audits.LoadAudits(ctx, s.Interpreter, o.words, session.FlagNames(new(auditOptions).params().flags()), o.deep)
	if err != nil {
		return err
	}
	if all.Help != "" {
		_, err := io.WriteString(s.Console.Out(), all.Help)
		return err
	}
	options := audits.RunOptions{Subnet: o.subnet, Job: o.job, Rails: results.rails, AllPorts: o.eachPort}
	// A simulated fabric starts from the same state each time.
	options.NoPast = o.job == "" && s.InProcess()
	if !s.Quiet {
		options.Expected = func(n int) { printExpected(s, n) }
	}
	if o.job == "" {
		options.Job, options.ReadOnly = all.Job, s.KeepsNothing() || s.StdinIsTerminal || s.Console.OutIsTerminal()
	}
	if o.baseline != "" {
		if options.Baseline, err = loadBaseline(ctx, s, o.baseline); err != nil {
			return fmt.Errorf("--baseline: %w", err)
		}
		results.baseline = options.Baseline
	}
	if o.cache != "" {
		if options.Known, err = loadBaseline(ctx, s, o.cache); err != nil {
			return fmt.Errorf("--load-cache: %w", err)
		}
	}
	writes := !options.ReadOnly
	if o.kept != nil {
		options.Kept, options.ReadOnly = o.kept(options.Job), false
	}
	var held *format.FileLock
	defer func() { held.Release() }()
	options.Begin = func(subnet fabric.Subnet) (acks audit.Acks, err error) {
		results.rails = append(results.rails, audits.Rail{Port: o.rail, Subnet: subnet})
		if writes {
			if held, err = lockRuns(s, subnet, options.Job); err != nil {
				return nil, err
			}
		}
		return audits.RunAcks(s.Runtime, s.StateDir, subnet), nil
	}
	if writes {
		options.Counted = func(subnet fabric.Subnet, counts map[string]float64) error {
			return audit.RecordCounts(audit.AckFile(s.StateDir, subnet), counts)
		}
	}
	report, err := all.Run(ctx, s.Interpreter, options)
	if errors.Is(err, format.ErrLockHeld) {
		return &session.HostError{Err: err}
	}
	if err != nil {
		return err
	}
	if o.node != "" {
		if err := onlyOf(report, o.node); err != nil {
			return err
		}
	}
	report.Rail = o.rail
	results.latest = report
	addFindings(ctx, s, options.Job, report, options.Baseline != nil)
	if o.out == "" && s.Format == lang.FormatText && !o.nodes.on {
		if err := s.Show(audits.WrapReport(report, s.Format, o.verbose)); err != nil {
			return err
		}
	} else {
		results.reports = append(results.reports, report)
	}
	for _, f := range report.Failures {
		if !f.Skipped {
			s.Console.Complain(fmt.Sprintf("audit %s: %s", f.Audit, s.Explain(f.Err)))
		}
	}
	return session.Exit(audits.RunStatus(report, o.failOn))
}

// onlyOf removes the findings that are not of a node or host, or of its links.
func onlyOf(report *audit.Report, name string) error {
	f := report.Model
	if f == nil {
		return &session.HostError{Err: errors.New("--node: the fabric is unknown")}
	}
	var nodes []*fabric.Node
	n, err := f.FindNode(name)
	var several *fabric.NameError
	switch {
	case err == nil:
		nodes = append(nodes, n)
	case errors.As(err, &several) && len(several.Nodes) > 0:
		nodes = several.Nodes
	default:
		return fmt.Errorf("--node: %w", err)
	}
	guids := map[mad.GUID]bool{}
	for _, n := range nodes {
		guids[n.GUID()] = true
	}
	isOf := func(s audit.Subject) bool {
		return slices.ContainsFunc(s.Ends, func(e audit.End) bool {
			if guids[e.Node] {
				return true
			}
			for _, far := range f.NodeByGUID(e.Node) {
				if e.Num <= 0 {
					continue
				}
				// a finding of a link may be at its other end
				if p := far.Port(e.Num); p != nil && p.Peer() != nil && guids[p.Peer().Node().GUID()] {
					return true
				}
			}
			return false
		})
	}
	all := len(report.Findings)
	report.Findings = slices.DeleteFunc(slices.Clone(report.Findings), func(x audit.Finding) bool {
		return !isOf(x.Subject) && !slices.ContainsFunc(x.Members, isOf)
	})
	if left := all - len(report.Findings); left > 0 {
		report.Note("only of %s: %s of other nodes left out", name, plural.Count(left, "finding", "findings"))
	}
	return nil
}

// loadBaseline reads a fabric from a file that the session may read: the one to compare with, or
// the one to use instead of a sweep.
func loadBaseline(ctx context.Context, s *session.Session, path string) (*fabric.Fabric, error) {
	f, err := s.Files.OpenNamed(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return format.Load(f, path, s.Included(ctx))
}

// manyDatagrams is the number of datagrams from which a run announces them.
const manyDatagrams = 1000

// printExpected reports how many datagrams the audits will send.
func printExpected(s *session.Session, n int) {
	if n >= manyDatagrams {
		fmt.Fprintf(s.Console.Err(), "the audits will send about %d datagrams in addition to the sweep\n", n)
	}
}

// write writes the reports that have not been shown, to stdout or the file of --out.
func (r *auditResults) write(ctx context.Context, p *session.Program, o *auditOptions) error {
	if len(r.reports) == 0 {
		return nil
	}
	if o.nodes.on {
		return r.writeNodes(ctx, p, o)
	}
	write := func(w io.Writer) error {
		return audits.WriteReportMetrics(w, r.reports, p.Settings.Output(), viewOf(p.Settings, p.Console.Err()))
	}
	if o.out == "" {
		return write(p.Console.Out())
	}
	if err := session.WriteNamed(ctx, o.out, write); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// writeAfter writes the reports at the end of all sessions, which ended with err.
func (r *auditResults) writeAfter(p *session.Program, limit session.TimeLimit, o auditOptions, err error) error {
	var exit *lang.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	status := p.Fail(err)
	err = p.WriteAfter(limit, func(ctx context.Context) error { return r.write(ctx, p, &o) })
	if err == nil && r.npd != nil {
		return session.Exit(*r.npd)
	}
	if r.unknown {
		status = session.Worse(status, lang.StatusFabric)
	}
	return session.Exit(session.Worse(status, p.Fail(err)))
}

func listAudits(p *session.Program) error {
	list := script.Audits.Shipped()
	for i := range list {
		switch {
		case list[i].Deep:
			list[i].Doc += " (--deep)"
		case list[i].Host:
			list[i].Doc += " (alone)"
		case list[i].Named:
			list[i].Doc += " (only if named)"
		}
	}
	return writeDocs(p.Console.Out(), list)
}

// completeAudit proposes audits.
func completeAudit(_ *cobra.Command, words []string, typed string) (list []string, _ cobra.ShellCompDirective) {
	for _, d := range script.Audits.Shipped() {
		if !slices.Contains(words, d.Name) {
			list = append(list, d.Name+"\t"+d.Doc)
		}
	}
	return check.Matching(list, typed), cobra.ShellCompDirectiveDefault
}

// auditEachPort audits from each active InfiniBand port of the host.
func auditEachPort(p *session.Program, o auditOptions) error {
	if p.Line != nil {
		return errors.New("--each-port: not available at the prompt, whose session has one port; run `fabsh audit --each-port` in a shell")
	}
	if spec, _ := p.Settings.FabricSpec(); spec != "umad" || p.Settings.CA != "" || p.Settings.Port.IsSet {
		return errors.New("--each-port excludes -F, -C and -P: it is for all devices of the host")
	}
	ports, err := umad.ActivePorts(nil)
	if err == nil && len(ports) == 0 {
		err = errors.New("no active InfiniBand port on this host")
	}
	if err != nil {
		return &session.HostError{Err: err}
	}
	specs := make([]string, len(ports))
	for i, port := range ports {
		specs[i] = "umad:" + port
	}
	return auditRails(p, o, ports, specs)
}

// auditRails audits from each of the ports, which stand in for -F.
func auditRails(p *session.Program, o auditOptions, ports, specs []string) error {
	worst, limit, results := lang.StatusClean, p.StartTime(), new(auditResults)
	for i, port := range ports {
		settings := *p.Settings
		settings.Fabric = specs[i]
		o.rail = port
		if late := context.Cause(limit.Context()); late != nil { // the rails before took all of the time
			worst = session.Worse(worst, p.Fail(&session.HostError{Err: fmt.Errorf("port %s: not audited: %w", port, late)}))
			results.missing = append(results.missing, fmt.Sprintf("port %s: not audited: %v", port, late))
			continue
		}
		reports := len(results.reports)
		err := execute(p.With(settings), task{time: limit, run: func(ctx context.Context, s *session.Session) error {
			return runAudit(ctx, s, o, results)
		}})
		status := lang.StatusClean
		switch exit := (*lang.ExitError)(nil); {
		case errors.As(err, &exit):
			status = exit.Code
		case err != nil:
			status = p.Fail(fmt.Errorf("port %s: %w", port, err)) // the other rails are audited nevertheless
		}
		if len(results.reports) == reports {
			results.missing = append(results.missing, fmt.Sprintf("port %s: not audited", port))
		}
		worst = session.Worse(worst, status)
		if status == lang.StatusInterrupted {
			break
		}
	}
	return results.writeAfter(p, limit, o, session.Exit(worst))
}

// hostAudits returns the audits among words that judge this host instead of a fabric, and the
// others.
func hostAudits(words []string) (host, others []string) {
	for _, w := range words {
		path, err := script.Audits.Locate(w)
		if strings.HasPrefix(w, "-") || err != nil {
			continue
		}
		src := ""
		if strings.HasSuffix(w, ".star") {
			src = sourceAt(path)
		} else {
			src, _ = script.Audits.Source(w)
		}
		if script.JudgesHost(src) {
			host = append(host, w)
		} else {
			others = append(others, w)
		}
	}
	return host, others
}

// auditHost runs audits that judge this host: it opens no fabric.
func auditHost(p *session.Program, o auditOptions, limit session.TimeLimit, results *auditResults) error {
	host, others := hostAudits(o.words)
	if len(others) > 0 {
		return fmt.Errorf("%s: judges this host, without a fabric; run %s in a command of its own", host[0], strings.Join(others, ", "))
	}
	if err := checkHost(p, host[0]); err != nil {
		return err
	}
	if o.baseline != "" || o.cache != "" || o.eachPort || o.nodes.on {
		return fmt.Errorf("%s: --baseline, --load-cache, --each-port and -o nodes are not supported: this audit judges all ports of this host, without a fabric", host[0])
	}
	open := func(ctx context.Context) (*session.Session, error) {
		return session.OpenHost(ctx, p, session.NVLinkDomain)
	}
	return execute(p, task{time: limit, open: open, run: func(ctx context.Context, s *session.Session) error {
		return runAudit(ctx, s, o, results)
	}})
}

// checkHost returns an error if a command on this host cannot run with these settings.
func checkHost(p *session.Program, name string) error {
	s := p.Settings
	switch {
	case p.Line != nil:
		return fmt.Errorf("%s: not available at the prompt, whose session has a fabric; run `fabsh %[1]s` in a shell", name)
	case s.Fabric != "", s.CA != "", s.Port.IsSet, s.Given("record"):
		return fmt.Errorf("%s: -F, -C, -P and --record are not supported: it is about all ports of this host, without a fabric", name)
	}
	return nil
}

// isElsewhere reports whether check is a check of this host, and the session is about a fabric,
// or the other way round.
func isElsewhere(s *session.Session, check string) bool {
	i := slices.IndexFunc(help.Checks(), func(c help.Check) bool { return c.Name == check })
	if i < 0 {
		return false
	}
	host, _ := hostAudits([]string{help.Checks()[i].Audit})
	return (host != nil) != (topology.EnvOf(s.Runtime).Host != nil)
}

func elsewhereError(check string) error {
	return fmt.Errorf("%s: checks of audit host need --host, and others do not support it", check)
}

// lockRuns lets only one run of a job audit a subnet at a time; other jobs may run
// beside it. It returns nil where there is nothing to lock: the fabric is in this
// process, or there is no directory for the lock.
func lockRuns(s *session.Session, subnet fabric.Subnet, job string) (*format.FileLock, error) {
	dir := s.StateDir
	if s.Engine == nil || s.InProcess() || dir == "" {
		return nil, nil
	}
	dir = subnet.Folder(dir)
	err := format.MakeDirectory(dir, 0o755)
	var held *format.FileLock
	if err == nil {
		held, err = format.AcquireLock(filepath.Join(dir, job+".run.lock"))
	}
	if err != nil && !errors.Is(err, format.ErrLockHeld) {
		s.Warn("runs at the same time are not excluded: %v", format.FileError(err))
		return nil, nil
	}
	return held, err
}

// run runs a command on the acks of the fabric, or of this host.
func (o *ackOptions) run(p *session.Program, run func(context.Context, *session.Session) error) error {
	t := task{time: p.StartTime(), run: run}
	if o.host {
		if err := checkHost(p, "audit ack --host"); err != nil {
			return err
		}
		t.open = func(ctx context.Context) (*session.Session, error) { return session.OpenHost(ctx, p, nil) }
	}
	return execute(p, t)
}

const nodesDoc = `-o nodes reports hosts instead of findings: ok, degraded, unhealthy, down or unknown, with
reasons. A host is the first word of its adapters' names. It is unknown, never ok, if
an audit did not run, a check that concerns hosts was not done, it or what it is linked
to did not answer, two adapters in different systems have its name, or the fabric does
not have it (--hosts, --baseline). Checks of an audit that no device supports, such as
health without registers, count only if the audit was named. What is known to be wrong
counts more than what is unknown. Acknowledged findings do not count. The exit status is 3 also if a host is
unknown, or no host was found. The first rule that applies to a finding counts:
`

// nodesOptions are the options of audit -o nodes.
type nodesOptions struct {
	on      bool
	as      lang.Format            // for people and scripts
	program *hosts.SchedulerFormat // nil: as
	resume  string                 // the file of drained nodes
	drain   []string               // hosts that are drained besides those that are unhealthy or down: of drainable
	hosts   []string               // nil: all

	drained []hosts.Drained // in that file
}

// nodesFormats are the values of --for besides hosts.SchedulerFormats.
var nodesFormats = []lang.Format{lang.FormatText, lang.FormatJSON, lang.FormatJSONL, lang.FormatCSV}

// params declares the parameters.
func (o *nodesOptions) params() params {
	const forSchedulers = "it is for programs of schedulers"
	names := nodesPrograms()
	return params{
		{name: "for", values: names, withheld: forSchedulers, doc: "with -o nodes: write for `PROGRAM`: " + strings.Join(names, ", ") + " (default: text)", to: func(text string) (err error) {
			o.program, o.as = nil, lang.Format(text)
			if !slices.Contains(nodesFormats, o.as) {
				o.program, err = hosts.SchedulerFormatByName(text, names[:len(nodesFormats)]...)
			}
			return err
		}},
		{name: "resume", to: &o.resume, file: true, withheld: forSchedulers, doc: "with --for slurm: also lift the drains of fabsh, if the host is ok and the check in the reason was done again, of the nodes in `FILE`: sinfo -a -h -N -o '%N %E', or scontrol show node --json; - reads standard input"},
		{name: "drain", withheld: forSchedulers, doc: "with --for slurm: drain `HOSTS` too: degraded, and absent, those of --baseline or --hosts that a complete sweep did not find; separated by commas (default: hosts that are unhealthy or down)", to: func(text string) error {
			o.drain = strings.Split(text, ",")
			for _, word := range o.drain {
				if !slices.Contains(drainable, word) {
					return fmt.Errorf("unsupported hosts %.40q; supported: %s", word, strings.Join(drainable, ", "))
				}
			}
			return nil
		}},
		{name: "hosts", withheld: forSchedulers, doc: "with -o nodes: report only these hosts: a `LIST` in Slurm's notation, such as node[01-18]; one that is not in the fabric is unknown (with --for npd: one host; default: this one)", to: func(text string) (err error) {
			if o.hosts, err = hosts.Expand(text); err == nil && len(o.hosts) == 0 {
				err = errors.New("empty list")
			}
			return err
		}},
	}
}

// drainable are the values of --drain.
var drainable = []string{"degraded", "absent"}

// nodesPrograms are the values of --for.
func nodesPrograms() (names []string) {
	for _, f := range nodesFormats {
		names = append(names, string(f))
	}
	for _, f := range hosts.SchedulerFormats {
		names = append(names, f.Name)
	}
	return names
}

// checkNodes checks the options before a fabric is opened, and reads the file of --resume.
func (o *auditOptions) checkNodes(p *session.Program) error {
	n := &o.nodes
	n.on = p.Settings.TakeNodes()
	slurm := n.program != nil && n.program.Name == "slurm"
	switch {
	case !n.on && (n.program != nil || n.as != "" || n.resume != "" || n.drain != nil || n.hosts != nil):
		return errors.New("--for, --resume, --drain and --hosts need -o nodes")
	case !n.on:
		return nil
	case o.cache != "":
		return errors.New("--load-cache: not supported with -o nodes, which does not report states of a file as current")
	case n.resume != "" && !slurm:
		return errors.New("--resume needs --for slurm")
	case n.drain != nil && !slurm:
		return errors.New("--drain needs --for slurm")
	case n.isNPD() && len(n.hosts) > 1:
		return errors.New("--hosts: --for npd is about one host")
	}
	if err := noTable(p, "-o nodes has no rows to select; use --hosts"); err != nil {
		return err
	}
	if n.isNPD() && n.hosts == nil {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the name of this host is unknown: %w; give --hosts NAME", err)
		}
		n.hosts = []string{name}
		if short, _, _ := strings.Cut(name, "."); short != name {
			n.hosts = append(n.hosts, short)
		}
	}
	if n.resume == "" {
		return nil
	}
	spec, _ := p.Settings.FabricSpec()
	if kind, _, _ := strings.Cut(spec, ":"); kind == "file" || kind == "replay" {
		return fmt.Errorf("--resume: not supported with -F %s: it shows hosts as they were; use the fabric itself", kind)
	}
	text, err := n.readResume(p)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	if n.drained, err = hosts.ReadDrained(text); err != nil {
		return fmt.Errorf("--resume: %s: %w", n.resume, err)
	}
	return nil
}

func (n *nodesOptions) isNPD() bool { return n.program != nil && n.program.Name == "npd" }

// readResume reads the file of --resume, or standard input: longer than what ReadDrained accepts,
// if it is.
func (n *nodesOptions) readResume(p *session.Program) ([]byte, error) {
	in := io.Reader(p.Stdin)
	if n.resume != "-" {
		f, err := format.OpenRegular(n.resume)
		if err != nil {
			return nil, format.FileError(err)
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, hosts.MaxDrained+1))
}

// writeNodes writes the hosts of the reports.
func (r *auditResults) writeNodes(ctx context.Context, p *session.Program, o *auditOptions) error {
	n := &o.nodes
	report := hosts.Judge(r.reports, hosts.JudgeOptions{Names: n.hosts, Baseline: r.baseline, Missing: r.missing})
	r.unknown = report.Has(hosts.Unknown) || len(report.Hosts) == 0
	var text string
	var err error
	if n.program == nil {
		text, err = lang.Render(audits.WrapHealth(report, n.as), n.as)
	} else {
		out := hosts.Output{Drained: n.drained, Degraded: slices.Contains(n.drain, "degraded"), Absent: slices.Contains(n.drain, "absent"), Subnet: o.subnet}
		if n.isNPD() {
			out.Host = n.hosts[0]
			for _, name := range n.hosts { // the short name, if the fabric has only that
				if h := report.Host(name); h != nil && !h.Absent {
					out.Host = name
					break
				}
			}
			status := hosts.NPDStatus(report, out.Host)
			r.npd = &status
		}
		var refused []hosts.Refused
		text, refused = n.program.Write(report, out)
		for i, x := range refused {
			if i == maxRefused {
				p.Console.Complain("audit: " + plural.Count(len(refused)-i, "more host", "more hosts") + " not written")
				break
			}
			p.Console.Complain(fmt.Sprintf("audit: host %.80q: not written: %v", x.Name, x.Err))
		}
		if !n.isNPD() {
			r.complainUnnamed(p, report)
		}
	}
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	if o.out == "" {
		return write(p.Console.Out())
	}
	if err := session.WriteNamed(ctx, o.out, write); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// maxRefused is how many hosts are named that are not written.
const maxRefused = 8

// complainUnnamed names adapters whose hosts are not written, because they are unknown.
func (r *auditResults) complainUnnamed(p *session.Program, report *hosts.HealthReport) {
	for i, u := range report.Unnamed {
		if i == maxRefused {
			p.Console.Complain("audit: " + plural.Count(len(report.Unnamed)-i, "more adapter is", "more adapters are") + " not identified by name")
			return
		}
		p.Console.Complain(fmt.Sprintf("audit: adapter %s: not identified by its name: %s; not written", u, u.Why))
	}
}
