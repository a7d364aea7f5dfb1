package audits

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
)

// ReportType is the type of the result of fabsh audit.
var ReportType = &lang.ResultType{
	Name: "audit_report",
	Doc:  "The findings and the coverage of a run of audits. jsonl and csv have one line for each row of the coverage and each finding.",
	Members: []lang.ResultMember{
		{Name: "fabric", Doc: "the audited fabric, in one line"},
		{Name: "port", Doc: "the local port of the run; None for a file"},
		{Name: "subnet", Doc: "key of the subnet for its state and acks"},
		{Name: "audits", Doc: "names of the audits of the run"},
		{Name: "complete", Doc: "True if all requests were answered, except for attributes that agents do not support, and all checks of all audits were done"},
		{Name: "findings", Doc: "a list of finding, the most severe first"},
		{Name: "acked", Doc: "acknowledged findings: a list of finding, with ack"},
		{Name: "in_baseline", Doc: "number of findings that the baseline has too"},
		{Name: "silent", Doc: "names of nodes acknowledged as not answering, which the coverage omits"},
		{Name: "coverage", Doc: "a list of audit_coverage"},
		{Name: "not_done", Doc: "audits that did not finish: dicts of audit, why, skipped (it needs a live fabric)"},
		{Name: "not_judged", Doc: "checks that were not done, or not for all of the fabric: dicts of audit, check, needs, lacked"},
		{Name: "notes", Doc: "other remarks"},
		{Name: "datagrams", Doc: "number of datagrams sent, with answers to other requests"},
	},
}

// CoverageType is the type of a row of the coverage.
var CoverageType = &lang.ResultType{
	Name: "audit_coverage",
	Doc:  "The requests of an audit for one attribute. The sweep counts as an audit: it reads the data that all audits share.",
	Members: []lang.ResultMember{
		{Name: "audit", Doc: `name of the audit: "sweep", "partitions"`},
		{Name: "attribute", Doc: "name of the attribute"},
		{Name: "asked", Doc: "number of requests"},
		{Name: "answered", Doc: "number of requests that were answered"},
		{Name: "unsupported", Doc: "number of requests that the agent, or the file, does not support"},
		{Name: "timed_out", Doc: "number of requests without an answer"},
		{Name: "failed", Doc: "number of requests that were rejected, or could not be sent"},
	},
}

// RunType is the type of an audit's parameter run.
var RunType = &lang.ResultType{
	Name: "audit_run",
	Doc:  "The run after all other audits, for audits that judge the run itself: def audit(fabric, *, run=None).",
	Members: []lang.ResultMember{
		{Name: "coverage", Doc: "a list of audit_coverage, without nodes acknowledged as not answering"},
		{Name: "not_done", Doc: "names of audits that did not finish"},
		{Name: "findings", Doc: "a list of finding"},
		{Name: "changed", Doc: "activity of the subnet manager during the run, in words; None if none is known"},
		{Name: "state_error", Doc: "why the state of the job could not be read, or is not kept, in words; None if it is, or was not needed"},
		{Name: "kept", Doc: `True if an audit compared with the previous run: perf_rates(over="last")`},
		{Name: "uncompared", Doc: "why counters could not be compared with the previous run, in words; None if they were, or if no audit needed that"},
		{Name: "window", Doc: "the longest window of counters, in seconds; None without any"},
	},
}

// wrapRun returns the value of RunType. changed may be empty.
func wrapRun(r *lang.Runtime, report *audit.Report, found []audit.Finding, changed string) starlark.Value {
	var undone []string
	for _, f := range report.Failures {
		if !f.Skipped {
			undone = append(undone, f.Audit)
		}
	}
	state, kept, window := starlark.Value(starlark.None), false, starlark.Value(starlark.None)
	if x := keepingOf(r).run; x != nil {
		kept = x.needed
		if err := x.stateError(); err != nil {
			state = starlark.String(err.Error())
		}
		window = lang.OrNone(x.window > 0, seconds(x.window))
	}
	return lang.NewResult(RunType, starlark.NewList(coverageOf(report)), lang.Texts(undone), Wrap(found), lang.TextOrNone(changed), state, starlark.Bool(kept), lang.TextOrNone(uncompared(r)), window)
}

// report is the value of a run.
type report struct {
	*lang.Result
	r       *audit.Report
	verbose bool
}

// WrapReport returns r as a value to show in a format: one value, or for formats with lines a
// list of its parts. With verbose, text has more about each finding.
func WrapReport(r *audit.Report, format lang.Format, verbose bool) starlark.Value {
	coverage, acked := coverageOf(r), ackedOf(r)
	findings := findingsOf(r)
	if format == lang.FormatJSONL || format == lang.FormatCSV || format == lang.FormatRawCSV {
		return starlark.NewList(append(append(coverage, findings...), acked...))
	}
	var silent []string
	for _, s := range r.Silent {
		silent = append(silent, s.Name())
	}
	var failures []starlark.Value
	for _, f := range r.Failures {
		failures = append(failures, lang.DictOf("audit", starlark.String(f.Audit), "why", starlark.String(f.Err.Error()), "skipped", starlark.Bool(f.Skipped)))
	}
	return &report{r: r, verbose: verbose, Result: lang.NewResult(ReportType,
		starlark.String(r.Fabric), lang.TextOrNone(r.Port), starlark.String(r.Subnet.Key()), lang.Texts(r.Audits), starlark.Bool(r.Complete()),
		starlark.NewList(findings), starlark.NewList(acked), starlark.MakeInt(r.Known), lang.Texts(silent),
		starlark.NewList(coverage), starlark.NewList(failures), unjudgedOf(r), lang.Texts(r.Notes), starlark.MakeUint64(r.Datagrams))}
}

func unjudgedOf(r *audit.Report) *starlark.List {
	return lang.List(r.Unjudged, func(u audit.Unjudged) starlark.Value {
		return lang.DictOf("audit", starlark.String(u.Audit), "check", starlark.String(u.Check), "needs", starlark.String(u.Needs), "lacked", starlark.String(u.Lacked))
	})
}

func coverageOf(r *audit.Report) (list []starlark.Value) {
	for _, row := range r.Coverage.Rows() {
		list = append(list, lang.NewResult(CoverageType, starlark.String(row.Audit), starlark.String(row.Attribute),
			starlark.MakeInt(row.Asked), starlark.MakeInt(row.Answered), starlark.MakeInt(row.Unsupported), starlark.MakeInt(row.TimedOut), starlark.MakeInt(row.Failed)))
	}
	return list
}

// findingsOf returns the findings to be reported, with the acks that they have outgrown.
func findingsOf(r *audit.Report) (list []starlark.Value) {
	grown := map[string]*audit.Ack{}
	for _, g := range r.Grown {
		grown[g.ID()] = g.Ack
	}
	for _, f := range r.Findings {
		list = append(list, wrapFinding(f, grown[f.ID()]))
	}
	return list
}

func ackedOf(r *audit.Report) (list []starlark.Value) {
	for _, a := range r.Acked {
		list = append(list, wrapFinding(a.Finding, a.Ack))
	}
	return list
}
