package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fabsh"
	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/export"
	"fabsh/fabric/format"
	"fabsh/shell/exporter"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// exporterCapability serves metrics.
func exporterCapability(p *session.Program) *capability[*exporterOptions] {
	return &capability[*exporterOptions]{command: &cobra.Command{
		Use:   "exporter [audits' options]",
		Short: "Serve metrics of the fabric to Prometheus",
		Long: `Serve metrics to Prometheus: sweep and audit periodically, and answer scrapes from
the last complete result, whose age is among the metrics. A scrape sends nothing to
the fabric. The exporter runs until it is stopped. It opens a lost device again, and
continues after the hand-over of a subnet manager.

Names of metrics are those of SckyzO; -o prom=treydock and -o prom=guilbaults choose the
names of these. Counters are compared with those of earlier cycles, which are kept in
memory (default: --over last). --deadline limits a cycle. One process serves one port of
the host: run one for each rail.

fabsh_ar_enabled and fabsh_ar_sl_mask show adaptive routing of switches that announce it,
by one request each; --audits adaptive,keys audits more. With a log of fabsh remedy there
are fabsh_isolated_ports and fabsh_remedy_refused_total. --read adds metrics that cost
requests:

` + exporterReads() + `
--families only selects what the pages show.

--history adds each cycle to the history of the subnet (fabsh help history), from what the
cycle has read. Besides, of devices of NVIDIA that have registers, it reads bit error rates
once an hour and modules once a day, as "fabsh history record" does: one or two requests
for each port with a link. Errors are merged to 5 minutes. A failure to write it is
logged, and does not fail the cycle. --history=postgres://USER@HOST/DATABASE also copies the
history to PostgreSQL after each cycle (fabsh help history record).

Pages: /metrics; /-/healthy, always; /-/ready, as soon as there is a result.
/metrics?shard=3/8 has the third of eight parts of the nodes, by their GUIDs, so that
several servers share an exporter; metrics of the whole fabric are in the first part.
/metrics?collect[]=errors&collect[]=audit has a part of the metrics: nodes, traffic,
errors, audit, run, exporter.`,
		Example: `  fabsh exporter
  fabsh exporter --listen 127.0.0.1:9315 --every 60s --audits counters,links --web.config.file web.yml
  fabsh -C mlx5_1 -o prom=treydock exporter --listen :9316`,
		ValidArgsFunction: cobra.NoFileCompletions,
	},
		options: newExporterOptions,
		line:    (*exporterOptions).take,
		start: func(o *exporterOptions, _ *cobra.Command, _ func(context.Context, *session.Session) error) error {
			if err := checkExporter(p, *o); err != nil {
				return err
			}
			return p.Profiled(func() (int, error) { return runExporter(p, *o, nil) })
		},
	}
}

// costlyMetrics are the metrics that --read adds, and what a cycle sends for each.
var costlyMetrics = []struct{ name, doc string }{
	{audits.ShortGroups, `port groups with fewer ports than similar groups. Each cycle
sends, for each switch, one request for 16 LIDs and one for
two sub-groups: 1.3 million at 11,664 hosts`},
	{audits.UnprotectedKeys, `nodes whose key of a class (vs, n2n, cc) does not protect.
Each cycle sends up to three requests for each node`},
}

// exporterReads lists the metrics of --read.
func exporterReads() string {
	var b strings.Builder
	for _, m := range costlyMetrics {
		fmt.Fprintf(&b, "  %-27s  %s\n", m.name, strings.ReplaceAll(m.doc, "\n", "\n"+strings.Repeat(" ", 31)))
	}
	return b.String()
}

// namesRead are the values of --read.
func namesRead() (names []string) {
	for _, m := range costlyMetrics {
		names = append(names, m.name)
	}
	return names
}

// exporterOptions are the options behind exporter on the command line.
type exporterOptions struct {
	listen                 []string
	every                  session.Duration
	audits, config, subnet string
	families, reads        string
	history                string // a file, or historyOfSubnet; "": none
	nonzero, systemd       bool
	words                  []string // options of audits
}

// newExporterOptions returns the defaults.
func newExporterOptions() *exporterOptions {
	return &exporterOptions{every: session.Duration{Value: time.Minute, Unit: time.Second, Units: "seconds"}, audits: "counters,links"}
}

// params declares the parameters.
func (o *exporterOptions) params() params {
	return params{
		{name: "listen", to: &o.listen, doc: "listen at `ADDRESS` (default: 127.0.0.1:9315; repeatable); also --web.listen-address, as other exporters have it"},
		{name: "web.listen-address", to: &o.listen, former: true, doc: "--listen, as other exporters have it"},
		{name: "every", to: &o.every, doc: "start a cycle every `TIME`"},
		{name: "audits", to: &o.audits, doc: "run the audits `NAMES`: names or .star files, separated by commas (see fabsh audit --list)"},
		{name: "families", to: &o.families, doc: "export only the metrics `NAMES`, separated by commas; * matches any text"},
		{name: "read", to: &o.reads, values: namesRead(), doc: "also read the metrics `NAMES`, separated by commas, which cost requests in each cycle: " + strings.Join(namesRead(), ", ")},
		{name: "history", to: &o.history, alone: historyOfSubnet, doc: "add each cycle to the history in `FILE` (default: that of the subnet in --state), or copy it to postgres://USER@HOST/DATABASE"},
		{name: "nonzero", to: &o.nonzero, doc: "leave out error counters that are 0"},
		{name: "web.config.file", to: &o.config, file: true, doc: "read TLS, passwords and limits from `FILE`, the \"web configuration\" of Prometheus' exporter-toolkit"},
		{name: "web.systemd-socket", to: &o.systemd, doc: "use the sockets that systemd passes, and listen nowhere else"},
		{name: "subnet", doc: "use the acknowledgements of the subnet `NAME` (see fabsh audit)", to: func(name string) error {
			o.subnet = name
			return fabric.CheckSubnetName(name)
		}},
	}
}

// commaSeparated returns the names in a text.
func commaSeparated(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' })
}

// exportedAudits returns the audits that --audits names.
func exportedAudits(words parsedWords) []script.Program {
	return namedAudits(words, newExporterOptions().audits)
}

// namedAudits returns the audits that --audits names, or those of names.
func namedAudits(words parsedWords, names string) (list []script.Program) {
	if given, ok := words.flags["audits"]; ok {
		names = given
	}
	for _, name := range commaSeparated(names) {
		p := auditProgram(name)
		p.Known = true // it has no word on the command line
		list = append(list, p)
	}
	return list
}

// take sets what the command line has besides the flags of the command. Audits of rates compare with
// the previous cycle.
func (o *exporterOptions) take(c *cobra.Command, words []string) error {
	o.words = append(words, optionWords(c.Flags())...)
	if f := c.Flags().Lookup("over"); f != nil && !f.Changed {
		o.words = append(o.words, "--over=last")
	}
	return nil
}

// checkExporter finds contradictions before anything is opened.
func checkExporter(p *session.Program, o exporterOptions) error {
	_, isProm := p.Settings.Output().Dialect()
	switch {
	case p.Settings.Write:
		return errors.New("--write: not supported: the exporter only reads; leave it out")
	case p.Settings.PlanFile != "":
		return errors.New("--plan: not supported: the exporter changes nothing; leave it out")
	case p.Settings.VirtualTime:
		return errors.New("--virtual-time: not supported: scrapes need the real clock; leave it out")
	case p.Settings.Given("format") && !isProm:
		return errors.New("-o: want prom, prom=treydock or prom=guilbaults")
	case o.systemd && len(o.listen) > 0:
		return errors.New("--listen and --web.systemd-socket exclude each other")
	case len(commaSeparated(o.audits)) == 0:
		return errors.New("--audits: no audit named; see fabsh audit --list")
	case o.selection().Check() != nil:
		return fmt.Errorf("--families: %w", o.selection().Check())
	case o.every.Value < time.Second:
		return errors.New("--every: want 1s or more")
	}
	for _, name := range commaSeparated(o.reads) {
		if known := namesRead(); !slices.Contains(known, name) {
			return fmt.Errorf("--read: unknown metric %q%s; supported: %s", fabric.Clip(name), fabric.DidYouMean(name, known), strings.Join(known, ", "))
		}
	}
	for _, m := range costlyMetrics {
		if slices.Contains(o.selection().Families, m.name) && !o.isRead(m.name) {
			return fmt.Errorf("--families: %s is not read; add --read %[1]s, which sends requests in each cycle", m.name)
		}
	}
	for _, address := range o.listen {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return fmt.Errorf("--listen %q: %w; give an address such as 127.0.0.1:9315, or :9315 for all addresses", address, err)
		}
	}
	if err := checkHistory(o.history); err != nil {
		return err
	}
	if err := exporter.CheckConfig(o.config); err != nil {
		return fmt.Errorf("--web.config.file: %w", format.FileError(err))
	}
	return p.Settings.Check()
}

// selection is what all pages have.
func (o *exporterOptions) selection() *export.Selection {
	return &export.Selection{Families: commaSeparated(o.families), Nonzero: o.nonzero}
}

// isRead reports whether --read names a metric.
func (o *exporterOptions) isRead(name string) bool {
	return slices.Contains(commaSeparated(o.reads), name)
}

// runExporter serves until it is stopped: metrics, and unless pages is nil, pages.
func runExporter(p *session.Program, o exporterOptions, pages *serving) (status int, err error) {
	if len(o.listen) == 0 {
		o.listen = []string{"127.0.0.1:9315"}
	}
	session.CollectAt(20) // a process that stays: memory is limited, time is not
	listeners, err := exporter.Listen(context.Background(), o.listen, o.systemd)
	if err != nil {
		return 0, &session.HostError{Err: err}
	}
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	settings := *p.Settings
	settings.ReadOnly = true // a simulated fabric, too
	r := &fabricReader{program: p.With(settings), options: o, kept: new(audit.State), history: exporterHistory{file: o.history}, pages: pages}
	r.history.log = r.log
	first, err := r.open(context.Background())
	if err != nil {
		return 0, err
	}
	r.session = first // on which the following is evaluated
	if pages != nil {
		if err := pages.opened(context.Background(), first); err != nil {
			return 0, errors.Join(err, first.Close())
		}
		if first.Engine == nil {
			r.history.file = "" // it is of the past
		}
		defer func() {
			status = session.Worse(status, p.Fail(errors.Join(pages.site.Close(), pages.close(), pages.agents.Close())))
		}()
	}
	defer func() {
		r.history.close()
		if r.session != first {
			r.close()
		}
		status = session.Worse(status, p.Fail(first.Close()))
	}()
	status = first.Runner.Evaluate(func(ctx context.Context) error {
		return session.Named(p.Operation, lang.Protect("exporter", func() error { return r.serve(ctx, listeners) }))
	})
	first.Runner.Summary()
	return status, nil
}

// fabricReader reads the fabric for an exporter, in cycles.
type fabricReader struct {
	program *session.Program
	options exporterOptions
	kept    *audit.State // kept from cycle to cycle
	totals  *export.Totals
	session *session.Session // nil: the connection is lost
	audits  *audits.Selection
	memory  int64           // the limit of the session; 0: unknown
	failed  map[string]bool // failures of audits in the previous cycle
	history exporterHistory
	pages   *serving // nil: metrics alone
}

// open opens the fabric.
func (r *fabricReader) open(ctx context.Context) (*session.Session, error) {
	s, err := session.Open(ctx, r.program, session.Opening{})
	if err != nil {
		return nil, err
	}
	if s.Engine == nil && r.pages == nil {
		return nil, errors.Join(s.NoLive("a live fabric is needed, and this session has none; choose one with -F"), s.Close())
	}
	return s, nil
}

func (r *fabricReader) close() {
	if r.session != nil {
		r.program.Fail(r.session.Close())
		r.session = nil
	}
}

// load loads the audits in the current session.
func (r *fabricReader) load(ctx context.Context) (err error) {
	r.audits, err = audits.LoadAudits(ctx, r.session.Interpreter, append(commaSeparated(r.options.audits), r.options.words...), r.flagNames(), false)
	return err
}

// flagNames returns the options of the command, which audits must not have.
func (r *fabricReader) flagNames() []string {
	if r.pages != nil {
		return session.FlagNames(r.pages.options.params().flags())
	}
	return session.FlagNames(r.options.params().flags())
}

// serve reads and serves until ctx ends.
func (r *fabricReader) serve(ctx context.Context, listeners []net.Listener) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	e := &exporter.Exporter{Every: r.options.every.Value, Cycle: r.cycle, Ends: endsScripts, Log: r.log, Version: fabsh.Version, Families: r.options.selection().Families, Nonzero: r.options.nonzero}
	what := "/metrics"
	if r.pages != nil {
		r.pages.site.MCP = r.pages.agents.Stateless(ctx)
		e.Pages, e.Knows, what = r.pages.site.Handler(), r.pages.site.Knows, "pages and /metrics"
		e.MaxBody = mcp.MaxStateless
		e.Cycle = func(ctx context.Context) (exporter.Result, error) {
			result, err := r.cycle(ctx)
			r.pages.cycled(err)
			return result, err
		}
	}
	scheme := "http"
	if r.options.config != "" {
		scheme = "http or https, as " + r.options.config + " defines"
	}
	for _, l := range listeners {
		r.log(fmt.Sprintf("listening at %v, %s (%s)", l.Addr(), what, scheme))
	}
	level := slog.LevelError
	if r.program.Settings.Verbose > 0 {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(r.program.Console.Err(), &slog.HandlerOptions{Level: level}))
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	served := make(chan error, 1)
	go func() {
		err := e.Serve(ctx, listeners, r.options.config, log)
		stop(err)
		served <- err
	}()
	err := e.Run(ctx)
	stop(err)
	<-served
	return err
}

// log writes a line with the time.
func (r *fabricReader) log(text string) {
	if !r.program.Settings.Quiet {
		fmt.Fprintf(r.program.Console.Err(), "%s %s\n", time.Now().UTC().Format(time.RFC3339), text)
	}
}

// cycle runs the audits once.
func (r *fabricReader) cycle(ctx context.Context) (exporter.Result, error) {
	if r.session == nil {
		s, err := r.open(ctx)
		if err != nil {
			return nil, &exporter.LostError{Err: err}
		}
		r.session = s
		if err := r.load(ctx); err != nil {
			r.close() // its audits belong to the previous session
			return nil, err
		}
	}
	s := r.session
	if r.pages != nil && r.pages.once != nil {
		return r.pages.once, nil // a fabric of the past does not change
	}
	d := session.StartDeadline(r.program.Settings.Deadline.Value, nil)
	if s.Engine != nil {
		d.Limit(s.Engine, s.Activity)
	}
	var report *audit.Report
	err := d.Run(ctx, func(ctx context.Context) (err error) {
		report, err = r.audits.Run(ctx, s.Interpreter, audits.RunOptions{
			Subnet: r.options.subnet, Kept: r.kept, Once: true,
			Begin: func(subnet fabric.Subnet) (audit.Acks, error) {
				return audits.RunAcks(s.Runtime, s.StateDir, subnet), nil
			},
		})
		if err != nil || s.Engine == nil {
			return err
		}
		adaptive, err := audits.AdaptiveMetrics(ctx, s.Runtime, r.options.isRead)
		report.Metrics = append(append(report.Metrics, adaptive...), remedyMetrics(s, report)...)
		return err
	})
	d.Stop()
	s.Runtime.Progress("serving; waiting for the next cycle")
	if s.Engine != nil {
		if lost := s.Engine.Failed(); lost != nil && ctx.Err() == nil {
			r.close()
			return nil, &exporter.LostError{Err: lost}
		}
	}
	if err != nil {
		return nil, err
	}
	if err := r.failures(report); err != nil {
		return nil, err
	}
	if r.pages != nil {
		r.pages.after(s, report, &r.history)
		r.history.routes = r.pages.readTables(ctx, s, report.Model)
	}
	r.history.add(ctx, s, &r.options, report, r.kept.Last())
	if r.pages != nil {
		r.pages.recorded(&r.history)
	}
	dialect, _ := r.program.Settings.Output().Dialect()
	r.totals = r.totals.After(report)
	result := &reading{export.Dialect(dialect), report, export.PortsOf(report), r.totals}
	r.limitMemory(len(report.Rates))
	report.Rates = nil // they hold earlier reads; the ports of result do not
	// Metrics of scripts may contradict each other.
	if r.pages != nil && s.Engine == nil {
		r.pages.once = result
	}
	return result, result.dialect.Metrics(new(export.MetricSet), report.Metrics)
}

// Memory of a cycle by the ports whose counters it reads, measured at 70,000 ports with pages
// in eight shards, and what it needs besides.
const (
	portMemory = 1050     // bytes
	ownMemory  = 32 << 20 // bytes
	// For the last fabric and counters of a history, whose cycle is measured at 11,664 hosts: without it the collector
	// takes four times the processor time of all else.
	historyMemory = 200 << 20 // bytes
	pagesMemory   = 300 << 20 // bytes, for the pages of a fabric and of the past, and the history
)

// limitMemory makes the collector work harder beyond what the next cycle should need: the
// largest use lasts a moment, and memory in reserve would stay with the process. The limit is
// soft, and --memory, which is lower, applies.
func (r *fabricReader) limitMemory(ports int) {
	if r.memory == 0 {
		r.memory = debug.SetMemoryLimit(-1)
	}
	limit := ownMemory + portMemory*int64(ports)
	switch {
	case r.pages != nil:
		limit += pagesMemory
	case r.history.file != "":
		limit += historyMemory
	}
	debug.SetMemoryLimit(min(r.memory, limit))
	debug.FreeOSMemory()
}

// reading is the result of a cycle.
type reading struct {
	dialect export.Dialect
	report  *audit.Report
	ports   []export.PortMetrics
	totals  *export.Totals
}

// Write writes the metrics of the selection.
func (r *reading) Write(w io.Writer, s *export.Selection) error {
	return s.Write(w, func(set *export.MetricSet) error { return r.dialect.AuditPorts(set, r.report, r.ports, r.totals) })
}

// failures reports which audits failed, if that is new. It returns an error if none ran
// because the sweep was cut short.
func (r *fabricReader) failures(report *audit.Report) error {
	before := r.failed
	r.failed = map[string]bool{}
	for _, f := range report.Failures {
		if errors.Is(f.Err, audit.ErrCut) {
			return f.Err
		}
		text := fmt.Sprintf("audit %s: %s", f.Audit, r.session.Explain(f.Err))
		if r.failed[text] = true; !before[text] && !f.Skipped {
			r.log(text)
		}
	}
	return nil
}
