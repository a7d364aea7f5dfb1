package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
)

// Builtin is all there is to know of a function or method that scripts can
// call. Argument checks, help, completion and REFERENCE.md come from it.
type Builtin struct {
	Name   string
	Group  string // heading in the overview
	Params []Param
	// Doc: the first line is the summary.
	Doc string
	// Example is typed input ("> ...") with the output it gives; a test runs it.
	Example string

	fn   func(c *call) (starlark.Value, error)
	bare func(r *Runtime) error // what the name alone does at the prompt; nil: shows the function
}

// Param is a parameter of a Builtin. The name "*x" takes what positional
// arguments are left, "**x" the keyword arguments.
type Param struct {
	Name    string
	Kind    *Kind
	Default string // as a script writes it; empty: must be given
	Keyword bool   // by name only
	Doc     string
}

// Headings in the overview, of what every product has.
const (
	GroupFlow   = "Concurrency and failure"
	GroupOutput = "Output"
	GroupRest   = "The rest"
)

// Signature is how b is written in documents: parallel(fn, items, width=64).
func (b *Builtin) Signature() string {
	var w strings.Builder
	w.WriteString(b.Name)
	w.WriteByte('(')
	keyword := false
	for i, p := range b.Params {
		if i > 0 {
			w.WriteString(", ")
		}
		if p.Keyword && !keyword {
			w.WriteString("*, ")
			keyword = true
		}
		w.WriteString(p.Name)
		if p.Default != "" {
			w.WriteString("=" + p.Default)
		}
		keyword = keyword || strings.HasPrefix(p.Name, "*")
	}
	w.WriteByte(')')
	return w.String()
}

// Summary is the first line of Doc.
func (b *Builtin) Summary() string {
	line, _, _ := strings.Cut(b.Doc, "\n")
	return line
}

// function is a Builtin, or a method bound to its receiver, as a script's value.
type function struct {
	*Builtin
	recv starlark.Value // nil: no method
}

var _ starlark.Callable = (*function)(nil)

func (f *function) Name() string         { return f.Builtin.Name }
func (f *function) Type() string         { return "builtin_function_or_method" }
func (f *function) Freeze()              {}
func (f *function) Truth() starlark.Bool { return true }
func (f *function) Hash() (uint32, error) {
	return hashBytes([]byte(f.Builtin.Name)), nil
}

func (f *function) String() string {
	if f.recv != nil {
		return fmt.Sprintf("<method %s of %s>", f.Builtin.Name, f.recv.Type())
	}
	return fmt.Sprintf("<function %s>", f.Builtin.Name)
}

// CallInternal binds the arguments and calls the Go function.
func (f *function) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (v starlark.Value, err error) {
	c := &call{Builtin: f.Builtin, thread: t, recv: f.recv}
	if err := c.bind(args, kwargs); err != nil {
		return nil, err
	}
	err = protect(f.Builtin.Name, func() (err error) {
		v, err = f.fn(c)
		return err
	})
	return v, err
}
