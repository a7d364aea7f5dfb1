package lang

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.starlark.net/starlark"
)

// TableText lays out rows in columns: numbers aligned right, separated by two blanks.
func TableText(title string, columns []string, rows [][]Fact) string {
	return tableText(title, columns, rows, 0)
}

// column is a column of a table, laid out.
type column struct {
	name    string
	cells   []string
	width   int
	numeric bool
}

// gap separates columns.
const gap = "  "

// tableText is TableText for a terminal of some width; 0: unlimited. On a narrow one it
// leaves out the last columns and names them in a line below; it cuts the first,
// with a mark.
func tableText(title string, columns []string, rows [][]Fact, width int) string {
	list := make([]column, len(columns))
	for i, name := range columns {
		list[i] = makeColumn(name, rows)
	}
	shown := len(list)
	if width > 0 {
		for shown > 1 && total(list[:shown]) > width {
			shown--
		}
		list[0].cut(width)
	}
	var b strings.Builder
	if title != "" {
		b.WriteString(Fit(title+"\n", width))
	}
	line := func(cell func(c *column) string, rest string) {
		var l strings.Builder
		for i := range list[:shown] {
			c := &list[i]
			pad := strings.Repeat(" ", max(0, c.width-textWidth(cell(c))))
			if c.numeric {
				l.WriteString(pad + cell(c) + gap)
			} else {
				l.WriteString(cell(c) + pad + gap)
			}
			if rest != "" {
				l.WriteString(rest)
				break
			}
		}
		b.WriteString(Fit(strings.TrimRight(l.String(), " ")+"\n", width))
	}
	line(func(c *column) string { return c.name }, "")
	for i, row := range rows {
		line(func(c *column) string { return c.cells[i] }, errorOf(row))
	}
	if left := columns[shown:]; len(left) > 0 {
		b.WriteString(Fit(fmt.Sprintf("... not shown: %s (a wider terminal has more, -o json all)\n", strings.Join(left, ", ")), width))
	}
	return b.String()
}

// makeColumn lays out the column called name.
func makeColumn(name string, rows [][]Fact) column {
	c := column{name: OneLine(name), cells: make([]string, len(rows)), numeric: true}
	c.width = textWidth(c.name)
	for i, row := range rows {
		f := find(row, name)
		failed := errorOf(row) != ""
		if failed && f.Value == starlark.None {
			continue // the error spans all columns except the first
		}
		c.cells[i] = f.Cell()
		c.width = max(c.width, textWidth(c.cells[i]))
		if failed {
			continue
		}
		switch f.Value.(type) {
		case starlark.Int, starlark.Float, starlark.NoneType:
		default:
			c.numeric = false
		}
	}
	return c
}

// cut shortens cells that are wider than width.
func (c *column) cut(width int) {
	if c.width <= width {
		return
	}
	c.width = width
	for i, s := range c.cells {
		if textWidth(s) > width {
			c.cells[i] = text.Trim(s, max(0, width-3)) + "..."
		}
	}
}

// total returns the width of columns side by side.
func total(list []column) int {
	w := -len(gap)
	for _, c := range list {
		w += c.width + len(gap)
	}
	return w
}

// errorOf returns the text that replaces all columns of a row except the first; "": the
// row has no error.
func errorOf(row []Fact) string {
	for _, f := range row {
		if e, ok := f.Value.(*Failure); ok && f.Name == "" {
			return "error: " + OneLine(e.brief())
		}
	}
	return ""
}
