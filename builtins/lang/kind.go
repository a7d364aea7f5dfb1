package lang

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
)

// Kind says what a parameter accepts and what completes it. Vocabularies
// declare their own.
type Kind struct {
	// Type is of the Go value that Convert makes. Nil: a starlark.Value.
	Type reflect.Type
	// Convert checks a value, and makes the Go value that the builtin works
	// with. Nil: any value, as it is.
	Convert func(v starlark.Value) (any, error)
	// Names: a text may be the name of something that the session knows, so that
	// completion proposes those too.
	Names bool
	// Default is Param.Default as such a Go value; nil where that cannot be.
	// Nil: the parameter has none but None.
	Default func(text string) any
	// Fields checks the keyword arguments that a parameter "**x" takes. Nil:
	// they are not checked.
	Fields func(fields []starlark.Tuple) error
}

// The kinds of every product.
var (
	KindAny      = &Kind{}
	KindInt      = &Kind{Convert: toIntValue, Type: reflect.TypeFor[int](), Default: intDefault}                     // an int
	KindBool     = &Kind{Convert: toBool, Type: reflect.TypeFor[bool](), Default: boolDefault}                       // True or False
	KindText     = &Kind{Convert: ToText, Type: reflect.TypeFor[string](), Default: TextDefault}                     // a string
	KindDuration = &Kind{Convert: toDurationValue, Type: reflect.TypeFor[time.Duration](), Default: durationDefault} // "500ms", or seconds
	KindPath     = &Kind{Convert: ToText, Type: reflect.TypeFor[string](), Default: TextDefault}                     // a file
	KindChoice   = &Kind{Convert: ToText, Type: reflect.TypeFor[string](), Default: TextDefault}                     // one of Param.Doc's quoted words
	KindTopic    = &Kind{}                                                                                           // what help is about
	KindFunction = &Kind{Convert: toFunction, Type: reflect.TypeFor[starlark.Callable]()}                            // something to call
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

// ToText is the Convert of kinds that take a string.
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

// TextDefault is the Default of kinds that take a string.
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

// WantType is the error of a value of another type than is wanted.
func WantType(v starlark.Value, want string) error {
	return fmt.Errorf("got %s, want %s", v.Type(), want)
}

// ToInt converts an int that fits; floats and bools are no ints.
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
	case !(f <= 1e9): // also NaN; 30 years is for ever
		return 0, fmt.Errorf("%v seconds is out of range", f)
	}
	return time.Duration(f * float64(time.Second)), nil
}
