package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric/plural"
)

// Report is the outcome of a trial.
type Report struct {
	Nodes         int // found by the sweep
	SweepProblems int
	SweepEnded    bool // early
	Models        []*Model
	Records       []*Result // of the subnet administrator
	Events        Events
	Comparisons   []*Comparison // between answers
	Host          []*Comparison // with other tools of the host: not in a recording

	saTimeouts int
}

// Clean reports whether nothing differed, timed out or was malformed.
func (r *Report) Clean() bool {
	if r.SweepEnded || r.SweepProblems > 0 {
		return false
	}
	for _, c := range slices.Concat(r.Comparisons, r.Host) {
		if len(c.Differed) > 0 {
			return false
		}
	}
	for _, x := range r.results() {
		if x.Outcome == TimedOut || x.Outcome == Malformed {
			return false
		}
	}
	return true
}

// Count returns the number of results with an outcome.
func (r *Report) Count(o Outcome) (n int) {
	for _, x := range r.results() {
		if x.Outcome == o {
			n++
		}
	}
	return n
}

// results returns all results.
func (r *Report) results() (list []*Result) {
	for _, d := range r.devices() {
		list = append(list, d.Results...)
	}
	return append(list, r.Records...)
}

// devices returns the devices of all models.
func (r *Report) devices() (list []*Device) {
	for _, m := range r.Models {
		list = append(list, m.Devices...)
	}
	return list
}

// addComparison adds a comparison to a list, unless it is empty.
func addComparison(to *[]*Comparison, c *Comparison) {
	if len(c.Agreed)+len(c.Differed)+len(c.NotCompared) > 0 {
		*to = append(*to, c)
	}
}

// String returns the report as text.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n", plural.Count(r.Nodes, "node", "nodes"), plural.Count(len(r.Models), "model", "models"))
	if r.SweepEnded {
		b.WriteString("the sweep ended early: other devices are unknown\n")
	}
	if r.SweepProblems > 0 {
		fmt.Fprintf(&b, "%s of the sweep\n", plural.Count(r.SweepProblems, "problem", "problems"))
	}
	for _, m := range r.Models {
		fmt.Fprintf(&b, "\n%v: %d found, %d read\n", m, m.Found, m.read())
		for _, d := range m.Devices {
			if d.Unread != "" {
				fmt.Fprintf(&b, "  %s: not queried: %s\n", d.Name, d.Unread)
			}
		}
		var all []*Result
		for _, d := range m.Devices {
			all = append(all, d.Results...)
		}
		writeOutcomes(&b, all)
	}
	b.WriteString("\nsubnet administrator\n")
	writeOutcomes(&b, r.Records)
	fmt.Fprintf(&b, "\nevents: %v\n", &r.Events)
	if len(r.Comparisons) > 0 {
		b.WriteString("\ncompared\n")
		writeComparisons(&b, r.Comparisons)
	}
	if len(r.Host) > 0 {
		b.WriteString("\ncompared with this host\n")
		writeComparisons(&b, r.Host)
	}
	return b.String()
}

// read returns the number of devices that were queried.
func (m *Model) read() (n int) {
	for _, d := range m.Devices {
		if d.Unread == "" {
			n++
		}
	}
	return n
}

// String returns the events as text.
func (e *Events) String() string {
	if e.Outcome != Answered {
		return strings.TrimSuffix(fmt.Sprintf("%s: %s", outcomeText(e.Outcome), e.Detail), ": ")
	}
	var list []string
	for _, number := range slices.Sorted(maps.Keys(e.Traps)) {
		list = append(list, fmt.Sprintf("trap %d: %d", number, e.Traps[number]))
	}
	if list == nil {
		list = []string{"none received"}
	}
	return fmt.Sprintf("subscribed for %v; %s", e.Duration, strings.Join(list, ", "))
}

func outcomeText(o Outcome) string { return strings.ReplaceAll(o.String(), "_", " ") }

// writeOutcomes writes the attributes by outcome, with the reason where there is one.
func writeOutcomes(b *strings.Builder, list []*Result) {
	for o := range Outcome(len(outcomeWords)) {
		groups := map[string][]string{} // attributes by reason
		count := map[string]int{}
		for _, r := range list {
			if r.Outcome != o {
				continue
			}
			name := r.Class + " " + r.Attribute
			if count[r.Detail]++; !slices.Contains(groups[r.Detail], name) {
				groups[r.Detail] = append(groups[r.Detail], name)
			}
		}
		for _, detail := range slices.Sorted(maps.Keys(groups)) {
			reason := outcomeText(o)
			if detail != "" {
				reason += " (" + detail + ")"
			}
			fmt.Fprintf(b, "  %s, %s: %s\n", reason, plural.Count(count[detail], "request", "requests"), byClass(groups[detail]))
		}
	}
}

// byClass lists attributes with each class named once.
func byClass(names []string) string {
	var b strings.Builder
	last := ""
	for i, name := range names {
		class, attribute, _ := strings.Cut(name, " ")
		switch {
		case class != last && i > 0:
			b.WriteString("; " + class + " " + attribute)
		case i == 0:
			b.WriteString(name)
		default:
			b.WriteString(", " + attribute)
		}
		last = class
	}
	return b.String()
}

// writeComparisons writes a line for each source and attribute, and one for each difference.
func writeComparisons(b *strings.Builder, list []*Comparison) {
	type key struct{ source, attribute string }
	agreed, open := map[key]int{}, map[key]int{}
	differed := map[key][]string{}
	var order []key
	for _, c := range list {
		k := key{c.Source, c.Attribute}
		if !slices.Contains(order, k) {
			order = append(order, k)
		}
		agreed[k] += len(c.Agreed)
		open[k] += len(c.NotCompared)
		for _, d := range c.Differed {
			place := strings.TrimSuffix(c.Device+", "+c.Place, ", ")
			line := fmt.Sprintf("%s: %s", place, d.Field)
			if d.Here != "" || d.There != "" {
				line += fmt.Sprintf(" is %s here, %s there", cmp.Or(d.Here, `""`), cmp.Or(d.There, `""`))
			}
			differed[k] = append(differed[k], line)
		}
	}
	for _, k := range order {
		fmt.Fprintf(b, "  %s with %s: %s agree, %d differ, %d not compared\n", k.attribute, k.source, plural.Count(agreed[k], "field", "fields"), len(differed[k]), open[k])
		for _, line := range differed[k] {
			fmt.Fprintf(b, "    %s\n", line)
		}
	}
}
