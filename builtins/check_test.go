package builtins

import (
	"context"
	"errors"
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
			s, err := NewSession(SessionOptions{FS: afero.NewMemMapFs(), Dir: "/work"})
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

// TestCheckMany: the problems of a long script are limited, and the check of one ends with its
// context.
func TestCheckMany(t *testing.T) {
	s := plain(t, nil)
	var src strings.Builder
	for i := range 50000 {
		fmt.Fprintf(&src, "discove%d()\n", i)
	}
	problems, err := check.Source(t.Context(), s.Interpreter, "x.star", src.String())
	if err != nil || len(problems) != 1001 {
		t.Fatalf("%d problems, %v", len(problems), err)
	}
	for i, want := range map[int]string{
		0:    "x.star:1:1: undefined: discove0 (did you mean discover?)",
		999:  "x.star:1000:1: undefined: discove999",
		1000: "x.star:1000:1: 1000 problems or more; others are not reported",
	} {
		if got := problems[i].String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("a message waits")
	cancel(cause)
	if problems, err := check.Source(ctx, s.Interpreter, "x.star", src.String()); err != cause || len(problems) != 0 {
		t.Errorf("%d problems, %v", len(problems), err)
	}
}
