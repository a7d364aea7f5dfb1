package check

import (
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/types"
)

// dict returns the shape of a variable that is a dict, with the type of its keys if all are
// known: those of its definitions and of assignments to its entries. If the dict is used in
// another way, something else may add keys.
func (x *comparer) dict(id *syntax.Ident, shape types.Shape) types.Shape {
	uses := x.usesOf(id)
	if uses.other {
		return shape.WithKey(types.Shape{})
	}
	var keys []string
	if d, ok := shape.Value.(*starlark.Dict); ok {
		const most = 1000 // keys of which the type is read
		for i, k := range d.Keys() {
			if i == most {
				return types.OfType("dict")
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
		return types.OfType("dict")
	}
	return types.OfType("dict").WithKey(types.OfType(keys[0]))
}

// dictUses is how a script uses a dict.
type dictUses struct {
	keys  []syntax.Expr // that it assigns to
	other bool          // in a way that may add keys
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
				if parent.Fn != syntax.Expr(id) && (!ok || x.value(fn) == nil) {
					use(id).other = true
				}
			case *syntax.BinaryExpr:
				if parent.Op != syntax.IN && parent.Op != syntax.NOT_IN {
					use(id).other = true
				}
			case *syntax.ForStmt, *syntax.ForClause, *syntax.ReturnStmt, *syntax.ExprStmt, *syntax.IfStmt, *syntax.IfClause, *syntax.UnaryExpr, *syntax.CondExpr:
			default:
				use(id).other = true
			}
		}
		path = append(path, n)
		return true
	})
}
