package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

func (f *function) help() string {
	b := f.Builtin
	var w strings.Builder
	fmt.Fprintf(&w, "%s\n\n%s\n", b.Signature(), b.Doc)
	if len(b.Params) > 0 {
		var rows []fact
		for _, p := range b.Params {
			rows = append(rows, fact{name: "  " + p.Name, value: starlark.String(p.Doc)})
		}
		w.WriteString("\nParameters\n" + aligned(rows))
	}
	if b.Example != "" {
		w.WriteString("\nExample\n")
		for line := range strings.Lines(strings.TrimSpace(b.Example) + "\n") {
			w.WriteString("  " + line)
		}
	}
	return w.String()
}

// functionHelp is the signature and docstring of a script's function.
func functionHelp(fn *starlark.Function) string {
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
	if doc := trimDoc(fn.Doc()); doc != "" {
		text += "\n" + doc + "\n"
	}
	return text
}

func moduleHelp(m *starlarkstruct.Module) string {
	var b strings.Builder
	fmt.Fprintf(&b, "module %s\n\n", m.Name)
	for _, name := range m.Members.Keys() {
		line := m.Name + "." + name
		if f, ok := m.Members[name].(*function); ok {
			line = f.Signature() + "  " + f.Summary()
		}
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

func (d typeDoc) help() string {
	var rows []fact
	for _, m := range d.members {
		rows = append(rows, fact{name: "  ." + m.name, value: starlark.String(m.doc)})
	}
	return fmt.Sprintf("%s\n\n%s\n\n%s", d.name, d.doc, aligned(rows))
}

// reference writes the section on one function.
func (f *Builtin) reference(b *strings.Builder, heading string) {
	fmt.Fprintf(b, "%s `%s`\n\n%s\n\n", heading, f.Signature(), f.Doc)
	if len(f.Params) > 0 {
		b.WriteString("| parameter | |\n|---|---|\n")
		for _, p := range f.Params {
			fmt.Fprintf(b, "| `%s` | %s |\n", p.Name, strings.ReplaceAll(p.Doc, "|", "\\|"))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "```\n%s\n```\n\n", strings.TrimSpace(f.Example))
}

// trimDoc takes the indentation of the code off a docstring.
func trimDoc(doc string) string {
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
