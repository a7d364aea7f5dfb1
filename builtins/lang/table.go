package lang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.starlark.net/starlark"
)

// tableValue is the value `table`: rows and columns to show. Its string is its layout,
// so that print shows it too.
type tableValue struct {
	title   string
	columns []string
	rows    [][]Fact
}

func (g *tableValue) String() string {
	text := g.Display()
	return text[:len(text)-1]
}
func (g *tableValue) Type() string          { return "table" }
func (g *tableValue) Freeze()               {}
func (g *tableValue) Truth() starlark.Bool  { return true }
func (g *tableValue) Hash() (uint32, error) { return 0, Unhashable(g) }
func (g *tableValue) Display() string       { return TableText(g.title, g.columns, g.rows) }

// AttrNames and Attr give a table the methods of lists of rows.
func (g *tableValue) AttrNames() []string { return RowAttrNames() }

func (g *tableValue) Attr(name string) (starlark.Value, error) {
	if m := RowAttr(g, name); m != nil {
		return m, nil
	}
	return nil, nil
}

// elements returns the rows as dicts, for the structured formats.
func (g *tableValue) elements() []starlark.Value {
	out := make([]starlark.Value, len(g.rows))
	for i, row := range g.rows {
		d := starlark.NewDict(len(g.columns))
		for _, name := range g.columns {
			d.SetKey(starlark.String(name), findFact(row, name).Value)
		}
		out[i] = d
	}
	return out
}

// Len and Iterate make a table encode as the list of its rows.
func (g *tableValue) Len() int                   { return len(g.rows) }
func (g *tableValue) Iterate() starlark.Iterator { return starlark.NewList(g.elements()).Iterate() }

// Table is table().
var Table = Builtin{
	Name:    "table",
	Returns: "table",
	Group:   GroupOutput,
	Params: []Param{
		{Name: "rows", Kind: KindItems, Doc: "dicts, records or values of a fabric; or lists, with columns"},
		{Name: "columns", Kind: KindAny, Default: "None", Keyword: true, Doc: "the columns to show, in this order; for lists: their headings"},
		{Name: "title", Kind: KindText, Default: `""`, Keyword: true, Doc: "a line above the table"},
	},
	Doc: "Returns a table of rows, to show or print.",
	Example: `
> print(table([("a", 1), ("b", 20)], columns=["name", "count"]))
name  count
a         1
b        20
`,
	Run: Do(func(c *Call, a *struct {
		Rows    []starlark.Value
		Columns starlark.Value
		Title   string
	}) (starlark.Value, error) {
		g := &tableValue{title: a.Title}
		if a.Columns != nil {
			it, ok := a.Columns.(starlark.Iterable)
			if !ok {
				return nil, ParamError("columns", "got %s, want a list of names", a.Columns.Type())
			}
			for v := range starlark.Elements(it) {
				name, ok := starlark.AsString(v)
				if !ok {
					return nil, ParamError("columns", "got %s, want string", v.Type())
				}
				g.columns = append(g.columns, name)
			}
		}
		for i, v := range a.Rows {
			row, err := rowOf(c.Runtime(), v, g.columns)
			if err != nil {
				return nil, ParamError("rows", "row %d: %w", i, err)
			}
			g.rows = append(g.rows, row)
		}
		if g.columns == nil {
			g.columns = ColumnsOf(g.rows)
		}
		return g, nil
	}),
}

// rowOf returns the row of a value: its facts, the attributes that columns name, or the
// elements of a list, one for each column.
func rowOf(r *Runtime, v starlark.Value, columns []string) ([]Fact, error) {
	row, ok := FactsOf(v)
	if ok {
		for _, name := range columns {
			if slices.ContainsFunc(row, func(f Fact) bool { return f.Name == name }) {
				continue // None too
			}
			if x, ok := v.(starlark.HasAttrs); ok {
				a, err := x.Attr(name)
				if err != nil {
					return nil, err
				}
				if a == nil {
					return nil, fmt.Errorf("%s has no %s%s", v.Type(), name, r.hint(name, x.AttrNames()))
				}
				row = append(row, Fact{Name: name, Value: a})
			}
		}
		if columns == nil {
			row = withoutCodes(row)
		}
		return row, nil
	}
	it, ok := v.(starlark.Iterable)
	switch {
	case !ok:
		return nil, fmt.Errorf("got %s, want a dict, a record or a list", v.Type())
	case columns == nil:
		return nil, fmt.Errorf("a %s requires columns=[...]", v.Type())
	}
	for i, x := range Collect(it) {
		if i >= len(columns) {
			return nil, fmt.Errorf("more elements than columns (%d)", len(columns))
		}
		row = append(row, Fact{Name: columns[i], Value: x})
	}
	return row, nil
}

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

// columnGap separates columns.
const columnGap = "  "

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
		for shown > 1 && totalWidth(list[:shown]) > width {
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
				l.WriteString(pad + cell(c) + columnGap)
			} else {
				l.WriteString(cell(c) + pad + columnGap)
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
		f := findFact(row, name)
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

// totalWidth returns the width of columns side by side.
func totalWidth(list []column) int {
	w := -len(columnGap)
	for _, c := range list {
		w += c.width + len(columnGap)
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
