package lang

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"go.starlark.net/starlark"

	"fabsh/fabric/plural"
)

// Call is one call of a Builtin, with checked and converted arguments.
type Call struct {
	*Builtin
	Thread *starlark.Thread
	Recv   starlark.Value
	args   []any // by position in Params; nil: not given and no default
}

// Operate runs fn, which does in Go what the builtin called name does for scripts.
// Errors begin with that name; "": with none, because the command that runs fn names them.
func Operate(t *starlark.Thread, name string, fn func(c *Call) error) error {
	c := &Call{Builtin: &Builtin{Name: name}, Thread: t}
	return c.named(Protect(name, func() error { return fn(c) }))
}

// Fiber returns the fiber of the call's thread.
func (c *Call) Fiber() *Fiber { return FiberOf(c.Thread) }

// Runtime returns the runtime of the session.
func (c *Call) Runtime() *Runtime { return FiberOf(c.Thread).Runtime }

// Arguments returns the converted arguments by the names of their parameters: those that
// were given or have a default.
func (c *Call) Arguments() Others {
	given := Others{}
	for i, v := range c.args {
		if v != nil {
			given[c.Params[i].Name] = v
		}
	}
	return given
}

// bind matches arguments to parameters.
func (c *Call) bind(args starlark.Tuple, kwargs []starlark.Tuple) error {
	c.args = make([]any, len(c.Params))
	positional, hasRest, hasFields := 0, false, false
	rest := starlark.Tuple{}
	fields := []starlark.Tuple{}
	for _, p := range c.Params {
		switch {
		case strings.HasPrefix(p.Name, "**"):
			hasFields = true
		case strings.HasPrefix(p.Name, "*"):
			hasRest = true
		case !p.Keyword && !hasRest:
			positional++
		}
	}
	if len(args) > positional {
		if !hasRest {
			return Errorf("got %s, want at most %d: %s", plural.Count(len(args), "argument", "arguments"), positional, c.Signature())
		}
		rest = args[positional:]
		args = args[:positional]
	}
	for i, v := range args {
		if err := c.set(i, v); err != nil {
			return err
		}
	}
	for _, kv := range kwargs {
		name := string(kv[0].(starlark.String))
		i := slices.IndexFunc(c.Params, func(p Param) bool { return p.Name == name })
		switch {
		case i >= 0 && i < len(args):
			return Errorf("got two values for parameter %s", name)
		case i >= 0:
			if err := c.set(i, kv[1]); err != nil {
				return err
			}
		case hasFields:
			fields = append(fields, kv)
		default:
			return Errorf("unexpected keyword argument %s%s", name, c.accepted(name, args))
		}
	}
	for i, p := range c.Params {
		switch {
		case strings.HasPrefix(p.Name, "**"):
			c.args[i] = fields
		case strings.HasPrefix(p.Name, "*"):
			c.args[i] = rest
		}
		if c.args[i] != nil {
			continue
		}
		if p.Default == "" {
			return Errorf("missing argument for %s: %s", p.Name, c.Signature())
		}
		c.args[i] = p.DefaultValue()
	}
	for _, p := range c.Params {
		if p.Kind.Fields != nil && strings.HasPrefix(p.Name, "**") {
			if err := p.Kind.Fields(fields); err != nil {
				return Errorf("%w", err)
			}
		}
	}
	return nil
}

// accepted returns what follows the error about an unknown keyword argument: a similar name,
// or all names, of which there are few.
func (c *Call) accepted(name string, args starlark.Tuple) string {
	names := c.paramNames()
	if c.Accepts != nil {
		names = c.Accepts(args)
	}
	if hint := c.Runtime().hint(name, c.paramNames()); hint != "" || len(names) == 0 || len(names) > maxAccepted {
		return hint
	}
	return "; supported: " + strings.Join(names, ", ")
}

// maxAccepted is the largest number of names that an error lists.
const maxAccepted = 12

func (c *Call) paramNames() []string {
	var names []string
	for _, p := range c.Params {
		if !strings.HasPrefix(p.Name, "*") {
			names = append(names, p.Name)
		}
	}
	return names
}

// set converts v for parameter i. None for a parameter with a default counts as not
// given.
func (c *Call) set(i int, v starlark.Value) error {
	p := &c.Params[i]
	if v == starlark.None && p.Default != "" {
		return nil
	}
	if it, ok := v.(starlark.Iterable); ok {
		if err := tooMany(starlark.Len(it)); err != nil {
			return ParamError(p.Name, "%w", err)
		}
	}
	if c.args[i] = v; p.Kind.Convert == nil {
		return nil
	}
	var err error
	if c.args[i], err = p.Kind.Convert(v); err != nil {
		return ParamError(p.Name, "%w", err)
	}
	return nil
}

// DefaultValue returns Default as the Go value; nil if the argument stays absent.
func (p *Param) DefaultValue() any {
	if p.Kind.Default == nil {
		return nil
	}
	return p.Kind.Default(p.Default)
}

// Collect returns the elements of an iterable. A range within an argument may claim any
// number of elements, so the space allocated in advance is bounded.
func Collect(it starlark.Iterable) []starlark.Value {
	var out []starlark.Value
	if n := starlark.Len(it); n > 0 {
		out = make([]starlark.Value, 0, min(n, maxElements))
	}
	for v := range starlark.Elements(it) {
		out = append(out, v)
	}
	return out
}

// Errorf returns an error that will begin with the name of the builtin that returns it.
func Errorf(format string, args ...any) error { return &ownError{fmt.Errorf(format, args...)} }

// ParamError returns an error about the argument for a parameter.
func ParamError(param, format string, args ...any) error {
	return Errorf("for parameter %s: %w", param, fmt.Errorf(format, args...))
}

// Refuse records and returns the refusal of the call. The exit status reports it even
// if the script continues.
func (c *Call) Refuse(format string, args ...any) error {
	return c.Runtime().Refuse(c.named(Errorf(format, args...)).Error())
}

// Block runs fn, which may wait, and lets other fibers run meanwhile.
func (c *Call) Block(fn func(context.Context) error) error { return Block(c.Thread, fn) }

// Reads records that c reads a file, until done is called. The file may be a pipe, and
// waiting for its writer is not computing.
func (c *Call) Reads() (done func()) { return c.Runtime().Activity.wait() }

// Body is the Go function of a Builtin, and the struct that its arguments
// bind to.
type Body struct {
	args   reflect.Type
	run    func(c *Call, args reflect.Value) (starlark.Value, error)
	once   sync.Once
	fields [][]int // field indices in args, by position in Params
	err    error   // the mismatch of args and Params, if any
}

// Do makes the Body of a builtin whose arguments bind to the fields of an A:
// the parameter in_port to InPort, *args to Args. A field has the type that
// the parameter's Kind converts to, or a pointer to it, which is nil if the argument was
// not given and has no default. Embedded structs hold parameters that several
// builtins share. A field of type Others takes the arguments of all parameters that have
// no field. Builtin.Check returns an error if fields and parameters differ.
func Do[A any](fn func(c *Call, a *A) (starlark.Value, error)) *Body {
	return &Body{
		args: reflect.TypeFor[A](),
		run:  func(c *Call, args reflect.Value) (starlark.Value, error) { return fn(c, args.Interface().(*A)) },
	}
}

// Others holds arguments by parameter name: those that were given or have a default.
type Others map[string]any

var othersType = reflect.TypeFor[Others]()

// Check returns an error if the parameters of b and the fields that they bind to
// differ. Each call checks first. The tests check all builtins: at program start the
// check took a quarter of the time.
func (b *Builtin) Check() error {
	b.Run.once.Do(func() { b.Run.fields, b.Run.err = b.match() })
	return b.Run.err
}

// match finds the field of each parameter.
func (b *Builtin) match() (fields [][]int, err error) {
	var names []string
	var others []int
	for _, f := range reflect.VisibleFields(b.Run.args) {
		if f.Type == othersType {
			others = f.Index
		}
	}
	for _, p := range b.Params {
		name := strings.TrimLeft(p.Name, "*")
		names = append(names, name)
		f, ok := b.Run.args.FieldByNameFunc(func(field string) bool { return snake(field) == name })
		switch {
		case !ok && others != nil:
			f.Index = others
		case !ok:
			return nil, fmt.Errorf("%s: no field of %v takes the parameter %s", b.Name, b.Run.args, p.Name)
		case f.Type != p.goType() && !(p.Default == "None" && f.Type == reflect.PointerTo(p.goType())):
			return nil, fmt.Errorf("%s: the field %s of %v is a %v, but the parameter %s converts to a %v", b.Name, f.Name, b.Run.args, f.Type, p.Name, p.goType())
		}
		fields = append(fields, f.Index)
	}
	for _, f := range reflect.VisibleFields(b.Run.args) {
		if !f.Anonymous && f.Type != othersType && !slices.Contains(names, snake(f.Name)) {
			return nil, fmt.Errorf("%s: no parameter for the field %s of %v", b.Name, f.Name, b.Run.args)
		}
	}
	return fields, nil
}

// goType returns the type of the Go value that p converts to.
func (p *Param) goType() reflect.Type {
	switch {
	case strings.HasPrefix(p.Name, "**"):
		return reflect.TypeFor[[]starlark.Tuple]()
	case strings.HasPrefix(p.Name, "*"):
		return reflect.TypeFor[starlark.Tuple]()
	case p.Kind.Type == nil:
		return reflect.TypeFor[starlark.Value]()
	}
	return p.Kind.Type
}

// snake returns the parameter name of a field: in_port of InPort, lids of LIDs.
func snake(field string) string {
	var b strings.Builder
	runes := []rune(field)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+2 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsLower(runes[i+2])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// call binds the arguments of c and runs the function.
func (b *Body) call(c *Call) (starlark.Value, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	args := reflect.New(b.args)
	for i, v := range c.args {
		if v == nil {
			continue
		}
		field := args.Elem().FieldByIndex(b.fields[i])
		if field.Type() == othersType {
			if field.IsNil() {
				field.Set(reflect.ValueOf(Others{}))
			}
			field.SetMapIndex(reflect.ValueOf(c.Params[i].Name), reflect.ValueOf(v))
			continue
		}
		if x := reflect.ValueOf(v); field.Kind() == reflect.Pointer && x.Kind() != reflect.Pointer {
			field.Set(reflect.New(x.Type()))
			field.Elem().Set(x)
		} else {
			field.Set(x)
		}
	}
	return b.run(c, args)
}

// ownError is an error that a builtin itself detects, in its arguments or in the
// requested operation. The call puts the builtin's name before it. All other errors
// name their operation themselves.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }
func (e *ownError) Unwrap() error { return e.err }

// named puts the builtin's name before an ownError.
func (b *Builtin) named(err error) error {
	switch own, ok := err.(*ownError); {
	case ok && b.Name == "":
		return own.err
	case ok:
		return fmt.Errorf("%s: %w", b.Name, own.err)
	}
	return err
}
