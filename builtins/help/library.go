package help

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/lang"
	"fabsh/fabric"
)

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

// order is the order of pages with the same name.
var order = []PageKind{KindValue, KindFunction, KindType, KindAttribute, KindClass, KindMethod, KindTrap, KindStatus, KindMember, KindField, KindTopic, KindGuide, KindCommand,
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
// several pages have the name, it shows the first one and those of guides, and lists the
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
		b.WriteString(lang.Fit(list(rows), width))
	}
	return b.String(), nil
}

// list returns rows of a name and a summary. The summary is below a name that is long.
func list(rows [][2]string) string {
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

// named returns the pages of a name, in order: those with exactly this name, else with a
// kind before the name, else ignoring notation, else the fields that have it as a word.
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
		found = append(found, Page{Kind: KindValue, Name: topic, Summary: v.Type(), Text: fixed(valueHelp(v))})
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
		pick(func(p *Page) bool { return p.Kind == KindField && slices.Contains(p.Words, topic) })
	rank := func(p Page) int {
		if l.CommandsFirst && p.Kind == KindCommand && p.Name == topic {
			return -1
		}
		return slices.Index(order, p.Kind)
	}
	slices.SortStableFunc(found, func(a, b Page) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(btoi(a.Name != topic), btoi(b.Name != topic)))
	})
	return slices.CompactFunc(found, same)
}

// same reports whether two pages are one. Parts of guides may share a name.
func same(a, b Page) bool { return a.Kind == b.Kind && a.Name == b.Name && a.Summary == b.Summary }

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
