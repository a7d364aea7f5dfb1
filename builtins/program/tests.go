package program

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
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
	err = runTestScript(ctx, in, path, src, func(_ *starlark.Thread, globals starlark.StringDict) error {
		for _, name := range globals.Keys() { // in order, so that each run reports the same one of several errors
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
	return runTestScript(ctx, in, test.File, test.src, func(t *starlark.Thread, globals starlark.StringDict) error {
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

// ExplainTest renders the error that ended a test, such as a call of exit().
func ExplainTest(x *check.Explainer, err error) string {
	return x.ExplainExit(err, "not supported in a test; use fail(TEXT) to fail it")
}

// runTestScript runs a script that may define tests, and calls fn with its globals.
func runTestScript(ctx context.Context, in *script.Interpreter, path, src string, fn func(*starlark.Thread, starlark.StringDict) error) error {
	ctx = remedies.AllowActions(ctx, in.Runtime) // a test may call a remedy
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

// TestResult is the result of a test, or of a script that does not load, which has no name and no
// line.
type TestResult struct {
	Test
	Outcome string // passed, failed, error (the script does not load)
	Message string // why, with the calls and the source line
	Output  string // what the test printed
}

// Outcomes of tests.
const (
	TestPassed = "passed"
	TestFailed = "failed"
	TestError  = "error"
)

// TestResultType is the type of results for -o json. Scripts have no such values.
var TestResultType = &lang.ResultType{
	Name: "test",
	Doc:  "The result of a test of `fabsh test`.",
	Members: []lang.ResultMember{
		{Name: "file", Doc: "the script"},
		{Name: "line", Doc: "line of the function; None for a script that does not load"},
		{Name: "name", Doc: "name of the function; None for a script that does not load"},
		{Name: "fabric", Doc: "the simulated fabric; None if the test has none"},
		{Name: "outcome", Doc: `"passed", "failed", or "error": the script does not load`},
		{Name: "message", Doc: "why it failed, with the calls and the source line; empty if it passed"},
		{Name: "output", Doc: "output of the test", Long: true},
	},
}

// WrapTestResults returns results as a value that can be shown.
func WrapTestResults(results []TestResult) starlark.Value {
	return lang.List(results, func(r TestResult) starlark.Value {
		return lang.NewResult(TestResultType, starlark.String(r.File), lang.OrNone(r.Line > 0, starlark.MakeInt(r.Line)), lang.TextOrNone(r.Name), lang.TextOrNone(r.Fabric), starlark.String(r.Outcome), starlark.String(r.Message), starlark.String(r.Output))
	})
}

// WriteJUnit writes results in JUnit's XML, for continuous integration: a suite for each
// script. It has no times, so equal results give equal bytes.
func WriteJUnit(w io.Writer, results []TestResult) error {
	all := junitSuites{Name: "fabsh test"}
	for _, r := range results {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != lang.OneLine(r.File) {
			all.Suites = append(all.Suites, junitSuite{Name: lang.OneLine(r.File)})
		}
		suite := &all.Suites[len(all.Suites)-1]
		c := junitCase{Name: lang.OneLine(r.Name), Class: lang.OneLine(r.File), File: lang.OneLine(r.File), Line: r.Line, Output: lang.Harmless(r.Output)}
		why := &junitWhy{Text: lang.Harmless(r.Message)}
		why.Message, _, _ = strings.Cut(why.Text, "\n")
		suite.Tests, all.Tests = suite.Tests+1, all.Tests+1
		switch r.Outcome {
		case TestFailed:
			c.Failure = why
			suite.Failures, all.Failures = suite.Failures+1, all.Failures+1
		case TestError:
			c.Name, c.Error = "load", why
			suite.Errors, all.Errors = suite.Errors+1, all.Errors+1
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// The elements of JUnit's XML.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string    `xml:"name,attr"`
	Class   string    `xml:"classname,attr"`
	File    string    `xml:"file,attr"`
	Line    int       `xml:"line,attr,omitempty"`
	Failure *junitWhy `xml:"failure"`
	Error   *junitWhy `xml:"error"`
	Output  string    `xml:"system-out,omitempty"`
}

type junitWhy struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}
