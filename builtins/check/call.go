package check

import (
	"strings"

	"go.starlark.net/syntax"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// call checks the arguments of a call of a known function.
func (c *checker) call(n *syntax.CallExpr) {
	name, params := c.callee(n.Fn)
	if params == nil {
		return
	}
	given, positional, open := map[string]bool{}, 0, false
	for i, arg := range n.Args {
		switch arg := arg.(type) {
		case *syntax.UnaryExpr:
			if arg.Op == syntax.STAR || arg.Op == syntax.STARSTAR {
				open = true
				continue
			}
		case *syntax.BinaryExpr:
			if arg.Op == syntax.EQ {
				id := arg.X.(*syntax.Ident)
				given[id.Name] = true
				c.keyword(n, name, params, id)
				continue
			}
		}
		if i < len(params) {
			c.attributeName(params[i], arg)
		}
		positional++
	}
	if open {
		return
	}
	takes := 0
	for _, p := range params {
		switch {
		case strings.HasPrefix(p.Name, "**"):
		case strings.HasPrefix(p.Name, "*"):
			takes = len(n.Args)
		case p.Keyword:
		default:
			if takes++; takes <= positional {
				continue
			}
		}
		if p.Default == "" && !strings.HasPrefix(p.Name, "*") && !given[p.Name] {
			c.report(n.Lparen, "%s: missing argument for %s", name, p.Name)
		}
	}
	if positional > takes {
		c.report(n.Lparen, "%s: got %s, want at most %d", name, plural.Count(positional, "argument", "arguments"), takes)
	}
}

// keyword checks that a function takes an argument by that name.
func (c *checker) keyword(n *syntax.CallExpr, callee string, params []lang.Param, id *syntax.Ident) {
	var names []string
	for i, p := range params {
		switch {
		case p.Name == id.Name:
			return
		case p.Kind == records.KindFields:
			a := mad.ByName(textArgument(n, 0, params[0].Name))
			if a == nil || i == 0 || !ofOneClass(params[0].Kind) || params[0].Default != "" || len(a.Variants) > 0 || a.Field(id.Name) != nil || records.CodeField(a, id.Name) != nil {
				return
			}
			for _, f := range a.Flat() {
				names = append(names, f.Script)
			}
		case strings.HasPrefix(p.Name, "**"):
			return
		case !strings.HasPrefix(p.Name, "*"):
			names = append(names, p.Name)
		}
	}
	c.report(id.NamePos, "%s: unexpected keyword argument %s%s", callee, id.Name, fabric.DidYouMean(id.Name, names))
}

// ofOneClass reports whether the parameter takes the name of an attribute, and no other
// arguments than its fields. Requests of other classes have raw answers, too, and parts of
// their modifiers.
func ofOneClass(k *lang.Kind) bool {
	return k == records.KindSMPAttribute || k == records.KindPerfAttribute || k == records.KindRecord
}

// attributeName checks that a text names an attribute, if a parameter takes one.
func (c *checker) attributeName(p lang.Param, arg syntax.Expr) {
	l, ok := arg.(*syntax.Literal)
	if !ok || !ofOneClass(p.Kind) {
		return
	}
	if name, ok := l.Value.(string); ok && mad.ByName(name) == nil {
		c.report(l.TokenPos, "unknown attribute %q%s", name, fabric.DidYouMean(name, datagrams.AllAttributeNames()))
	}
}

// callee returns the name and the parameters of a function that is called, nil if unknown.
func (c *checker) callee(fn syntax.Expr) (string, []lang.Param) {
	shape := c.inference.Infer(fn)
	if f, ok := shape.Value.(*lang.Function); ok {
		return f.Name(), f.Params
	}
	if shape.Call != nil {
		return shape.Call.Name, shape.Call.Params
	}
	id, ok := fn.(*syntax.Ident)
	if !ok {
		return "", nil
	}
	if all := c.definitions[firstOf(id)]; len(all) == 1 && all[0].fn != nil {
		return id.Name, DefParams(all[0].fn)
	}
	return "", nil
}
