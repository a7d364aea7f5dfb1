package program

import (
	"context"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// RunCode runs a piece of code, as with -c, and shows the value of its last
// expression unless that is None. name replaces a file name in messages.
func RunCode(ctx context.Context, in *script.Interpreter, name, code string) error {
	return in.Runtime.Evaluate(ctx, name, func(t *starlark.Thread) error {
		in.Sources[name] = code
		file, err := lang.Dialect.Parse(name, code, 0)
		if err != nil {
			return err
		}
		last := captureLast(file)
		prog, err := starlark.FileProgram(file, in.Globals.Has)
		if err != nil {
			return err
		}
		in.Runtime.WarnComparisons(file, in.Globals)
		globals, err := prog.Init(t, in.Globals)
		if err != nil || !last || globals[lastName] == starlark.None {
			return err
		}
		return lang.ShowValue(t, globals[lastName])
	})
}

// lastName is the global that holds the last expression of a piece of code.
const lastName = "_"

// captureLast turns a last statement that is an expression into an assignment
// to lastName.
func captureLast(f *syntax.File) bool {
	if len(f.Stmts) == 0 {
		return false
	}
	i := len(f.Stmts) - 1
	expr, ok := f.Stmts[i].(*syntax.ExprStmt)
	if !ok {
		return false
	}
	start, _ := expr.Span()
	f.Stmts[i] = &syntax.AssignStmt{
		OpPos: start,
		Op:    syntax.EQ,
		LHS:   &syntax.Ident{NamePos: start, Name: lastName},
		RHS:   expr.X,
	}
	return true
}
