package help

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// fixed returns a text that depends on the width only in its line breaks.
func fixed(text string) func(int) string {
	return func(width int) string { return lang.Prose(text, width) }
}

// fixedPages returns the pages that are the same in each session.
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
			pages = append(pages, Page{Kind: KindFunction, Name: name, Summary: "of the language", Text: fixed(valueHelp(starlark.Universe[name]))})
		}
	}
	return pages
}

func functionPage(kind PageKind, name string, f *lang.Builtin) Page {
	return Page{Kind: kind, Name: name, Summary: f.Summary(), Text: func(width int) string {
		return lang.Prose((&lang.Function{Builtin: f}).Help(), width)
	}}
}

// typePages returns the pages of types of values, and of their members.
func typePages() (pages []Page) {
	for _, d := range check.Types() {
		pages = append(pages, Page{Kind: KindType, Name: d.Name, Summary: firstSentence(d.Doc), Text: fixed(d.Help())})
		for _, m := range d.Members {
			name := d.Name + "." + m.ShortName()
			if m.Method != nil {
				p := functionPage(KindMember, name, m.Method)
				pages = append(pages, p)
				continue
			}
			text := fmt.Sprintf("%s.%s: %s\n", d.Name, m.Name, m.Doc)
			pages = append(pages, Page{Kind: KindMember, Name: name, Summary: m.Doc, Text: fixed(text)})
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
	return append(pages, Page{Kind: KindTopic, Name: "guides", Also: []string{"guide", "manual"}, Summary: "All guides.", Text: fixed(list.String())})
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
		pages = append(pages, Page{Kind: KindCheck, Name: c.Name, Words: []string{c.Audit}, Summary: firstSentence(c.Text), Text: fixed(text)})
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
	{script.Scenarios, KindScenario, "Scenarios of simulated fabrics", "fabsh sim --scenario NAME"},
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
		text := fmt.Sprintf("%s: here, %s\n", t.Name, check.ToolHint(t.Name))
		pages = append(pages, Page{Kind: KindTool, Name: t.Name, Words: []string{t.Of}, Summary: check.ToolHint(t.Name), Text: fixed(text)})
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
