package help

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/script"
	"fabsh/fabric/sim/spec"
	"fabsh/mad"
)

// fixedText returns a text that depends on the width only in its line breaks.
func fixedText(text string) func(int) string {
	return func(width int) string { return lang.Prose(text, width) }
}

// fixedPages returns the pages that do not depend on the session.
var fixedPages = sync.OnceValue(func() []Page {
	pages := slices.Concat(typePages(), attributePages(), classPages(), methodPages(), trapPages(), statusPages(), simPages(), guidePages(), scriptPages(), toolPages())
	for i := range pages {
		text := pages[i].Text
		pages[i].lower = sync.OnceValue(func() string { return strings.ToLower(text(0)) })
	}
	return pages
})

// functionPages returns the pages of global functions, of modules and of the language.
func functionPages(globals starlark.StringDict) (pages []Page) {
	for _, f := range functionsIn(globals) {
		pages = append(pages, functionPage(KindFunction, f.Name, f))
	}
	for _, name := range slices.Sorted(maps.Keys(globals)) {
		m, ok := globals[name].(*starlarkstruct.Module)
		if !ok {
			continue
		}
		for _, part := range m.Members.Keys() {
			v := m.Members[part]
			p := Page{Kind: KindMember, Name: name + "." + part, Text: func(width int) string { return lang.Prose(valueHelp(v), width) }}
			if f, ok := v.(*lang.Function); ok {
				p.Summary = f.Summary()
			}
			pages = append(pages, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(starlark.Universe)) {
		if globals[name] == nil {
			pages = append(pages, Page{Kind: KindFunction, Name: name, Summary: "of the language", Text: fixedText(valueHelp(starlark.Universe[name]))})
		}
	}
	return pages
}

// functionPage returns the page of a function.
func functionPage(kind PageKind, name string, f *lang.Builtin) Page {
	return Page{Kind: kind, Name: name, Summary: f.Summary(), Text: func(width int) string {
		return lang.Prose((&lang.Function{Builtin: f}).Help(), width)
	}}
}

// typePages returns the pages of types of values, and of their members.
func typePages() (pages []Page) {
	for _, d := range check.Types() {
		pages = append(pages, Page{Kind: KindType, Name: d.Name, Summary: firstSentence(d.Doc), Text: fixedText(d.Help())})
		for _, m := range d.Members {
			name := d.Name + "." + m.ShortName()
			if m.Method != nil {
				p := functionPage(KindMember, name, m.Method)
				pages = append(pages, p)
				continue
			}
			text := fmt.Sprintf("%s.%s: %s\n", d.Name, m.Name, m.Doc)
			pages = append(pages, Page{Kind: KindMember, Name: name, Summary: m.Doc, Text: fixedText(text)})
		}
	}
	return pages
}

// guidePages returns the pages of the guides and of their parts.
func guidePages() (pages []Page) {
	guides := Guides()
	var list strings.Builder
	list.WriteString("Guides, each also a man page of section 7 and a chapter of \"fabsh doc --html\":\n\n")
	var rows []lang.Fact
	for i := range guides {
		g := &guides[i]
		pages = append(pages, Page{Kind: KindGuide, Name: g.Name, Also: g.Parts[0].Names[1:], Words: []string{g.Title()}, Summary: g.Summary(), Text: g.Text})
		rows = append(rows, lang.Fact{Name: "  " + g.Name, Value: starlark.String(g.Summary())})
		for j := 1; j < len(g.Parts); j++ {
			p := g.Parts[j]
			page := Page{Kind: KindTopic, Name: p.Title, Words: []string{g.Name}, Summary: p.Summary(), Text: func(width int) string {
				return g.PartText(j, width) + "\nFrom the guide " + g.Name + ".\n"
			}}
			if len(p.Names) > 0 {
				page.Name, page.Also = p.Names[0], append(p.Names[1:], p.Title)
				page.Summary = p.Title + ": " + page.Summary
			}
			pages = append(pages, page)
		}
	}
	list.WriteString(lang.Aligned(rows))
	return append(pages, Page{Kind: KindTopic, Name: "guides", Also: []string{"guide", "manual"}, Summary: "All guides.", Text: fixedText(list.String())})
}

// scriptPages returns the pages of shipped scripts, and of the checks of audits.
func scriptPages() (pages []Page) {
	for _, f := range folders {
		for _, d := range f.folder.Shipped() {
			p := Page{Kind: f.kind, Name: d.Name, Summary: d.Doc, Text: func(width int) string {
				text, err := scriptHelp(f.folder, d.Name)
				if err != nil {
					return err.Error() + "\n" // shipped scripts can be read
				}
				return lang.Reflow(fmt.Sprintf("%s %s, run by: %s\n\n%s\n", f.kind, d.Name, strings.ReplaceAll(f.run, "NAME", d.Name), text), width)
			}}
			pages = append(pages, p)
		}
	}
	for _, c := range Checks() {
		text := fmt.Sprintf("%s\n\n%s\n\nA check of the audit %s: fabsh audit %[3]s\n", c.Name, c.Text, c.Audit)
		pages = append(pages, Page{Kind: KindCheck, Name: c.Name, Words: []string{c.Audit}, Summary: firstSentence(c.Text), Text: fixedText(text)})
	}
	return pages
}

// folders are the kinds of shipped scripts, and the commands that run them.
var folders = []struct {
	folder     script.Folder
	kind       PageKind
	title, run string
}{
	{script.Audits, KindAudit, "Shipped audits", "fabsh audit NAME"},
	{script.Reports, KindReport, "Reports", "fabsh report NAME"},
	{script.Policies, KindPolicy, "Routing policies", "fabsh route NAME"},
	{script.Topologies, KindTopology, "Topologies for schedulers", "fabsh topology NAME"},
	{script.Scenarios, KindScenario, "Shipped scenarios", "fabsh sim --scenario NAME"},
}

// scriptHelp returns the docstring of a shipped script, with its options.
func scriptHelp(f script.Folder, name string) (string, error) {
	src, err := f.Source(name)
	if err != nil {
		return "", err
	}
	file, err := lang.Dialect.Parse(name, src, 0)
	if err != nil {
		return "", err
	}
	text := script.Docstring(file)
	if options := script.ProgramOf(name, src).Options; len(options) > 0 {
		text += "\n\nOptions: " + strings.Join(options, " ")
	}
	return text, nil
}

// toolPages returns the pages of tools of other packages.
func toolPages() (pages []Page) {
	for _, t := range check.Tools() {
		text := check.ToolAdvice(t.Name, "") + "\n"
		pages = append(pages, Page{Kind: KindTool, Name: t.Name, Words: []string{t.Of}, Summary: check.ToolHint(t.Name), Text: fixedText(text)})
	}
	return pages
}

// firstSentence returns the first sentence of a doc.
func firstSentence(doc string) string {
	doc = strings.Join(strings.Fields(doc), " ")
	if i := strings.Index(doc, ". "); i >= 0 {
		return doc[:i+1]
	}
	return doc
}

// attributePages returns the pages of attributes of datagrams, and of their fields.
func attributePages() (pages []Page) {
	for _, a := range slices.Concat(mad.Attributes(), mad.Headers()) {
		also := append(slices.Clone(a.Aliases), records.TypeName(a))
		if a.Class != 0 {
			also = append(also, fmt.Sprintf("%#04x", uint16(a.ID)))
		}
		pages = append(pages, Page{Kind: KindAttribute, Name: a.Name, Also: also, Summary: firstSentence(a.Doc), Text: func(width int) string {
			return lang.Prose(records.AttributesHelp(records.AttributesNamed(a.Name)), width)
		}})
		names := append([]string{a.Name}, a.Aliases...)
		pages = append(pages, fieldPages(names, a, func(f *mad.Field) string { return records.FieldHelp(a, f) })...)
		for _, v := range a.Variants {
			in := a.WithVariant(v.Name)
			pages = append(pages, fieldPages(names, v.Layout, func(f *mad.Field) string { return records.FieldHelp(in, in.Field(f.Script)) })...)
		}
	}
	return pages
}

// fieldPages returns the pages of the fields of an attribute, which may have several
// names.
func fieldPages(names []string, a *mad.Attribute, text func(*mad.Field) string) (pages []Page) {
	for i := range a.Flat() {
		f := &a.Flat()[i]
		p := Page{Kind: KindField, Name: names[0] + "." + f.Name, Summary: f.Doc, Text: func(width int) string { return lang.Prose(text(f), width) }}
		for _, name := range names {
			p.Also = append(p.Also, name+"."+f.Name, name+"."+f.Script)
			for _, also := range f.Also {
				p.Also = append(p.Also, name+"."+also)
			}
		}
		if f.Words != nil {
			p.Words = records.WordsOf(f.Words)
		}
		pages = append(pages, p)
	}
	return pages
}

// classPages returns the pages of management classes.
func classPages() (pages []Page) {
	var rows []lang.Fact
	for _, c := range mad.Classes() {
		numbers := fmt.Sprintf("%#02x", uint8(c.First))
		also := []string{numbers}
		for n := c.First; n < c.Last; n++ {
			also = append(also, fmt.Sprintf("%#02x", uint8(n+1)))
		}
		if c.First != c.Last {
			numbers += fmt.Sprintf(" to %#02x", uint8(c.Last))
		}
		rows = append(rows, lang.Fact{Name: "  " + c.Name, Value: starlark.String(numbers + ": " + c.Doc)})
		also = append(also, records.ClassNames(c.First)...)
		pages = append(pages, Page{Kind: KindClass, Name: c.Name, Also: also, Summary: c.Doc, Text: fixedText(records.ClassHelp(c))})
	}
	text := "Classes of management datagrams:\n\n" + lang.Aligned(rows)
	return append(pages, Page{Kind: KindTopic, Name: "classes", Also: []string{"class", "mgmt_class"}, Summary: "The classes of management datagrams.", Text: fixedText(text)})
}

// methodPages returns the pages of methods: one for each name, and one for each name with
// its class.
func methodPages() (pages []Page) {
	uses := records.MethodUses()
	var names []string
	add := func(name string, of []records.MethodUse) {
		var also []string
		if u := of[0]; u.Info.Answered {
			also = []string{strings.TrimSuffix(name, u.Info.Name) + u.Info.Method.ResponseTo().Name(u.Class, u.Version)}
		}
		pages = append(pages, Page{Kind: KindMethod, Name: name, Also: also, Summary: of[0].Info.Doc + ": " + of[0].Verb, Text: fixedText(records.MethodHelp(name, of))})
	}
	for i, u := range uses {
		if !slices.Contains(names, u.Info.Name) {
			names = append(names, u.Info.Name)
			add(u.Info.Name, slices.DeleteFunc(slices.Clone(uses), func(x records.MethodUse) bool { return x.Info.Name != u.Info.Name }))
		}
		if !slices.ContainsFunc(uses[:i], func(x records.MethodUse) bool { return x.Name == u.Name }) {
			add(u.Name, slices.DeleteFunc(slices.Clone(uses), func(x records.MethodUse) bool { return x.Name != u.Name }))
		}
	}
	text := "Methods of management datagrams: " + strings.Join(names, ", ") + ".\n"
	return append(pages, Page{Kind: KindTopic, Name: "methods", Summary: "The methods of management datagrams.", Text: fixedText(text)})
}

// trapPages returns the pages of traps.
func trapPages() (pages []Page) {
	var rows []lang.Fact
	for _, i := range mad.Traps() {
		n, name := i.Number, fmt.Sprint(i.Number)
		if slices.ContainsFunc(pages, func(p Page) bool { return p.Name == name }) {
			continue // of another class
		}
		pages = append(pages, Page{Kind: KindTrap, Name: name, Also: []string{"trap " + name}, Words: []string{"trap"}, Summary: records.TrapSummary(n), Text: fixedText(records.TrapHelp(n))})
		rows = append(rows, lang.Fact{Name: "  " + name, Value: starlark.String(records.TrapSummary(n))})
	}
	text := "Traps, by number; sa_subscribe(trap=NUMBER) subscribes to their reports:\n\n" + lang.Aligned(rows)
	return append(pages, Page{Kind: KindTopic, Name: "traps", Also: []string{"trap", "notices"}, Summary: "The traps, by number.", Text: fixedText(text)})
}

// statusPages returns the pages of the statuses of responses.
func statusPages() (pages []Page) {
	for _, s := range mad.Statuses() {
		text := records.StatusHelp([]mad.StatusInfo{s})
		pages = append(pages, Page{Kind: KindStatus, Name: s.Name, Also: []string{"status " + fmt.Sprintf("%#04x", uint16(s.Status))}, Words: []string{"status"}, Summary: s.Doc, Text: fixedText(text)})
	}
	text := records.StatusHelp(mad.Statuses())
	return append(pages, Page{Kind: KindTopic, Name: "status", Also: []string{"statuses"}, Summary: "The statuses of responses.", Text: fixedText(text)})
}

// simPages returns the pages of the keys of simulated fabrics, and the list of all keys.
func simPages() (pages []Page) {
	var all strings.Builder
	all.WriteString("Simulated fabrics: -F sim:KIND:KEY=VALUE,... or -F sim:FILE:KEY=VALUE,... Without a kind it is " + spec.Kinds()[0].Name + ".\n")
	group := func(title, kind string, keys []spec.Key) {
		all.WriteString("\n" + title + "\n")
		var rows []lang.Fact
		for _, k := range keys {
			example := "sim:" + k.Example
			if kind != "" {
				example = "sim:" + kind + ":" + k.Example
			}
			text := k.Doc
			if k.Default != "" {
				text += " (default " + k.Default + ")"
			}
			rows = append(rows, lang.Fact{Name: "  " + k.Name + "=", Value: starlark.String(text + "; " + example)})
			name := kind + ":" + k.Name + "="
			pages = append(pages, Page{Kind: KindSimKey, Name: "sim:" + strings.TrimPrefix(name, ":"), Also: []string{k.Name + "="}, Words: []string{"simulate", "simulated"}, Summary: k.Doc,
				Text: fixedText(fmt.Sprintf("sim:%s\n\n%s.\n\nExample: -F '%s'\n", strings.TrimPrefix(name, ":"), text, example))})
		}
		all.WriteString(lang.Aligned(rows))
	}
	for _, k := range spec.Kinds() {
		group(k.Name+": "+k.Doc, k.Name, k.Keys)
	}
	group("All kinds:", "", spec.GeneratedKeys())
	group("All kinds, and files:", "", spec.CommonKeys())
	return append(pages, Page{Kind: KindTopic, Name: "simulation", Also: []string{"sim:", "sim keys", "simulated fabrics"}, Words: []string{"simulate", "fault"}, Summary: "The kinds and keys of simulated fabrics, each with an example.", Text: fixedText(all.String())})
}

// Check is a check of a shipped audit, as the audit's docstring describes it.
type Check struct{ Name, Audit, Text string }

// checkLine is the beginning of a line of a docstring that describes a check.
var checkLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z][a-z0-9]*(?:\.[a-z0-9_]+)+ +|[a-z]+  +)(\S.*)$`)
})

// AuditsOf returns the shipped audits that have each check.
func AuditsOf() map[string][]string {
	audits := map[string][]string{}
	for _, c := range Checks() {
		audits[c.Name] = append(audits[c.Name], c.Audit)
	}
	return audits
}

// Checks returns the checks of the shipped audits. Checks on lines that follow each other
// may share a sentence.
func Checks() (list []Check) {
	for _, d := range script.Audits.Shipped() {
		src, err := script.Audits.Source(d.Name)
		if err != nil {
			continue // shipped scripts can be read
		}
		file, err := lang.Dialect.Parse(d.Name, src, 0)
		if err != nil {
			continue
		}
		first := len(list) // of the checks that share the text
		text := ""
		end := func() {
			for i := first; i < len(list); i++ {
				list[i].Text = text
			}
			first, text = len(list), ""
		}
		for line := range strings.Lines(script.Docstring(file)) {
			line = strings.TrimRight(line, "\n")
			switch m := checkLine().FindStringSubmatch(line); {
			case m != nil:
				if strings.HasSuffix(text, ".") {
					end()
				}
				list = append(list, Check{Name: strings.TrimSpace(m[1]), Audit: d.Name})
				text = strings.TrimSpace(text + " " + m[2])
			case first < len(list) && strings.HasPrefix(line, "  "):
				text += " " + strings.TrimSpace(line)
			default:
				end()
			}
		}
		end()
	}
	return list
}
