package lsp

import (
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
)

// outline is a script without syntax errors, whose names are resolved as far as possible.
type outline struct{ file *syntax.File }

// outlineOf returns the outline of a text; nil if it has syntax errors.
func outlineOf(path, text string) *outline {
	if lang.PlainText(path, 1, text) != nil {
		return nil
	}
	file, err := lang.Dialect.Parse(path, text, 0)
	if err != nil {
		return nil
	}
	any := func(string) bool { return true } // predeclared names do not matter here
	resolve.File(file, any, any)             // errors are findings of check
	return &outline{file}
}

// around returns the outline of a document without the line of an offset, which is being
// typed; else the last one without errors; nil: none.
func (d *document) around(offset int) *outline {
	start := strings.LastIndexByte(d.text[:offset], '\n') + 1
	end := len(d.text)
	if n := strings.IndexByte(d.text[offset:], '\n'); n >= 0 {
		end = offset + n
	}
	line := d.text[start:end]
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	for _, text := range []string{d.text, d.text[:start] + indent + "pass" + d.text[end:]} {
		if o := outlineOf(d.path, text); o != nil {
			return o
		}
	}
	return d.outline
}

// functionOf returns a function as builtins are declared.
func functionOf(def *syntax.DefStmt) *lang.Builtin {
	return &lang.Builtin{Name: def.Name.Name, Params: check.DefParams(def), Doc: docstring(def)}
}

// docstring returns the docstring of a function.
func docstring(def *syntax.DefStmt) string {
	if e, ok := def.Body[0].(*syntax.ExprStmt); ok {
		if l, ok := e.X.(*syntax.Literal); ok {
			text, _ := l.Value.(string)
			return lang.TrimDoc(text)
		}
	}
	return ""
}

// define adds the names that statements define: functions with their values, others
// without. load returns the function that a module defines.
func define(names starlark.StringDict, stmts []syntax.Stmt, load func(module, name string) *lang.Builtin) {
	bind := func(e syntax.Expr) {
		syntax.Walk(e, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Ident:
				names[n.Name] = nil
			case *syntax.DotExpr, *syntax.IndexExpr, *syntax.SliceExpr, *syntax.CallExpr:
				return false
			}
			return true
		})
	}
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.DefStmt:
				names[n.Name.Name] = lang.NewFunction(functionOf(n))
				return false // its names are its own
			case *syntax.AssignStmt:
				bind(n.LHS)
			case *syntax.ForStmt:
				bind(n.Vars)
			case *syntax.LoadStmt:
				for i, to := range n.To {
					names[to.Name] = nil
					if b := load(n.ModuleName(), n.From[i].Name); b != nil {
						names[to.Name] = lang.NewFunction(b)
					}
				}
			}
			return true
		})
	}
}

// parameters adds the parameters of a function.
func parameters(names starlark.StringDict, def *syntax.DefStmt) {
	for _, p := range check.DefParams(def) {
		names[strings.TrimLeft(p.Name, "*")] = nil
	}
}

// names returns the names that the text of a script defines at a line: those of the top
// level, and of the functions around the line.
func (o *outline) names(line int32, load func(module, name string) *lang.Builtin) starlark.StringDict {
	names := starlark.StringDict{}
	if o == nil {
		return names
	}
	stmts := o.file.Stmts
	for stmts != nil {
		define(names, stmts, load)
		var inner []syntax.Stmt
		for _, stmt := range stmts {
			if def, ok := stmt.(*syntax.DefStmt); ok {
				if start, end := def.Span(); start.Line <= line && line <= end.Line {
					parameters(names, def)
					inner = def.Body
				}
			}
		}
		stmts = inner
	}
	return names
}
