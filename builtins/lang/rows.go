package lang

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// View is which rows and columns of the tables that are shown a session wants.
type View struct {
	Where   string   // an expression of columns, as in select; "": all rows
	Columns []string // nil: all
}

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
			list, err = filterRows(list, where)
		}
		if err != nil {
			return nil, fmt.Errorf("--where: %w", withoutPosition(err))
		}
	}
	for _, name := range r.View.Columns {
		if head, _, _ := strings.Cut(name, "."); len(known) > 0 && !known[name] && !known[head] {
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

// rowMethods returns the methods of lists and tables for rows.
func rowMethods() []*Builtin {
	return []*Builtin{&selectRows, &sortRows, &groupRows, &countRows, &rowBlocks}
}

// MethodOf returns f as one of these methods, of a list; false: it is another function.
func MethodOf(f *starlark.Builtin) (*Function, bool) {
	if _, ok := f.Receiver().(*starlark.List); ok {
		for _, b := range rowMethods() {
			if b.Name == f.Name() {
				return &Function{Builtin: b, Recv: f.Receiver()}, true
			}
		}
	}
	return nil, false
}

// RowAttr returns one of these methods of v, by name; nil: there is no such method.
func RowAttr(v starlark.Value, name string) starlark.Value {
	for _, b := range rowMethods() {
		if b.Name == name {
			return &Function{Builtin: b, Recv: v}
		}
	}
	return nil
}

// RowAttrNames returns the names of these methods, sorted.
func RowAttrNames() []string {
	var names []string
	for _, b := range rowMethods() {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

// RowMembers describes these methods.
func RowMembers() []MemberDoc {
	var members []MemberDoc
	for _, b := range rowMethods() {
		members = append(members, MemberDoc{Name: b.Signature(), Doc: b.Summary(), Method: b})
	}
	return members
}

// RowTypes describes the types that have these methods and no other attributes.
func RowTypes() []TypeDoc {
	return []TypeDoc{
		{Name: "list", Doc: "A list of Starlark. It also has these methods for rows: values of a fabric, records or dicts.", Members: RowMembers()},
		{Name: "table", Doc: "A result of table(): rows and columns to show.", Members: RowMembers()},
	}
}

// Lists and tables share the methods for rows.
func init() {
	for _, b := range rowMethods() {
		listMethods[b.Name] = starlark.NewBuiltin(b.Name, func(t *starlark.Thread, m *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return (&Function{Builtin: b, Recv: m.Receiver()}).CallInternal(t, args, kwargs)
		})
	}
}

// byDoc is the help of the parameter by.
const byDoc = "the name of a column or attribute, such as \"speed\" or \"a.node.name\", or a function of a row"

var selectRows = Builtin{
	Name:    "select",
	Returns: "list",
	Params: []Param{
		{Name: "where", Kind: KindAny, Default: "None", Doc: `an expression of columns and attributes, as text: "lid > 10 and type == \"ca\"", "a.node.name == \"leaf-1\""; or a function of a row`},
		{Name: "**columns", Kind: KindAny, Doc: "columns or attributes and the value that each must have; of a list, one of its values"},
	},
	Doc: `Returns the rows of a list or table for which a condition is true, and which have the values of the keyword arguments.
In the text, the names of columns have the values that the table shows. Rows that are errors are kept.`,
	Example: `
> discover().nodes.select("type == 'switch' and lid > 10")
name     type    lid  num_ports  guid
spine-3  switch   11          8  0x0002c903001000a0
spine-4  switch   12          8  0x0002c903001000b0
> len(discover().links.select(lambda l: l.a.node.name == "leaf-1"))
8
> len(discover().links.select(speed="hdr", state=["init", "active"]))
64
`,
	Run: Do(func(c *Call, a *struct {
		Where   starlark.Value
		Columns []starlark.Tuple
	}) (starlark.Value, error) {
		list := Elements(c.Recv)
		if a.Where == nil && len(a.Columns) == 0 {
			return nil, Errorf("want a condition, as in select(\"lid > 10\"), or values of columns, as in select(speed=\"hdr\")")
		}
		if a.Where != nil {
			where, err := conditionOf(c.Runtime(), c.Thread, a.Where, list)
			if err != nil {
				return nil, ParamError("where", "%w", err)
			}
			if list, err = filterRows(list, where); err != nil {
				return nil, err
			}
		}
		list, err := rowsWith(c.Runtime(), list, a.Columns)
		if err != nil {
			return nil, err
		}
		return starlark.NewList(list), nil
	}),
}

// rowsWith returns the rows that have the values of columns, and errors.
func rowsWith(r *Runtime, list []starlark.Value, columns []starlark.Tuple) ([]starlark.Value, error) {
	names := map[string]bool{}
	if len(columns) > 0 {
		addColumns(names, list)
	}
	for _, kv := range columns {
		name := string(kv[0].(starlark.String))
		if len(list) > 0 && !names[name] {
			return nil, Errorf("unknown column %q%s", name, r.hint(name, sortedNames(names)))
		}
	}
	return filterRows(list, func(row starlark.Value) (starlark.Value, error) {
		for _, kv := range columns {
			has, err := cellOf(row, string(kv[0].(starlark.String)))
			if err != nil {
				return nil, err
			}
			if equal, err := equalsAny(has, kv[1]); err != nil || !equal {
				return starlark.False, err
			}
		}
		return starlark.True, nil
	})
}

// equalsAny reports whether a value equals another or, of a list, one of its elements.
func equalsAny(has, want starlark.Value) (bool, error) {
	list, ok := want.(*starlark.List)
	if !ok {
		return starlark.Equal(has, want)
	}
	for v := range starlark.Elements(list) {
		if equal, err := starlark.Equal(has, v); equal || err != nil {
			return equal, err
		}
	}
	return false, nil
}

// filterRows returns the rows for which a condition is true, and errors.
func filterRows(list []starlark.Value, where func(row starlark.Value) (starlark.Value, error)) ([]starlark.Value, error) {
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
		list := Elements(c.Recv)
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

var rowBlocks = Builtin{
	Name:    "blocks",
	Returns: "table",
	Doc: `Returns the rows of a list or table, to be shown one below the other, with all columns.
A table on a narrow terminal leaves columns out; at the prompt, _.blocks() shows the rows of the last table whole.`,
	Example: `
> discover().links[:1].blocks()
a           leaf-1/1
a_num       1
b           node-0001 HCA-1/1
b_num       1
state       active
width       4x
speed       hdr
best_width  4x
best_speed  hdr
degraded    False
a_guid      0x0002c90300100000
b_guid      0x0002c90310000000
`,
	Run: Do(func(c *Call, a *struct{}) (starlark.Value, error) {
		rows, known, ok := factRows(Elements(c.Recv))
		if !ok {
			return nil, Errorf("the list has no rows with names of columns")
		}
		return &tableValue{columns: ColumnsOf(known), rows: rows, blocks: true}, nil
	}),
}

// groupsBy returns a dict of value to rows.
func groupsBy(c *Call, by starlark.Value) (*starlark.Dict, error) {
	list := Elements(c.Recv)
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
		if head, _, _ := strings.Cut(name, "."); len(list) > 0 && !names[name] && !names[head] {
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
	whole := map[string]bool{} // names of which the expression uses attributes
	var operands []syntax.Expr
	var unordered error
	syntax.Walk(e, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok && names[id.Name] && !env.Has(id.Name) {
			used, env[id.Name] = append(used, id.Name), starlark.None
		}
		if dot, ok := n.(*syntax.DotExpr); ok {
			if id, ok := dot.X.(*syntax.Ident); ok {
				whole[id.Name] = true
			}
		}
		if b, ok := n.(*syntax.BinaryExpr); ok {
			operands = append(operands, b.X, b.Y)
			if b.Op == syntax.EQL || b.Op == syntax.NEQ {
				warnColumn(r, list, names, b.X, b.Y)
				warnColumn(r, list, names, b.Y, b.X)
			}
			if b.Op == syntax.LT || b.Op == syntax.LE || b.Op == syntax.GT || b.Op == syntax.GE {
				unordered = cmp.Or(unordered, orderError(r, list, names, b.X), orderError(r, list, names, b.Y))
			}
		}
		return true
	})
	if unordered != nil {
		return nil, unordered
	}
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
			get := cellOf
			if whole[name] {
				get = attributeOf
			}
			v, err := get(row, name)
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

// orderError returns an error if x, an operand of a comparison by order, is a column of words whose order
// is not that of the alphabet: rows would be missing.
func orderError(r *Runtime, list []starlark.Value, names map[string]bool, x syntax.Expr) error {
	id, isColumn := x.(*syntax.Ident)
	if !isColumn || !names[id.Name] || r.IsMeasure == nil {
		return nil
	}
	for _, row := range list {
		if isFailure(row) {
			continue
		}
		v, err := cellOf(row, id.Name)
		text, isText := starlark.AsString(v)
		switch {
		case err == nil && isText && r.IsMeasure(text):
			remedy := fmt.Sprintf("list the words: %s in (%q,)", id.Name, text)
			if names["gbps"] {
				remedy = "compare gbps, a number"
			}
			return fmt.Errorf("%s is a word, and words are compared by the alphabet; %s", id.Name, remedy)
		case v != starlark.None:
			return nil
		}
	}
	return nil
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

// maxViewSteps limits an expression that no script's limit applies to: about 10 s.
const maxViewSteps = 1e8

// warnWhole warns of a value of which the session's view selects nothing.
func (r *Runtime) warnWhole(v starlark.Value) {
	if r.View.Where != "" || r.View.Columns != nil {
		r.WarnOnce("--where and --columns: not a table, so it is shown whole: %s", v.Type())
	}
}

// withoutPosition returns the error of an expression without its position, which is the whole
// expression.
func withoutPosition(err error) error {
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
	list := Elements(v)
	for _, row := range list {
		if _, ok := FactsOf(row); !ok {
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
		facts, _ := FactsOf(row)
		d := starlark.NewDict(len(columns))
		var cells []Fact
		for _, name := range columns {
			f := findFact(facts, name)
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
		if facts, ok := FactsOf(row); ok {
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

// attributeOf is cellOf for the attribute itself, such as a port, where the table shows its name.
func attributeOf(row starlark.Value, name string) (starlark.Value, error) {
	if x, ok := row.(starlark.HasAttrs); ok {
		if _, isDict := row.(starlark.IterableMapping); !isDict {
			if v, err := x.Attr(name); v != nil || err != nil {
				return v, err
			}
		}
	}
	return cellOf(row, name)
}

// pathOf returns the value at the end of a path of attributes, such as a.node.name; None if a part
// is None.
func pathOf(row starlark.Value, path string) (starlark.Value, error) {
	head, rest, more := strings.Cut(path, ".")
	v, err := attributeOf(row, head)
	for err == nil && more && v != starlark.None {
		var name string
		name, rest, more = strings.Cut(rest, ".")
		x, ok := v.(starlark.HasAttrs)
		if !ok {
			return nil, fmt.Errorf("%s: %s has no attributes", path, v.Type())
		}
		if v, err = x.Attr(name); v == nil && err == nil {
			return nil, fmt.Errorf("%s has no .%s", x.Type(), name)
		}
	}
	if n, ok := v.(Named); ok && err == nil {
		return starlark.String(n.Name()), nil
	}
	return v, err
}

// cellOf returns the value of a column of a row as a table shows it, or else of an
// attribute or a path of attributes; None if the row has neither.
func cellOf(row starlark.Value, name string) (starlark.Value, error) {
	if d, ok := row.(*starlark.Dict); ok {
		v, found, err := d.Get(starlark.String(name))
		if err != nil || found {
			return v, err
		}
	}
	if facts, ok := FactsOf(row); ok {
		if i := slices.IndexFunc(facts, func(f Fact) bool { return f.Name == name }); i >= 0 {
			return facts[i].Value, nil
		}
	}
	if strings.Contains(name, ".") {
		return pathOf(row, name)
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
