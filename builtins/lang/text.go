package lang

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.starlark.net/starlark"
)

// maxColumns is the maximum number of columns of a table; records with more fields are
// shown one below the other.
const maxColumns = 16

// displayed is a value with its own text form, of several lines.
type displayed interface{ Display() string }

// RenderText returns v as text for people, with a newline at the end.
func RenderText(v starlark.Value) string { return renderText(v, 0) }

// renderText is RenderText for a terminal of some width; 0: unlimited.
func renderText(v starlark.Value, width int) string {
	text := v.String() + "\n"
	if c, ok := v.(Changed); ok {
		if lines, ok := renderChanges([]starlark.Value{c}, width); ok {
			return lines
		}
	}
	switch v := v.(type) {
	case starlark.String: // the whole result: a file, a report
		if strings.Contains(string(v), "\n") {
			return strings.TrimSuffix(string(v), "\n") + "\n"
		}
	case *tableValue:
		return tableText(v.title, v.columns, v.rows, width)
	case displayed:
		text = v.Display()
	case *Failure:
	case Factual:
		text = Aligned(v.Facts())
	case starlark.IterableMapping:
	case starlark.Iterable:
		if tooMany(starlark.Len(v)) != nil {
			break
		}
		list := Collect(v)
		if lines, ok := renderChanges(list, width); ok {
			return lines
		}
		if rows, ok := renderRows(list, width); ok {
			return rows
		}
	}
	return Fit(text, width)
}

// Aligned returns facts as text, one in each line.
func Aligned(facts []Fact) string {
	var b strings.Builder
	width := 0
	for _, f := range facts {
		if !f.Code {
			width = max(width, text.StringWidthWithoutEscSequences(f.Name))
		}
	}
	for _, f := range facts {
		if !f.Code {
			line := text.Pad(f.Name, width, ' ') + "  " + f.Cell()
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// renderRows renders a list of values with named facts as a table, or one below the
// other if they have too many. A failure takes the place of the value, with its
// target.
func renderRows(list []starlark.Value, width int) (string, bool) {
	rows := make([][]Fact, len(list))
	var known [][]Fact
	for i, v := range list {
		if _, ok := v.(*Failure); ok {
			continue
		}
		row, ok := factsOf(v)
		if !ok {
			return "", false
		}
		rows[i] = withoutCodes(row)
		known = append(known, rows[i])
	}
	if len(known) == 0 {
		return "", false
	}
	columns := ColumnsOf(known)
	inTable := len(columns) <= maxColumns
	for i, v := range list {
		if e, ok := v.(*Failure); ok {
			rows[i] = e.row(columns[0])
			if !inTable {
				rows[i] = append(rows[i][:1], Fact{Name: "error", Value: starlark.String(e.brief())})
			}
		}
	}
	if inTable {
		if width > 0 {
			columns = guidsLast(columns, known)
		}
		return tableText("", columns, rows, width), true
	}
	var b strings.Builder
	for i, row := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(Aligned(row))
	}
	return Fit(b.String(), width), true
}

// guidsLast moves columns of long identifiers to the end, so that a narrow terminal
// leaves them out first.
func guidsLast(columns []string, rows [][]Fact) []string {
	var first, last []string
	for i, name := range columns {
		long := i > 0
		for _, row := range rows {
			s, ok := find(row, name).Value.(starlark.String)
			long = long && (find(row, name).Value == starlark.None || ok && identifier().MatchString(string(s)))
		}
		if long {
			last = append(last, name)
		} else {
			first = append(first, name)
		}
	}
	return append(first, last...)
}

// identifier matches a 64-bit number in hexadecimal, such as a GUID.
var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^0x[0-9a-f]{16}$`) })

func withoutCodes(row []Fact) []Fact {
	out := make([]Fact, 0, len(row))
	for _, f := range row {
		if !f.Code {
			out = append(out, f)
		}
	}
	return out
}

// Cell returns a fact's value for people: strings without quotes, words joined, "-" for
// no value.
func (f *Fact) Cell() string {
	switch v := f.Value.(type) {
	case starlark.NoneType:
		return "-"
	case starlark.String:
		return OneLine(string(v))
	case starlark.Int:
		if f.Hex > 0 {
			return hexText(v, f.Hex)
		}
	case starlark.Float:
		return fmt.Sprintf("%.6g", float64(v))
	case starlark.Tuple:
		return cellOfTuple(v, f.Hex)
	case *Failure:
		return OneLine(v.String())
	case Named:
		return OneLine(v.Name())
	}
	return OneLine(f.Value.String())
}

// cellOfTuple joins words with commas and numbers with spaces.
func cellOfTuple(t starlark.Tuple, hex int) string {
	if len(t) == 0 {
		return "-"
	}
	if text, ok := joinWords(t, ", "); ok {
		return OneLine(text)
	}
	parts := make([]string, len(t))
	for i, v := range t {
		f := Fact{Value: v, Hex: hex}
		parts[i] = f.Cell()
	}
	return strings.Join(parts, " ")
}
