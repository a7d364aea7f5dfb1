// Package help is what help says: of functions, types, attributes and tools; and the
// documents that are made of the same declarations.
//
//	help.go       help() and its topics
//	overview.go   the list of all names
//	reference.go  REFERENCE.md
//	manual.go     the chapters of the manual
package help

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/script"
	"fabsh/builtins/tools"
	"fabsh/builtins/types"
	"fabsh/fabric"
	"fabsh/mad"
)

// Builtin is help().
var Builtin = lang.Builtin{
	Name:   "help",
	Group:  lang.GroupRest,
	Params: []lang.Param{{Name: "topic", Kind: lang.KindTopic, Default: "None", Doc: `a function or other value, or a name: "PortInfo", "PortInfo.M_Key"`}},
	Doc: `Prints help on a function, an attribute, a field, a type or a value.
Without a topic it prints the overview. At the prompt, help alone will do.`,
	Example: `
> help("PortInfo.LMC")
PortInfo.lmc (LMC): 3 bits at bit 277 (byte 34, bit 5 from the left), section 14.2.5.6 of the specification
LMC is the number of low LID bits the port ignores: it answers to 2^LMC LIDs.
In a Set it is written: smp_set sends what it read unless it is named.
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Topic starlark.Value }) (starlark.Value, error) {
		text, err := On(script.Of(c.Runtime()).Globals, a.Topic)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		c.Fiber().Print(c.Runtime().Fit(text))
		return starlark.None, nil
	}),
	Bare: func(r *lang.Runtime) error { return r.Emit(r.People(), r.Fit(overview(script.Of(r).Globals))) },
}

// Name renders help on a name; empty: the overview.
func Name(globals starlark.StringDict, topic string) (string, error) {
	if topic == "" {
		return overview(globals), nil
	}
	return onName(globals, topic)
}

// On renders help on a value; nil: the overview.
func On(globals starlark.StringDict, v starlark.Value) (string, error) {
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return overview(globals), nil
	case starlark.String:
		return onName(globals, string(v))
	case *lang.Function:
		return v.Help(), nil
	case *starlark.Function:
		return lang.FunctionHelp(v), nil
	case *starlark.Builtin:
		return fmt.Sprintf("%s is a function of the Starlark language: see https://starlark-lang.org\n", v.Name()), nil
	case *records.Record:
		return records.AttributesHelp([]*mad.Attribute{v.Attribute}), nil
	case lang.Documented:
		return v.TypeDoc().Help(), nil
	case *starlarkstruct.Module:
		return lang.ModuleHelp(v), nil
	case starlark.HasAttrs:
		return fmt.Sprintf("%s\n\nIt has: %s\n", v.Type(), strings.Join(v.AttrNames(), ", ")), nil
	}
	return fmt.Sprintf("%s: a value of the Starlark language\n", v.Type()), nil
}

// onName finds what a name stands for: a global name, an attribute, a
// field, a type.
func onName(globals starlark.StringDict, name string) (string, error) {
	if v, ok := globals[name]; ok {
		return On(globals, v)
	}
	if v, ok := starlark.Universe[name]; ok {
		return On(globals, v)
	}
	if text := tools.Hint(name); text != "" {
		return fmt.Sprintf("%s: here, %s\n", name, text), nil
	}
	if all := records.AttributesNamed(name); len(all) > 0 {
		return records.AttributesHelp(all), nil
	}
	for _, c := range mad.Classes() {
		if c.Name == name && c.First == c.Last {
			return records.ClassHelp(c), nil
		}
	}
	for _, d := range types.All() {
		if d.Name == name {
			return d.Help(), nil
		}
	}
	base, part, isPart := strings.Cut(name, ".")
	if isPart {
		if text, err := onPart(globals, base, part); text != "" || err != nil {
			return text, err
		}
	} else {
		base = ""
	}
	candidates := Topics(globals, base)
	if len(candidates) == 0 {
		candidates = Topics(globals, fabric.Nearest(base, Topics(globals, "")))
	}
	return "", fmt.Errorf("nothing is named %q%s; help() lists what there is", name, fabric.DidYouMean(name, candidates))
}

// onPart is help on a field of an attribute, a member of a type or of a
// module; empty if there is none.
func onPart(globals starlark.StringDict, base, part string) (string, error) {
	for _, a := range records.AttributesNamed(base) {
		if f := records.FieldNamed(a, part); f != nil {
			return records.FieldHelp(a, f), nil
		}
		for _, v := range a.Variants {
			if f := records.FieldNamed(v.Layout, part); f != nil {
				in := a.WithVariant(v.Name)
				return records.FieldHelp(in, in.Field(f.Script)), nil
			}
		}
	}
	for _, d := range types.All() {
		for _, m := range d.Members {
			if d.Name != base || m.ShortName() != part {
				continue
			}
			if m.Method != nil {
				return (&lang.Function{Builtin: m.Method}).Help(), nil
			}
			return fmt.Sprintf("%s.%s: %s\n", base, m.Name, m.Doc), nil
		}
	}
	if m, ok := globals[base].(*starlarkstruct.Module); ok && m.Members[part] != nil {
		return On(globals, m.Members[part])
	}
	return "", nil
}

// Topics lists the names that help knows: global names, attributes and types;
// or, with a base, which is one of these, the names of its parts.
func Topics(globals starlark.StringDict, base string) []string {
	var names []string
	if base == "" {
		names = slices.Concat(globals.Keys(), starlark.Universe.Keys())
		names = append(names, datagrams.AllAttributeNames()...)
		for _, a := range mad.Headers() {
			names = append(names, a.Name)
		}
		for _, c := range mad.Classes() {
			if c.First == c.Last {
				names = append(names, c.Name)
			}
		}
		for _, d := range types.All() {
			names = append(names, d.Name)
		}
	}
	for _, a := range records.AttributesNamed(base) {
		names = append(names, partsOf(base, a)...)
		for _, v := range a.Variants {
			names = append(names, partsOf(base, v.Layout)...)
		}
	}
	for _, d := range types.All() {
		for _, m := range d.Members {
			if d.Name == base {
				names = append(names, base+"."+m.ShortName())
			}
		}
	}
	if m, ok := globals[base].(*starlarkstruct.Module); ok {
		for _, name := range m.Members.Keys() {
			names = append(names, base+"."+name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// partsOf are the fields of an attribute, as help takes them: base.field.
func partsOf(base string, a *mad.Attribute) (names []string) {
	for i := range a.Flat() {
		names = append(names, base+"."+a.Flat()[i].Name)
	}
	return names
}
