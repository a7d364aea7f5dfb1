package help

import (
	"slices"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/script"
	"fabsh/builtins/types"
	"fabsh/mad"
)

// Chapter is a part of the manual: what help says of some topics.
type Chapter struct {
	Title, Doc string
	Topics     []Topic
}

// Topic is a name, and what help says of it.
type Topic struct{ Name, Text string }

// Manual returns all that help knows of what scripts can say, of the attributes of datagrams,
// and of the scripts that are shipped.
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
	for _, d := range types.All() {
		c.Topics = append(c.Topics, Topic{d.Name, d.Help()})
		for _, m := range d.Members {
			if m.Method != nil {
				c.Topics = append(c.Topics, Topic{d.Name + "." + m.ShortName(), (&lang.Function{Builtin: m.Method}).Help()})
			}
		}
	}
	list = append(list, c)
	c = Chapter{Title: "Attributes of datagrams", Doc: "What smp_get, perf_get, sa_get, mad_get and reg_get take, and the fields of what they return."}
	for _, a := range slices.Concat(mad.Attributes(), mad.Headers()) {
		c.Topics = append(c.Topics, Topic{a.Name, records.AttributesHelp(records.AttributesNamed(a.Name))})
	}
	list = append(list, c.sorted())
	for _, folder := range []struct {
		name       script.Folder
		title, doc string
	}{
		{script.Audits, "Shipped audits", "fabsh audit NAME, and at the prompt audit NAME."},
		{script.Reports, "Reports", "fabsh report NAME, and at the prompt the name alone."},
		{script.Policies, "Routing policies", "fabsh route NAME."},
		{script.Topologies, "Topologies for schedulers", "fabsh topology NAME."},
	} {
		c := Chapter{Title: folder.title, Doc: folder.doc}
		for _, d := range folder.name.Shipped() {
			src, err := folder.name.Source(d.Name)
			if err != nil {
				return nil, err
			}
			file, err := lang.Dialect.Parse(d.Name, src, 0)
			if err != nil {
				return nil, err
			}
			text := script.Docstring(file)
			if options := script.ProgramOf(d.Name, src).Options; len(options) > 0 {
				text += "\n\nOptions:"
				for _, o := range options {
					text += " " + o
				}
			}
			c.Topics = append(c.Topics, Topic{d.Name, text})
		}
		list = append(list, c)
	}
	return list, nil
}

// sorted is c with its topics by name, each once: attributes of two classes may have
// one, and help tells them together.
func (c Chapter) sorted() Chapter {
	slices.SortStableFunc(c.Topics, func(a, b Topic) int { return strings.Compare(a.Name, b.Name) })
	c.Topics = slices.CompactFunc(c.Topics, func(a, b Topic) bool { return a.Name == b.Name })
	return c
}
