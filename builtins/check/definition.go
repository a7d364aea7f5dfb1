package check

import (
	"slices"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// definition is a place where a variable gets a value. The zero value means any value.
type definition struct {
	from    syntax.Expr
	element bool            // an element of from, not from itself
	fn      *syntax.DefStmt // a function
	typ     string          // the type of a parameter that fabsh passes
}

// firstOf returns the first place of a variable in the script, nil for other names.
func firstOf(id *syntax.Ident) *syntax.Ident {
	if b, ok := id.Binding.(*resolve.Binding); ok {
		return b.First
	}
	return nil
}

// define records the definitions in a part of a script.
func (c *checker) define(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.AssignStmt:
		if n.Op == syntax.EQ {
			c.assign(n.LHS, definition{from: n.RHS})
		} else {
			c.assign(n.LHS, definition{})
		}
	case *syntax.ForStmt:
		c.iterate(n.Vars, n.X)
	case *syntax.ForClause:
		c.iterate(n.Vars, n.X)
	case *syntax.DefStmt:
		c.assign(n.Name, definition{fn: n})
		for i, p := range n.Params {
			c.parameter(p, givenType(n.Name.Name, i, p))
		}
	case *syntax.LambdaExpr:
		for _, p := range n.Params {
			c.parameter(p, "")
		}
	case *syntax.LoadStmt:
		for _, id := range n.To {
			c.assign(id, definition{})
		}
	case *syntax.CallExpr:
		if dot, ok := n.Fn.(*syntax.DotExpr); ok && slices.Contains([]string{"append", "extend", "insert"}, dot.Name.Name) {
			c.grows(dot.X)
		}
	}
	return true
}

// assign records that an expression gets a value.
func (c *checker) assign(to syntax.Expr, d definition) {
	switch to := to.(type) {
	case *syntax.Ident:
		if first := firstOf(to); first != nil {
			c.definitions[first] = append(c.definitions[first], d)
		}
	case *syntax.ParenExpr:
		c.assign(to.X, d)
	case *syntax.TupleExpr:
		for _, x := range to.List {
			c.assign(x, definition{})
		}
	case *syntax.ListExpr:
		for _, x := range to.List {
			c.assign(x, definition{})
		}
	case *syntax.IndexExpr:
		c.grows(to.X)
	}
}

// iterate records the variables of a loop.
func (c *checker) iterate(vars, over syntax.Expr) {
	pair, ok := vars.(*syntax.TupleExpr)
	if call, isCall := over.(*syntax.CallExpr); ok && isCall && len(pair.List) == 2 && len(call.Args) > 0 {
		if fn, ok := call.Fn.(*syntax.Ident); ok && fn.Name == "enumerate" {
			c.assign(pair.List[0], definition{})
			c.assign(pair.List[1], definition{from: call.Args[0], element: true})
			return
		}
	}
	c.assign(vars, definition{from: over, element: true})
}

// parameter records a parameter of a function.
func (c *checker) parameter(p syntax.Expr, typ string) {
	switch p := p.(type) {
	case *syntax.Ident:
		c.assign(p, definition{typ: typ})
	case *syntax.BinaryExpr:
		c.assign(p.X, definition{typ: typ})
	case *syntax.UnaryExpr:
		if p.X != nil {
			c.assign(p.X, definition{})
		}
	}
}

// givenType returns the type of a parameter that fabsh passes to a function.
func givenType(fn string, i int, p syntax.Expr) string {
	switch p := p.(type) {
	case *syntax.Ident:
		return script.ParamType(fn, i, p.Name)
	case *syntax.BinaryExpr:
		return script.ParamType(fn, i, p.X.(*syntax.Ident).Name)
	}
	return ""
}

// grows records that a variable may get elements of any type.
func (c *checker) grows(e syntax.Expr) {
	if id, ok := e.(*syntax.Ident); ok {
		if first := firstOf(id); first != nil {
			c.grown[first] = true
		}
	}
}

// DefParams returns the parameters of a script's own function.
func DefParams(fn *syntax.DefStmt) []lang.Param {
	params := []lang.Param{} // not nil: known
	keyword := false
	for _, p := range fn.Params {
		switch p := p.(type) {
		case *syntax.Ident:
			params = append(params, lang.Param{Name: p.Name, Keyword: keyword})
		case *syntax.BinaryExpr:
			params = append(params, lang.Param{Name: p.X.(*syntax.Ident).Name, Default: "...", Keyword: keyword})
		case *syntax.UnaryExpr:
			keyword = true
			if id, ok := p.X.(*syntax.Ident); ok {
				params = append(params, lang.Param{Name: p.Op.String() + id.Name})
			}
		}
	}
	return params
}
