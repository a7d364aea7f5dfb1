package check

import (
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// dict returns the shape of a variable that is a dict, with the type of its keys if all are
// known: those of its definitions and of assignments to its entries. If the dict is used in
// another way, something else may add keys.
func (x *comparer) dict(id *syntax.Ident, shape Shape) Shape {
	uses := x.usesOf(id)
	if uses.other {
		return shape.WithKey(Shape{})
	}
	var keys []string
	if d, ok := shape.Value.(*starlark.Dict); ok {
		if x.maybeChanged(id, d) {
			return OfType("dict")
		}
		const most = 1000 // keys of which the type is read
		for i, k := range d.Keys() {
			if i == most {
				return OfType("dict")
			}
			keys = append(keys, k.Type())
		}
	} else {
		for _, d := range x.definitions[firstOf(id)] {
			if e, ok := d.from.(*syntax.DictExpr); ok && len(e.List) == 0 {
				continue
			}
			keys = append(keys, x.defined(d).Key().TypeName())
		}
	}
	for _, k := range uses.keys {
		keys = append(keys, x.inference.Infer(k).TypeName())
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) != 1 || keys[0] == "" {
		return OfType("dict")
	}
	return OfType("dict").WithKey(OfType(keys[0]))
}

// dictUses is how a script uses a dict.
type dictUses struct {
	keys  []syntax.Expr // that it assigns to
	other bool          // in a way that may add keys
}

// maybeChanged reports whether other code may change v, the dict or list of an earlier
// statement, before this one uses it: a function, or an assignment through another name.
func (x *comparer) maybeChanged(id *syntax.Ident, v starlark.Value) bool {
	x.usesOf(id) // collects those of all names
	for name, u := range x.uses {
		if name != id.Name && (u.other || u.keys != nil) && x.globals[name] == v {
			return true
		}
	}
	return x.foreign
}

// runsForeign reports whether a part of a statement runs code that is not written in it, or
// runs later.
func (x *comparer) runsForeign(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.DefStmt, *syntax.LambdaExpr:
		return true
	case *syntax.Ident:
		_, ok := x.value(n).(*starlark.Function) // called, or passed to a function that calls it
		return ok
	case *syntax.CallExpr:
		switch fn := n.Fn.(type) {
		case *syntax.Ident:
			return !x.isBuiltin(fn)
		case *syntax.DotExpr:
			typ := x.inference.Infer(fn.X).TypeName()
			return !slices.Contains(readers, fn.Name.Name) && (typ == "" || typ == "module" || typ == "struct")
		}
		return true
	}
	return false
}

// isBuiltin reports whether a name is a function that is not written in Starlark.
func (x *comparer) isBuiltin(id *syntax.Ident) bool {
	switch x.value(id).(type) {
	case nil, *starlark.Function:
		return false
	}
	return true
}

// readers are the methods of dicts that add no keys.
var readers = []string{"get", "items", "keys", "values", "pop", "popitem", "clear"}

// usesOf returns the uses of a variable by its name. A variable of the same name elsewhere
// counts too.
func (x *comparer) usesOf(id *syntax.Ident) *dictUses {
	if x.uses == nil {
		x.uses = map[string]*dictUses{}
		x.collectUses()
	}
	if u := x.uses[id.Name]; u != nil {
		return u
	}
	return new(dictUses)
}

// collectUses finds the uses of all variables.
func (x *comparer) collectUses() {
	var path []syntax.Node
	use := func(id *syntax.Ident) *dictUses {
		if x.uses[id.Name] == nil {
			x.uses[id.Name] = new(dictUses)
		}
		return x.uses[id.Name]
	}
	syntax.Walk(x.file, func(n syntax.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		x.foreign = x.foreign || x.runsForeign(n)
		if id, ok := n.(*syntax.Ident); ok && len(path) > 0 {
			var outer syntax.Node
			if len(path) > 1 {
				outer = path[len(path)-2]
			}
			switch parent := path[len(path)-1].(type) {
			case *syntax.IndexExpr:
				if a, ok := outer.(*syntax.AssignStmt); ok && parent.X == syntax.Expr(id) && a.LHS == syntax.Expr(parent) {
					use(id).keys = append(use(id).keys, parent.Y)
				}
			case *syntax.DotExpr:
				if parent.X == syntax.Expr(id) && !slices.Contains(readers, parent.Name.Name) {
					use(id).other = true
				}
			case *syntax.AssignStmt:
				if parent.LHS != syntax.Expr(id) || parent.Op != syntax.EQ {
					use(id).other = true
				}
			case *syntax.CallExpr:
				fn, ok := parent.Fn.(*syntax.Ident)
				if parent.Fn != syntax.Expr(id) && (!ok || !x.isBuiltin(fn)) {
					use(id).other = true
				}
			case *syntax.BinaryExpr:
				if parent.Op != syntax.IN && parent.Op != syntax.NOT_IN {
					use(id).other = true
				}
			case *syntax.CondExpr:
				if parent.Cond != syntax.Expr(id) {
					use(id).other = true
				}
			case *syntax.ForStmt, *syntax.ForClause, *syntax.ExprStmt, *syntax.IfStmt, *syntax.IfClause, *syntax.UnaryExpr:
			default:
				use(id).other = true
			}
		}
		path = append(path, n)
		return true
	})
}
