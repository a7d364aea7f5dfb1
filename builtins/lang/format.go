package lang

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.starlark.net/starlark"
)

// Hex is hex().
var Hex = Builtin{
	Name:    "hex",
	Returns: "string",
	Group:   GroupOutput,
	Params: []Param{
		{Name: "x", Kind: KindAny, Doc: "an int"},
		{Name: "width", Kind: KindInt, Default: "0", Doc: "minimum number of digits"},
	},
	Doc: "Returns an int in hexadecimal.",
	Example: `
> hex(48, 4)
"0x0030"
`,
	Run: Do(func(c *Call, a *struct {
		X     starlark.Value
		Width int
	}) (starlark.Value, error) {
		x, ok := a.X.(starlark.Int)
		if !ok {
			return nil, ParamError("x", "%w", WantType(a.X, "int"))
		}
		if a.Width < 0 || a.Width > 1024 {
			return nil, ParamError("width", "got %d, want 0..1024", a.Width)
		}
		return starlark.String(hexText(x, a.Width)), nil
	}),
}

func hexText(x starlark.Int, digits int) string {
	n := x.BigInt()
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	s := new(big.Int).Abs(n).Text(16)
	return sign + "0x" + strings.Repeat("0", max(0, digits-len(s))) + s
}

// Fmt is fmt(): Python's format().
var Fmt = Builtin{
	Name:    "fmt",
	Returns: "string",
	Group:   GroupOutput,
	Params: []Param{
		{Name: "spec", Kind: KindText, Doc: "[fill][<>^][+][#][0][width][,][.precision][type], type one of b d e f g o s x X %"},
		{Name: "value", Kind: KindAny, Doc: "what to format"},
	},
	Doc: `Formats a value with width, alignment and precision.
It works like Python's format(). The operator % and the method format support neither width nor precision.`,
	Example: `
> fmt("5d", 42)
"   42"
> fmt(".2f", 2 / 3)
"0.67"
> fmt("<8", "node")
"node    "
> fmt("#06x", 48)
"0x0030"
`,
	Run: Do(func(c *Call, a *struct {
		Spec  string
		Value starlark.Value
	}) (starlark.Value, error) {
		s, err := formatValue(a.Spec, a.Value)
		if err != nil {
			return nil, Errorf("%w", err)
		}
		return starlark.String(s), nil
	}),
}

var specSyntax = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(.)?([<>^=]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([bdeEfgGosxX%])?$`)
})

// maxFormatWidth limits width and precision, so that a typing error costs no memory.
const maxFormatWidth = 10000

// formatValue formats v like Python's format(v, spec).
func formatValue(spec string, v starlark.Value) (string, error) {
	m := specSyntax().FindStringSubmatch(spec)
	if m == nil {
		return "", fmt.Errorf("invalid format %q; want [fill][<>^][+][#][0][width][,][.precision][type], for example \"8.2f\"", spec)
	}
	fill, align, sign, alt, zero, group, kind := m[1], m[2], m[3], m[4] != "", m[5] != "", m[7], m[9]
	width, _ := strconv.Atoi(m[6])
	precision := -1
	if m[8] != "" {
		precision, _ = strconv.Atoi(m[8])
	}
	if len(m[6]) > 6 || len(m[8]) > 6 || width > maxFormatWidth || precision > maxFormatWidth {
		return "", fmt.Errorf("invalid format %q: width and precision must be at most %d", spec, maxFormatWidth)
	}
	body, number, err := formatBody(v, kind, precision, alt, group)
	if err != nil {
		return "", err
	}
	prefix := ""
	if number {
		if strings.HasPrefix(body, "-") {
			prefix, body = "-", body[1:]
		} else if sign == "+" || sign == " " {
			prefix = sign
		}
		if alt && len(body) > 1 && body[0] == '0' && strings.ContainsRune("xXbo", rune(body[1])) {
			prefix, body = prefix+body[:2], body[2:]
		}
	}
	if fill == "" {
		fill = " "
		if zero && align == "" {
			fill, align = "0", "="
		}
	}
	if align == "" {
		align = "<"
		if number {
			align = ">"
		}
	}
	pad := max(0, width-text.StringWidthWithoutEscSequences(prefix+body))
	switch align {
	case "<":
		return prefix + body + strings.Repeat(fill, pad), nil
	case "^":
		return strings.Repeat(fill, pad/2) + prefix + body + strings.Repeat(fill, pad-pad/2), nil
	case "=":
		return prefix + strings.Repeat(fill, pad) + body, nil
	}
	return strings.Repeat(fill, pad) + prefix + body, nil
}

// formatBody formats v without fill and width; number reports whether v is a number.
func formatBody(v starlark.Value, kind string, precision int, alt bool, group string) (body string, number bool, err error) {
	switch x := v.(type) {
	case starlark.Int:
		bases := map[string]int{"": 10, "d": 10, "x": 16, "X": 16, "o": 8, "b": 2}
		base, ok := bases[kind]
		if !ok {
			if kind == "s" {
				break
			}
			f, err := starlark.AsFloat(x)
			if !err {
				return "", false, fmt.Errorf("%s is too large for %q", x, kind)
			}
			return formatFloat(f, kind, precision, group), true, nil
		}
		s := x.BigInt().Text(base)
		neg := strings.HasPrefix(s, "-")
		s = grouped(strings.TrimPrefix(s, "-"), group)
		if kind == "X" {
			s = strings.ToUpper(s)
		}
		if alt && base != 10 {
			s = "0" + kind + s
		}
		if neg {
			s = "-" + s
		}
		return s, true, nil
	case starlark.Float:
		if strings.Contains("dxXob", kind) && kind != "" {
			return "", false, fmt.Errorf("format %q: got float, want an int", kind)
		}
		if kind != "s" {
			return formatFloat(float64(x), kind, precision, group), true, nil
		}
	}
	if kind != "" && kind != "s" {
		return "", false, fmt.Errorf("format %q: got %s, want a number", kind, v.Type())
	}
	s, ok := starlark.AsString(v)
	if !ok {
		s = v.String()
	}
	if r := []rune(s); precision >= 0 && precision < len(r) {
		s = string(r[:precision])
	}
	return s, false, nil
}

func formatFloat(f float64, kind string, precision int, group string) string {
	switch kind {
	case "":
		if precision < 0 {
			return starlark.Float(f).String()
		}
		kind = "g"
	case "%":
		return formatFloat(f*100, "f", precision, group) + "%"
	}
	if precision < 0 {
		precision = 6
	}
	s := strconv.FormatFloat(f, kind[0], precision, 64)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, frac, dot := strings.Cut(s, ".")
	s = sign + grouped(whole, group)
	if dot {
		s += "." + frac
	}
	return s
}

// grouped separates groups of three digits by sep.
func grouped(digits, sep string) string {
	if sep == "" {
		return digits
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + sep + digits[i:]
	}
	return digits
}
