package lang

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"go.starlark.net/starlark"
)

// maxColumns is the widest table; records with more fields show one below the
// other.
const maxColumns = 16

// displayed is a value with a text form of its own, of several lines.
type displayed interface{ Display() string }

// RenderText renders v for people, with a newline at the end.
func RenderText(v starlark.Value) string {
	switch v := v.(type) {
	case starlark.String: // the whole result: a file, a report
		if strings.Contains(string(v), "\n") {
			return strings.TrimSuffix(string(v), "\n") + "\n"
		}
	case displayed:
		return v.Display()
	case *Failure:
		return v.String() + "\n"
	case Factual:
		return Aligned(v.Facts())
	case starlark.IterableMapping:
		return v.String() + "\n"
	case starlark.Iterable:
		if text, ok := renderRows(Collect(v)); ok {
			return text
		}
	}
	return v.String() + "\n"
}

// Aligned writes one fact a line.
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

// renderRows renders a list of values with named facts as a table, or one
// below the other where they have too many. Failures follow.
func renderRows(list []starlark.Value) (string, bool) {
	var rows [][]Fact
	var failures strings.Builder
	for i, v := range list {
		if e, ok := v.(*Failure); ok {
			fmt.Fprintf(&failures, "%d: %s\n", i, e)
			continue
		}
		row, ok := factsOf(v)
		if !ok {
			return "", false
		}
		rows = append(rows, withoutCodes(row))
	}
	if len(rows) == 0 {
		return "", false
	}
	columns := ColumnsOf(rows)
	if len(columns) <= maxColumns {
		return TableText("", columns, rows) + failures.String(), true
	}
	var b strings.Builder
	for i, row := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(Aligned(row))
	}
	return b.String() + failures.String(), true
}

func withoutCodes(row []Fact) []Fact {
	out := make([]Fact, 0, len(row))
	for _, f := range row {
		if !f.Code {
			out = append(out, f)
		}
	}
	return out
}

// TableText lays out rows in columns: numbers to the right, two blanks between.
func TableText(title string, columns []string, rows [][]Fact) string {
	w := table.NewWriter()
	w.SetStyle(table.Style{
		Name:    "fabsh",
		Box:     table.BoxStyle{PaddingRight: "  ", UnfinishedRow: " ~"},
		Options: table.OptionsNoBordersAndSeparators,
		Format:  table.FormatOptions{Header: text.FormatDefault, Footer: text.FormatDefault, Row: text.FormatDefault},
	})
	head := make(table.Row, len(columns))
	for i, c := range columns {
		head[i] = c
	}
	w.AppendHeader(head)
	numeric := make([]bool, len(columns))
	for i := range numeric {
		numeric[i] = true
	}
	for _, row := range rows {
		line := make(table.Row, len(columns))
		for i, name := range columns {
			f := find(row, name)
			line[i] = f.Cell()
			switch f.Value.(type) {
			case starlark.Int, starlark.Float, starlark.NoneType:
			default:
				numeric[i] = false
			}
		}
		w.AppendRow(line)
	}
	configs := make([]table.ColumnConfig, len(columns))
	for i := range columns {
		configs[i] = table.ColumnConfig{Number: i + 1}
		if numeric[i] {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	w.SetColumnConfigs(configs)
	var b strings.Builder
	if title != "" {
		b.WriteString(title + "\n")
	}
	for line := range strings.Lines(w.Render() + "\n") {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// cell is a fact's value for people: texts bare, words joined, no value "-".
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
	}
	return OneLine(f.Value.String())
}

// cellOfTuple joins words with commas and numbers with blanks.
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
