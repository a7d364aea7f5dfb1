package prompt

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"fabsh/builtins/check"
	"fabsh/builtins/topology"
)

// TestComplete: commands and reports at the prompt. Variables hide them.
func TestComplete(t *testing.T) {
	globals := starlark.StringDict{"d": starlark.None, "discover": starlark.NewBuiltin("discover", nil)}
	c := &completer{
		Completer: check.Completer{
			Globals: func() starlark.StringDict { return globals },
			Lead:    func() []string { return []string{"iblinkinfo", "ibtracert", "audit"} },
			Files: func(prefix string) []string {
				return check.Matching([]string{"examples/", "notes.star"}, prefix)
			},
		},
		reports:  func() []string { return []string{"iblinkinfo", "ibtracert", "d"} },
		options:  func(report string) []string { return []string{"--" + report, "--down"} },
		commands: Commands{Names: map[string]bool{"audit": true, "sim": false}},
		follow: func(words []string, typed string) ([]string, bool) {
			if slices.Contains(words, "--baseline") {
				return nil, true
			}
			return []string{"config", "counters", "--deep"}[len(words)-1:], false
		},
		own: func(name string) bool { return globals.Has(name) },
	}
	tests := []struct {
		text  string
		want  []string // whole words
		typed string   // what they replace
	}{
		{"", []string{indentUnit}, ""},
		{"def f():\n  ", []string{indentUnit}, ""},
		{"ib", []string{"iblinkinfo", "ibtracert"}, "ib"},
		{"x = ib", nil, "ib"},
		{"iblinkinfo --", []string{"--iblinkinfo", "--down"}, "--"},
		{"iblinkinfo 'a b' --d", []string{"--down"}, "--d"},
		{"iblinkinfo lea", nil, "lea"},
		{"iblinkinfo = disc", []string{"discover"}, "disc"},
		{"d --", nil, ""}, // a variable has that name

		{"audit c", []string{"config", "counters"}, "c"},
		{"audit config c", []string{"counters"}, "c"},
		{"audit --baseline no", []string{"notes.star"}, "no"},
		{"fabsh audit c", []string{"config", "counters"}, "c"},
		{"audi", []string{"audit"}, "audi"},
		{"audit = disc", []string{"discover"}, "disc"},
	}
	for _, tt := range tests {
		words, start := c.Complete(tt.text, "")
		if diff := cmp.Diff(tt.want, words); diff != "" || tt.text[start:] != tt.typed {
			t.Errorf("%q: replaces %q, want %q; -want +got:\n%s", tt.text, tt.text[start:], tt.typed, diff)
		}
	}
}

func TestSuffixes(t *testing.T) {
	words := []string{"leaf 1", "leaf 2"}
	s := &suffixes{complete: func(text, _ string) ([]string, int) { return words, strings.LastIndexByte(text, '"') + 1 }, size: func() (int, int) { return 80, 24 }}
	tests := []struct {
		words      []string
		line       string
		want       []string
		wantLength int
	}{
		{[]string{"leaf 1", "leaf 2"}, `f("le`, []string{"af 1", "af 2"}, 2},
		{[]string{"leaf 1", "Lear"}, `f("le`, []string{"af 1"}, 2},
		{[]string{"größe", "größer"}, `f("grö`, []string{"ße", "ßer"}, 3},
		{[]string{strings.Repeat("x", 100) + "1", strings.Repeat("x", 100) + "2"}, `f("x`, []string{strings.Repeat("x", 99)}, 1}, // wider than the screen
		{[]string{strings.Repeat("x", 100), "y"}, `f("`, nil, 0},
		{manyWords(5000), `f("n`, []string{"ode"}, 1}, // more than a screen
	}
	for _, tt := range tests {
		words = tt.words
		tails, length := s.Do([]rune(tt.line), len([]rune(tt.line)))
		var got []string
		for _, tail := range tails {
			got = append(got, string(tail))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || length != tt.wantLength {
			t.Errorf("%q: length %d, want %d; -want +got:\n%s", tt.line, length, tt.wantLength, diff)
		}
	}
}

func manyWords(n int) []string {
	var words []string
	for i := range n {
		words = append(words, "node"+strings.Repeat("i", i%7)+string(rune('a'+i%26)))
	}
	slices.Sort(words)
	return words
}

// TestCompleteServed: methods of sim that are refused on a fabric that another process serves
// are not proposed there.
func TestCompleteServed(t *testing.T) {
	for _, x := range []struct {
		sim  *topology.Sim
		want string
	}{
		{&topology.Sim{Remote: func(string, []byte) ([]byte, error) { return nil, nil }}, ""},
		{&topology.Sim{}, "actions play"},
	} {
		c := &check.Completer{Globals: func() starlark.StringDict { return starlark.StringDict{"sim": x.sim} }}
		names, _ := c.Complete("sim.", "")
		if !slices.Contains(names, "unlink") {
			t.Errorf("no unlink in %v", names)
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n != "play" && n != "actions" })
		if got := strings.Join(names, " "); got != x.want {
			t.Errorf("got %q, want %q", got, x.want)
		}
	}
}
