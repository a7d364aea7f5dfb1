package lang

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Lists and tables have the same methods for rows.
func init() {
	for _, b := range RowMethods() {
		listMethods[b.Name] = starlark.NewBuiltin(b.Name, func(t *starlark.Thread, m *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return (&Function{Builtin: b, Recv: m.Receiver()}).CallInternal(t, args, kwargs)
		})
	}
}

// RowMethods returns the methods of lists and tables for rows.
func RowMethods() []*Builtin { return []*Builtin{&selectRows, &sortRows, &groupRows, &countRows} }

// MethodOf returns f as one of these methods, of a list; false: it is another function.
func MethodOf(f *starlark.Builtin) (*Function, bool) {
	if _, ok := f.Receiver().(*starlark.List); ok {
		for _, b := range RowMethods() {
			if b.Name == f.Name() {
				return &Function{Builtin: b, Recv: f.Receiver()}, true
			}
		}
	}
	return nil, false
}

// RowTypes describes the types that have these methods.
func RowTypes() []TypeDoc {
	var members []MemberDoc
	for _, b := range RowMethods() {
		members = append(members, MemberDoc{Name: b.Signature(), Doc: b.Summary(), Method: b})
	}
	return []TypeDoc{
		{Name: "list", Doc: "A list of Starlark. It also has these methods for rows: values of a fabric, records or dicts.", Members: members},
		{Name: "table", Doc: "A result of table(): rows and columns to show.", Members: members},
	}
}

// byDoc is the help of the parameter by.
const byDoc = "the name of a column or attribute, or a function of a row"

var selectRows = Builtin{
	Name:    "select",
	Returns: "list",
	Params:  []Param{{Name: "where", Kind: KindAny, Doc: `an expression of columns and attributes, as text: "lid > 10 and type == \"ca\""; or a function of a row`}},
	Doc: `Returns the rows of a list or table for which a condition is true.
In the text, the names of columns have the values that the table shows. Rows that are errors are kept.`,
	Example: `
> discover().nodes.select("type == 'switch' and lid > 10")
name     type    lid  num_ports  guid
spine-3  switch   11          8  0x0002c903001000a0
spine-4  switch   12          8  0x0002c903001000b0
> len(discover().links.select(lambda l: l.a.node.name == "leaf-1"))
8
`,
	Run: Do(func(c *Call, a *struct{ Where starlark.Value }) (starlark.Value, error) {
		list := elements(c.Recv)
		where, err := conditionOf(c.Runtime(), c.Thread, a.Where, list)
		if err != nil {
			return nil, ParamError("where", "%w", err)
		}
		found, err := selected(list, where)
		if err != nil {
			return nil, err
		}
		return starlark.NewList(found), nil
	}),
}

// selected returns the rows for which a condition is true, and errors.
func selected(list []starlark.Value, where func(row starlark.Value) (starlark.Value, error)) ([]starlark.Value, error) {
	var found []starlark.Value
	for _, row := range list {
		keep := isFailure(row)
		if !keep {
			v, err := where(row)
			if err != nil {
				return nil, err
			}
			keep = bool(v.Truth())
		}
		if keep {
			found = append(found, row)
		}
	}
	return found, nil
}

var sortRows = Builtin{
	Name:    "sort",
	Returns: "list",
	Params: []Param{
		{Name: "by", Kind: KindAny, Doc: byDoc},
		{Name: "reverse", Kind: KindBool, Default: "False", Keyword: true, Doc: "the largest first"},
	},
	Doc: `Returns the rows of a list or table, sorted.
Rows without a value, and errors, come last. The list itself does not change.`,
	Example: `
> [n.name for n in discover().switches.sort("lid", reverse=True)[:2]]
["spine-4", "spine-3"]
`,
	Run: Do(func(c *Call, a *struct {
		By      starlark.Value
		Reverse bool
	}) (starlark.Value, error) {
		list := elements(c.Recv)
		keys, err := keysBy(c, a.By, list)
		if err != nil {
			return nil, err
		}
		order := make([]int, len(list))
		for i := range order {
			order[i] = i
		}
		var wrong error
		slices.SortStableFunc(order, func(i, j int) int {
			x, y := keys[i], keys[j]
			switch {
			case x == starlark.None && y == starlark.None:
				return 0
			case x == starlark.None:
				return 1
			case y == starlark.None:
				return -1
			case a.Reverse:
				x, y = y, x
			}
			less, err := starlark.Compare(syntax.LT, x, y)
			more := false
			if err == nil && !less {
				more, err = starlark.Compare(syntax.LT, y, x)
			}
			if err != nil && wrong == nil {
				wrong = err
			}
			switch {
			case less:
				return -1
			case more:
				return 1
			}
			return 0
		})
		if wrong != nil {
			return nil, ParamError("by", "%w", wrong)
		}
		sorted := make([]starlark.Value, len(list))
		for i, at := range order {
			sorted[i] = list[at]
		}
		return starlark.NewList(sorted), nil
	}),
}

var groupRows = Builtin{
	Name:    "group",
	Returns: "dict",
	Params:  []Param{{Name: "by", Kind: KindAny, Doc: byDoc}},
	Doc: `Groups the rows of a list or table.
It returns a dict of value to the rows that have it, in the order of their first row. Errors are in the group None.`,
	Example: `
> [(typ, len(nodes)) for typ, nodes in discover().nodes.group("type").items()]
[("switch", 12), ("ca", 32)]
`,
	Run: Do(func(c *Call, a *struct{ By starlark.Value }) (starlark.Value, error) {
		groups, err := groupsBy(c, a.By)
		if err != nil {
			return nil, err
		}
		return groups, nil
	}),
}

var countRows = Builtin{
	Name:    "count",
	Returns: "list of dict",
	Params:  []Param{{Name: "by", Kind: KindAny, Doc: byDoc}},
	Doc: `Counts the rows of a list or table by a value.
It returns a table of values and counts, the largest count first.`,
	Example: `
> discover().ports.count("speed")
speed  count
hdr      128
`,
	Run: Do(func(c *Call, a *struct{ By starlark.Value }) (starlark.Value, error) {
		groups, err := groupsBy(c, a.By)
		if err != nil {
			return nil, err
		}
		heading := "value"
		if s, ok := starlark.AsString(a.By); ok {
			heading = s
		}
		if heading == "count" {
			heading = "value"
		}
		items := groups.Items()
		slices.SortStableFunc(items, func(x, y starlark.Tuple) int { return starlark.Len(y[1]) - starlark.Len(x[1]) })
		rows := make([]starlark.Value, len(items))
		for i, kv := range items {
			rows[i] = DictOf(heading, kv[0], "count", starlark.MakeInt(starlark.Len(kv[1])))
		}
		return starlark.NewList(rows), nil
	}),
}

// groupsBy returns a dict of value to rows.
func groupsBy(c *Call, by starlark.Value) (*starlark.Dict, error) {
	list := elements(c.Recv)
	keys, err := keysBy(c, by, list)
	if err != nil {
		return nil, err
	}
	groups := starlark.NewDict(0)
	for i, row := range list {
		v, found, err := groups.Get(keys[i])
		if err != nil {
			return nil, ParamError("by", "%w", err)
		}
		if !found {
			v = new(starlark.List)
			if err := groups.SetKey(keys[i], v); err != nil {
				return nil, ParamError("by", "%w", err)
			}
		}
		if err := v.(*starlark.List).Append(row); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// keysBy returns the value of each row by which it is sorted or grouped; None for errors.
func keysBy(c *Call, by starlark.Value, list []starlark.Value) ([]starlark.Value, error) {
	value := func(row starlark.Value) (starlark.Value, error) {
		return starlark.Call(c.Thread, by, starlark.Tuple{row}, nil)
	}
	if name, ok := starlark.AsString(by); ok {
		names := map[string]bool{}
		addColumns(names, list)
		if len(list) > 0 && !names[name] {
			return nil, ParamError("by", "unknown column %q%s", name, c.Runtime().hint(name, sortedNames(names)))
		}
		value = func(row starlark.Value) (starlark.Value, error) { return cellOf(row, name) }
	} else if _, ok := by.(starlark.Callable); !ok {
		return nil, ParamError("by", "got %s, want the name of a column, or a function", by.Type())
	}
	keys := make([]starlark.Value, len(list))
	for i, row := range list {
		if keys[i] = starlark.None; isFailure(row) {
			continue
		}
		v, err := value(row)
		if err != nil {
			return nil, err
		}
		keys[i] = v
	}
	return keys, nil
}

func isFailure(v starlark.Value) bool {
	_, failed := v.(*Failure)
	return failed
}

// conditionOf returns the condition that a text or function is.
func conditionOf(r *Runtime, t *starlark.Thread, where starlark.Value, list []starlark.Value) (func(row starlark.Value) (starlark.Value, error), error) {
	text, ok := starlark.AsString(where)
	if !ok {
		if _, ok := where.(starlark.Callable); !ok {
			return nil, fmt.Errorf("got %s, want an expression as text, or a function", where.Type())
		}
		return func(row starlark.Value) (starlark.Value, error) {
			return starlark.Call(t, where, starlark.Tuple{row}, nil)
		}, nil
	}
	names := map[string]bool{}
	addColumns(names, list)
	e, err := Dialect.ParseExpr("<where>", text, 0)
	if err != nil {
		return nil, conditionError(err)
	}
	env := starlark.StringDict{}
	var used []string
	var operands []syntax.Expr
	syntax.Walk(e, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok && names[id.Name] && !env.Has(id.Name) {
			used, env[id.Name] = append(used, id.Name), starlark.None
		}
		if b, ok := n.(*syntax.BinaryExpr); ok {
			operands = append(operands, b.X, b.Y)
			if b.Op == syntax.EQL || b.Op == syntax.NEQ {
				warnColumn(r, list, names, b.X, b.Y)
				warnColumn(r, list, names, b.Y, b.X)
			}
		}
		return true
	})
	for _, x := range operands {
		id, ok := x.(*syntax.Ident)
		if !ok || names[id.Name] || len(list) == 0 {
			continue
		}
		// A comparison with a function of the language is never meant.
		if _, isFunction := starlark.Universe[id.Name].(*starlark.Builtin); isFunction {
			return nil, fmt.Errorf("unknown column %q%s", id.Name, r.hint(id.Name, sortedNames(names)))
		}
	}
	fn, err := starlark.ExprFuncOptions(FileOptions(), "<where>", text, env)
	if err != nil {
		var undefined resolve.ErrorList
		if len(list) == 0 && errors.As(err, &undefined) { // no row shows the names
			return func(starlark.Value) (starlark.Value, error) { return starlark.False, nil }, nil
		}
		if errors.As(err, &undefined) {
			if name, ok := cutUndefined(undefined[0].Msg); ok {
				return nil, fmt.Errorf("unknown column %q%s", name, r.hint(name, sortedNames(names)))
			}
		}
		return nil, conditionError(err)
	}
	return func(row starlark.Value) (starlark.Value, error) {
		for _, name := range used {
			v, err := cellOf(row, name)
			if err != nil {
				return nil, err
			}
			env[name] = v // the interpreter looks names up when they are used
		}
		return starlark.Call(t, fn, nil, nil)
	}, nil
}

// warnColumn warns of a comparison of a column with a text, where all its values are numbers,
// or the reverse.
func warnColumn(r *Runtime, list []starlark.Value, names map[string]bool, x, y syntax.Expr) {
	id, ok := x.(*syntax.Ident)
	l, isLiteral := y.(*syntax.Literal)
	if !ok || !isLiteral || !names[id.Name] {
		return
	}
	want, has := "int", ""
	if l.Token == syntax.STRING {
		want = "string"
	} else if l.Token != syntax.INT {
		return
	}
	for _, row := range list {
		if isFailure(row) {
			continue
		}
		v, err := cellOf(row, id.Name)
		switch {
		case err != nil, v.Type() != "int" && v.Type() != "string" && v != starlark.None, has != "" && v != starlark.None && v.Type() != has:
			return
		case v != starlark.None:
			has = v.Type()
		}
	}
	if has != "" && has != want {
		r.WarnOnce("where: column %s has %ss, never %s", id.Name, has, OneLine(l.Raw))
	}
}

// conditionError returns the error of an expression without its file, which does not exist.
func conditionError(err error) error {
	var se syntax.Error
	if errors.As(err, &se) {
		return fmt.Errorf("column %d: %s", se.Pos.Col, se.Msg)
	}
	return err
}

// cutUndefined returns the name in a message of the resolver.
func cutUndefined(msg string) (string, bool) {
	var name string
	n, _ := fmt.Sscanf(msg, "undefined: %s", &name)
	return name, n == 1
}
