package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/cabling"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// cablingCapability compares a plan of cables with the fabric.
func cablingCapability(p *session.Program) *capability[*cablingOptions] {
	return &capability[*cablingOptions]{command: &cobra.Command{
		Use:   "cabling PLAN... [--out FILE] [--follow] | --write-plan FILE",
		Short: "Compare the cables with a plan, and write work orders",
		Long: `Compare the cables of the fabric with those of PLAN, and list the actions that repair
them: the least number of moves, with both ends, rack by rack.

PLAN is a file that -F file: reads: a P2P or A/Z sheet (CSV, xlsx), UFM's NDT,
topoconfig.conf, cables of NetBox, a .topo, a snapshot ("fabsh help formats"). Several
files are one plan, such as sheets of links and of nodes, and so are those of an archive.
Devices are matched by GUID, by name in different spellings, by serial number, and by
their cables. Names that were not found are one list, with the nearest names. Models,
firmware, roles, rails and subnet managers of the plan are compared as far as the fabric
has them. --write-plan writes the fabric as a plan.

missing: planned, and no link. undefined: a cable that is not planned. miswired: another
device or port at the other end. down: the link does not come up. slower: narrower or
slower than planned. plane down: some links of a cable of several planes are down.

swap exchanges two plugs; move takes one plug to another port, where the other end of
the cable stays. Actions of one chain depend on each other: do them in the order of
their steps. An action keeps its identifier in later runs.

It works without a subnet manager. --follow reads the ports of the actions again every
5 s, with directed routes, and reports each action that is done. It ends when all are
done, or with Ctrl-C.

Exit status: 0 all cables are as planned; 1 differences; 2 usage error, or PLAN cannot
be read; 3 something was not read, or the fabric or this host failed.`,
		Example: `  fabsh cabling plan.csv
  fabsh cabling plan.csv --out orders.html
  fabsh cabling plan.csv --follow
  fabsh -F file:today.snap -o csv cabling plan.topo`,
		Annotations: map[string]string{atPrompt: direct},
		Args: func(c *cobra.Command, words []string) error {
			switch {
			case len(words) == 0 && !c.Flags().Changed("write-plan"):
				return errors.New("missing PLAN")
			case len(words) > 0 && c.Flags().Changed("write-plan"):
				return errors.New("PLAN and --write-plan exclude each other")
			}
			return nil
		},
	},
		options: fresh[cablingOptions],
		line: func(o *cablingOptions, _ *cobra.Command, words []string) error {
			o.plans = words
			return o.check()
		},
		run: func(ctx context.Context, s *session.Session, o *cablingOptions) (starlark.Value, error) {
			return compareCabling(ctx, p, s, o)
		},
		tool:  "cabling",
		doc:   "Is the cabling as planned? The members of an action are those of cabling_action.",
		words: []mcp.Param{{Name: "plan", Kind: mcp.KindTexts, Required: true, Doc: "the files of the plan of cables" + theFile}},
		take: func(_ context.Context, _ *session.Session, a mcp.Arguments, o *cablingOptions) error {
			o.plans = a.Texts("plan")
			return nil
		},
	}
}

// cablingOptions are the options of cabling.
type cablingOptions struct {
	plans          []string
	out, writePlan string
	hcaMap         string
	columns        format.PlanMap
	follow         bool
}

// params declares the parameters.
func (o *cablingOptions) params() params {
	return params{
		{name: "out", to: &o.out, doc: "write the work orders to `FILE`, completely or not at all: .html, .xlsx or .csv", withheld: writesFiles},
		{name: "hca-map", to: &o.hcaMap, file: true, doc: "read " + docOf(&topology.LoadFabric, "hca_map", "a file", "FILE")},
		{name: "map", to: func(text string) (err error) {
			o.columns, err = format.ParsePlanMap(text)
			return err
		}, doc: docOf(&topology.LoadFabric, "map", "", "")},
		{name: "write-plan", to: &o.writePlan, doc: "write the cables of the fabric to `FILE` as a plan, .csv or .xlsx, and compare nothing", withheld: writesFiles},
		{name: "follow", to: &o.follow, doc: "re-read the ports of the actions every 5 s until all are done", withheld: "it waits for people"},
	}
}

// cablingFiles are the kinds of files of --out, by extension.
var cablingFiles = map[string]func(r *cabling.Report, v *topology.Cabling, plan string, w io.Writer) error{
	".html": func(r *cabling.Report, _ *topology.Cabling, plan string, w io.Writer) error {
		return r.WriteHTML(w, plan)
	},
	".xlsx": func(r *cabling.Report, _ *topology.Cabling, _ string, w io.Writer) error { return r.WriteXLSX(w) },
	".csv": func(_ *cabling.Report, v *topology.Cabling, _ string, w io.Writer) error {
		actions, err := v.Attr("actions")
		if err != nil {
			return err
		}
		text, err := audits.RenderMetrics(actions, lang.FormatCSV, "cabling")
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, text)
		return err
	},
}

// check finds contradictions before anything is opened.
func (o *cablingOptions) check() error {
	if ext := strings.ToLower(filepath.Ext(o.out)); o.out != "" && cablingFiles[ext] == nil {
		return fmt.Errorf("--out %s: unknown kind of file; supported: .html, .xlsx, .csv", o.out)
	}
	if ext := strings.ToLower(filepath.Ext(o.writePlan)); o.writePlan != "" && ext != ".csv" && ext != ".xlsx" {
		return fmt.Errorf("--write-plan %s: unknown kind of file; supported: .csv, .xlsx", o.writePlan)
	}
	for _, path := range o.plans {
		if err := fileThere(path); err != nil {
			return format.FileError(err)
		}
	}
	return nil
}

// load reads the files of the plan, one after the other.
func (o *cablingOptions) load(ctx context.Context, s *session.Session) (*fabric.Fabric, error) {
	options := format.PlanOptions{Map: o.columns}
	if o.hcaMap != "" {
		f, err := s.Files.OpenNamed(ctx, o.hcaMap)
		if err != nil {
			return nil, fmt.Errorf("--hca-map: %w", err)
		}
		defer f.Close()
		if options.Adapters, err = format.LoadAdapters(f, o.hcaMap); err != nil {
			return nil, fmt.Errorf("--hca-map: %w", err)
		}
	}
	var files []format.PlanFile
	for _, path := range o.plans {
		f, err := s.Files.OpenNamed(ctx, path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		files = append(files, format.PlanFile{Name: path, Reader: f})
	}
	return format.LoadPlan(files, options, s.Included(ctx))
}

// writePlan writes the cables of the fabric as a plan.
func writePlan(ctx context.Context, s *session.Session, path string) error {
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	if !f.Complete() {
		return &session.HostError{Err: fmt.Errorf("--write-plan %s: not written: the fabric is incomplete: %s", path, f.Missing())}
	}
	if f, err = audits.ReadLabels(ctx, s.Runtime, f); err != nil {
		return err
	}
	err = session.WriteNamed(ctx, path, func(w io.Writer) error {
		if strings.ToLower(filepath.Ext(path)) == ".xlsx" {
			return format.WritePlanWorkbook(w, f, cabling.FactsOf)
		}
		return format.WritePlanText(w, f, cabling.FactsOf)
	})
	if err != nil {
		return fmt.Errorf("--write-plan: %w", err)
	}
	return nil
}

// compareCabling compares the plan with the fabric, and writes the work orders.
func compareCabling(ctx context.Context, p *session.Program, s *session.Session, o *cablingOptions) (starlark.Value, error) {
	if o.writePlan != "" {
		return nil, writePlan(ctx, s, o.writePlan)
	}
	timed, cancel := s.Runner.Deadline.Within(ctx)
	defer cancel()
	names, err := p.NodeNames(timed, "file")
	if err != nil {
		return nil, session.Late(err)
	}
	plan, err := o.load(timed, s)
	if plan, err = loaded(plan, session.Late(err), names); err != nil {
		return nil, err
	}
	if plan.LinksUnknown() || plan.Links() == 0 {
		return nil, fmt.Errorf("%s: no cables with ports; want a plan of cables, a topology or a snapshot", strings.Join(o.plans, ", "))
	}
	if o.follow && s.Engine == nil {
		return nil, s.NoLive("--follow needs a live fabric: this session reads a file; choose one with -F")
	}
	if o.follow && s.Format != lang.FormatText {
		return nil, errors.New("--follow: not supported with -o: it prints a line for each action; leave -o out")
	}
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return nil, err
	}
	if f.LinksUnknown() {
		return nil, &session.HostError{Err: errors.New("the links of the fabric are unknown: the file has nodes only")}
	}
	if p := plan.Plan(); p != nil && (p.Models != nil || p.Firmware != nil || p.Serials != nil) {
		if f, err = audits.ReadLabels(timed, s.Runtime, f); err != nil {
			return nil, session.Late(err)
		}
	}
	r := cabling.Compare(plan, f)
	v := topology.WrapCabling(r)
	addCabling(ctx, s, f, o.plans, r.Summary())
	if o.out != "" {
		write := cablingFiles[strings.ToLower(filepath.Ext(o.out))]
		if err := session.WriteNamed(ctx, o.out, func(w io.Writer) error { return write(r, v, filepath.Base(o.plans[0]), w) }); err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
	}
	if o.follow && len(r.Actions) > 0 {
		if err := s.Show(v); err != nil {
			return nil, err
		}
		return nil, followCabling(ctx, s, plan, cabling.NewFollower(r, f))
	}
	return shownCabling(r, v, s.Format, s.Warn), session.Exit(cablingStatus(r))
}

// Times between the rounds of --follow, and between its sweeps while ports are out of reach.
const (
	followEvery = 5 * time.Second
	sweepEvery  = time.Minute
)

// followCabling re-reads the ports of actions until all are done, then compares again.
func followCabling(ctx context.Context, s *session.Session, plan *fabric.Fabric, w *cabling.Follower) error {
	ctx, stop := s.Runner.Deadline.Within(ctx)
	defer stop()
	all := len(w.Open())
	s.Warn("%s; at most %d requests every %v, and a sweep a minute while ports are out of reach; Ctrl-C ends", plural.Count(all, "action", "actions"), w.MaxRequests(), followEvery)
	for swept := s.Clock.Now(); len(w.Open()) > 0; {
		done, away, err := w.Round(ctx, s.Engine.Do)
		if err != nil {
			return err
		}
		for _, x := range done {
			fmt.Fprintln(s.Console.Out(), lang.OneLine(fmt.Sprintf("done %s: %s", x.ID, x.Check)))
		}
		if len(done) > 0 {
			fmt.Fprintf(s.Console.Out(), "%d of %d done\n", all-len(w.Open()), all)
		}
		if len(w.Open()) == 0 {
			break
		}
		if err := s.Clock.Sleep(ctx, followEvery); err != nil {
			return err
		}
		if away > 0 && s.Clock.Now().Sub(swept) >= sweepEvery {
			swept = s.Clock.Now()
			f, err := topology.SweepQuietly(ctx, s.Runtime)
			if err != nil {
				return err
			}
			w.Swept(f)
		}
	}
	f, err := topology.SweepQuietly(ctx, s.Runtime)
	if err != nil {
		return err
	}
	r := cabling.Compare(plan, f)
	if err := s.Show(topology.WrapCabling(r)); err != nil {
		return err
	}
	return session.Exit(cablingStatus(r))
}

// shownCabling returns the result in the format of the output: as rows, the actions alone, and the
// rest goes to stderr.
func shownCabling(r *cabling.Report, v *topology.Cabling, format lang.Format, warn func(format string, args ...any)) starlark.Value {
	switch format {
	case lang.FormatText, lang.FormatJSON:
		return v
	}
	warn("%s", r.Summary())
	for _, note := range r.Notes() {
		warn("%s", note)
	}
	actions, _ := v.Attr("actions")
	return actions
}

// isPlan reports whether f was read from a plan of cables.
func isPlan(f *fabric.Fabric) bool {
	return f.Plan() != nil || slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == fabric.ProblemPlan })
}

// cablingStatus returns the exit status.
func cablingStatus(r *cabling.Report) int {
	switch {
	case !r.Complete():
		return lang.StatusFabric
	case !r.Same():
		return lang.StatusFindings
	}
	return lang.StatusClean
}
