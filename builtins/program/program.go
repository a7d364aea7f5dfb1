// Package program runs scripts as programs: a file with its entry function, a piece of code, a
// report, a routing policy, a kind of topology, and the tests of a script. Package audits runs
// audits, and package remedies remedies.
//
// [RunFile], [RunCode] and [RunReport] run a script to its end. A [Policy] and a [TopologyKind] are
// loaded once, with their options, and then called with values of Go. [ListTests] and [RunTest] run
// tests, each in a session of its own.
//
// All functions run scripts with the interpreter that they are given, so by one goroutine at a
// time.
package program

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
)

// RunFile runs a script and then, if it defines one, its entry function with the words of the
// command line.
func RunFile(ctx context.Context, in *script.Interpreter, path string, words []string) error {
	return in.Open(ctx, path, func(t *starlark.Thread, src string) error {
		audits.NameMetrics(in.Runtime, nameOf(path))
		file, prog, err := in.Compile(path, src)
		if err != nil {
			return err
		}
		// Checked before anything runs: with --dry-run, the user relies on it.
		if len(words) > 0 && !script.MayHaveEntry(file) {
			return noEntry(path)
		}
		// The globals are not frozen: an entry function may fill a table that
		// its script defines at top level.
		globals, err := prog.Init(t, in.Globals)
		if err != nil {
			return err
		}
		fn := script.FindEntry(globals)
		if fn == nil {
			if len(words) > 0 {
				return noEntry(path)
			}
			return nil
		}
		return callEntry(t, in, script.NewEntry(filepath.Base(path), fn, ""), words)
	})
}

// noEntry returns the error of a script without an entry function that gets arguments.
func noEntry(path string) error {
	return fmt.Errorf("%s: takes no arguments; it does not define main(), audit() or route()", path)
}

// callEntry calls an entry function with the words of a command line.
func callEntry(t *starlark.Thread, in *script.Interpreter, e *script.Entry, words []string) error {
	e.ProgramFlags = in.Flags
	a, err := e.Parse(words)
	if err != nil {
		return fmt.Errorf("%s: %w\nusage: %s", e.Name, err, e.Usage())
	}
	if a.Help {
		return in.Runtime.Emit(lang.Stdout, e.Help())
	}
	a.Allow(in.Runtime.Files)
	if e.Fabric {
		f, err := topology.CurrentFabric(t)
		if err != nil {
			return err
		}
		a.Positional = append(starlark.Tuple{f}, a.Positional...)
	}
	v, err := starlark.Call(t, e.Fn, a.Positional, a.Keywords)
	if err == nil && e.Fn.Name() == "route" && v != starlark.None {
		err = lang.ShowValue(t, v) // the tables that `fabsh route` would verify and write
	}
	return err
}

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
		if err != nil || !last || globals[lastName] == starlark.None || audits.WillReport(in.Runtime, globals[lastName]) {
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

// RunReport runs a report, a .star file that defines main() or a shipped one, with the options
// and words of a command line.
func RunReport(ctx context.Context, in *script.Interpreter, name string, words []string) error {
	path, err := script.Reports.Locate(name)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return in.Open(ctx, path, func(t *starlark.Thread, src string) error {
		audits.NameMetrics(in.Runtime, nameOf(path))
		s, err := in.Run(t, path, src)
		if err != nil {
			return err
		}
		fn := s.Function("main")
		if fn == nil {
			return fmt.Errorf("%s: not a report; it does not define main()", path)
		}
		e := script.NewEntry(nameOf(path), fn, s.Doc)
		return plainFailure(path, e.Name, callEntry(t, in, e, words))
	})
}

// plainFailure returns err without its position in the script, if a function that a shipped
// report called failed: the cause is the command line or the fabric, not the script.
func plainFailure(script, name string, err error) error {
	var ee *starlark.EvalError
	var te *topology.TargetError
	switch {
	case !strings.HasPrefix(script, "@") || !errors.As(err, &ee) || ee.CallStack.At(0).Pos.Filename() != "<builtin>":
		return err
	case ee.CallStack.At(0).Name == "fail":
		return fmt.Errorf("%s: %s", name, strings.TrimPrefix(ee.Msg, "fail: "))
	case errors.As(err, &te):
		return fmt.Errorf("%s: %w", name, te)
	case ee.Unwrap() == nil:
		return err
	}
	return fmt.Errorf("%s: %w", name, ee.Unwrap())
}
