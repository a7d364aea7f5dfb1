package lang

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
// Errors begin with that name.
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

// Refuse records and returns the refusal of the call. The exit status reports it even
// if the script continues.
func (c *Call) Refuse(format string, args ...any) error {
	return c.Runtime().Refuse(c.Name + ": " + fmt.Sprintf(format, args...))
}

// Block runs fn, which may wait, and lets other fibers run meanwhile.
func (c *Call) Block(fn func(context.Context) error) error { return Block(c.Thread, fn) }

// Reads records that c reads a file, until done is called. The file may be a pipe, and
// waiting for its writer is not computing.
func (c *Call) Reads() (done func()) { return c.Runtime().Activity.wait() }
