package builtins

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"fabsh/builtins/check"
	"fabsh/builtins/script"
)

// TestCheckOfWhatRuns: nothing is found in what other tests run: shipped scripts,
// examples of help, and scripts of tests that do not fail.
func TestCheckOfWhatRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	s := plain(t, nil)
	sources := map[string]string{}
	for _, name := range script.Embedded() {
		src, err := s.Interpreter.Read(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = src
	}
	for _, b := range documentedBuiltins() {
		var code strings.Builder
		for line := range strings.Lines(strings.TrimSpace(b.Example) + "\n") {
			if input, ok := strings.CutPrefix(line, "> "); ok {
				code.WriteString(input)
			}
		}
		sources["example of "+b.Name] = code.String()
	}
	files, err := filepath.Glob("testdata/*.star")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata/*.star", err)
	}
	for _, path := range files {
		if filepath.Base(path) == "words.star" {
			continue // it tests the warnings of wrong words
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line := 0
		for chunk := range strings.SplitSeq(string(data), "\n---\n") {
			if !strings.Contains(chunk, "### ") {
				sources[fmt.Sprintf("%s:%d", path, line)] = strings.Repeat("\n", line) + chunk
			}
			line += strings.Count(chunk, "\n") + 2
		}
	}
	for name, src := range sources {
		problems, err := check.Script(context.Background(), s.Interpreter, name, src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, p := range problems {
			if !strings.HasPrefix(p.Text, "undefined: assert") && !strings.HasPrefix(p.Text, "undefined: written") { // names of the tests themselves
				t.Error(p)
			}
		}
	}
}

// FuzzCheck: no text makes it panic, and it says the same twice.
func FuzzCheck(f *testing.F) {
	for _, src := range []string{"f = discover()\nfor p in f.ports: p.x\n", "def f(a, *b, c=1, **d): f(1, *b, c=f, **d)\n", "x, y = [z for z in x]\nx[0] += lambda a=x: a.b\n", "load('@std//lib/walk.star', a='walk')\na(1=2)", "smp_get('PortInfo', 1).m_key.x\nb'a'.y\n(1).z\n"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		check := func() string {
			s, err := NewSession(Options{FS: afero.NewMemMapFs(), Dir: "/work"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			problems, err := check.Script(context.Background(), s.Interpreter, "x.star", src)
			return fmt.Sprint(problems, err)
		}
		if first, second := check(), check(); first != second {
			t.Errorf("%q: %s, and then %s", src, first, second)
		}
	})
}
