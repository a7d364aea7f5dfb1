// Package scripttest runs the tests of scripts.
//
//	test.go    the tests that a script defines, and a run of one
//	result.go  the results: as a value, and as JUnit's XML

package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/builtins/script"
)

// Test is a test of a script: a function whose name begins with test_.
type Test struct {
	File   string
	Line   int
	Name   string
	Fabric string // the SPEC of its simulated fabric, or ""

	src string // of the script: a pipe can be read once
}

// ListTests runs a script, which may define tests, and lists these in the order of
// their lines. A script that has none does not run.
func ListTests(ctx context.Context, in *script.Interpreter, path string) (tests []Test, err error) {
	src, err := in.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	err = inScript(ctx, in, path, src, func(_ *starlark.Thread, globals starlark.StringDict) error {
		for _, name := range globals.Keys() { // in order, so that the same of several errors is reported
			fn, ok := globals[name].(*starlark.Function)
			if !ok || !strings.HasPrefix(name, script.TestPrefix) {
				continue
			}
			t := Test{File: path, Line: int(fn.Position().Line), Name: name, src: src}
			if t.Fabric, err = fabricOfTest(fn); err != nil {
				return fmt.Errorf("%s: %s: %w", check.PositionText(fn.Position()), name, err)
			}
			tests = append(tests, t)
		}
		return nil
	})
	slices.SortFunc(tests, func(a, b Test) int { return cmp.Or(a.Line-b.Line, strings.Compare(a.Name, b.Name)) })
	return tests, err
}

// fabricOfTest returns the default of a test's parameter sim. Other parameters must have
// defaults.
func fabricOfTest(fn *starlark.Function) (spec string, err error) {
	n := fn.NumParams()
	if fn.HasKwargs() {
		n--
	}
	if fn.HasVarargs() {
		n--
	}
	for i := range n {
		name, _ := fn.Param(i)
		switch v := fn.ParamDefault(i).(type) {
		case nil:
			return "", fmt.Errorf("parameter %s: no default; a test gets only its fabric: def %s(sim=\"fattree:k=4\")", name, fn.Name())
		case starlark.String:
			if name != script.SimParam {
				continue
			}
			if spec = string(v); spec == "" {
				return "", errors.New("parameter sim: empty default; want a simulated fabric such as \"fattree:k=4\"")
			}
		default:
			if name == script.SimParam {
				return "", fmt.Errorf("parameter sim: invalid default of type %s; want a simulated fabric such as \"fattree:k=4\"", v.Type())
			}
		}
	}
	return spec, nil
}

// RunTest runs the script of a test, and then the test, with the simulated fabric
// of the session.
func RunTest(ctx context.Context, in *script.Interpreter, test Test) error {
	if !strings.HasPrefix(test.File, "@") {
		if err := in.Runtime.Files.Confine(filepath.Dir(test.File)); err != nil {
			return err
		}
	}
	return inScript(ctx, in, test.File, test.src, func(t *starlark.Thread, globals starlark.StringDict) error {
		fn, ok := globals[test.Name].(*starlark.Function)
		if !ok {
			return fmt.Errorf("%s: test %s was not defined when the script ran again; define the same tests in each run", test.File, test.Name)
		}
		var kwargs []starlark.Tuple
		if test.Fabric != "" {
			kwargs = []starlark.Tuple{{starlark.String(script.SimParam), in.Globals[script.SimParam]}}
		}
		_, err := starlark.Call(t, fn, nil, kwargs)
		return err
	})
}

// ExplainTest renders the error that ended a test; exit() is one.
func ExplainTest(x *check.Explainer, err error) string {
	return x.ExplainExit(err, "not supported in a test; use fail(TEXT) to fail it")
}

// inScript runs a script that may define tests, and calls fn with its globals.
func inScript(ctx context.Context, in *script.Interpreter, path, src string, fn func(*starlark.Thread, starlark.StringDict) error) error {
	*lang.StateOf[remedies.Running](in.Runtime) = true // a test may call a remedy
	return in.Runtime.Evaluate(ctx, path, func(t *starlark.Thread) error {
		file, prog, err := in.Compile(path, src)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(file.Module.(*resolve.Module).Globals, func(b *resolve.Binding) bool {
			return strings.HasPrefix(b.First.Name, script.TestPrefix)
		}) {
			return nil
		}
		globals, err := prog.Init(t, in.Globals)
		if err != nil {
			return err
		}
		return fn(t, globals)
	})
}
