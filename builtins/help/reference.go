package help

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/script"
	"fabsh/mad"
)

// Reference returns REFERENCE.md: all functions and types, from the declarations that help shows.
func Reference(functions []*lang.Builtin) string {
	var b strings.Builder
	b.WriteString(`<!-- Code generated from the functions' declarations: go test ./builtins -run TestReference -update. DO NOT EDIT. -->

# Functions and values of scripts

Scripts are [Starlark](https://github.com/google/starlark-go/blob/master/doc/spec.md), with sets, while loops, recursion and top-level control flow.
The attributes of management datagrams, which records show field by field, are in [ATTRIBUTES.md](../mad/ATTRIBUTES.md).
Every example is run by a test, on the simulated fabric that ` + "`fabsh -F sim`" + ` opens.

A **target** is a LID, a GUID or GID as a string, the exact name of a node, else ` + "`NAME/PORT`" + `, ` + "`dr(\"0,1,3\")`" + `, or a node or port of a fabric; or any iterable of them, which gives a list of results, same order and length.
Names and GUIDs are looked up in the latest ` + "`discover()`" + `, GUIDs else through the subnet administrator.
A **duration** is ` + "`\"500ms\"`, `\"10s\"`" + ` or a number of seconds.

`)
	for _, group := range Groups {
		fmt.Fprintf(&b, "## %s\n\n", group)
		for _, f := range functions {
			if f.Group == group {
				f.Reference(&b, "###")
			}
		}
	}
	b.WriteString("## Modules\n\n`expect`, `fs`, `hostlist`, `re` and `yaml` are fabsh's own; `json` (with its own `encode`), `math` and `time` are those of the Starlark library; `time.now()` is the session's clock.\n\n")
	b.WriteString("## Reports\n\n`fabsh report NAME`, or the name alone at the prompt, runs one; `load(\"@std//report/iblinkinfo.star\", \"main\")` has a script call it, with its options by keyword.\n\n| report | |\n|---|---|\n")
	for _, d := range script.Reports.Shipped() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", d.Name, d.Doc)
	}
	b.WriteString("\n## Values\n\nAttributes never do I/O; functions and methods may. Every value but `error` is true.\n\n")
	for _, d := range check.Types() {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", d.Name, d.Doc)
		plain := slices.DeleteFunc(slices.Clone(d.Members), func(m lang.MemberDoc) bool { return m.Method != nil })
		if len(plain) > 0 {
			b.WriteString("| attribute | |\n|---|---|\n")
			for _, m := range plain {
				fmt.Fprintf(&b, "| `.%s` | %s |\n", m.Name, m.Doc)
			}
			b.WriteByte('\n')
		}
		for _, m := range d.Members {
			if m.Method != nil {
				m.Method.Reference(&b, "####")
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Chapter is a part of the manual: help on some topics.
type Chapter struct {
	Title, Doc string
	Topics     []Topic
}

// Topic is a name, and the help on it.
type Topic struct{ Name, Text string }

// Manual returns the help on the functions and values of scripts, the attributes of
// datagrams, the shipped scripts and the specification, and the guides.
func Manual(functions []*lang.Builtin) (guides, list []Chapter, err error) {
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
				return nil, nil, err
			}
			c.Topics = append(c.Topics, Topic{d.Name, text})
		}
		list = append(list, c)
	}
	for _, kind := range []struct {
		title string
		pages []Page
	}{
		{"Classes of datagrams", classPages()}, {"Methods", methodPages()}, {"Traps", trapPages()}, {"Statuses", statusPages()}, {"Keys of -F sim", simPages()},
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
		guides = append(guides, c)
	}
	return guides, list, nil
}

// sorted returns c with its topics by name, each once: attributes of two classes may share
// a name, and their help is one text.
func (c Chapter) sorted() Chapter {
	slices.SortStableFunc(c.Topics, func(a, b Topic) int { return strings.Compare(a.Name, b.Name) })
	c.Topics = slices.CompactFunc(c.Topics, func(a, b Topic) bool { return a.Name == b.Name })
	return c
}

// StubsFile is the name under which type checkers of Python, such as pyright, find
// declarations of names that every script has.
const StubsFile = "__builtins__.pyi"

// Stubs returns the declarations of all global names and types, in the syntax of Python's
// stub files (PEP 484), for editors and checkers without the Language Server Protocol.
func Stubs(globals starlark.StringDict) string {
	s := stubWriter{classes: map[string]string{}}
	for _, d := range check.Types() { // methods have names of types, too
		s.classes[d.Name] = "_" + strings.Map(identifierRune, d.Name)
	}
	s.WriteString("# Declarations of fabsh's scripts. Code generated by fabsh doc --stubs. DO NOT EDIT.\n\nfrom typing import Any\n")
	for _, d := range check.Types() {
		s.class(d)
	}
	for _, name := range slices.Sorted(maps.Keys(globals)) {
		switch v := globals[name].(type) {
		case *lang.Function:
			s.WriteByte('\n')
			s.function("", name, v.Builtin, false)
		case *starlarkstruct.Module:
			s.module(name, v)
		default:
			if strings.Map(identifierRune, name) == name && v != nil {
				fmt.Fprintf(&s, "\n%s: %s\n", name, s.typeOf(v.Type()))
			}
		}
	}
	return s.String()
}

// stubWriter writes declarations.
type stubWriter struct {
	strings.Builder
	classes map[string]string // by type
}

// identifierRune returns r if it may be in a name, else _.
func identifierRune(r rune) rune {
	if r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
		return r
	}
	return '_'
}

// pythonTypes are the types of Python, by the types of Starlark.
var pythonTypes = map[string]string{"string": "str", "int": "int", "float": "float", "bool": "bool", "bytes": "bytes", "dict": "dict", "set": "set", "list": "list", "tuple": "tuple", "NoneType": "None"}

// typeOf returns a declared type in Python's notation.
func (s *stubWriter) typeOf(typ string) string {
	if of, ok := strings.CutPrefix(typ, "list of "); ok {
		return "list[" + s.typeOf(of) + "]"
	}
	if of, ok := strings.CutPrefix(typ, "tuple of "); ok {
		return "tuple[" + s.typeOf(of) + ", ...]"
	}
	switch class, known := s.classes[typ]; {
	case pythonTypes[typ] != "":
		return pythonTypes[typ]
	case known:
		return class
	case strings.HasPrefix(typ, "record of "):
		return s.classes["record"]
	}
	return "Any"
}

// doc writes a docstring.
func (s *stubWriter) doc(indent, text string) {
	text = strings.NewReplacer(`\`, `\\`, `"""`, `\"\"\"`).Replace(strings.TrimSpace(text))
	if strings.HasSuffix(text, `"`) {
		text += " "
	}
	fmt.Fprintf(s, "%s\"\"\"%s\"\"\"\n", indent, strings.ReplaceAll(text, "\n", "\n"+indent))
}

// class writes the declaration of a type.
func (s *stubWriter) class(d lang.TypeDoc) {
	fmt.Fprintf(s, "\nclass %s:\n", s.classes[d.Name])
	s.doc("    ", d.Doc)
	for _, m := range d.Members {
		if m.Method != nil {
			s.function("    ", m.Method.Name, m.Method, true)
			continue
		}
		fmt.Fprintf(s, "    %s: %s\n", m.Name, s.typeOf(m.Type))
		s.doc("    ", m.Doc)
	}
	if d.Name == "record" { // it has the fields of its attribute
		s.WriteString("    def __getattr__(self, name: str) -> Any: ...\n")
	}
}

// module writes the declaration of a module.
func (s *stubWriter) module(name string, m *starlarkstruct.Module) {
	fmt.Fprintf(s, "\nclass _module_%s:\n", name)
	for _, part := range slices.Sorted(maps.Keys(m.Members)) {
		if f, ok := m.Members[part].(*lang.Function); ok {
			s.function("    ", part, f.Builtin, true)
		} else {
			fmt.Fprintf(s, "    %s: Any\n", part)
		}
	}
	fmt.Fprintf(s, "\n%s: _module_%[1]s\n", name)
}

// function writes the declaration of a function or method.
func (s *stubWriter) function(indent, name string, b *lang.Builtin, isMethod bool) {
	var params []string
	if isMethod {
		params = append(params, "self")
	}
	keyword := false
	for _, p := range b.Params {
		text := p.Name
		switch {
		case strings.HasPrefix(text, "*"):
			keyword = true
		case p.Keyword && !keyword:
			params, keyword = append(params, "*"), true
		}
		if p.Default != "" {
			text += "=..."
		}
		params = append(params, text)
	}
	result := "Any"
	if b.Returns != "" {
		result = s.typeOf(b.Returns)
	}
	fmt.Fprintf(s, "%sdef %s(%s) -> %s:\n", indent, name, strings.Join(params, ", "), result)
	s.doc(indent+"    ", b.Doc)
	fmt.Fprintf(s, "%s    ...\n", indent)
}
