package builtins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
)

// TestStar runs testdata/*.star. A file is chunks, divided by lines "---",
// each of which runs in a session of its own on the simulated fabric that the
// file's first line names ("# fabric: ring:n=2"). A comment ### "regexp" says
// that the chunk fails on that line with a message that matches.
func TestStar(t *testing.T) {
	files, err := filepath.Glob("testdata/*.star")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata/*.star", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) { runStar(t, path) })
	}
}

var expectation = regexp.MustCompile(`### ("(?:[^"\\]|\\.)*"|` + "`[^`]*`)")

func runStar(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	spec, ok := strings.CutPrefix(first, "# fabric: ")
	if !ok {
		t.Fatalf("%s: the first line must be # fabric: SPEC", path)
	}
	line := 0
	for chunk := range strings.SplitSeq(string(data), "\n---\n") {
		src := strings.Repeat("\n", line) + chunk
		line += strings.Count(chunk, "\n") + 2
		onSim(t, spec, nil, func(t *testing.T, f *fixture) { runChunk(t, f, path, src) })
	}
}

func runChunk(t *testing.T, f *fixture, path, src string) {
	var wantLine int
	var want *regexp.Regexp
	for i, l := range strings.Split(src, "\n") {
		if m := expectation.FindStringSubmatch(l); m != nil {
			if want != nil {
				t.Fatalf("%s:%d: the chunk ends where line %d fails: put this one after a line ---", path, i+1, wantLine)
			}
			pattern, err := strconv.Unquote(m[1])
			if err != nil {
				t.Fatalf("%s:%d: %v", path, i+1, err)
			}
			wantLine, want = i+1, regexp.MustCompile(pattern)
		}
	}
	env := maps.Clone(f.Interpreter.Globals)
	env["assert"] = assertModule
	env["written"] = written(f)
	thread := f.newThread(context.Background(), path)
	file, prog, err := starlark.SourceProgramOptions(&lang.Dialect, path, src, env.Has)
	if err == nil {
		f.WarnComparisons(file, env)
		_, err = prog.Init(thread, env)
	}
	switch {
	case err == nil && want != nil:
		t.Errorf("%s:%d: no error, want one that matches %q", path, wantLine, want)
	case err != nil && want == nil:
		t.Errorf("%s\n%s", path, f.Explain(err))
		var ee *starlark.EvalError
		if errors.As(err, &ee) {
			t.Log(ee.Backtrace())
		}
	case err != nil:
		if got := errorLine(err, path); got != wantLine || !want.MatchString(err.Error()) {
			t.Errorf("%s:%d: %v\nwant an error on line %d that matches %q", path, got, err, wantLine, want)
		}
	}
}

// errorLine is the innermost line of the file in an error.
func errorLine(err error, path string) int {
	var se syntax.Error
	var re resolve.ErrorList
	var ee *starlark.EvalError
	switch {
	case errors.As(err, &se):
		return int(se.Pos.Line)
	case errors.As(err, &re):
		return int(re[0].Pos.Line)
	case errors.As(err, &ee):
		for i := len(ee.CallStack) - 1; i >= 0; i-- {
			if fr := ee.CallStack[i]; fr.Pos.Filename() == path {
				return int(fr.Pos.Line)
			}
		}
	}
	return 0
}

// written returns what went to the two streams so far.
func written(f *fixture) *starlark.Builtin {
	return starlark.NewBuiltin("written", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		return starlark.Tuple{starlark.String(f.stdout.String()), starlark.String(f.stderr.String())}, nil
	})
}

var assertModule = &starlarkstruct.Module{Name: "assert", Members: starlark.StringDict{
	"eq": starlark.NewBuiltin("assert.eq", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if ok, err := starlark.Equal(args[0], args[1]); err != nil || !ok {
			return nil, fmt.Errorf("%v != %v", args[0], args[1])
		}
		return starlark.None, nil
	}),
	"true": starlark.NewBuiltin("assert.true", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if !args[0].Truth() {
			return nil, fmt.Errorf("%v is not true", args[0])
		}
		return starlark.None, nil
	}),
	// fails(fn, pattern): fn() fails with a message that matches.
	"fails": starlark.NewBuiltin("assert.fails", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		_, err := starlark.Call(t, args[0], nil, nil)
		pattern, _ := starlark.AsString(args[1])
		if err == nil {
			return nil, fmt.Errorf("no error, want one that matches %q", pattern)
		}
		if !regexp.MustCompile(pattern).MatchString(err.Error()) {
			return nil, fmt.Errorf("error %q, want one that matches %q", err, pattern)
		}
		return starlark.None, nil
	}),
}}
