package lang

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
)

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
