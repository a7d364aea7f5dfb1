package audits

import (
	"cmp"
	"fmt"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
)

// How many findings of one check the text tells, how many effects of one cause, and how
// many notes: it is to fit a screen. The other formats tell all.
const (
	maxOfCheck = 8
	maxEffects = 3
	maxNotes   = 8
)

// Display is the report for people: what it covers, then the findings, each with
// what follows from it.
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
	line("coverage", "%s", coverageText(&r.Coverage))
	for _, s := range r.Silent {
		line("silent", "%s: known, and left out", s.Name())
	}
	for _, f := range r.Failures {
		why := firstLine(f.Err.Error())
		if f.Skipped {
			why = "it needs a live fabric; this is a file"
		}
		line("not done", "%s: %s", f.Audit, why)
	}
	for i, n := range r.Notes {
		if i == maxNotes {
			line("note", "and %d more: -o json tells all", len(r.Notes)-i)
			break
		}
		line("note", "%s", n)
	}
	line("findings", "%s", countText(r))
	if len(r.Findings) > 0 {
		b.WriteString("\n" + findingsText(r.Findings))
	}
	return b.String()
}

// findingsText are findings, each with what follows from it.
func findingsText(found []audit.Finding) string {
	var b strings.Builder
	told, left := map[string]int{}, map[string]int{}
	var order []string
	for _, g := range audit.Fold(found) {
		if told[g.Check]++; told[g.Check] > maxOfCheck {
			if left[g.Check]++; left[g.Check] == 1 {
				order = append(order, g.Check)
			}
			continue
		}
		writeGroup(&b, g, "")
	}
	for _, check := range order {
		fmt.Fprintf(&b, "... and %d more of %s: -o json tells all\n", left[check], check)
	}
	return b.String()
}

// writeGroup writes a finding and what follows from it.
func writeGroup(b *strings.Builder, g *audit.Group, indent string) {
	fmt.Fprintf(b, "%s%-8s  %s  %s: %s\n", indent, g.Severity, g.Check, lang.OneLine(g.Subject.Name()), lang.OneLine(g.Message))
	for i, e := range g.Effects {
		if i == maxEffects {
			n := 0
			for _, e := range g.Effects[i:] {
				n += e.Size()
			}
			fmt.Fprintf(b, "%s  ... and %d more that follow from it\n", indent, n)
			break
		}
		writeGroup(b, e, indent+"  ")
	}
}

// coverageText is what was covered, in a line: the whole, then what is missing.
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

// countText is how many findings there are, by severity.
func countText(r *audit.Report) string {
	text := cmp.Or(r.Counts(), "none")
	if n := len(r.Acked); n > 0 {
		text += fmt.Sprintf("; %d acknowledged", n)
	}
	if r.Known > 0 {
		text += fmt.Sprintf("; %d in the baseline too", r.Known)
	}
	return text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
