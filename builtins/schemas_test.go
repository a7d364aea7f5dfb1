package builtins

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/records"
	"fabsh/builtins/remedies"
	"fabsh/builtins/routing"
)

// TestSchemas: SCHEMAS.md is what the declarations say.
func TestSchemas(t *testing.T) { golden(t, "SCHEMAS.md", schemas()) }

// schemas returns SCHEMAS.md: what the JSON of each type of values has, from the same
// declarations as help.
func schemas() string {
	var b strings.Builder
	b.WriteString(`<!-- Code generated from the types' declarations: go test ./builtins -run TestSchemas -update. DO NOT EDIT. -->

# What -o json writes

Each ` + "`show()`" + ` writes one JSON document: the value; with ` + "`-o jsonl`" + ` one line for each element. A value of fabsh is an object whose first member, ` + "`schema`" + `, names its type and version.
The version is raised where members are taken away or change their meaning; new members may come at any time.
CSV has the same members as columns.

- Numbers are numbers, lists are lists; what is not known is ` + "`null`" + `.
- Dicts of scripts are objects without a schema; keys that are LIDs or numbers are texts.
- GUIDs are texts of 0x and 16 digits; bytes are texts of hexadecimal digits; a directed route is "0,1,3"; a duration "1.5s"; a time as in RFC 3339.
- Keys of a fabric show as "none" or "hidden".
- Enumerated words are those of the specification in lower snake case; one that is unknown is "unknown(9)".

## Records

The record of an attribute has its name in snake case as schema, ` + "`port_info/1`" + `, and its fields, which [ATTRIBUTES.md](../mad/ATTRIBUTES.md) lists, under theirs. Masks are lists of words. Beside a word or a mask ` + "`x`" + ` stands its number, ` + "`x_code`" + `.
What answers a request to a target begins with:

`)
	schemaTable(&b, records.OriginMembers)
	list := append(check.Types(), datagrams.StatsDoc(), routing.ReportDoc(), datagramDoc(), program.TestResultType.TypeDoc(), audits.ReportType.TypeDoc(), audits.CoverageType.TypeDoc(), audits.AckType.TypeDoc(), audits.HealthType.TypeDoc(), audits.HostType.TypeDoc(), remedies.RunType.TypeDoc(), remedies.DecisionType.TypeDoc(), routing.HostsDiffType.TypeDoc(), routing.HostsChangeType.TypeDoc())
	slices.SortFunc(list, func(x, y lang.TypeDoc) int { return cmp.Compare(x.Name, y.Name) })
	for _, d := range list {
		if d.Schema == "" {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", d.Schema, d.Doc)
		schemaTable(&b, columnsOf(d))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// columnsOf are the members that the JSON of a type has, in its order.
func columnsOf(d lang.TypeDoc) (columns []lang.MemberDoc) {
	for _, m := range d.Members {
		if m.Column {
			columns = append(columns, m)
		}
	}
	return columns
}

func schemaTable(b *strings.Builder, members []lang.MemberDoc) {
	b.WriteString("| member | |\n|---|---|\n")
	for _, m := range members {
		doc := m.Doc
		if m.Words != nil {
			doc += "; one of " + strings.Join(m.Words, " ")
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", m.Name, strings.ReplaceAll(doc, "|", "\\|"))
	}
	b.WriteByte('\n')
}

// datagramDoc describes what fabsh decode shows.
func datagramDoc() lang.TypeDoc {
	return lang.TypeDoc{Name: "datagram", Schema: records.Datagram(nil).(lang.Factual).Schema(), Doc: "What fabsh decode shows. The fields of the header follow the summary, by their names.", Members: []lang.MemberDoc{
		{Name: "summary", Column: true, Doc: "what it asks or answers, in a line"},
		{Name: "parts", Column: true, Doc: "the records behind the header: an RMPP header, a component mask, an attribute"},
		{Name: "problems", Column: true, Doc: "what is wrong with it: texts"},
		{Name: "without_layout", Column: true, Doc: "bytes that are not 0 and have no layout: a list of dicts of offset and data, hexadecimal"},
	}}
}
