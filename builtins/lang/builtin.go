// Package lang is a framework for builtins in Starlark. It does not depend on InfiniBand.
//
// A Builtin declares a function or method: its parameters with their kinds, its help, and
// the Go function to which the arguments of a Call bind. Its results are values of a Type,
// with attributes and methods, or of a ResultType; values with Facts are shown as text and
// tables and encoded as JSON and CSV by Display and Render. Files are the files that scripts
// may read and write.
//
// A Runtime is what a session shares. Each Starlark thread has a Fiber. One fiber runs at a
// time, so values of scripts need no locks; another one runs only while it waits in Block.
// Only Block waits, and attributes never do I/O. RunTogether runs the fibers of independent
// scripts at the same time, one at a time in builtins.
//
// An error of a builtin ends the script, or catch() returns it as a Failure. ExitError,
// RefusalError, LimitError and StopError end the script in any case.
package lang

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	libtime "go.starlark.net/lib/time"
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

// Kind declares what a parameter accepts and how it is completed. Vocabularies
// declare their own.
type Kind struct {
	// Type is the type of the Go value that Convert returns. Nil: a starlark.Value.
	Type reflect.Type
	// Convert checks a value and returns the Go value for the builtin. Nil: any
	// value, unchanged.
	Convert func(v starlark.Value) (any, error)
	// Names reports whether a text may be a name known to the session, so that
	// completion proposes those too.
	Names bool
	// Default converts Param.Default to such a Go value; nil if that is not possible.
	// A nil function: the only default is None.
	Default func(text string) any
	// Fields checks the keyword arguments that a parameter "**x" takes. Nil: no check.
	Fields func(fields []starlark.Tuple) error
}

// Kinds that do not depend on the vocabulary.
var (
	KindAny      = &Kind{}
	KindInt      = &Kind{Convert: toIntValue, Type: reflect.TypeFor[int](), Default: intDefault}                     // an int
	KindBool     = &Kind{Convert: toBool, Type: reflect.TypeFor[bool](), Default: boolDefault}                       // True or False
	KindText     = &Kind{Convert: ToText, Type: reflect.TypeFor[string](), Default: TextDefault}                     // a string
	KindDuration = &Kind{Convert: toDurationValue, Type: reflect.TypeFor[time.Duration](), Default: durationDefault} // "500ms", or seconds
	KindPath     = &Kind{Convert: ToText, Type: reflect.TypeFor[string](), Default: TextDefault}                     // a file
	KindChoice   = &Kind{Convert: ToText, Type: reflect.TypeFor[string](), Default: TextDefault}                     // one of Param.Doc's quoted words
	KindTopic    = &Kind{}                                                                                           // a topic of help
	KindFunction = &Kind{Convert: toFunction, Type: reflect.TypeFor[starlark.Callable]()}                            // a function
	KindItems    = &Kind{Convert: toItems, Type: reflect.TypeFor[[]starlark.Value]()}                                // any iterable
)

func toIntValue(v starlark.Value) (any, error) { return ToInt(v) }

func toDurationValue(v starlark.Value) (any, error) { return toDuration(v) }

func toBool(v starlark.Value) (any, error) {
	if b, ok := v.(starlark.Bool); ok {
		return bool(b), nil
	}
	return nil, WantType(v, "bool")
}

// ToText is Kind.Convert for kinds that take a string.
func ToText(v starlark.Value) (any, error) {
	if s, ok := starlark.AsString(v); ok {
		return s, nil
	}
	return nil, WantType(v, "string")
}

func toFunction(v starlark.Value) (any, error) {
	if _, ok := v.(starlark.Callable); !ok {
		return nil, WantType(v, "function")
	}
	return v, nil
}

func toItems(v starlark.Value) (any, error) {
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, WantType(v, "an iterable")
	}
	return Collect(it), nil
}

func intDefault(text string) any {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return nil
}

func boolDefault(text string) any {
	if text == "None" {
		return nil
	}
	return text == "True"
}

// TextDefault is Kind.Default for kinds that take a string.
func TextDefault(text string) any {
	if s, err := strconv.Unquote(text); err == nil {
		return s
	}
	return nil
}

func durationDefault(text string) any {
	if s, err := strconv.Unquote(text); err == nil {
		if d, err := time.ParseDuration(s); err == nil {
			return d
		}
	}
	return nil
}

// WantType returns the error for a value of the wrong type.
func WantType(v starlark.Value, want string) error {
	return fmt.Errorf("got %s, want %s", v.Type(), want)
}

// ToInt converts an int that fits; it refuses floats and bools.
func ToInt(v starlark.Value) (int, error) {
	i, ok := v.(starlark.Int)
	if !ok {
		return 0, WantType(v, "int")
	}
	n, ok := i.Int64()
	if !ok || int64(int(n)) != n {
		return 0, fmt.Errorf("%s is out of range", i)
	}
	return int(n), nil
}

// toDuration accepts a text such as "500ms" or a number of seconds, as everywhere in
// fabsh.
func toDuration(v starlark.Value) (time.Duration, error) {
	var d time.Duration
	switch v := v.(type) {
	case starlark.String:
		var err error
		if d, err = time.ParseDuration(string(v)); err != nil {
			return 0, fmt.Errorf("invalid duration %s; write \"500ms\", \"10s\", \"2m\" or a number of seconds", v)
		}
	case starlark.Int:
		f, _ := starlark.AsFloat(v)
		return secondsDuration(f)
	case starlark.Float:
		return secondsDuration(float64(v))
	case libtime.Duration:
		d = time.Duration(v)
	default:
		return 0, WantType(v, `a duration ("500ms", or seconds)`)
	}
	if d < 0 {
		return 0, fmt.Errorf("%v is negative", d)
	}
	return d, nil
}

func secondsDuration(f float64) (time.Duration, error) {
	switch {
	case f < 0:
		return 0, fmt.Errorf("%v seconds is negative", f)
	case !(f <= 1e9): // also NaN; 1e9 s are 30 years
		return 0, fmt.Errorf("%v seconds is out of range", f)
	}
	return time.Duration(f * float64(time.Second)), nil
}
