package lang

import (
	"cmp"
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
	blocks  bool // show the rows one below the other
}

func (g *tableValue) String() string {
	text := g.Display()
	return text[:len(text)-1]
}
func (g *tableValue) Type() string          { return "table" }
func (g *tableValue) Freeze()               {}
func (g *tableValue) Truth() starlark.Bool  { return true }
func (g *tableValue) Hash() (uint32, error) { return 0, Unhashable(g) }
func (g *tableValue) Display() string {
	if g.blocks {
		return blocksText(g.rows)
	}
	return TableText(g.title, g.columns, g.rows)
}

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
				if strings.Contains(name, ".") {
					a, err := pathOf(v, name)
					if err != nil {
						return nil, err
					}
					row = append(row, Fact{Name: name, Value: a})
					continue
				}
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
	return tableText(title, columns, rows, page{})
}

// column is a column of a table, laid out.
type column struct {
	name    string
	cells   []string
	width   int
	numeric bool
	rank    int // as of a fact
}

// columnGap separates columns.
const columnGap = "  "

// tableText is TableText for a page. On a narrow terminal, it shortens long lists, keeps the
// most important columns and names the others in a line below; it cuts the first column, and
// texts that are important, with a mark.
func tableText(title string, columns []string, rows [][]Fact, page page) string {
	list := make([]column, len(columns))
	for i, name := range columns {
		list[i] = makeColumn(name, rows, (*Fact).Cell)
	}
	width := page.width
	var left []string
	if width > 0 && len(list) > 0 {
		if totalWidth(list) > width {
			for i, name := range columns {
				list[i] = makeColumn(name, rows, (*Fact).short)
			}
			list, left = fitColumns(list, width)
		}
		list[0].cut(width)
	}
	var b strings.Builder
	if title != "" {
		b.WriteString(Fit(title+"\n", width))
	}
	line := func(cell func(c *column) string, rest string) {
		var l strings.Builder
		for i := range list {
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
	if len(left) > 0 {
		b.WriteString(Fit(leftOut(left, page), width))
	}
	return b.String()
}

// leastText is the number of columns to which an important text is cut at most.
const leastText = 20

// fitColumns returns the columns that a terminal has room for, by rank and then from the left,
// in their order, and the names of the others. Minor columns are kept only beside all others.
func fitColumns(list []column, width int) (kept []column, left []string) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order[1:], func(i, j int) int { return list[i].rank - list[j].rank })
	keep := make([]bool, len(list))
	room, full := width+len(columnGap), false
	for n, i := range order {
		c := &list[i]
		if full && c.rank > 0 {
			continue
		}
		if need := c.width + len(columnGap); n > 0 && need > room {
			if c.rank >= 0 || c.numeric || room-len(columnGap) < leastText {
				full = true
				continue
			}
			c.cut(room - len(columnGap))
		}
		keep[i] = true
		room -= c.width + len(columnGap)
	}
	for i, c := range list {
		if keep[i] {
			kept = append(kept, c)
		} else {
			left = append(left, c.name)
		}
	}
	return kept, left
}

// leftOut returns the line about columns that are not shown: as many names as it has room for,
// and how to see them.
func leftOut(names []string, page page) string {
	whole := cmp.Or(page.whole, "--columns NAMES chooses")
	line := func(n int) string {
		shown := strings.Join(names[:n], ", ")
		if n < len(names) {
			shown += fmt.Sprintf(" and %d more", len(names)-n)
		}
		return fmt.Sprintf("... not shown: %s (%s)\n", shown, whole)
	}
	for n := len(names); n > 1; n-- {
		if textWidth(line(n)) <= page.width+1 { // without the line end
			return line(n)
		}
	}
	return line(1)
}

// makeColumn lays out the column called name, with the cells that cell returns.
func makeColumn(name string, rows [][]Fact, cell func(*Fact) string) column {
	c := column{name: OneLine(name), cells: make([]string, len(rows)), numeric: true}
	c.width = textWidth(c.name)
	for i, row := range rows {
		f := findFact(row, name)
		failed := errorOf(row) != ""
		if failed && f.Value == starlark.None {
			continue // the error spans all columns except the first
		}
		c.cells[i] = cell(&f)
		if f.Rank != 0 {
			c.rank = f.Rank
		}
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
