package audits

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
)

// ReportType is the type of what fabsh audit shows.
var ReportType = &lang.ResultType{
	Name: "audit_report",
	Doc:  "What a run of audits found, and what it covered. jsonl and csv have the coverage and the findings, one a line.",
	Members: []lang.ResultMember{
		{Name: "fabric", Doc: "what was audited, in one line"},
		{Name: "port", Doc: "the port that the run was made from; None of a file"},
		{Name: "subnet", Doc: "what state and acks of the subnet are kept by"},
		{Name: "audits", Doc: "that ran"},
		{Name: "complete", Doc: "all that was asked was answered, but for what agents or the file do not have, and all audits ran"},
		{Name: "findings", Doc: "what is to be told: a list of finding, the most severe first"},
		{Name: "acked", Doc: "what is known: a list of finding, with who says so"},
		{Name: "in_baseline", Doc: "how many findings the baseline has too"},
		{Name: "silent", Doc: "names of those known to be silent, which coverage leaves out"},
		{Name: "coverage", Doc: "a list of audit_coverage"},
		{Name: "not_done", Doc: "audits that did not run to their end: dicts of audit, why, skipped (it needs what a file does not have)"},
		{Name: "notes", Doc: "what else to know"},
		{Name: "datagrams", Doc: "how many were sent, answers to others included"},
	},
}

// CoverageType is the type of a line of coverage.
var CoverageType = &lang.ResultType{
	Name: "audit_coverage",
	Doc:  "What an audit asked of one attribute, in requests. The sweep is an audit here: it reads what all others share.",
	Members: []lang.ResultMember{
		{Name: "audit", Doc: `who asked: "sweep", "partitions"`},
		{Name: "attribute", Doc: "what was asked for"},
		{Name: "asked", Doc: "how many requests"},
		{Name: "answered", Doc: "of these, how many were"},
		{Name: "unsupported", Doc: "how many were for what the agent, or the file, does not have"},
		{Name: "timed_out", Doc: "how many got no answer"},
		{Name: "failed", Doc: "how many were refused, or could not be sent"},
	},
}

// RunType is the type of what an audit gets that has a parameter run.
var RunType = &lang.ResultType{
	Name: "audit_run",
	Doc:  "What is known of a run when all other audits are done: for audits that judge the run itself, def audit(fabric, *, run=None).",
	Members: []lang.ResultMember{
		{Name: "coverage", Doc: "a list of audit_coverage, without those known to be silent"},
		{Name: "not_done", Doc: "names of audits that did not run to their end"},
		{Name: "findings", Doc: "what they found: a list of finding"},
		{Name: "changed", Doc: "what the subnet manager did meanwhile, in words; None: nothing that is known"},
		{Name: "state_error", Doc: "why the state of the job could not be read, or is not kept, in words; None: it is, or was not needed"},
		{Name: "kept", Doc: `whether an audit has asked for what the run before has kept: perf_rates(over="last")`},
		{Name: "uncompared", Doc: "why counters could not be compared with that, in words; None: they could, or that was not asked for"},
		{Name: "window", Doc: "the longest window in seconds that counters were compared over; None: over none"},
	},
}

// WrapRun is what is known of a run. changed may be empty.
func WrapRun(r *lang.Runtime, report *audit.Report, found []audit.Finding, changed string) starlark.Value {
	var undone []string
	for _, f := range report.Failures {
		if !f.Skipped {
			undone = append(undone, f.Audit)
		}
	}
	state, kept, window := starlark.Value(starlark.None), false, starlark.Value(starlark.None)
	if x := keepingOf(r).run; x != nil {
		kept = x.asked
		if err := x.stateError(); err != nil {
			state = starlark.String(err.Error())
		}
		window = lang.OrNone(x.window > 0, seconds(x.window))
	}
	return lang.NewResult(RunType, starlark.NewList(coverageOf(report)), lang.Texts(undone), Wrap(found), lang.TextOrNone(changed), state, starlark.Bool(kept), lang.TextOrNone(Uncompared(r)), window)
}

// report is the value of a run.
type report struct {
	*lang.Result
	r *audit.Report
}

// WrapReport is r as a value to show in a format: a whole, or for formats of
// lines the list of its parts.
func WrapReport(r *audit.Report, format lang.Format) starlark.Value {
	coverage, acked := coverageOf(r), ackedOf(r)
	findings := lang.Collect(Wrap(r.Findings).(starlark.Iterable))
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
	return &report{r: r, Result: lang.NewResult(ReportType,
		starlark.String(r.Fabric), lang.TextOrNone(r.Port), starlark.String(r.Subnet.Key()), lang.Texts(r.Audits), starlark.Bool(r.Complete()),
		starlark.NewList(findings), starlark.NewList(acked), starlark.MakeInt(r.Known), lang.Texts(silent),
		starlark.NewList(coverage), starlark.NewList(failures), lang.Texts(r.Notes), starlark.MakeUint64(r.Datagrams))}
}

func coverageOf(r *audit.Report) (list []starlark.Value) {
	for _, row := range r.Coverage.Rows() {
		list = append(list, lang.NewResult(CoverageType, starlark.String(row.Audit), starlark.String(row.Attribute),
			starlark.MakeInt(row.Asked), starlark.MakeInt(row.Answered), starlark.MakeInt(row.Unsupported), starlark.MakeInt(row.TimedOut), starlark.MakeInt(row.Failed)))
	}
	return list
}

func ackedOf(r *audit.Report) (list []starlark.Value) {
	for _, a := range r.Acked {
		list = append(list, wrapFinding(a.Finding, a.Ack))
	}
	return list
}
