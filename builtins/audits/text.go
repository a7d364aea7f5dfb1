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
	"fabsh/fabric/plural"
)

// Limits of the text, which should fit a screen: findings of one check, effects of one cause,
// notes, checks. Other formats have all.
const (
	maxOfCheck = 8
	maxEffects = 3
	maxNotes   = 8
	maxChecks  = 8 // that lack the same
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
		line("grown", "%s  %s: %s now, %s when it was acknowledged (until %s: %s)", g.ID(), g.Subject.Name(), number(g.Now), number(g.Ack.Count), g.Ack.Until.Format(time.DateOnly), g.Ack.Reason)
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
			fmt.Fprintf(b, "%s  ... %d more effects\n", indent, n)
			break
		}
		writeGroup(b, e, indent+"  ", verbose)
	}
}

// writeMore writes what else is known of a finding.
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

// number returns a count with at most three digits.
func number(n float64) string { return strconv.FormatFloat(n, 'g', 3, 64) }

// coverageText returns the coverage in one line: the share, then the missing parts.
func coverageText(c *audit.Coverage) string {
	if c.Total().Asked == 0 {
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
			fmt.Fprintf(&b, "; %s of %s: %s of %d", r.Attribute, r.Audit, strings.Join(parts, ", "), r.Asked)
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
	for _, u := range r.UnjudgedChecks() {
		checks := u.Checks
		if n := len(checks); n > maxChecks {
			checks = append(checks[:maxChecks:maxChecks], fmt.Sprintf("and %d more", n-maxChecks))
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", strings.Join(checks, " "), u.Lacked))
	}
	return lines
}
