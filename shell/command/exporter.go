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
	"github.com/spf13/pflag"

	"fabsh"
	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/export"
	"fabsh/shell/exporter"
	"fabsh/shell/session"
)

// exporterCommand serves metrics.
func exporterCommand(p *session.Program) *cobra.Command {
	own := new(exporterOptions).flags()
	c := &cobra.Command{
		Use:   "exporter [audits' options]",
		Short: "Serve metrics of the fabric to Prometheus",
		Long: `Serve metrics to Prometheus: sweep and audit periodically, and answer scrapes from
the last complete result, whose age is among the metrics. A scrape sends nothing to
the fabric. The exporter runs until it is stopped. It opens a lost device again, and
continues after the hand-over of a subnet manager.

Names of metrics are those of SckyzO; -o prom=treydock and -o prom=guilbaults, before
the word exporter, choose the names of these. Counters are compared with those of
earlier cycles, which are kept in memory (default: --over last). --deadline limits a
cycle. One process serves one port of the host: run one for each rail.

fabsh_ar_enabled and fabsh_ar_sl_mask show adaptive routing of switches that announce it,
by one request each; --audits adaptive,keys audits more. With a log of fabsh remedy there
are fabsh_isolated_ports and fabsh_remedy_refused_total. Two metrics are read only if
--families has their full names, as in --families '*,fabsh_ar_short_groups':

  fabsh_ar_short_groups        port groups with fewer ports than similar groups. Each cycle
                               sends, for each switch, one request for 16 LIDs and one for
                               two sub-groups: 1.3 million at 11,664 hosts
  fabsh_key_unprotected_nodes  nodes whose key of a class (vs, n2n, cc) does not protect.
                               Each cycle sends up to three requests for each node

Pages: /metrics; /-/healthy, always; /-/ready, as soon as there is a result.
/metrics?shard=3/8 has the third of eight parts of the nodes, by their GUIDs, so that
several servers share an exporter; metrics of the whole fabric are in the first part.
/metrics?collect[]=errors&collect[]=audit has a part of the metrics: nodes, traffic,
errors, audit, run, exporter.`,
		Example: `  fabsh exporter
  fabsh exporter --listen 127.0.0.1:9315 --every 60s --audits counters,links --web.config.file web.yml
  fabsh -C mlx5_1 -o prom=treydock exporter --listen :9316`,
		Annotations:        map[string]string{SessionFlagsBefore: ""},
		DisableFlagParsing: true, // session flags are distinguishable only when the audits are known
		ValidArgsFunction:  cobra.FixedCompletions(session.FlagNames(own), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, words []string) error {
			o, err := parseExporter(words)
			if err == nil && !o.help {
				err = checkExporter(p, o)
			}
			switch {
			case err != nil:
				return fmt.Errorf("exporter: %w", err)
			case o.help:
				return c.Help()
			}
			return p.Profiled(func() (int, error) { return runExporter(p, o) })
		},
	}
	return withFlags(c, own)
}

// exporterOptions are the options behind exporter on the command line.
type exporterOptions struct {
	listen                 []string
	every                  session.Duration
	audits, config, subnet string
	families               string
	nonzero                bool
	systemd, help          bool
	words                  []string // options of audits
}

// flags declares the command's own flags, and sets o to their defaults.
func (o *exporterOptions) flags() *pflag.FlagSet {
	f := newFlags("exporter")
	f.StringArrayVar(&o.listen, "listen", nil, "listen at `ADDRESS` (default: 127.0.0.1:9315; repeatable); also --web.listen-address, as other exporters have it")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "web.listen-address" {
			name = "listen"
		}
		return pflag.NormalizedName(name)
	})
	o.every = session.Duration{Value: time.Minute, Unit: time.Second, Units: "seconds"}
	f.Var(&o.every, "every", "start a cycle every `TIME`")
	f.StringVar(&o.audits, "audits", "counters,links", "run the audits `NAMES`: names or .star files, separated by commas (see fabsh audit --list)")
	f.StringVar(&o.families, "families", "", "export only the metrics `NAMES`, separated by commas; * matches any text")
	f.BoolVar(&o.nonzero, "nonzero", false, "leave out error counters that are 0")
	f.StringVar(&o.config, "web.config.file", "", "read TLS, passwords and limits from `FILE`, the \"web configuration\" of Prometheus' exporter-toolkit")
	f.BoolVar(&o.systemd, "web.systemd-socket", false, "use the sockets that systemd passes, and listen nowhere else")
	f.Func("subnet", "use the acknowledgements of the subnet `NAME` (see fabsh audit)", func(name string) error {
		o.subnet = name
		return fabric.CheckSubnetName(name)
	})
	return f
}

// parseExporter separates the command's own flags, which may stand anywhere, from the
// audits'.
func parseExporter(words []string) (o exporterOptions, err error) {
	words, err = extractOwn(words, finder(o.flags()), "--%s %q: %w")
	for _, w := range words {
		if w == "-h" || w == "--help" {
			o.help = true
		} else {
			o.words = append(o.words, w)
		}
	}
	return o, err
}

// checkExporter finds contradictions before anything is opened.
func checkExporter(p *session.Program, o exporterOptions) error {
	_, isProm := p.Settings.Output().Dialect()
	switch {
	case p.Settings.Given("command"):
		return errors.New("-c: not supported by commands; leave it out")
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
	case o.selection().Check() != nil:
		return fmt.Errorf("--families: %w", o.selection().Check())
	case o.every.Value < time.Second:
		return errors.New("--every: want 1s or more")
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
	if err := exporter.CheckConfig(o.config); err != nil {
		return fmt.Errorf("--web.config.file: %w", err)
	}
	return p.Settings.Check()
}

// selection is what all pages have.
func (o *exporterOptions) selection() *export.Selection {
	return &export.Selection{Families: strings.FieldsFunc(o.families, func(c rune) bool { return c == ',' }), Nonzero: o.nonzero}
}

// runExporter serves until it is stopped.
func runExporter(p *session.Program, o exporterOptions) (status int, err error) {
	if len(o.listen) == 0 {
		o.listen = []string{"127.0.0.1:9315"}
	}
	session.CollectAt(20) // a process that stays: memory is limited, time is not
	listeners, err := exporter.Listen(context.Background(), o.listen, o.systemd)
	if err != nil {
		return 0, &session.HostError{Err: fmt.Errorf("exporter: %w", err)}
	}
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	settings := *p.Settings
	settings.ReadOnly = true // a simulated fabric, too
	r := &fabricReader{program: p.With(settings), options: o, kept: new(audit.State)}
	first, err := r.open(context.Background())
	if err != nil {
		return 0, err
	}
	r.session = first // on which the following is evaluated
	defer func() {
		if r.session != first {
			r.close()
		}
		status = session.Worse(status, p.Console.Fail(first.Close()))
	}()
	status = first.Runner.Evaluate(func(ctx context.Context) error {
		return lang.Protect("exporter", func() error { return r.serve(ctx, listeners) })
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
}

// open opens the fabric.
func (r *fabricReader) open(ctx context.Context) (*session.Session, error) {
	s, err := session.Open(ctx, r.program, session.Opening{})
	if err != nil {
		return nil, err
	}
	if s.Engine == nil {
		return nil, errors.Join(s.NoLive("exporter", "a live fabric is needed, and this session has none; choose one with -F"), s.Close())
	}
	return s, nil
}

func (r *fabricReader) close() {
	if r.session != nil {
		r.program.Console.Fail(r.session.Close())
		r.session = nil
	}
}

// load loads the audits in the current session.
func (r *fabricReader) load(ctx context.Context) (err error) {
	names := strings.FieldsFunc(r.options.audits, func(c rune) bool { return c == ',' })
	if len(names) == 0 {
		return errors.New("exporter: --audits: no audit named; see fabsh audit --list")
	}
	words := append(names, r.options.words...)
	if !given(words, "--over") {
		// Audits without that option would report it as a usage error.
		all, err := audits.LoadAudits(ctx, r.session.Interpreter, append(slices.Clone(words), "--over=last"), session.FlagNames(new(exporterOptions).flags()), false)
		if err == nil {
			r.audits = all
			return nil
		}
	}
	r.audits, err = audits.LoadAudits(ctx, r.session.Interpreter, words, session.FlagNames(new(exporterOptions).flags()), false)
	return err
}

// given reports whether an option is among words.
func given(words []string, option string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return w == option || strings.HasPrefix(w, option+"=") })
}

// serve reads and serves until ctx ends.
func (r *fabricReader) serve(ctx context.Context, listeners []net.Listener) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	e := &exporter.Exporter{Every: r.options.every.Value, Cycle: r.cycle, Ends: endsScripts, Log: r.log, Version: fabsh.Version, Families: r.options.selection().Families, Nonzero: r.options.nonzero}
	scheme := "http"
	if r.options.config != "" {
		scheme = "http or https, as " + r.options.config + " defines"
	}
	for _, l := range listeners {
		r.log(fmt.Sprintf("listening at %v, /metrics (%s)", l.Addr(), scheme))
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
	d := session.StartDeadline(r.program.Settings.Deadline.Value, nil)
	d.Limit(s.Engine, s.Activity)
	var report *audit.Report
	err := d.Run(ctx, func(ctx context.Context) (err error) {
		report, err = r.audits.Run(ctx, s.Interpreter, audits.RunOptions{
			Subnet: r.options.subnet, Kept: r.kept, Once: true,
			Begin: func(subnet fabric.Subnet) (audit.Acks, error) {
				return audits.RunAcks(s.Runtime, s.StateDir, subnet), nil
			},
		})
		if err != nil {
			return err
		}
		adaptive, err := audits.AdaptiveMetrics(ctx, s.Runtime, r.options.selection().Names)
		report.Metrics = append(append(report.Metrics, adaptive...), remedyMetrics(s, report)...)
		return err
	})
	d.Stop()
	s.Runtime.Progress("serving; waiting for the next cycle")
	if lost := s.Engine.Failed(); lost != nil && ctx.Err() == nil {
		r.close()
		return nil, &exporter.LostError{Err: lost}
	}
	if err != nil {
		return nil, err
	}
	if err := r.failures(report); err != nil {
		return nil, err
	}
	dialect, _ := r.program.Settings.Output().Dialect()
	r.totals = r.totals.After(report)
	result := &reading{export.Dialect(dialect), report, export.PortsOf(report), r.totals}
	r.limitMemory(len(report.Rates))
	report.Rates = nil // they hold earlier reads; the ports of result do not
	// Metrics of scripts may contradict each other.
	return result, result.dialect.Metrics(new(export.MetricSet), report.Metrics)
}

// Memory of a cycle by the ports whose counters it reads, measured at 70,000 ports with pages
// in eight shards, and what it needs besides.
const (
	portMemory = 1050     // bytes
	ownMemory  = 32 << 20 // bytes
)

// limitMemory makes the collector work harder beyond what the next cycle should need: the
// largest use lasts a moment, and memory in reserve would stay with the process. The limit is
// soft, and --memory, which is lower, applies.
func (r *fabricReader) limitMemory(ports int) {
	if r.memory == 0 {
		r.memory = debug.SetMemoryLimit(-1)
	}
	debug.SetMemoryLimit(min(r.memory, ownMemory+portMemory*int64(ports)))
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
