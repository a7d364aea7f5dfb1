package lang

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
)

// Builtin declares a function or method that scripts can call. Argument checks, help,
// completion and REFERENCE.md derive from it.
type Builtin struct {
	Name   string
	Group  string // heading in the overview
	Params []Param
	// Returns is the type of the result, for help and completion: "fabric",
	// "list of node"; "record of attr" is the attribute that the argument attr
	// names. For a list of targets the result is a list of that type. Empty: None, or
	// not declared.
	Returns string
	// Doc is the help text; its first line is the summary.
	Doc string
	// Example is input ("> ...") with its output; a test runs it.
	Example string

	// Accepts returns the keyword arguments that a call with these positional ones accepts,
	// for the error about another one; nil: all of Params.
	Accepts func(args starlark.Tuple) []string

	// Run is the result of Do for the Go function.
	Run  *Body
	Bare func(r *Runtime) error // runs if the name alone is entered at the prompt; nil: the function is shown
}

// Param is a parameter of a Builtin. The name "*x" takes the remaining positional
// arguments, "**x" the remaining keyword arguments.
type Param struct {
	Name    string
	Kind    *Kind
	Default string // as a script writes it; empty: the argument is required
	Keyword bool   // keyword only
	Doc     string
}

// Headings in the overview, independent of the vocabulary.
const (
	GroupFlow   = "Concurrency and failure"
	GroupOutput = "Output"
	GroupRest   = "The rest"
)

// Signature returns b as documents show it: parallel(fn, items, width=64).
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

// Summary returns the first line of Doc.
func (b *Builtin) Summary() string {
	line, _, _ := strings.Cut(b.Doc, "\n")
	return line
}

// Function is the Starlark value of a Builtin, or of a method bound to its receiver.
type Function struct {
	*Builtin
	Recv starlark.Value // nil: a function, not a method
}

var _ starlark.Callable = (*Function)(nil)

// NewFunction returns the value of b, a global function.
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
	if fiber, ok := t.Local(fiberKey).(*Fiber); ok && fiber.common != nil && !fiber.inside {
		fiber.enter()
		defer fiber.leave()
	}
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
