package program

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
)

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

// TestResultType is the type of results for -o json. Scripts have no value of it.
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
