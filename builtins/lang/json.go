package lang

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	libjson "go.starlark.net/lib/json"
	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// JSONModule is the library's, with our encoder.
var JSONModule = &starlarkstruct.Module{
	Name: "json",
	Members: starlark.StringDict{
		"encode":        NewFunction(&JSONEncode),
		"encode_indent": NewFunction(&JSONEncodeIndent),
		"decode":        starlark.NewBuiltin("json.decode", decodeJSON),
		"indent":        libjson.Module.Members["indent"],
	},
}

// JSONEncode is json.encode.
var JSONEncode = Builtin{
	Name:   "json.encode",
	Group:  GroupOutput,
	Params: []Param{{Name: "x", Kind: KindAny, Doc: "any value except a function"}},
	Doc: `Returns a value as JSON text.
Values of fabsh become objects whose first member, "schema", is the name and version of the encoding; int keys become strings.`,
	Example: `
> json.encode({"lid": 17, "ports": [1, None]})
"{\"lid\":17,\"ports\":[1,null]}"
`,
	Run: Do(func(c *Call, a *struct{ X starlark.Value }) (starlark.Value, error) {
		data, err := encodeJSON(a.X, c.Fiber().Stopped)
		return starlark.String(data), err
	}),
}

// JSONEncodeIndent is json.encode_indent.
var JSONEncodeIndent = Builtin{
	Name:  "json.encode_indent",
	Group: GroupOutput,
	Params: []Param{
		{Name: "x", Kind: KindAny, Doc: "any value except a function"},
		{Name: "prefix", Kind: KindText, Default: `""`, Keyword: true, Doc: "text before each line except the first"},
		{Name: "indent", Kind: KindText, Default: `"\t"`, Keyword: true, Doc: "indentation of one level"},
	},
	Doc: "Returns a value as JSON text on several lines.",
	Example: `
> json.encode_indent([1], indent=" ")
[
 1
]
`,
	Run: Do(func(c *Call, a *struct {
		X              starlark.Value
		Prefix, Indent string
	}) (starlark.Value, error) {
		data, err := encodeJSON(a.X, c.Fiber().Stopped)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := json.Indent(&out, data, a.Prefix, a.Indent); err != nil {
			return nil, err
		}
		return starlark.String(out.String()), nil
	}),
}

// EncodeJSON returns a value as JSON, as json.encode does.
func EncodeJSON(v starlark.Value) ([]byte, error) { return encodeJSON(v, nil) }

// DecodeJSON returns the value of a JSON document.
func DecodeJSON(t *starlark.Thread, text []byte) (starlark.Value, error) {
	return decodeJSON(t, nil, starlark.Tuple{starlark.String(text)}, nil)
}

// QuoteJSON returns a string as JSON, with escapes for runes that terminals interpret.
func QuoteJSON(s string) string {
	e := encoder{}
	e.text(s)
	return e.buf.String()
}

// encodeJSON is the only encoder, for json.encode and all structured output.
// Values of fabsh become objects whose first member, "schema", is the name and
// version of the encoding. Dicts keep their order. It ends with the error of stopped, if
// that is not nil: 60 lists, each with the previous one twice, become exabytes.
func encodeJSON(v starlark.Value, stopped func() error) ([]byte, error) {
	e := encoder{stopped: stopped}
	var stop *StopError
	switch err := e.value(v); { // without its place, which would be long
	case errors.Is(err, errTooDeep):
		return nil, errTooDeep
	case errors.As(err, &stop):
		return nil, stop
	case err != nil:
		return nil, err
	}
	return e.buf.Bytes(), nil
}

type encoder struct {
	buf  bytes.Buffer
	path []starlark.Value // the containers around the value, to detect a cycle

	stopped func() error // nil: it cannot be stopped
	begun   int          // containers
}

func (e *encoder) value(v starlark.Value) error {
	switch v := v.(type) {
	case starlark.NoneType:
		e.buf.WriteString("null")
	case starlark.Bool:
		fmt.Fprint(&e.buf, bool(v))
	case starlark.Int:
		e.buf.WriteString(v.String())
	case starlark.Float:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("cannot encode %v as JSON", v)
		}
		e.buf.WriteString(v.String())
	case starlark.String:
		e.text(string(v))
	case starlark.Bytes:
		e.text(hex.EncodeToString([]byte(v)))
	case Textual:
		e.text(v.Text())
	case libtime.Time:
		e.text(time.Time(v).Format(time.RFC3339Nano))
	case libtime.Duration:
		e.text(time.Duration(v).String())
	case Factual:
		return e.Facts(v)
	case starlark.IterableMapping:
		return e.nested(v, func() error { return e.mapping(v) })
	case starlark.Iterable:
		return e.nested(v, func() error { return e.list(v) })
	default:
		return fmt.Errorf("cannot encode %s as JSON", v.Type())
	}
	return nil
}

func (e *encoder) text(s string) {
	enc := json.NewEncoder(&e.buf)
	enc.SetEscapeHTML(false)
	begin := e.buf.Len()
	enc.Encode(s) // a string always encodes
	e.buf.Truncate(e.buf.Len() - 1)
	// Encode escapes the control characters up to U+001F and replaces invalid UTF-8, but
	// terminals also interpret other characters.
	if written := string(e.buf.Bytes()[begin:]); strings.IndexFunc(written, isUnsafeRune) >= 0 {
		e.buf.Truncate(begin)
		for _, r := range written {
			if isUnsafeRune(r) {
				fmt.Fprintf(&e.buf, `\u%04x`, r)
			} else {
				e.buf.WriteRune(r)
			}
		}
	}
}

// maxDepth is the maximum nesting of JSON, as of Go's decoder.
const maxDepth = 10000

// containersPerCheck is the number of containers between two calls of stopped, which takes a lock.
const containersPerCheck = 64

var errTooDeep = fmt.Errorf("cannot encode as JSON: more than %d levels of nesting", maxDepth)

// nested detects containers that contain themselves or are nested too deep.
func (e *encoder) nested(v starlark.Value, fn func() error) error {
	if len(e.path) == maxDepth {
		return errTooDeep
	}
	if e.begun++; e.stopped != nil && e.begun%containersPerCheck == 0 {
		if err := e.stopped(); err != nil {
			return err
		}
	}
	for _, outer := range e.path {
		if sameContainer(outer, v) {
			return fmt.Errorf("cannot encode as JSON: %s contains itself", v.Type())
		}
	}
	e.path = append(e.path, v)
	defer func() { e.path = e.path[:len(e.path)-1] }()
	return fn()
}

// sameContainer compares identities of the containers that can hold themselves.
func sameContainer(a, b starlark.Value) bool {
	switch a := a.(type) {
	case *starlark.List:
		b, ok := b.(*starlark.List)
		return ok && a == b
	case *starlark.Dict:
		b, ok := b.(*starlark.Dict)
		return ok && a == b
	}
	return false
}

// Detailed is a Factual whose text has more than its columns, such as the entries of a table. JSON has
// the details behind the columns.
type Detailed interface {
	Factual
	Details() []Fact
}

func (e *encoder) Facts(v Factual) error {
	e.buf.WriteString(`{"schema":`)
	e.text(v.Schema())
	facts := v.Facts()
	if d, ok := v.(Detailed); ok {
		facts = append(facts, d.Details()...)
	}
	for _, f := range facts {
		e.buf.WriteByte(',')
		e.text(f.Name)
		e.buf.WriteByte(':')
		if err := e.value(f.Value); err != nil {
			return fmt.Errorf("%s.%s: %w", v.Type(), f.Name, err)
		}
	}
	e.buf.WriteByte('}')
	return nil
}

func (e *encoder) mapping(m starlark.IterableMapping) error {
	e.buf.WriteByte('{')
	for i, kv := range m.Items() {
		if i > 0 {
			e.buf.WriteByte(',')
		}
		key, ok := keyText(kv[0])
		if !ok {
			return fmt.Errorf("cannot encode as JSON: %s has a key of type %s, want string or int", m.Type(), kv[0].Type())
		}
		e.text(key)
		e.buf.WriteByte(':')
		if err := e.value(kv[1]); err != nil {
			return err
		}
	}
	e.buf.WriteByte('}')
	return nil
}

func (e *encoder) list(it starlark.Iterable) error {
	e.buf.WriteByte('[')
	i := 0
	for v := range starlark.Elements(it) {
		if i > 0 {
			e.buf.WriteByte(',')
		}
		if err := e.value(v); err != nil {
			return fmt.Errorf("at index %d: %w", i, err)
		}
		i++
	}
	e.buf.WriteByte(']')
	return nil
}

// decodeJSON is json.decode of the library, which recurses once for each level, with a
// limit of the depth.
func decodeJSON(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		if text, ok := starlark.AsString(args[0]); ok && depthOfJSON(text) > maxDepth {
			return nil, fmt.Errorf("json.decode: more than %d levels of nesting", maxDepth)
		}
	}
	return libjson.Module.Members["decode"].(*starlark.Builtin).CallInternal(t, args, kwargs)
}

// depthOfJSON returns the maximum number of brackets that are open at once.
func depthOfJSON(text string) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']', c == '}':
			depth--
		}
	}
	return deepest
}
