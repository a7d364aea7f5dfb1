// Package page collects the page of a report: the findings of audits, and the verdict on the
// forwarding tables. fabric/page writes it.
//
//	page.go     the page; acks of a run
//	builtin.go  report()

package builtins

import (
	"context"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/diff"
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

// ReportPage returns the page of a report, with the verdict on the forwarding tables. status is the
// exit status of the verdict; failed is why it is unknown, though the tables were read.
func ReportPage(ctx context.Context, rt *lang.Runtime, r *audit.Report, o PageOptions) (p *page.Page, status int, failed error) {
	env := topology.EnvOf(rt)
	live := env.Engine != nil && !env.Engine.Traits().Simulated
	p = &page.Page{Report: r, FailOn: o.FailOn, Version: lang.StateOf[PageSettings](rt).Version, Commands: o.Commands, Dated: live}
	plain := new(check.Explainer)
	f := r.Model
	if p.Baseline = o.Baseline; p.Baseline != nil && f != nil {
		var err error
		if p.Diff, err = diff.Compare(ctx, p.Baseline, f); err != nil {
			p.NoDiff = plain.Explain(err)
		}
	}
	switch {
	case f == nil:
		p.NoRoutes = "no fabric is known"
		return p, lang.StatusClean, nil
	case live && !o.Deep:
		p.NoRoutes = "the forwarding tables of a live fabric are read only with --deep"
		return p, lang.StatusClean, nil
	case env.Engine == nil && !f.HasLFTs():
		p.NoRoutes = "the file has no forwarding tables; fabsh snapshot stores them"
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
		p.Shift, err = traffic.MeasureCongestion(ctx, tables, traffic.CongestionOptions{Pattern: traffic.Shift, Samples: page.MaxShifts, Each: func(k, flows int) {
			p.Shifts = append(p.Shifts, page.Shift{Distance: k, Flows: flows})
		}})
	}
	if err == nil && p.Verdict.Adaptive != verify.AdaptiveUnknown {
		p.Loads, err = loads(ctx, tables)
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

// loads are those of patterns by the choices of switches, as fabsh report congestion has them;
// nil: no switch chooses.
func loads(ctx context.Context, tables *routes.Routes) (list []page.Load, err error) {
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

// loadSamples is as many as fabsh report congestion takes.
const loadSamples = 5
