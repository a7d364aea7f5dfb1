package lang

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// View is which rows and columns of the tables that are shown a session wants.
type View struct {
	Where   string   // an expression of columns, as in select; "": all rows
	Columns []string // nil: all
}

// maxViewSteps limits an expression that no script's limit applies to: about 10 s.
const maxViewSteps = 1e8

// ViewOf returns v with the rows and columns of the session's view, to be shown in a format.
// t runs the expression, nil outside an evaluation. A value that is not a table is returned
// whole, with a warning.
func (r *Runtime) ViewOf(t *starlark.Thread, v starlark.Value, format Format) (starlark.Value, error) {
	if r.View.Where == "" && r.View.Columns == nil {
		return v, nil
	}
	list, ok := tableRows(v)
	if !ok {
		r.warnWhole(v)
		return v, nil
	}
	if t == nil {
		own, release := r.Thread(context.Background(), "--where")
		defer release()
		own.SetMaxExecutionSteps(maxViewSteps)
		t = own
	}
	known := map[string]bool{}
	addColumns(known, list)
	if r.View.Where != "" {
		where, err := conditionOf(r, t, starlark.String(r.View.Where), list)
		if err == nil {
			list, err = selected(list, where)
		}
		if err != nil {
			return nil, fmt.Errorf("--where: %w", cause(err))
		}
	}
	for _, name := range r.View.Columns {
		if len(known) > 0 && !known[name] {
			return nil, fmt.Errorf("--columns: unknown column %q%s", name, r.hint(name, sortedNames(known)))
		}
	}
	switch table, _ := v.(*tableValue); {
	case r.View.Columns == nil && table == nil:
		return starlark.NewList(list), nil
	case r.View.Columns == nil:
		return columnsOf(list, table.columns, table.title, format)
	case table == nil:
		return columnsOf(list, r.View.Columns, "", format)
	default:
		return columnsOf(list, r.View.Columns, table.title, format)
	}
}

// warnWhole warns of a value of which the session's view selects nothing.
func (r *Runtime) warnWhole(v starlark.Value) {
	if r.View.Where != "" || r.View.Columns != nil {
		r.WarnOnce("--where and --columns: not a table, so it is shown whole: %s", v.Type())
	}
}

// cause returns the error of an expression without its place, which is the whole expression.
func cause(err error) error {
	var ee *starlark.EvalError
	if errors.As(err, &ee) {
		return errors.New(strings.TrimPrefix(ee.Msg, "Error: "))
	}
	return err
}

// tableRows returns the rows of a value that is shown as a table.
func tableRows(v starlark.Value) ([]starlark.Value, bool) {
	switch v.(type) {
	case *tableValue:
	case Factual, starlark.IterableMapping:
		return nil, false
	case starlark.Iterable:
	default:
		return nil, false
	}
	list := elements(v)
	for _, row := range list {
		if _, ok := factsOf(row); !ok {
			return nil, false
		}
	}
	return list, true
}

// columnsOf returns a table of some columns. The structured formats keep errors whole.
func columnsOf(list []starlark.Value, columns []string, title string, format Format) (starlark.Value, error) {
	table := &tableValue{title: title, columns: columns}
	var rows []starlark.Value
	for _, row := range list {
		if e, ok := row.(*Failure); ok {
			table.rows, rows = append(table.rows, e.row(columns[0])), append(rows, e)
			continue
		}
		facts, _ := factsOf(row)
		d := starlark.NewDict(len(columns))
		var cells []Fact
		for _, name := range columns {
			f := find(facts, name)
			if f.Value == starlark.None {
				v, err := cellOf(row, name)
				if err != nil {
					return nil, err
				}
				f.Value = v
			}
			if n, ok := f.Value.(Named); ok {
				f.Value = starlark.String(n.Name())
			}
			f.Code = false
			cells = append(cells, f)
			if err := d.SetKey(starlark.String(name), f.Value); err != nil {
				return nil, err
			}
		}
		table.rows, rows = append(table.rows, cells), append(rows, d)
	}
	if format == FormatText {
		return table, nil
	}
	return starlark.NewList(rows), nil
}

// addColumns adds the names of the columns of rows, and of their attributes.
func addColumns(names map[string]bool, list []starlark.Value) {
	types := map[string]bool{}
	for _, row := range list {
		mapping, isDict := row.(starlark.IterableMapping)
		if isDict {
			for _, kv := range mapping.Items() {
				if name, ok := keyText(kv[0]); ok {
					names[name] = true
				}
			}
			continue
		}
		if types[row.Type()] || isFailure(row) {
			continue
		}
		types[row.Type()] = true
		if facts, ok := factsOf(row); ok {
			for _, f := range facts {
				names[f.Name] = true
			}
		}
		if x, ok := row.(starlark.HasAttrs); ok {
			for _, name := range x.AttrNames() {
				names[name] = true
			}
		}
	}
}

func sortedNames(names map[string]bool) []string {
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// cellOf returns the value of a column of a row as a table shows it, or else of an
// attribute; None if the row has neither.
func cellOf(row starlark.Value, name string) (starlark.Value, error) {
	if d, ok := row.(*starlark.Dict); ok {
		v, found, err := d.Get(starlark.String(name))
		if err != nil || found {
			return v, err
		}
	}
	if facts, ok := factsOf(row); ok {
		if i := slices.IndexFunc(facts, func(f Fact) bool { return f.Name == name }); i >= 0 {
			return facts[i].Value, nil
		}
	}
	if x, ok := row.(starlark.HasAttrs); ok {
		if _, isDict := row.(starlark.IterableMapping); !isDict {
			v, err := x.Attr(name)
			if v != nil || err != nil {
				return v, err
			}
		}
	}
	return starlark.None, nil
}
