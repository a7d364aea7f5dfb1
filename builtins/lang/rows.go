package lang

import (
	"slices"

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

// RowAttr returns one of these methods of v, by name; nil: there is no such method.
func RowAttr(v starlark.Value, name string) starlark.Value {
	for _, b := range RowMethods() {
		if b.Name == name {
			return &Function{Builtin: b, Recv: v}
		}
	}
	return nil
}

// RowAttrNames returns the names of these methods, sorted.
func RowAttrNames() []string {
	var names []string
	for _, b := range RowMethods() {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

// RowMembers describes these methods.
func RowMembers() []MemberDoc {
	var members []MemberDoc
	for _, b := range RowMethods() {
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
