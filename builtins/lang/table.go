package lang

import (
	"fmt"
	"slices"

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
			d.SetKey(starlark.String(name), find(row, name).Value)
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
	row, ok := factsOf(v)
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
