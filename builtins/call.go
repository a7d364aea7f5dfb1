package builtins

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"
)

// call is one call of a Builtin, its arguments checked and converted.
type call struct {
	*Builtin
	thread *starlark.Thread
	recv   starlark.Value
	args   []any // by position in Params; nil: not given and no default
	rest   starlark.Tuple
	fields []starlark.Tuple
}

func (c *call) fiber() *fiber     { return fiberOf(c.thread) }
func (c *call) runtime() *Runtime { return fiberOf(c.thread).r }

// bind matches arguments to parameters.
func (c *call) bind(args starlark.Tuple, kwargs []starlark.Tuple) error {
	c.args = make([]any, len(c.Params))
	positional, hasRest, hasFields := 0, false, false
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
			return fmt.Errorf("%s: got %s, want at most %d: %s", c.Name, count(len(args), "argument"), positional, c.Signature())
		}
		c.rest = args[positional:]
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
			return fmt.Errorf("%s: got two values for parameter %s", c.Name, name)
		case i >= 0:
			if err := c.set(i, kv[1]); err != nil {
				return err
			}
		case hasFields:
			c.fields = append(c.fields, kv)
		default:
			return fmt.Errorf("%s: unexpected keyword argument %s%s", c.Name, name, c.runtime().hint(name, c.paramNames()))
		}
	}
	for i, p := range c.Params {
		if c.args[i] != nil || strings.HasPrefix(p.Name, "*") {
			continue
		}
		if p.Default == "" {
			return fmt.Errorf("%s: missing argument for %s: %s", c.Name, p.Name, c.Signature())
		}
		c.args[i] = p.defaultValue()
	}
	for _, p := range c.Params {
		if p.Kind.Fields != nil && strings.HasPrefix(p.Name, "**") {
			if err := p.Kind.Fields(c.fields); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
	}
	return nil
}

func (c *call) paramNames() []string {
	var names []string
	for _, p := range c.Params {
		if !strings.HasPrefix(p.Name, "*") {
			names = append(names, p.Name)
		}
	}
	return names
}

// set converts v for parameter i. None for a parameter with a default means
// that it is not given.
func (c *call) set(i int, v starlark.Value) error {
	p := &c.Params[i]
	if v == starlark.None && p.Default != "" {
		return nil
	}
	if c.args[i] = v; p.Kind.Convert == nil {
		return nil
	}
	var err error
	if c.args[i], err = p.Kind.Convert(v); err != nil {
		return c.paramError(p.Name, "%w", err)
	}
	return nil
}

func (c *call) paramError(param, format string, args ...any) error {
	return fmt.Errorf("%s: for parameter %s: %w", c.Name, param, fmt.Errorf(format, args...))
}

// defaultValue is Default as the Go value; nil where the argument stays absent.
func (p *Param) defaultValue() any {
	if p.Kind.Default == nil {
		return nil
	}
	return p.Kind.Default(p.Default)
}

func (c *call) arg(name string) any {
	i := slices.IndexFunc(c.Params, func(p Param) bool { return p.Name == name })
	return c.args[i]
}

func (c *call) hasParam(name string) bool {
	return slices.ContainsFunc(c.Params, func(p Param) bool { return p.Name == name })
}

// Has: the parameter was given, or has a default other than None.
func (c *call) Has(name string) bool               { return c.arg(name) != nil }
func (c *call) Int(name string) int                { n, _ := c.arg(name).(int); return n }
func (c *call) Bool(name string) bool              { b, _ := c.arg(name).(bool); return b }
func (c *call) Text(name string) string            { s, _ := c.arg(name).(string); return s }
func (c *call) Duration(name string) time.Duration { d, _ := c.arg(name).(time.Duration); return d }
func (c *call) Items(name string) []starlark.Value { v, _ := c.arg(name).([]starlark.Value); return v }
func (c *call) Value(name string) starlark.Value {
	if v, ok := c.arg(name).(starlark.Value); ok {
		return v
	}
	return starlark.None
}

// collect makes a slice of what an iterable yields.
func collect(it starlark.Iterable) []starlark.Value {
	var out []starlark.Value
	if n := starlark.Len(it); n > 0 {
		out = make([]starlark.Value, 0, n)
	}
	for v := range starlark.Elements(it) {
		out = append(out, v)
	}
	return out
}

// count gives "1 argument", "2 arguments".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case strings.HasSuffix(noun, "switch"):
		noun += "es"
	case strings.HasSuffix(noun, "ry"): // query, entry
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// refuse is the refusal of what the call asks for. It is remembered, for the
// exit status tells of it whatever becomes of the script.
func (c *call) refuse(format string, args ...any) error {
	return c.runtime().Refuse(c.Name + ": " + fmt.Sprintf(format, args...))
}

// wait is block for the fiber of c.
func (c *call) wait(fn func(context.Context) error) error { return block(c.thread, fn) }

// texts is a parameter that takes a string or a list of them.
func (c *call) texts(param string) ([]string, error) {
	v := c.Value(param)
	values := []starlark.Value{v}
	if it, ok := v.(starlark.Iterable); ok {
		values = collect(it)
	}
	list := make([]string, len(values))
	for i, v := range values {
		text, ok := starlark.AsString(v)
		if !ok {
			return nil, c.paramError(param, "%w", wantType(v, "string"))
		}
		list[i] = text
	}
	return list, nil
}
