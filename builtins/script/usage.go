package script

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
)

// Usage returns the command line in one line.
func (e *Entry) Usage() string {
	var b strings.Builder
	b.WriteString(e.Name)
	for _, p := range e.Options {
		use := e.optionUse(p)
		if p.Default != nil {
			use = "[" + use + "]"
		}
		b.WriteString(" " + use)
	}
	for _, p := range e.Words {
		if p.Default == nil {
			b.WriteString(" " + strings.ToUpper(p.Name))
		} else {
			b.WriteString(" [" + strings.ToUpper(p.Name) + "]")
		}
	}
	if e.Rest != "" {
		b.WriteString(" [" + strings.ToUpper(e.Rest) + "...]")
	}
	return b.String()
}

func (e *Entry) optionUse(p Param) string {
	like := p.Default
	if l := listOf(like); l != nil && l.Len() > 0 {
		like = l.Index(0)
	}
	switch like.(type) {
	case starlark.Bool:
		if p.Default == starlark.True {
			return "--no-" + FlagName(p.Name)[2:]
		}
		return FlagName(p.Name)
	case starlark.Int:
		return FlagName(p.Name) + " N"
	case starlark.Float:
		return FlagName(p.Name) + " X"
	}
	return FlagName(p.Name) + " TEXT"
}

// Help returns the text of --help.
func (e *Entry) Help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s\n", e.Usage())
	if doc := lang.TrimDoc(e.Doc); doc != "" {
		fmt.Fprintf(&b, "\n%s\n", doc)
	}
	if len(e.Options) > 0 {
		b.WriteString("\noptions:\n")
		width := 0
		for _, p := range e.Options {
			width = max(width, len(e.optionUse(p)))
		}
		for _, p := range e.Options {
			note := "required"
			switch {
			case p.Default == starlark.True:
				note = "turns off " + p.Name
			case p.Default != nil:
				note = "default " + p.Default.String()
			}
			fmt.Fprintf(&b, "  %-*s  %s\n", width, e.optionUse(p), note)
		}
	}
	return b.String()
}
