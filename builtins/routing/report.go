package routing

import (
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/verify"
)

// WrapReport returns r as a value to show. Scripts have no such value.
func WrapReport(r *verify.Report) starlark.Value {
	v := &reportValue{routes: newRoutes(r.Routes, newGraph(r.Routes.Graph(), topology.NewFabric(r.Routes.Graph().Fabric())))}
	if r.Verdict != nil {
		v.verdict = newVerdict(r.Verdict)
	}
	if r.Diff != nil {
		v.diff = wrapDiff(r.Routes.Graph(), r.Diff)
	}
	if r.Failures != nil {
		v.failures = wrapFailures(r.Failures)
	}
	return v
}

// ReportDoc describes the output of commands on tables.
func ReportDoc() lang.TypeDoc {
	d := lang.TypeDoc{Name: "policy_report", Schema: (&reportValue{}).Schema(), Doc: "The output of fabsh route, and of fabsh verify with --fail-each-link. Members that were not requested are missing.", Members: []lang.MemberDoc{
		{Name: "policy", Column: true, Doc: "what made the tables"},
		{Name: "switches", Column: true, Doc: "number of switches"},
		{Name: "entries", Column: true, Doc: "number of entries with a port, over all switches"},
	}}
	for _, m := range VerdictType.Members {
		if m.Name != "policy" {
			d.Members = append(d.Members, lang.MemberDoc{Name: m.Name, Column: true, Doc: m.Doc})
		}
	}
	return lang.TypeDoc{Name: d.Name, Schema: d.Schema, Doc: d.Doc, Members: append(d.Members,
		lang.MemberDoc{Name: "diff", Column: true, Doc: "with --diff: a routes_diff"},
		lang.MemberDoc{Name: "failures", Column: true, Doc: "with --fail-each-link: a list of link_failure"})}
}

// reportValue is a verify.Report in the values of scripts; nil means not requested.
type reportValue struct {
	routes   *Routes
	verdict  *verdictValue
	diff     *lang.Result
	failures *starlark.List
}

var _ lang.Factual = (*reportValue)(nil)

func (r *reportValue) String() string        { return r.routes.String() }
func (r *reportValue) Type() string          { return "policy_report" }
func (r *reportValue) Freeze()               {}
func (r *reportValue) Truth() starlark.Bool  { return true }
func (r *reportValue) Hash() (uint32, error) { return 0, lang.Unhashable(r) }
func (r *reportValue) Schema() string        { return "policy_report/2" }

func (r *reportValue) Facts() []lang.Fact {
	out := []lang.Fact{
		{Name: "policy", Value: starlark.String(r.routes.Tables.Engine)},
		{Name: "switches", Value: starlark.MakeInt(r.routes.Len())},
		{Name: "entries", Value: starlark.MakeInt(r.routes.Tables.Entries())},
	}
	if r.verdict == nil {
		out = append(out, lang.Fact{Name: "notes", Value: lang.Texts(allNotes(r.routes.Tables))})
	} else {
		for _, f := range r.verdict.Facts() {
			if f.Name != "policy" {
				out = append(out, f)
			}
		}
	}
	if r.diff != nil {
		out = append(out, lang.Fact{Name: "diff", Value: r.diff})
	}
	if r.failures != nil {
		out = append(out, lang.Fact{Name: "failures", Value: r.failures})
	}
	return out
}

func (r *reportValue) Display() string {
	var parts []string
	if r.verdict == nil {
		parts = append(parts, r.routes.Display())
	} else {
		parts = append(parts, r.verdict.Display())
	}
	if r.diff != nil {
		parts = append(parts, "against the current tables:\n"+r.diff.Display())
	}
	if r.failures != nil {
		text := "no link between switches\n"
		if r.failures.Len() > 0 {
			text = lang.RenderText(r.failures)
		}
		parts = append(parts, "if a link fails:\n"+text)
	}
	return strings.Join(parts, "\n")
}
