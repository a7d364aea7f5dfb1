package builtins

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"go.starlark.net/starlark"
)

// maxColumns is the widest table; records with more fields show one below the
// other.
const maxColumns = 16

// displayed is a value with a text form of its own, of several lines.
type displayed interface{ display() string }

// renderText renders v for people, with a newline at the end.
func renderText(v starlark.Value) string {
	switch v := v.(type) {
	case displayed:
		return v.display()
	case *failure:
		return v.String() + "\n"
	case factual:
		return aligned(v.facts())
	case starlark.IterableMapping:
		return v.String() + "\n"
	case starlark.Iterable:
		if text, ok := renderRows(collect(v)); ok {
			return text
		}
	}
	return v.String() + "\n"
}

// aligned writes one fact a line.
func aligned(facts []fact) string {
	var b strings.Builder
	width := 0
	for _, f := range facts {
		if !f.code {
			width = max(width, text.StringWidthWithoutEscSequences(f.name))
		}
	}
	for _, f := range facts {
		if !f.code {
			line := text.Pad(f.name, width, ' ') + "  " + f.cell()
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// renderRows renders a list of values with named facts as a table, or one
// below the other where they have too many. Failures follow.
func renderRows(list []starlark.Value) (string, bool) {
	var rows [][]fact
	var failures strings.Builder
	for i, v := range list {
		if e, ok := v.(*failure); ok {
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
	columns := columnsOf(rows)
	if len(columns) <= maxColumns {
		return tableText("", columns, rows) + failures.String(), true
	}
	var b strings.Builder
	for i, row := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(aligned(row))
	}
	return b.String() + failures.String(), true
}

func withoutCodes(row []fact) []fact {
	out := make([]fact, 0, len(row))
	for _, f := range row {
		if !f.code {
			out = append(out, f)
		}
	}
	return out
}

// tableText lays out rows in columns: numbers to the right, two blanks between.
func tableText(title string, columns []string, rows [][]fact) string {
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
			line[i] = f.cell()
			switch f.value.(type) {
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
func (f *fact) cell() string {
	switch v := f.value.(type) {
	case starlark.NoneType:
		return "-"
	case starlark.String:
		return oneLine(string(v))
	case starlark.Int:
		if f.hex > 0 {
			return hexText(v, f.hex)
		}
	case starlark.Float:
		return fmt.Sprintf("%.6g", float64(v))
	case starlark.Tuple:
		return cellOfTuple(v, f.hex)
	case *failure:
		return oneLine(v.String())
	}
	return oneLine(f.value.String())
}

// cellOfTuple joins words with commas and numbers with blanks.
func cellOfTuple(t starlark.Tuple, hex int) string {
	if len(t) == 0 {
		return "-"
	}
	if text, ok := joinWords(t, ", "); ok {
		return oneLine(text)
	}
	parts := make([]string, len(t))
	for i, v := range t {
		f := fact{value: v, hex: hex}
		parts[i] = f.cell()
	}
	return strings.Join(parts, " ")
}

// oneLine keeps what a device calls itself from breaking the layout.
func oneLine(s string) string {
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
