package lang

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// Documented is a value that help can describe.
type Documented interface{ TypeDoc() TypeDoc }

// TypeDoc is the help of a type.
type TypeDoc struct {
	Name    string
	Doc     string
	Schema  string // of the JSON of its values; "": none
	Members []MemberDoc
}

// MemberDoc is the help of an attribute or a method.
type MemberDoc struct {
	Name   string // of a method, its signature
	Doc    string
	Type   string   // of an attribute, if declared
	Words  []string // possible words of an attribute, if they are fixed
	Column bool     // in tables and JSON
	Method *Builtin
}

// ShortName returns the name without the signature.
func (m *MemberDoc) ShortName() string {
	if m.Method != nil {
		return m.Method.Name
	}
	return m.Name
}

// Help returns the signature, the parameters, the doc and the example, for people.
func (f *Function) Help() string {
	b := f.Builtin
	var w strings.Builder
	fmt.Fprintf(&w, "%s\n\n%s\n", b.Signature(), b.Doc)
	if len(b.Params) > 0 {
		var rows []Fact
		for _, p := range b.Params {
			rows = append(rows, Fact{Name: "  " + p.Name, Value: starlark.String(p.Doc)})
		}
		w.WriteString("\nParameters\n" + Aligned(rows))
	}
	if b.Returns != "" {
		fmt.Fprintf(&w, "\nReturns: %s\n", b.returned())
	}
	if b.Example != "" {
		w.WriteString("\nExample\n")
		for line := range strings.Lines(strings.TrimSpace(b.Example) + "\n") {
			w.WriteString("  " + line)
		}
	}
	return w.String()
}

// returned returns Returns for people.
func (b *Builtin) returned() string {
	if what, param, ok := strings.Cut(b.Returns, "record of "); ok {
		return what + "record of the attribute that " + param + " names"
	}
	return b.Returns
}

// FunctionHelp returns the signature and docstring of a script's function.
func FunctionHelp(fn *starlark.Function) string {
	var params []string
	n := fn.NumParams()
	kwargs, varargs := fn.HasKwargs(), fn.HasVarargs()
	plain := n
	if kwargs {
		plain--
	}
	if varargs {
		plain--
	}
	keywords := fn.NumKwonlyParams()
	for i := range plain {
		name, _ := fn.Param(i)
		if i == plain-keywords {
			if varargs {
				rest, _ := fn.Param(plain)
				params = append(params, "*"+rest)
			} else {
				params = append(params, "*")
			}
		}
		if d := fn.ParamDefault(i); d != nil {
			name += "=" + d.String()
		}
		params = append(params, name)
	}
	if varargs && keywords == 0 {
		rest, _ := fn.Param(plain)
		params = append(params, "*"+rest)
	}
	if kwargs {
		rest, _ := fn.Param(n - 1)
		params = append(params, "**"+rest)
	}
	text := fmt.Sprintf("%s(%s)\n", fn.Name(), strings.Join(params, ", "))
	if doc := TrimDoc(fn.Doc()); doc != "" {
		text += "\n" + doc + "\n"
	}
	return text
}

// ModuleHelp lists the functions of a module.
func ModuleHelp(m *starlarkstruct.Module) string {
	var b strings.Builder
	fmt.Fprintf(&b, "module %s\n\n", m.Name)
	for _, name := range m.Members.Keys() {
		line := m.Name + "." + name
		if f, ok := m.Members[name].(*Function); ok {
			line = f.Signature() + "  " + f.Summary()
		}
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

// Help lists the attributes and methods of a type.
func (d TypeDoc) Help() string {
	const widest = 34 // a longer one, such as a method with its parameters, has a line of its own
	width := 0
	for _, m := range d.Members {
		if n := len("." + m.Name); n <= widest {
			width = max(width, n)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n\n", d.Name, d.Doc)
	for _, m := range d.Members {
		name := "." + m.Name
		if len(name) > width {
			fmt.Fprintf(&b, "  %s\n      %s\n", name, m.Doc)
			continue
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", width, name, m.Doc)
	}
	return b.String()
}

// Reference writes the section on one function.
func (f *Builtin) Reference(b *strings.Builder, heading string) {
	fmt.Fprintf(b, "%s `%s`\n\n%s\n\n", heading, f.Signature(), f.Doc)
	if len(f.Params) > 0 {
		b.WriteString("| parameter | |\n|---|---|\n")
		for _, p := range f.Params {
			fmt.Fprintf(b, "| `%s` | %s |\n", p.Name, strings.ReplaceAll(p.Doc, "|", "\\|"))
		}
		b.WriteByte('\n')
	}
	if f.Returns != "" {
		fmt.Fprintf(b, "Returns: %s\n\n", f.returned())
	}
	fmt.Fprintf(b, "```\n%s\n```\n\n", strings.TrimSpace(f.Example))
}

// TrimDoc removes the code's indentation from a docstring.
func TrimDoc(doc string) string {
	lines := strings.Split(strings.TrimSpace(doc), "\n")
	indent := -1
	for _, l := range lines[1:] {
		if t := strings.TrimLeft(l, " \t"); t != "" && (indent < 0 || len(l)-len(t) < indent) {
			indent = len(l) - len(t)
		}
	}
	for i, l := range lines[1:] {
		lines[i+1] = strings.TrimRight(l[min(max(indent, 0), len(l)):], " \t")
	}
	return strings.Join(lines, "\n")
}
