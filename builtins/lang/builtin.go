package lang

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
	// Returns is the type of what it returns, for help and completion: "fabric",
	// "list of node"; "record of attr" is the attribute that the argument attr
	// names. Of a list of targets it is a list of them. Empty: None, or not
	// declared.
	Returns string
	// Doc: the first line is the summary.
	Doc string
	// Example is typed input ("> ...") with the output it gives; a test runs it.
	Example string

	// Run is what Do makes of the Go function.
	Run  *Body
	Bare func(r *Runtime) error // what the name alone does at the prompt; nil: shows the function
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

// Function is a Builtin, or a method bound to its receiver, as a script's value.
type Function struct {
	*Builtin
	Recv starlark.Value // nil: no method
}

var _ starlark.Callable = (*Function)(nil)

// NewFunction is the value of b, a function that scripts find by its name.
func NewFunction(b *Builtin) *Function { return &Function{Builtin: b} }

func (f *Function) Name() string         { return f.Builtin.Name }
func (f *Function) Type() string         { return "builtin_function_or_method" }
func (f *Function) Freeze()              {}
func (f *Function) Truth() starlark.Bool { return true }
func (f *Function) Hash() (uint32, error) {
	return HashBytes([]byte(f.Builtin.Name)), nil
}

func (f *Function) String() string {
	if f.Recv != nil {
		return fmt.Sprintf("<method %s of %s>", f.Builtin.Name, f.Recv.Type())
	}
	return fmt.Sprintf("<function %s>", f.Builtin.Name)
}

// CallInternal binds the arguments and calls the Go function.
func (f *Function) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (v starlark.Value, err error) {
	c := &Call{Builtin: f.Builtin, Thread: t, Recv: f.Recv}
	if err := c.bind(args, kwargs); err != nil {
		return nil, c.named(err)
	}
	err = Protect(f.Builtin.Name, func() (err error) {
		v, err = f.Run.call(c)
		return err
	})
	return v, c.named(err)
}
