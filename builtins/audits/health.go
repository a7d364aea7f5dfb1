package audits

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/hosts"
)

// HealthType is the type of the result of fabsh audit -o nodes.
var HealthType = &lang.ResultType{
	Name: "audit_nodes",
	Doc:  "Hosts with their states by the findings of audits. jsonl and csv have one line for each host.",
	Members: []lang.ResultMember{
		{Name: "hosts", Type: "list of audit_node", Doc: "by name"},
		{Name: "unnamed", Doc: "names of adapters that do not name a host; their findings are in no host"},
		{Name: "incomplete", Doc: "what the sweep could not read, in words: hosts may be missing; None if it is complete"},
	},
}

// HostType is the type of a host.
var HostType = &lang.ResultType{
	Name: "audit_node",
	Doc:  "A host with its state by the findings of audits.",
	Members: []lang.ResultMember{
		{Name: "host", Type: "string", Doc: "the first word of the names of its adapters"},
		{Name: "state", Type: "string", Doc: `"ok", "degraded", "unhealthy", or "unknown": something was not judged, and nothing is known to be wrong`},
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
	return &healthReport{lang.NewResult(HealthType, list, lang.Texts(r.Unnamed), lang.TextOrNone(r.Incomplete)), r}
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
	for i, name := range v.r.Unnamed {
		if i == maxUnnamed {
			fmt.Fprintf(&b, "%-9s  %d more; --for json has all\n", "no host", len(v.r.Unnamed)-i)
			break
		}
		fmt.Fprintf(&b, "%-9s  %q does not name a host\n", "no host", name)
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
