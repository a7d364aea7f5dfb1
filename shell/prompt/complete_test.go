package prompt

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/topology"
)

func testCompleter(t *testing.T) *completer {
	t.Helper()
	record := func(d starlark.StringDict) starlark.Value {
		return starlarkstruct.FromStringDict(starlarkstruct.Default, d)
	}
	port := record(starlark.StringDict{"num": starlark.MakeInt(1), "state": starlark.String("active"), "state_code": starlark.MakeInt(4)})
	globals := starlark.StringDict{
		"f":        record(starlark.StringDict{"switches": starlark.NewList([]starlark.Value{port}), "nodes": starlark.None}),
		"d":        starlark.NewDict(1),
		"discover": starlark.NewBuiltin("discover", nil),
		"smp_get":  starlark.NewBuiltin("smp_get", nil),
		"smp_set":  starlark.NewBuiltin("smp_set", nil),
		"_":        port,
	}
	globals["d"].(*starlark.Dict).SetKey(starlark.String("leaf 1"), port)
	return &completer{
		globals:  func() starlark.StringDict { return globals },
		exports:  func(module string) []string { return []string{"a of " + module, "b"} },
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
		keywords: func(callee starlark.Value, args []string) []string {
			return []string{"attr", "target", "port"}[min(2, len(args)):]
		},
		words: func(callee starlark.Value, arg argument) ([]string, bool) {
			switch {
			case callee.String() == "<built-in function discover>":
				return nil, true
			case arg.keyword == "target" || arg.keyword == "" && len(arg.before) == 1:
				return []string{"leaf 1", "leaf 2", `the "core"`, "host's"}, false
			case len(arg.before) == 0:
				return []string{"NodeInfo", "PortInfo", "PortInfoExtended"}, false
			}
			return nil, false
		},
		files: func(prefix string) []string {
			var out []string
			for _, f := range []string{"examples/", "notes.star"} {
				if strings.HasPrefix(f, prefix) {
					out = append(out, f)
				}
			}
			return out
		},
	}
}

func TestComplete(t *testing.T) {
	c := testCompleter(t)
	tests := []struct {
		text  string
		want  []string // whole words
		typed string   // what they replace
	}{
		{"", []string{indentUnit}, ""},
		{"def f():\n  ", []string{indentUnit}, ""},
		{"disc", []string{"discover"}, "disc"},
		{"x = sm", []string{"smp_get", "smp_set"}, "sm"},
		{"wh", []string{"while"}, "wh"},
		{"def f():\n  ret", []string{"return"}, "ret"},
		{"x = ", nil, ""},
		{"sorte", []string{"sorted"}, "sorte"},
		{"1", nil, ""},
		{"nothing_like_it", nil, "nothing_like_it"},
		{"# disc", nil, ""},

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

		{"f.", []string{"nodes", "switches"}, ""},
		{"f.sw", []string{"switches"}, "sw"},
		{"x = [f.sw", []string{"switches"}, "sw"},
		{"f.switches[0].st", []string{"state", "state_code"}, "st"},
		{"f.switches[-1].n", []string{"num"}, "n"},
		{"f.switches[7].n", []string{"num"}, "n"},
		{"d['leaf 1'].n", []string{"num"}, "n"},
		{"d['leaf 2'].n", nil, "n"},
		{"_.n", []string{"num"}, "n"},
		{"f.switches.app", []string{"append"}, "app"},
		{"'a'.joi", []string{"join"}, "joi"},
		{"discover().sw", nil, "sw"},
		{"f.nothing.sw", nil, "sw"},
		{"f.switches[i].st", []string{"state", "state_code"}, "st"},

		{"smp_get(", []string{"attr=", "target=", "port="}, ""},
		{"smp_get(p", []string{"port=", "pass", "print"}, "p"},
		{"smp_get('PortInfo', 1, ", []string{"port="}, ""},
		{"smp_get('a, (b', 1, ", []string{"port="}, ""},
		{"smp_get('PortInfo', [1, 2], ", []string{"port="}, ""},
		{"smp_get('PortInfo', target=3, po", []string{"port="}, "po"},
		{"smp_get(target=1, ", []string{"attr=", "port="}, ""},
		{"smp_get(target=f.sw", []string{"switches"}, "sw"},
		{"smp_get(target=disc", []string{"discover"}, "disc"},
		{"smp_get(\n  tar", []string{"target="}, "tar"},
		{"len(smp_get(tar", []string{"target="}, "tar"},
		{"def smp_get(tar", nil, "tar"},

		{"smp_get('", []string{"NodeInfo", "PortInfo", "PortInfoExtended"}, ""},
		{"smp_get(\"Nod", []string{`NodeInfo"`}, "Nod"},
		{"smp_get('Po", []string{"PortInfo", "PortInfoExtended"}, "Po"},
		{"smp_get('PortInfo', 'leaf ", []string{"leaf 1", "leaf 2"}, "leaf "},
		{"smp_get('PortInfo', target='leaf 1", []string{"leaf 1'"}, "leaf 1"},
		{`smp_get('PortInfo', "the`, []string{`the \"core\""`}, "the"},
		{`smp_get('PortInfo', 'host`, []string{`host\'s'`}, "host"},
		{"smp_get('PortInfo', 'no' + 'le", nil, "le"},
		{"x = 'le", nil, "le"},
		{"discover('no", []string{"notes.star"}, "no"},
		{"load('ex", []string{"examples/"}, "ex"},
		{"load('notes.star', 'a", []string{"a of notes.star'"}, "a"},
		{`load("notes.star", x="`, []string{"a of notes.star", "b"}, ""},
		{"x = '''\nle", nil, "\nle"},
		{"x = 'broken\nsmp_get('Nod", []string{"NodeInfo'"}, "Nod"},
	}
	for _, tt := range tests {
		words, start := c.complete(tt.text, "")
		if diff := cmp.Diff(tt.want, words); diff != "" || tt.text[start:] != tt.typed {
			t.Errorf("%q: replaces %q, want %q; -want +got:\n%s", tt.text, tt.text[start:], tt.typed, diff)
		}
	}
}

// Attributes are read, so they must be all that is read.
func TestCompleteCallsNothing(t *testing.T) {
	c := testCompleter(t)
	called := false
	c.globals()["boom"] = starlark.NewBuiltin("boom", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		called = true
		return starlark.None, nil
	})
	for _, text := range []string{"boom().", "boom()[0].", "f.switches[boom()].", "smp_get(boom(), ", "smp_get(x=boom().a"} {
		c.complete(text, "")
	}
	if called {
		t.Error("completion called a function")
	}
}

func FuzzComplete(f *testing.F) {
	f.Add("smp_get('PortInfo', f.switches[0].")
	f.Add("x = '''\n\\")
	f.Add("f(a==1, b=[(")
	f.Fuzz(func(t *testing.T, text string) {
		_, start := testCompleter(t).complete(text, "")
		if start < 0 || start > len(text) {
			t.Fatalf("start %d of %d", start, len(text))
		}
	})
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
		c := &completer{globals: func() starlark.StringDict { return starlark.StringDict{"sim": x.sim} }, own: func(string) bool { return true }}
		names, _ := c.complete("sim.", "")
		if !slices.Contains(names, "unlink") {
			t.Errorf("no unlink in %v", names)
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n != "play" && n != "actions" })
		if got := strings.Join(names, " "); got != x.want {
			t.Errorf("got %q, want %q", got, x.want)
		}
	}
}
