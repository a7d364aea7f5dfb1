package audits

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
	"fabsh/fabric/hosts"
	"fabsh/fabric/plural"
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
func wrapRun(x *jobRun, report *audit.Report, found []audit.Finding, changed string) starlark.Value {
	var undone []string
	for _, f := range report.Failures {
		if !f.Skipped {
			undone = append(undone, f.Audit)
		}
	}
	state, kept, window := starlark.Value(starlark.None), false, starlark.Value(starlark.None)
	if x != nil {
		kept = x.needed
		if err := x.stateError(); err != nil {
			state = starlark.String(err.Error())
		}
		window = lang.OrNone(x.window > 0, seconds(x.window))
	}
	return lang.NewResult(RunType, starlark.NewList(coverageOf(report)), lang.Texts(undone), WrapFindings(found), lang.TextOrNone(changed), state, starlark.Bool(kept), lang.TextOrNone(x.uncompared()), window)
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

// unjudgedOf returns the checks that were not done.
func unjudgedOf(r *audit.Report) *starlark.List {
	return lang.List(r.Unjudged, func(u audit.Unjudged) starlark.Value {
		return lang.DictOf("audit", starlark.String(u.Audit), "check", starlark.String(u.Check), "needs", starlark.String(u.Needs), "lacked", starlark.String(u.Lacked))
	})
}

// coverageOf returns the rows of the coverage.
func coverageOf(r *audit.Report) (list []starlark.Value) {
	for _, row := range r.Coverage.Rows() {
		list = append(list, lang.NewResult(CoverageType, starlark.String(row.Audit), starlark.String(row.Attribute),
			starlark.MakeInt(row.Requests), starlark.MakeInt(row.Answered), starlark.MakeInt(row.Unsupported), starlark.MakeInt(row.TimedOut), starlark.MakeInt(row.Failed)))
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

// ackedOf returns the acknowledged findings.
func ackedOf(r *audit.Report) (list []starlark.Value) {
	for _, a := range r.Acked {
		list = append(list, wrapFinding(a.Finding, a.Ack))
	}
	return list
}

// Limits of the text, which should fit a screen: findings of one check, effects of one cause,
// notes, checks. Other formats have all.
const (
	maxOfCheck = 8
	maxEffects = 3
	maxNotes   = 8
	maxChecks  = 8 // that lack one information
	maxAcked   = 8
)

// Display returns the report as text: the coverage, then the findings, each with its effects.
func (v *report) Display() string {
	r := v.r
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s  %s\n", name, lang.OneLine(fmt.Sprintf(format, args...)))
	}
	if r.Rail != "" {
		line("port", "%s", r.Rail)
	}
	line("fabric", "%s", strings.TrimPrefix(r.Fabric, "fabric: "))
	line("audits", "%s", strings.Join(r.Audits, " "))
	line("coverage", "%s", checksText(r)+coverageText(&r.Coverage))
	for _, s := range r.Silent {
		line("silent", "%s: acknowledged, left out of the coverage", s.Name())
	}
	for _, f := range r.Failures {
		line("not done", "%s: %s", f.Audit, f.Why())
	}
	for _, u := range unjudgedText(r) {
		line("not judged", "%s", u)
	}
	for i, n := range r.Notes {
		if i == maxNotes {
			line("note", "%d more; -o json has all", len(r.Notes)-i)
			break
		}
		line("note", "%s", n)
	}
	line("findings", "%s", countText(r))
	for i, a := range r.Acked {
		if i == maxAcked && !v.verbose {
			line("acked", "%d more; -o json has all", len(r.Acked)-i)
			break
		}
		line("acked", "%s  %s: until %s: %s", a.ID(), a.Subject.Name(), a.Ack.Until.Format(time.DateOnly), a.Ack.Reason)
	}
	for _, g := range r.Grown {
		line("grown", "%s  %s: %s now, %s when it was acknowledged (until %s: %s)", g.ID(), g.Subject.Name(), formatCount(g.Now), formatCount(g.Ack.Count), g.Ack.Until.Format(time.DateOnly), g.Ack.Reason)
	}
	if len(r.Findings) > 0 {
		b.WriteString("\n" + findingsText(r.Findings, v.verbose))
	}
	return b.String()
}

// findingsText returns findings as text, each with its effects.
func findingsText(found []audit.Finding, verbose bool) string {
	var b strings.Builder
	shown, left := map[string]int{}, map[string]int{}
	var order []string
	for _, g := range audit.Fold(found) {
		if shown[g.Check]++; shown[g.Check] > maxOfCheck && !verbose {
			if left[g.Check]++; left[g.Check] == 1 {
				order = append(order, g.Check)
			}
			continue
		}
		writeGroup(&b, g, "", verbose)
	}
	for _, check := range order {
		fmt.Fprintf(&b, "... %d more of %s; -o json has all\n", left[check], check)
	}
	return b.String()
}

// writeGroup writes a finding and its effects.
func writeGroup(b *strings.Builder, g *audit.Group, indent string, verbose bool) {
	fmt.Fprintf(b, "%s%-8s  %s  %s: %s\n", indent, g.Severity, g.ID(), lang.OneLine(g.Subject.Name()), lang.OneLine(g.Message))
	if verbose {
		writeMore(b, g.Finding, indent+"          ")
	}
	for i, e := range g.Effects {
		if i == maxEffects && !verbose {
			n := 0
			for _, e := range g.Effects[i:] {
				n += e.Size()
			}
			fmt.Fprintf(b, "%s  ... %s\n", indent, plural.Count(n, "more effect", "more effects"))
			break
		}
		writeGroup(b, e, indent+"  ", verbose)
	}
}

// writeMore writes the other information about a finding.
func writeMore(b *strings.Builder, f *audit.Finding, indent string) {
	line := func(name, text string) { fmt.Fprintf(b, "%s%s  %s\n", indent, name, lang.OneLine(text)) }
	if f.Audit != "" {
		line("audit", f.Audit)
	}
	if !f.Since.IsZero() {
		line("since", f.Since.UTC().Format(time.RFC3339))
	}
	if len(f.Absorbed) > 0 {
		line("also", strings.Join(f.Absorbed, " "))
	}
	for _, d := range f.Data {
		text, err := lang.Render(d.Value.(starlark.Value), lang.FormatJSONL)
		if err == nil {
			line(d.Name, strings.TrimSpace(text))
		}
	}
}

// formatCount returns a count with at most three digits.
func formatCount(n float64) string { return strconv.FormatFloat(n, 'g', 3, 64) }

// coverageText returns the coverage in one line: the share, then the missing parts.
func coverageText(c *audit.Coverage) string {
	if c.Total().Requests == 0 {
		return c.Share()
	}
	var b strings.Builder
	b.WriteString(c.Share())
	for _, r := range c.Rows() {
		var parts []string
		for _, x := range []struct {
			n    int
			what string
		}{{r.TimedOut, "timed out"}, {r.Failed, "failed"}, {r.Unsupported, "not supported"}} {
			if x.n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
			}
		}
		if len(parts) > 0 {
			fmt.Fprintf(&b, "; %s of %s: %s of %d", r.Attribute, r.Audit, strings.Join(parts, ", "), r.Requests)
		}
	}
	return b.String()
}

// countText returns the number of findings by severity.
func countText(r *audit.Report) string {
	text := cmp.Or(r.Counts(), "none")
	if n := len(r.Acked); n > 0 {
		text += fmt.Sprintf("; %d acknowledged", n)
	}
	if n := len(r.Grown); n > 0 {
		text += fmt.Sprintf("; %d acknowledged, but 10 times as much since", n)
	}
	if r.Known > 0 {
		text += fmt.Sprintf("; %d also in the baseline", r.Known)
	}
	return text
}

// checksText returns how many checks were done, if any was not.
func checksText(r *audit.Report) string {
	left := map[[2]string]bool{}
	for _, u := range r.Unjudged {
		left[[2]string{u.Audit, u.Check}] = true
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s; ", max(r.Checks-len(left), 0), plural.Count(max(r.Checks, len(left)), "check", "checks"))
}

// unjudgedText returns the checks that were not done, by what the run lacked.
func unjudgedText(r *audit.Report) (lines []string) {
	for _, i := range r.Idle {
		lines = append(lines, fmt.Sprintf("%s: nothing could be judged (%s)", i.Audit, i.Lacked))
	}
	for _, u := range r.UnjudgedChecks() {
		checks := u.Checks
		if n := len(checks); n > maxChecks {
			checks = append(checks[:maxChecks:maxChecks], fmt.Sprintf("and %d more", n-maxChecks))
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", strings.Join(checks, " "), u.Lacked))
	}
	return lines
}

// HealthType is the type of the result of fabsh audit -o nodes.
var HealthType = &lang.ResultType{
	Name: "audit_nodes",
	Doc:  "Hosts with their states by the findings of audits. jsonl and csv have one line for each host.",
	Members: []lang.ResultMember{
		{Name: "hosts", Type: "list of audit_node", Doc: "by name"},
		{Name: "unnamed", Doc: "adapters whose names identify no host, dicts of guid, name, leaf (None: without a link) and why; their findings are in no host"},
		{Name: "incomplete", Doc: "what the sweep could not read, in words: hosts may be missing; None if it is complete"},
	},
}

// HostType is the type of a host.
var HostType = &lang.ResultType{
	Name:      "audit_node",
	Doc:       "A host with its state by the findings of audits.",
	Important: []string{"host", "state", "reasons"},
	Members: []lang.ResultMember{
		{Name: "host", Type: "string", Doc: "the first word of the names of its adapters"},
		{Name: "state", Type: "string", Doc: `"ok", "degraded", "unhealthy", "down" (it is not in the fabric, and the ports that it was linked to have no link), or "unknown": something was not judged, and nothing is known to be wrong`},
		{Name: "reasons", Doc: "the worst first: dicts of state, text, and of a finding id, check and severity, else None"},
	},
}

// healthReport is the value of hosts with states.
type healthReport struct {
	*lang.Result
	r *hosts.HealthReport
}

// WrapHealth returns r as a value to show in a format: one value, or for formats with lines its
// hosts.
func WrapHealth(r *hosts.HealthReport, format lang.Format) starlark.Value {
	list := lang.List(r.Hosts, func(h hosts.HostHealth) starlark.Value {
		reasons := lang.List(h.Reasons, func(x hosts.Reason) starlark.Value {
			severity := lang.OrNone(x.Severity != 0, starlark.String(x.Severity.String()))
			return lang.DictOf("state", starlark.String(x.State.String()), "text", starlark.String(x.Text), "id", lang.TextOrNone(x.ID), "check", lang.TextOrNone(x.Check), "severity", severity)
		})
		return lang.NewResult(HostType, starlark.String(h.Name), starlark.String(h.State.String()), reasons)
	})
	if format == lang.FormatJSONL || format == lang.FormatCSV || format == lang.FormatRawCSV {
		return list
	}
	unnamed := lang.List(r.Unnamed, func(u hosts.Unnamed) starlark.Value {
		return lang.DictOf("guid", starlark.String(u.GUID.String()), "name", starlark.String(u.Name), "leaf", lang.TextOrNone(u.Leaf), "why", starlark.String(u.Why))
	})
	return &healthReport{lang.NewResult(HealthType, list, unnamed, lang.TextOrNone(r.Incomplete)), r}
}

// Limits of the text; JSON has all.
const (
	maxReasons = 3 // of a host
	maxUnnamed = 8
)

// Display returns the hosts as text, the worst first. Hosts with the same reasons are one line.
func (v *healthReport) Display() string {
	var b strings.Builder
	var counts []string
	for _, s := range hosts.HealthNames() {
		n := 0
		for i := range v.r.Hosts {
			if v.r.Hosts[i].State == s {
				n++
			}
		}
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if counts == nil {
		counts = []string{"none"}
	}
	fmt.Fprintf(&b, "%-9s  %s\n", "hosts", strings.Join(counts, ", "))
	if v.r.Incomplete != "" {
		fmt.Fprintf(&b, "%-9s  hosts may be missing: the sweep is incomplete: %s; --hosts names those that must be there\n", "missing", v.r.Incomplete)
	}
	for i, u := range v.r.Unnamed {
		if i == maxUnnamed {
			fmt.Fprintf(&b, "%-9s  %d more; --for json has all\n", "no host", len(v.r.Unnamed)-i)
			break
		}
		fmt.Fprintf(&b, "%-9s  %s: not identified by its name: %s\n", "no host", u, u.Why)
	}
	for _, s := range hosts.HealthNames() {
		same := map[string][]string{}
		var order []string
		for i := range v.r.Hosts {
			if h := &v.r.Hosts[i]; h.State == s {
				why := reasonText(h)
				if same[why] == nil {
					order = append(order, why)
				}
				same[why] = append(same[why], h.Name)
			}
		}
		for _, why := range order {
			fmt.Fprintf(&b, "%-9s  %s%s\n", s, lang.OneLine(hosts.Fold(same[why])), why)
		}
	}
	return b.String()
}

// reasonText returns the reasons of a host, a line each.
func reasonText(h *hosts.HostHealth) string {
	var b strings.Builder
	for i, r := range h.Reasons {
		if i == maxReasons {
			fmt.Fprintf(&b, "\n  ... %d more; --for json has all", len(h.Reasons)-i)
			break
		}
		text := lang.OneLine(r.Text)
		if r.ID != "" {
			text = fmt.Sprintf("%-8s  %s  %s", r.Severity, r.ID, text)
		}
		b.WriteString("\n  " + text)
	}
	return b.String()
}
