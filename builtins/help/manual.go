package help

import (
	"slices"
	"strings"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/mad"
)

// Chapter is a part of the manual: help on some topics.
type Chapter struct {
	Title, Doc string
	Topics     []Topic
}

// Topic is a name, and the help on it.
type Topic struct{ Name, Text string }

// Manual returns the help on the functions and values of scripts, the attributes of
// datagrams, the shipped scripts and the specification, and the guides.
func Manual(functions []*lang.Builtin) ([]Chapter, error) {
	var list []Chapter
	for _, group := range Groups {
		c := Chapter{Title: group}
		for _, b := range functions {
			if b.Group == group {
				c.Topics = append(c.Topics, Topic{b.Name, (&lang.Function{Builtin: b}).Help()})
			}
		}
		list = append(list, c.sorted())
	}
	c := Chapter{Title: "Values", Doc: "Attributes never do I/O; functions and methods may. Every value but error is true."}
	for _, d := range check.Types() {
		c.Topics = append(c.Topics, Topic{d.Name, d.Help()})
		for _, m := range d.Members {
			if m.Method != nil {
				c.Topics = append(c.Topics, Topic{d.Name + "." + m.ShortName(), (&lang.Function{Builtin: m.Method}).Help()})
			}
		}
	}
	list = append(list, c)
	c = Chapter{Title: "Attributes of datagrams", Doc: "Attributes for smp_get, perf_get, sa_get, mad_get and reg_get, and the fields of their results."}
	for _, a := range slices.Concat(mad.Attributes(), mad.Headers()) {
		c.Topics = append(c.Topics, Topic{a.Name, records.AttributesHelp(records.AttributesNamed(a.Name))})
	}
	list = append(list, c.sorted())
	for _, f := range folders {
		c := Chapter{Title: f.title, Doc: f.run + "; at the prompt without fabsh."}
		for _, d := range f.folder.Shipped() {
			text, err := scriptHelp(f.folder, d.Name)
			if err != nil {
				return nil, err
			}
			c.Topics = append(c.Topics, Topic{d.Name, text})
		}
		list = append(list, c)
	}
	for _, kind := range []struct {
		title string
		pages []Page
	}{
		{"Classes of datagrams", classPages()}, {"Methods", methodPages()}, {"Traps", trapPages()}, {"Statuses", statusPages()}, {"Simulated fabrics", simPages()},
	} {
		c := Chapter{Title: kind.title}
		for _, p := range kind.pages {
			c.Topics = append(c.Topics, Topic{p.Name, p.Text(0)})
		}
		list = append(list, c.sorted())
	}
	for _, g := range Guides() {
		c := Chapter{Title: g.Title(), Doc: "The guide " + g.Name + "."}
		for i, p := range g.Parts {
			if text := g.Own(i, 0); text != "" {
				c.Topics = append(c.Topics, Topic{p.Title, text})
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// sorted returns c with its topics by name, each once: attributes of two classes may share
// a name, and their help is one text.
func (c Chapter) sorted() Chapter {
	slices.SortStableFunc(c.Topics, func(a, b Topic) int { return strings.Compare(a.Name, b.Name) })
	c.Topics = slices.CompactFunc(c.Topics, func(a, b Topic) bool { return a.Name == b.Name })
	return c
}
