// Package help has the pages of help, on functions, types, attributes, tools, guides, scripts and
// other topics, and the documents that are generated from the same declarations.
//
// A [Library] has the [Page]s of a session: it finds a topic by its name, searches for words, and
// lists all topics. A [Guide] is a document in Markdown; its parts are pages too. [Reference],
// [Manual] and [Stubs] return the generated documents.
//
// The pages that do not depend on the session are made once. All functions are safe for concurrent
// use, as long as the globals of a Library do not change.
package help

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/audits"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/remedies"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
)

// Builtin is help().
var Builtin = lang.Builtin{
	Name:   "help",
	Group:  lang.GroupRest,
	Params: []lang.Param{{Name: "topic", Kind: lang.KindTopic, Default: "None", Doc: `a function or other value, or a topic: "PortInfo", "PortInfo.M_Key", "targets"; or "search WORDS"`}},
	Doc: `Prints help on a function, an attribute, a field, a type, a value or any other topic; "search WORDS" searches all topics.
Without a topic it prints the overview. At the prompt, help without parentheses does the same.`,
	Example: `
> help("PortInfo.LMC")
PortInfo.lmc (LMC): 3 bits at bit 277 (byte 34, bit 5 from the left), section 14.2.5.6 of the specification
LMC is the number of low LID bits the port ignores: it answers to 2^LMC LIDs.
A Set writes it: smp_set sends the value that it has read unless the field is named.
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Topic starlark.Value }) (starlark.Value, error) {
		text, err := Of(c.Runtime()).On(a.Topic, c.Runtime().Columns())
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		c.Fiber().Print(text)
		return starlark.None, nil
	}),
	Bare: func(r *lang.Runtime) error {
		text, err := Of(r).Find("", r.Columns())
		if err != nil {
			return err
		}
		return r.Emit(r.People(), text)
	},
}

// Program has the pages that the program adds to the pages of a session.
type Program struct {
	Pages func() []Page // commands and flags; nil: none
}

// Of returns the library of a session.
func Of(r *lang.Runtime) *Library {
	l := &Library{Globals: script.Of(r).Globals}
	if pages := lang.StateOf[Program](r).Pages; pages != nil {
		l.More = pages()
	}
	return l
}

// On returns help on a value; a string is a topic, and nil means the overview.
func (l *Library) On(v starlark.Value, width int) (string, error) {
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return l.Find("", width)
	case starlark.String:
		return l.Find(string(v), width)
	}
	return lang.Prose(valueHelp(v), width), nil
}

// valueHelp returns help on a value without a page of its own.
func valueHelp(v starlark.Value) string {
	switch v := v.(type) {
	case *lang.Function:
		return v.Help()
	case *starlark.Function:
		return lang.FunctionHelp(v)
	case *starlark.Builtin:
		if m, ok := lang.MethodOf(v); ok {
			return m.Help()
		}
		return fmt.Sprintf("%s is a function of the Starlark language: see https://starlark-lang.org\n", v.Name())
	case *records.Record:
		return records.AttributesHelp([]*mad.Attribute{v.Attribute})
	case lang.Documented:
		return v.TypeDoc().Help()
	case *starlarkstruct.Module:
		return lang.ModuleHelp(v)
	case starlark.HasAttrs:
		return fmt.Sprintf("%s\n\nAttributes and methods: %s\n", v.Type(), strings.Join(v.AttrNames(), ", "))
	}
	return fmt.Sprintf("%s: a value of the Starlark language\n", v.Type())
}

// Page is the help on a topic.
type Page struct {
	Kind    PageKind
	Name    string   // the topic
	Also    []string // other names of it
	Words   []string // further words that find it, such as the words of an enumerated field
	Summary string
	Text    func(width int) string // width 0: lines of any length

	lower func() string // returns the text in lower case, for searches; nil if it is not kept
}

// PageKind is the kind of a page; a topic with its word before the name means that kind.
type PageKind string

// The kinds of pages.
const (
	KindValue     PageKind = "value" // a global of the script
	KindFunction  PageKind = "function"
	KindType      PageKind = "type"
	KindMember    PageKind = "member" // of a type or module
	KindAttribute PageKind = "attribute"
	KindField     PageKind = "field"
	KindClass     PageKind = "class"
	KindMethod    PageKind = "method"
	KindTrap      PageKind = "trap"
	KindStatus    PageKind = "status"
	KindTopic     PageKind = "topic" // a part of a guide, and lists
	KindGuide     PageKind = "guide"
	KindCommand   PageKind = "command"
	KindFlag      PageKind = "flag"
	KindTool      PageKind = "tool"
	KindAudit     PageKind = "audit"
	KindReport    PageKind = "report"
	KindPolicy    PageKind = "policy"
	KindTopology  PageKind = "topology"
	KindScenario  PageKind = "scenario"
	KindCheck     PageKind = "check"
	KindSimKey    PageKind = "sim"
)

// kindOrder is the order of pages with the same name.
var kindOrder = []PageKind{KindValue, KindFunction, KindType, KindAttribute, KindClass, KindMethod, KindTrap, KindStatus, KindMember, KindField, KindTopic, KindGuide, KindCommand,
	KindTool, KindReport, KindAudit, KindCheck, KindPolicy, KindTopology, KindScenario, KindSimKey, KindFlag}

// Library has all pages of a session.
type Library struct {
	Globals       starlark.StringDict
	More          []Page // the program's own
	Shell         bool   // help is requested in a Unix shell, by fabsh help
	CommandsFirst bool   // if several pages have the name
}

// Pages returns all pages, in no order.
func (l *Library) Pages() []Page {
	return slices.Concat(functionPages(l.Globals), fixedPages(), l.More)
}

// Find returns help on a topic: "" is the overview, and "search WORDS" a search. If
// several pages have the name, it shows the first one and the pages of guides, and lists the
// others.
func (l *Library) Find(topic string, width int) (string, error) {
	topic = strings.Join(strings.Fields(topic), " ")
	if topic == "" {
		return lang.Prose(overview(l.Globals), width), nil
	}
	for _, search := range []string{"search ", "-k "} {
		if words, ok := strings.CutPrefix(topic, search); ok {
			return l.Search(words, width)
		}
	}
	found := l.named(topic)
	if len(found) == 0 {
		return "", l.unknown(topic)
	}
	var b strings.Builder
	var others []Page
	for i, p := range found {
		if i > 0 && p.Kind != KindTopic {
			others = append(others, p)
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Text(width))
	}
	if len(others) > 0 {
		b.WriteString("\nAlso:\n")
		var rows [][2]string
		for _, p := range others {
			rows = append(rows, [2]string{l.call(string(p.Kind) + " " + p.Name), p.Summary})
		}
		b.WriteString(lang.Fit(formatRows(rows), width))
	}
	return b.String(), nil
}

// formatRows returns rows of a name and a summary as text. The summary is below a name that is long.
func formatRows(rows [][2]string) string {
	const widest = 36
	column := 0
	for _, r := range rows {
		if len(r[0]) <= widest {
			column = max(column, len(r[0]))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		switch {
		case r[1] == "":
			b.WriteString("  " + r[0] + "\n")
		case len(r[0]) > widest:
			fmt.Fprintf(&b, "  %s\n      %s\n", r[0], r[1])
		default:
			fmt.Fprintf(&b, "  %-*s  %s\n", column, r[0], r[1])
		}
	}
	return b.String()
}

// call returns the call that shows help on a topic.
func (l *Library) call(topic string) string {
	switch {
	case l.Shell && strings.ContainsAny(topic, "?'()<>&|*;$"):
		return fmt.Sprintf("fabsh help %q", topic)
	case l.Shell:
		return "fabsh help " + topic
	}
	return fmt.Sprintf("help(%q)", topic)
}

// named returns the pages with a name, in order: the pages with exactly this name, else with a
// kind before the name, else ignoring notation, else the fields that have it as a word, else the
// fields with this name in any attribute, and the statuses that begin with it.
func (l *Library) named(topic string) []Page {
	pages := l.Pages()
	var found []Page
	pick := func(is func(p *Page) bool) bool {
		for i := range pages {
			if is(&pages[i]) {
				found = append(found, pages[i])
			}
		}
		return len(found) > 0
	}
	if v, ok := l.Globals[topic]; ok && !isPage(topic, v) {
		found = append(found, Page{Kind: KindValue, Name: topic, Summary: v.Type(), Text: fixedText(valueHelp(v))})
	}
	kind, name, _ := strings.Cut(topic, " ")
	folded := fold(topic)
	_ = pick(func(p *Page) bool { return p.Name == topic || slices.Contains(p.Also, topic) }) ||
		pick(func(p *Page) bool {
			return name != "" && string(p.Kind) == kind && (p.Name == name || slices.Contains(p.Also, name))
		}) ||
		pick(func(p *Page) bool {
			return fold(p.Name) == folded || slices.ContainsFunc(p.Also, func(s string) bool { return fold(s) == folded })
		}) ||
		pick(func(p *Page) bool { return p.Kind == KindField && slices.Contains(p.Words, topic) }) ||
		pick(func(p *Page) bool {
			return p.Kind == KindField && fold(p.Name[strings.LastIndexByte(p.Name, '.')+1:]) == folded ||
				p.Kind == KindStatus && strings.HasPrefix(fold(p.Name), folded)
		})
	rank := func(p Page) int {
		if l.CommandsFirst && p.Kind == KindCommand && p.Name == topic {
			return -1
		}
		return slices.Index(kindOrder, p.Kind)
	}
	slices.SortStableFunc(found, func(a, b Page) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(btoi(a.Name != topic), btoi(b.Name != topic)),
			cmp.Compare(btoi(!strings.HasPrefix(a.Name, mad.LayoutMADHeader.Name+".")), btoi(!strings.HasPrefix(b.Name, mad.LayoutMADHeader.Name+"."))))
	})
	return slices.CompactFunc(found, samePage)
}

// samePage reports whether two pages are one. Parts of guides may share a name.
func samePage(a, b Page) bool { return a.Kind == b.Kind && a.Name == b.Name && a.Summary == b.Summary }

// btoi returns 0 for false and 1 for true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// isPage reports whether a global has a page of its own.
func isPage(name string, v starlark.Value) bool {
	f, ok := v.(*lang.Function)
	return ok && f.Name() == name
}

// fold returns a name without differences of notation.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// unknown returns the error for a topic without a page.
func (l *Library) unknown(topic string) error {
	base, _, isPart := strings.Cut(topic, ".")
	if !isPart {
		base = ""
	}
	candidates := l.Topics(base)
	if len(candidates) == 0 {
		candidates = l.Topics(fabric.Nearest(base, l.Topics("")))
	}
	return fmt.Errorf("unknown topic %q%s; search with %s", topic, fabric.DidYouMean(topic, candidates), l.search(topic))
}

// search returns the call that searches for words.
func (l *Library) search(words string) string {
	if l.Shell {
		return "fabsh help -k " + words
	}
	return fmt.Sprintf("help(%q)", "search "+words)
}

// Topics lists the names of pages; with a base, the name of a page, the names of its
// parts.
func (l *Library) Topics(base string) []string {
	var names []string
	if base == "" {
		names = slices.Concat(l.Globals.Keys(), starlark.Universe.Keys())
	}
	for _, p := range l.Pages() {
		switch isPart := p.Kind == KindMember || p.Kind == KindField; {
		case base == "" && (isPart || p.Kind == KindFlag || p.Kind == KindSimKey || p.Kind == KindTool):
		case base != "" && (!isPart || !strings.HasPrefix(p.Name, base+".")):
		case p.Kind == KindTopic || p.Kind == KindGuide:
			names = append(append(names, p.Name), p.Also...)
		default:
			names = append(names, p.Name)
		}
	}
	if m, ok := l.Globals[base].(*starlarkstruct.Module); ok {
		for _, name := range m.Members.Keys() {
			names = append(names, base+"."+name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Groups are the headings of the overview, in order.
var Groups = []string{topology.GroupFabric, datagrams.GroupMAD, topology.GroupTable, datagrams.GroupPort, audits.GroupAudit, remedies.GroupRemedy, lang.GroupFlow, lang.GroupOutput, lang.GroupTest, script.ScenarioGroup, lang.GroupRest}

// functionsIn lists the functions of fabsh among global names, each once, sorted.
func functionsIn(globals starlark.StringDict) []*lang.Builtin {
	var list []*lang.Builtin
	for _, name := range slices.Sorted(maps.Keys(globals)) {
		if f, ok := globals[name].(*lang.Function); ok && f.Name() == name {
			list = append(list, f.Builtin)
		}
	}
	return list
}

// overview lists the global names by group.
func overview(globals starlark.StringDict) string {
	var b strings.Builder
	list := functionsIn(globals)
	width := 0
	for _, f := range list {
		width = max(width, len(f.Name))
	}
	for _, group := range Groups {
		fmt.Fprintf(&b, "%s\n", group)
		for _, f := range list {
			if f.Group == group {
				fmt.Fprintf(&b, "  %-*s  %s\n", width, f.Name, f.Summary())
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString("Modules\n  expect, fs, hostlist, json, math, re, time, yaml\n\n")
	var guides []string
	for _, g := range Guides() {
		guides = append(guides, g.Name)
	}
	b.WriteString(lang.Aligned([]lang.Fact{
		{Name: "More", Value: starlark.String(`help(smp_get), help("PortInfo"), help("PortInfo.M_Key"), help("node"), help(value)`)},
		{Name: "Search", Value: starlark.String(`help("search WORDS")`)},
		{Name: "Topics", Value: starlark.String("targets, names, keys, language, tables, csv, exit, simulation, status, traps, methods, classes")},
		{Name: "Guides", Value: starlark.String(strings.Join(guides, ", "))},
	}))
	b.WriteByte('\n')
	b.WriteString("Attributes, by class (help takes both)\n")
	rows := make([]lang.Fact, 0, len(mad.Classes()))
	for _, c := range mad.Classes() {
		if names := records.AttributeNamesIn(c); len(names) > 0 {
			rows = append(rows, lang.Fact{Name: "  " + c.Name, Value: starlark.String(strings.Join(names, ", "))})
		}
	}
	b.WriteString(lang.Aligned(rows))
	b.WriteString("Reports, by these names at the prompt: " + strings.Join(script.Reports.Names(), ", ") + "\n")
	b.WriteString(`Examples: load("@examples//first_look.star", "main"), then main()` + "\n")
	return b.String()
}
