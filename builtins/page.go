package builtins

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/help"
	values "fabsh/builtins/history"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/diff"
	"fabsh/fabric/history"
	"fabsh/fabric/page"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// PageOptions are the contents of a page besides the findings.
type PageOptions struct {
	FailOn   audit.Severity // lowest severity that counts for the verdict
	Deep     bool           // forwarding tables of a live fabric are read
	Baseline *fabric.Fabric // to compare with; may be nil
	Commands []string       // that create the page again
}

// ReportPage returns the page of a report, with the findings of audits and the verdict on the
// forwarding tables; page.Page writes it. status is the exit status of the verdict; failed is the
// error because of which the verdict is unknown, although the tables were read.
func ReportPage(ctx context.Context, rt *lang.Runtime, r *audit.Report, o PageOptions) (p *page.Page, status int, failed error) {
	env := topology.EnvOf(rt)
	live := env.Engine != nil && !env.Engine.Traits().Simulated
	p = &page.Page{Report: r, FailOn: o.FailOn, Version: env.Version, Commands: o.Commands, Dated: live}
	plain := new(check.Explainer)
	f := r.Model
	explained := map[string]string{}
	for _, c := range help.Checks() {
		explained[c.Name] = c.Text
	}
	p.Explain = func(check string) string { return explained[check] }
	if p.Baseline = o.Baseline; p.Baseline != nil && f != nil {
		var err error
		if p.Diff, err = diff.Compare(ctx, p.Baseline, f); err != nil {
			p.NoDiff = plain.Explain(err)
		}
	}
	if err := portTrends(ctx, rt, p); err != nil { // a history never fails a report
		rt.Warn("trends: %v", err)
	}
	switch {
	case f == nil:
		p.NoRoutes = "no fabric is known"
		return p, lang.StatusClean, nil
	case live && !o.Deep:
		p.NoRoutes = "the forwarding tables of a live fabric are read only with --deep"
		return p, lang.StatusClean, nil
	case env.Engine == nil && !f.HasLFTs():
		p.NoRoutes = env.NoTables()
		return p, lang.StatusClean, nil
	}
	tables, err := audits.ReadRoutes(ctx, rt, f, true)
	if err == nil {
		p.Adaptive = routes.DescribeAdaptive(tables)
		if p.Verdict, err = verify.Tables(ctx, tables, verify.Options{}); err == nil {
			p.Balance, err = traffic.MeasureBalance(ctx, tables, 0, nil)
		}
	}
	if err == nil {
		p.Shift, err = traffic.MeasureCongestion(ctx, tables, traffic.CongestionOptions{Pattern: traffic.Shift, Samples: page.MaxShifts, Each: func(k int, load float64) {
			p.Shifts = append(p.Shifts, page.Shift{Distance: k, Load: load})
		}})
	}
	if err == nil && p.Verdict.Adaptive != verify.AdaptiveUnknown {
		p.Loads, err = adaptiveLoads(ctx, tables)
	}
	switch {
	case err != nil:
		p.Verdict, p.Balance, p.Shift, p.Loads = nil, nil, nil, nil
		p.NoRoutes = plain.Explain(err)
		return p, lang.StatusFabric, err
	case p.Verdict.Wrong():
		return p, lang.StatusFindings, nil
	}
	return p, lang.StatusClean, nil
}

// Limits of the trends of a page.
const (
	maxPortTrends = 10 // ports
	trendDays     = 30
)

// portTrends adds the courses that a history has of ports with findings: that of the session's fabric, or of
// its subnet in the directory for state. A page without a history has no trends of it.
func portTrends(ctx context.Context, rt *lang.Runtime, p *page.Page) error {
	env := topology.EnvOf(rt)
	path, until := "", rt.Clock.Now()
	switch {
	case env.History != nil:
		path, until = env.History.Path, env.History.Time
	case env.State != "" && p.Report.Subnet.IsKnown():
		path = filepath.Join(p.Report.Subnet.Folder(env.State), history.FileName)
		if _, err := os.Stat(path); err != nil {
			return nil
		}
	default:
		return nil
	}
	var ends []audit.End
	for _, f := range p.Report.Findings {
		for _, e := range f.Subject.Ends {
			known := slices.ContainsFunc(ends, func(x audit.End) bool { return x.Node == e.Node && x.Num == e.Num })
			if e.Num >= 0 && e.Node != 0 && !known && len(ends) < maxPortTrends {
				ends = append(ends, e)
			}
		}
	}
	if len(ends) == 0 {
		return nil
	}
	h, err := history.Open(ctx, path)
	if err != nil {
		return err
	}
	defer h.Close()
	since := until.AddDate(0, 0, -trendDays)
	for _, e := range ends {
		if has, err := h.HasPort(ctx, e.Node, e.Num); err != nil || !has {
			if err != nil {
				return err
			}
			continue
		}
		events, err := h.EventsOf(ctx, e.Node, e.Num)
		if err != nil {
			return err
		}
		add := func(s *history.Series, err error) error {
			if err != nil || len(s.Points) == 0 {
				return err
			}
			p.PortTrends = append(p.PortTrends, page.PortTrend{Port: e.Label(), What: s.What, Chart: values.ChartOf(s.What, s, since, until, events)})
			return nil
		}
		if err := add(h.ErrorSeries(ctx, e.Node, e.Num, since, until)); err != nil {
			return err
		}
		for _, what := range []string{history.SampleBERGrade, history.SampleTemperature, history.SampleMean} {
			if err := add(h.Series(ctx, e.Node, e.Num, what, since, until)); err != nil {
				return err
			}
		}
	}
	return nil
}

// adaptiveLoads returns the loads of traffic patterns by the choices of switches, as fabsh report
// congestion has them; nil: no switch chooses.
func adaptiveLoads(ctx context.Context, tables *routes.Routes) (list []page.Load, err error) {
	for _, pattern := range []string{traffic.Shift, traffic.Ring, traffic.AllToAll} {
		l, err := traffic.MeasureAdaptive(ctx, tables, traffic.CongestionOptions{Pattern: pattern, Samples: loadSamples}, 0)
		if err != nil {
			return nil, err
		}
		if l != nil && l.Samples > 0 {
			list = append(list, page.Load{Pattern: pattern, AdaptiveLoad: l})
		}
	}
	return list, nil
}

// loadSamples is the number of samples that fabsh report congestion takes.
const loadSamples = 5

// Report is report().
var Report = lang.Builtin{
	Name:    "report",
	Returns: "string",
	Group:   lang.GroupOutput,
	Params: []lang.Param{
		{Name: "*audits", Kind: lang.KindAny, Doc: "names of shipped audits (default: the standard set)"},
		{Name: "deep", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "also read whole tables, and the forwarding tables of a live fabric"},
		{Name: "baseline", Kind: topology.KindFabric, Default: "None", Keyword: true, Doc: "an earlier fabric, from load_fabric(): its findings are not reported, and the page shows what changed since"},
		{Name: "fail_on", Kind: lang.KindText, Default: `"warning"`, Keyword: true, Doc: "lowest severity that counts for the verdict"},
		{Name: "**options", Kind: lang.KindAny, Doc: "options of audits: over=\"10s\""},
	},
	Doc: `Audits the fabric, and returns the findings as an HTML page.
The page is that of "fabsh report html": findings, topology, heat maps, routing. The page needs no network and no JavaScript; fs.write writes it to a file below --out. The fabric is swept again. Requests without an answer are on the page, and do not affect the exit status.`,
	Example: `
> page = report("links", "topology")
> "No problems found" in page
True
> sim.unlink("leaf-1/5")
> "There are findings" in report("links")
True
`,
	Run: lang.Do(runReport),
}

// reportArgs are the arguments of report().
type reportArgs struct {
	Audits   starlark.Tuple
	Deep     bool
	Baseline *topology.Fabric
	FailOn   string
	Options  []starlark.Tuple
}

// runReport implements report().
func runReport(c *lang.Call, a *reportArgs) (starlark.Value, error) {
	r := c.Runtime()
	env := topology.EnvOf(r)
	failOn, err := audit.ParseSeverity(a.FailOn)
	switch {
	case err != nil:
		return nil, lang.ParamError("fail_on", "%w", err)
	case !c.Fiber().Alone():
		return nil, lang.Errorf("not supported within parallel(): only one run at a time")
	case topology.ObserverOf(c) != nil:
		return nil, lang.Errorf("not supported within an audit, which is part of a report")
	}
	words, err := a.words()
	if err != nil {
		return nil, err
	}
	o := PageOptions{FailOn: failOn, Deep: a.Deep, Commands: []string{a.call()}}
	var text bytes.Buffer
	err = c.Block(func(ctx context.Context) error {
		in := script.Of(r)
		all, err := audits.LoadAuditsInScript(ctx, in, words, nil, a.Deep)
		if err != nil || all.Help != "" {
			return cmp.Or(err, lang.Errorf("unsupported option help"))
		}
		options := audits.RunOptions{Job: all.Job, ReadOnly: true, NoPast: env.Engine != nil && env.Engine.Traits().Name == "sim"}
		options.Begin = func(subnet fabric.Subnet) (audit.Acks, error) { return audits.RunAcks(r, env.State, subnet), nil }
		if a.Baseline != nil {
			options.Baseline, o.Baseline = a.Baseline.Fabric, a.Baseline.Fabric
		}
		found, err := all.Run(ctx, in, options)
		if err != nil {
			return err
		}
		p, _, failed := ReportPage(ctx, r, found, o)
		if failed != nil && ctx.Err() != nil {
			return failed
		}
		return p.Write(&text)
	})
	return starlark.String(text.String()), err
}

// words returns the arguments as words of a command line.
func (a *reportArgs) words() (words []string, err error) {
	for _, v := range a.Audits {
		name, ok := starlark.AsString(v)
		if !ok || strings.HasSuffix(name, ".star") || strings.HasPrefix(name, "-") {
			return nil, lang.ParamError("audits", "got %s, want the name of a shipped audit", lang.Brief(v))
		}
		words = append(words, name)
	}
	for _, kv := range a.Options {
		name := string(kv[0].(starlark.String))
		flag := script.FlagName(name)
		switch v := kv[1].(type) {
		case starlark.Bool:
			if v {
				words = append(words, flag)
			}
		case starlark.String:
			words = append(words, flag+"="+string(v))
		case starlark.Int, starlark.Float:
			words = append(words, flag+"="+v.String())
		default:
			return nil, lang.ParamError(name, "%w", lang.WantType(v, "a string, a number or a bool"))
		}
	}
	return words, nil
}

// call returns the call as a script writes it.
func (a *reportArgs) call() string {
	var args []string
	for _, v := range a.Audits {
		args = append(args, v.String())
	}
	if a.Deep {
		args = append(args, "deep=True")
	}
	if a.Baseline != nil {
		args = append(args, "baseline=...")
	}
	args = append(args, "fail_on="+starlark.String(a.FailOn).String())
	for _, kv := range a.Options {
		args = append(args, string(kv[0].(starlark.String))+"="+kv[1].String())
	}
	return "report(" + strings.Join(args, ", ") + ")"
}
