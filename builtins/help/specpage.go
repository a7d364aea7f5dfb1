package help

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric/sim/spec"
	"fabsh/mad"
)

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
		text := fmt.Sprintf("%s\n\nManagement classes %s: %s.\n", c.Name, numbers, c.Doc)
		if c.First == c.Last {
			text = records.ClassHelp(c)
		}
		also = append(also, records.ClassNames(c.First)...)
		pages = append(pages, Page{Kind: KindClass, Name: c.Name, Also: also, Summary: c.Doc, Text: fixed(text)})
	}
	text := "Classes of management datagrams:\n\n" + lang.Aligned(rows)
	return append(pages, Page{Kind: KindTopic, Name: "classes", Also: []string{"class", "mgmt_class"}, Summary: "The classes of management datagrams.", Text: fixed(text)})
}

// methodPages returns the pages of methods: one for each name, and one for each name with
// its class.
func methodPages() (pages []Page) {
	uses := records.MethodUses()
	var names []string
	add := func(name string, of []records.MethodUse) {
		also := []string{name + "Resp"}
		if !of[0].Info.Answered {
			also = nil
		}
		pages = append(pages, Page{Kind: KindMethod, Name: name, Also: also, Summary: of[0].Info.Doc + ": " + of[0].Verb, Text: fixed(records.MethodHelp(name, of))})
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
	return append(pages, Page{Kind: KindTopic, Name: "methods", Summary: "The methods of management datagrams.", Text: fixed(text)})
}

// trapPages returns the pages of traps.
func trapPages() (pages []Page) {
	var rows []lang.Fact
	for _, i := range mad.Traps() {
		n, name := i.Number, fmt.Sprint(i.Number)
		if slices.ContainsFunc(pages, func(p Page) bool { return p.Name == name }) {
			continue // of another class
		}
		pages = append(pages, Page{Kind: KindTrap, Name: name, Also: []string{"trap " + name}, Words: []string{"trap"}, Summary: records.TrapSummary(n), Text: fixed(records.TrapHelp(n))})
		rows = append(rows, lang.Fact{Name: "  " + name, Value: starlark.String(records.TrapSummary(n))})
	}
	text := "Traps, by number; sa_subscribe(trap=NUMBER) subscribes to their reports:\n\n" + lang.Aligned(rows)
	return append(pages, Page{Kind: KindTopic, Name: "traps", Also: []string{"trap", "notices"}, Summary: "The traps, by number.", Text: fixed(text)})
}

// statusPages returns the pages of the statuses of responses.
func statusPages() (pages []Page) {
	for _, s := range mad.Statuses() {
		text := records.StatusHelp([]mad.StatusInfo{s})
		pages = append(pages, Page{Kind: KindStatus, Name: s.Name, Also: []string{"status " + fmt.Sprintf("%#04x", uint16(s.Status))}, Words: []string{"status"}, Summary: s.Doc, Text: fixed(text)})
	}
	text := records.StatusHelp(mad.Statuses())
	return append(pages, Page{Kind: KindTopic, Name: "status", Also: []string{"statuses"}, Summary: "The statuses of responses.", Text: fixed(text)})
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
				Text: fixed(fmt.Sprintf("sim:%s\n\n%s.\n\nExample: -F '%s'\n", strings.TrimPrefix(name, ":"), text, example))})
		}
		all.WriteString(lang.Aligned(rows))
	}
	for _, k := range spec.Kinds() {
		group(k.Name+": "+k.Doc, k.Name, k.Keys)
	}
	group("All kinds:", "", spec.GeneratedKeys())
	group("All kinds, and files:", "", spec.CommonKeys())
	return append(pages, Page{Kind: KindTopic, Name: "simulation", Also: []string{"sim:", "sim keys", "simulated fabrics"}, Words: []string{"simulate", "fault"}, Summary: "The kinds and keys of simulated fabrics, each with an example.", Text: fixed(all.String())})
}
