package lang

import (
	"errors"
	"fmt"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

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
