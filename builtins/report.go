package builtins

import (
	"strings"

	"go.starlark.net/starlark"

	"fabsh/fabric/routing"
)

// RouteReport is what the commands route and verify find out about tables.
type RouteReport struct {
	Routes   *routing.Routes
	Verdict  *routing.Verdict      // nil: not asked for
	Diff     *routing.Diff         // with the live tables; nil: not asked for
	Failures []routing.LinkFailure // nil: not asked for
}

// WrapReport is r as a value that can be shown. Scripts have no such value.
func WrapReport(r *RouteReport) starlark.Value {
	v := &reportValue{routes: newRoutes(r.Routes, newGraph(r.Routes.Graph(), newFabric(r.Routes.Graph().Fabric())))}
	if r.Verdict != nil {
		v.verdict = newVerdict(r.Verdict)
	}
	if r.Diff != nil {
		v.diff = diffOf(r.Routes.Graph(), r.Diff)
	}
	if r.Failures != nil {
		v.failures = failuresOf(r.Failures)
	}
	return v
}

// reportValue is a RouteReport in the values that scripts have. What was not
// asked for is nil.
type reportValue struct {
	routes   *routesValue
	verdict  *verdictValue
	diff     *result
	failures *starlark.List
}

var _ factual = (*reportValue)(nil)

func (r *reportValue) String() string        { return r.routes.String() }
func (r *reportValue) Type() string          { return "policy_report" }
func (r *reportValue) Freeze()               {}
func (r *reportValue) Truth() starlark.Bool  { return true }
func (r *reportValue) Hash() (uint32, error) { return 0, unhashable(r) }
func (r *reportValue) schema() string        { return "policy_report/1" }

func (r *reportValue) facts() []fact {
	out := []fact{
		{name: "policy", value: starlark.String(r.routes.r.Engine)},
		{name: "switches", value: starlark.MakeInt(r.routes.Len())},
		{name: "entries", value: starlark.MakeInt(r.routes.r.Entries())},
	}
	if r.verdict == nil {
		out = append(out, fact{name: "notes", value: texts(allNotes(r.routes.r))})
	} else {
		for _, f := range r.verdict.facts() {
			if f.name != "policy" {
				out = append(out, f)
			}
		}
	}
	if r.diff != nil {
		out = append(out, fact{name: "diff", value: r.diff})
	}
	if r.failures != nil {
		out = append(out, fact{name: "failures", value: r.failures})
	}
	return out
}

func (r *reportValue) display() string {
	var parts []string
	if r.verdict == nil {
		parts = append(parts, r.routes.display())
	} else {
		parts = append(parts, r.verdict.display())
	}
	if r.diff != nil {
		parts = append(parts, "against the live tables:\n"+r.diff.display())
	}
	if r.failures != nil {
		text := "no link between switches\n"
		if r.failures.Len() > 0 {
			text = renderText(r.failures)
		}
		parts = append(parts, "if a link fails:\n"+text)
	}
	return strings.Join(parts, "\n")
}
