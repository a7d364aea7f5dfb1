package builtins

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"fabsh/builtins/accept"
	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/records"
	"fabsh/builtins/remedies"
	"fabsh/builtins/routing"
	"fabsh/builtins/script"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestReference: REFERENCE.md is generated from the declarations.
func TestReference(t *testing.T) { golden(t, "REFERENCE.md", help.Reference(Functions())) }

// TestDeclarations: nothing is declared by halves.
func TestDeclarations(t *testing.T) {
	for _, b := range documentedBuiltins() {
		if b.Doc == "" || b.Example == "" || b.Run == nil {
			t.Errorf("%s lacks a doc, an example or its function", b.Name)
			continue
		}
		if err := b.Check(); err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(b.Summary(), ".") || !strings.HasSuffix(b.Doc, ".") {
			t.Errorf("%s: the doc is no full sentence: %q", b.Name, b.Doc)
		}
		optional := false
		for _, p := range b.Params {
			if p.Doc == "" {
				t.Errorf("%s: parameter %s lacks a doc", b.Name, p.Name)
			}
			if p.Default != "" && p.Default != "None" && p.Kind != lang.KindAny && p.DefaultValue() == nil {
				t.Errorf("%s: parameter %s has a default that is none of its kind: %s", b.Name, p.Name, p.Default)
			}
			if optional && p.Default == "" && !p.Keyword && !strings.HasPrefix(p.Name, "*") {
				t.Errorf("%s: parameter %s must be given but follows one that need not", b.Name, p.Name)
			}
			optional = optional || p.Default != ""
		}
	}
	for _, b := range functions() {
		if !strings.Contains(strings.Join(help.Groups, "\n"), b.Group) || b.Group == "" {
			t.Errorf("%s is in no group", b.Name)
		}
	}
}

// TestNames: these are all global names, and each has help.
func TestNames(t *testing.T) {
	f := plain(t, nil)
	want := "at cabling catch detail discover dr errors every exit expect finding fmt fs " +
		"get_ar get_guids get_lft get_mft get_pkeys get_plft get_routes get_sl2vl get_vlarb " +
		"gid guid help hex hostlist isolate json link_loss load_fabric load_history load_jobs load_measurements load_routes load_tenants load_thresholds mad_get mad_send mad_set math metric not_judged ok parallel " +
		"perf_clear perf_get perf_rates perf_set plan " +
		"port_disable port_enable port_reset port_set " +
		"quit random re reg_get report reset restore " +
		"sa_delete sa_get sa_getmulti sa_gettable sa_gettrace sa_set sa_subscribe save " +
		"set_guids set_lft set_mft set_pkeys set_sl2vl set_vlarb " +
		"show sleep smp_get smp_set stats sum table this_host ticket time yaml"
	if got := strings.Join(f.Interpreter.Globals.Keys(), " "); got != want {
		t.Errorf("global names\n%s\nwant\n%s", got, want)
	}
	for name, v := range f.Interpreter.Globals {
		if _, err := help.Of(f.Runtime).Find(name, 0); err != nil {
			t.Errorf("help(%q): %v", name, err)
		}
		if _, isUniversal := starlark.Universe[name]; isUniversal {
			t.Errorf("%s hides a name of the language", name)
		}
		if v.Type() == "" || v.String() == "" {
			t.Errorf("%s has no type or repr", name)
		}
	}
}

// documentedBuiltins are all functions and methods that have documentation.
func documentedBuiltins() []*lang.Builtin {
	list := Functions()
	for _, d := range check.Types() {
		for _, m := range d.Members {
			if m.Method != nil {
				list = append(list, m.Method)
			}
		}
	}
	return list
}

// TestMembers: scripts can write the name of each member after a dot.
func TestMembers(t *testing.T) {
	for _, d := range check.Types() {
		for _, m := range d.Members {
			name, _, _ := strings.Cut(m.Name, "(") // of a method
			if _, err := lang.Dialect.ParseExpr("members", "x."+name, 0); err != nil {
				t.Errorf("%s.%s: %v", d.Name, m.Name, err)
			}
		}
	}
}

// TestSchemas: SCHEMAS.md is what the declarations say.
func TestSchemas(t *testing.T) { golden(t, "SCHEMAS.md", schemas()) }

// schemas returns SCHEMAS.md: the members of the JSON of each type of values, from the declarations
// that help shows.
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
	list := append(check.Types(), datagrams.StatsDoc(), routing.ReportDoc(), datagramDoc(), program.TestResultType.TypeDoc(), audits.ReportType.TypeDoc(), audits.CoverageType.TypeDoc(), audits.AckType.TypeDoc(), audits.HealthType.TypeDoc(), audits.HostType.TypeDoc(), remedies.RunType.TypeDoc(), remedies.DecisionType.TypeDoc(), remedies.EvidenceType.TypeDoc(), remedies.EvidenceSectionType.TypeDoc(), accept.ResultType.TypeDoc(), accept.ItemType.TypeDoc(), routing.HostsDiffType.TypeDoc(), routing.HostsChangeType.TypeDoc())
	slices.SortFunc(list, func(x, y lang.TypeDoc) int { return strings.Compare(x.Name, y.Name) })
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
		{Name: "packet", Column: true, Doc: "the number of its packet, from 1; this and the next four only of a capture"},
		{Name: "time", Column: true, Doc: "when it was captured, in UTC; None if the file does not have it"},
		{Name: "slid", Column: true, Doc: "LID of the sender"},
		{Name: "dlid", Column: true, Doc: "LID of the receiver"},
		{Name: "direction", Column: true, Doc: "sent or received, as the capturing host saw it; None if the file does not have it"},
		{Name: "summary", Column: true, Doc: "what it asks or answers, in a line"},
		{Name: "attribute", Column: true, Doc: "the name of the attribute, else its number in hexadecimal"},
		{Name: "parts", Column: true, Doc: "the records behind the header: an RMPP header, a component mask, an attribute"},
		{Name: "problems", Column: true, Doc: "what is wrong with it: texts"},
		{Name: "without_layout", Column: true, Doc: "bytes that are not 0 and have no layout: a list of dicts of offset and data, hexadecimal"},
	}}
}

// listNames prints the names that a stub file declares, as Python reads it.
const listNames = `
import ast, sys
for n in ast.parse(open(sys.argv[1]).read()).body:
    if isinstance(n, ast.FunctionDef):
        print(n.name, *[a.arg for a in n.args.posonlyargs + n.args.args + n.args.kwonlyargs])
    if isinstance(n, ast.ClassDef) and not n.name.startswith("_module_"):
        for m in n.body:
            if isinstance(m, ast.FunctionDef) and m.name != "__getattr__":
                print(n.name + "." + m.name)
            if isinstance(m, ast.AnnAssign):
                print(n.name + "." + m.target.id)
`

// TestStubs: Python reads the declarations for type checkers, which have all functions with
// their parameters, and all members of types.
func TestStubs(t *testing.T) {
	s, err := NewSession(SessionOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	file := filepath.Join(t.TempDir(), help.StubsFile)
	if err := os.WriteFile(file, []byte(help.Stubs(s.Interpreter.Globals)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := ibsimtest.Command(t, "python3", "-c", listNames, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for name, v := range s.Interpreter.Globals {
		if f, ok := v.(*lang.Function); ok {
			line := name
			for _, p := range f.Params {
				if !strings.HasPrefix(p.Name, "*") {
					line += " " + p.Name
				}
			}
			want[line] = true
		}
	}
	for _, d := range check.Types() {
		for _, m := range d.Members {
			want["_"+d.Name+"."+m.ShortName()] = true
		}
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestManual: the manual has all that help knows.
func TestManual(t *testing.T) {
	guides, others, err := help.Manual(Functions())
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range slices.Concat(guides, others) {
		for i, topic := range c.Topics {
			has[topic.Name] = true
			if slices.ContainsFunc(c.Topics[:i], func(x help.Topic) bool { return x.Name == topic.Name }) {
				t.Errorf("%s: two topics %s", c.Title, topic.Name)
			}
		}
	}
	var want []string
	for _, b := range Functions() {
		want = append(want, b.Name)
	}
	for _, d := range check.Types() {
		want = append(want, d.Name)
	}
	for _, a := range append(mad.Attributes(), mad.Headers()...) {
		want = append(want, a.Name)
	}
	for _, d := range slices.Concat(script.Audits.Shipped(), script.Reports.Shipped()) {
		want = append(want, d.Name)
	}
	for _, name := range want {
		if !has[name] {
			t.Errorf("the manual lacks %s", name)
		}
	}
}
