package builtins

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"

	"fabsh/fabric"
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
func (c *call) session() *Session { return fiberOf(c.thread).s }

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
			return fmt.Errorf("%s: unexpected keyword argument %s%s", c.Name, name, fabric.DidYouMean(name, c.paramNames()))
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
	if slices.ContainsFunc(c.Params, func(p Param) bool { return p.Kind == KindFields }) {
		return c.givenTwice()
	}
	return nil
}

// givenTwice: a field's word and its number, x and x_code, are the same bits.
func (c *call) givenTwice() error {
	for i, kv := range c.fields {
		name := string(kv[0].(starlark.String))
		for _, other := range c.fields[:i] {
			if o := string(other[0].(starlark.String)); o+"_code" == name || name+"_code" == o {
				return fmt.Errorf("%s: %s and %s are one field: give one of them", c.Name, o, name)
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
	x, err := p.Kind.convert(v)
	if err != nil {
		return c.paramError(p.Name, "%w", err)
	}
	c.args[i] = x
	return nil
}

func (c *call) paramError(param, format string, args ...any) error {
	return fmt.Errorf("%s: for parameter %s: %w", c.Name, param, fmt.Errorf(format, args...))
}

// convert checks a value and makes the Go value that builtins work with.
func (k Kind) convert(v starlark.Value) (any, error) {
	switch k {
	case KindInt, KindPort:
		return toInt(v)
	case KindBool:
		if b, ok := v.(starlark.Bool); ok {
			return bool(b), nil
		}
		return nil, wantType(v, "bool")
	case KindSMPAttribute, KindPerfAttribute, KindRecord:
		if r, ok := v.(*record); ok && k == KindSMPAttribute { // smp_set takes one
			return r, nil
		}
		if _, ok := v.(starlark.Int); ok {
			return nil, errors.New("got int, want the name of an attribute; by numbers there are mad_get, mad_set and mad_send")
		}
		return KindText.convert(v)
	case KindText, KindPath, KindChoice:
		if s, ok := starlark.AsString(v); ok {
			return s, nil
		}
		return nil, wantType(v, "string")
	case KindDuration:
		return toDuration(v)
	case KindFunction:
		if _, ok := v.(starlark.Callable); !ok {
			return nil, wantType(v, "function")
		}
	case KindItems:
		it, ok := v.(starlark.Iterable)
		if !ok {
			return nil, wantType(v, "an iterable")
		}
		return collect(it), nil
	}
	return v, nil
}

func wantType(v starlark.Value, want string) error {
	return fmt.Errorf("got %s, want %s", v.Type(), want)
}

// toInt converts an int that fits; floats and bools are no ints.
func toInt(v starlark.Value) (int, error) {
	i, ok := v.(starlark.Int)
	if !ok {
		return 0, wantType(v, "int")
	}
	n, ok := i.Int64()
	if !ok || int64(int(n)) != n {
		return 0, fmt.Errorf("%s is out of range", i)
	}
	return int(n), nil
}

// toDuration accepts what fabsh accepts for a duration everywhere: a text such
// as "500ms", or a number of seconds.
func toDuration(v starlark.Value) (time.Duration, error) {
	var d time.Duration
	switch v := v.(type) {
	case starlark.String:
		var err error
		if d, err = time.ParseDuration(string(v)); err != nil {
			return 0, fmt.Errorf("%s is not a duration: write \"500ms\", \"10s\", \"2m\" or a number of seconds", v)
		}
	case starlark.Int:
		f, _ := starlark.AsFloat(v)
		return secondsDuration(f)
	case starlark.Float:
		return secondsDuration(float64(v))
	case libtime.Duration:
		d = time.Duration(v)
	default:
		return 0, wantType(v, `a duration ("500ms", or seconds)`)
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
	case !(f <= 1e9): // also NaN; 30 years is for ever
		return 0, fmt.Errorf("%v seconds is out of range", f)
	}
	return time.Duration(f * float64(time.Second)), nil
}

// defaultValue is Default as the Go value; "None" leaves the argument nil.
func (p *Param) defaultValue() any {
	switch p.Kind {
	case KindInt, KindPort:
		if n, err := strconv.Atoi(p.Default); err == nil {
			return n
		}
	case KindBool:
		if p.Default != "None" {
			return p.Default == "True"
		}
	case KindText, KindPath, KindChoice, KindRecord:
		if s, err := strconv.Unquote(p.Default); err == nil {
			return s
		}
	case KindDuration:
		if s, err := strconv.Unquote(p.Default); err == nil {
			if d, err := time.ParseDuration(s); err == nil {
				return d
			}
		}
	}
	return nil
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
