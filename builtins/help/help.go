// Package help has the pages of help, on functions, types, attributes, tools, guides,
// scripts and other topics; and the documents that are generated from the same
// declarations.
//
//	help.go       help(), and help on a value
//	library.go    finds the pages of a topic
//	page.go       the pages of the language: functions, types, guides, scripts, tools
//	specpage.go   those of the specification, and of simulated fabrics
//	check.go      the checks that audits describe
//	search.go     searches the pages
//	overview.go   the list of all names
//	reference.go  REFERENCE.md; stubs.go, declarations for type checkers
//	manual.go     the chapters of the manual
package help

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/script"
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

// Program has the pages that the program adds to those of a session.
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
